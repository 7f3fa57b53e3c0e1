"""The wheel that a node installs: all of the program, none of its tests, no dependency beyond the declared ones."""

from __future__ import annotations

import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from email import message_from_bytes
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[zipfile.ZipFile]:
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=ROOT,
        check=True,
        capture_output=True,
        timeout=60,
    )
    (file,) = folder.glob("*.whl")
    assert file.name.endswith("-py3-none-any.whl")
    with zipfile.ZipFile(file) as opened:
        yield opened


def test_the_wheel_holds_the_whole_package_and_nothing_else(wheel: zipfile.ZipFile) -> None:
    packed = {name for name in wheel.namelist() if ".dist-info/" not in name}
    written = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "npu_watchd").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert packed == written


@pytest.mark.parametrize(
    "data",
    [
        "npu_watchd/simnode/scenarios/",
        "npu_watchd/sinks/web/static/",
        "npu_watchd/codes/codes.tsv",
        "npu_watchd/compatibility/",
    ],
)
def test_the_wheel_holds_the_data_files(wheel: zipfile.ZipFile, data: str) -> None:
    assert [name for name in wheel.namelist() if name.startswith(data)]


def test_the_wheel_asks_for_what_pyproject_declares(wheel: zipfile.ZipFile) -> None:
    (name,) = (name for name in wheel.namelist() if name.endswith("/METADATA"))
    metadata = message_from_bytes(wheel.read(name))
    asked = {text for text in metadata.get_all("Requires-Dist", []) if "extra ==" not in text}
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    assert {plain(text) for text in asked} == {plain(text) for text in declared}
    assert metadata["Requires-Python"] == ">=3.11"


def test_the_wheel_brings_the_command(wheel: zipfile.ZipFile) -> None:
    (name,) = (name for name in wheel.namelist() if name.endswith("/entry_points.txt"))
    assert wheel.read(name).decode().split() == ["[console_scripts]", "npu-watchd", "=", "npu_watchd.__main__:main"]


def plain(requirement: str) -> tuple[str, frozenset[str]]:
    """Name and bounds, whatever their order."""
    bare = requirement.replace(" ", "")
    name = bare.split(">")[0].split("<")[0].lower()
    return name, frozenset(bare[len(name) :].split(","))
