"""The tar of `make wheelhouse` on a node that has neither network nor index."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

import npu_watchd
from tests.e2e.container import container

ROOT = Path(__file__).parents[1]
HERE = f"{platform.machine()} {sys.version_info.major}.{sys.version_info.minor}"
PYTHON = Path(sys.executable).resolve()
NO_INDEX = ("No matching distribution", "Could not find a version", "connection", "Connection", "Temporary failure")


@pytest.fixture(scope="module")
def tar(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With the wheels for this machine and this Python."""
    dist = tmp_path_factory.mktemp("dist")
    built = subprocess.run(
        ["tools/wheelhouse.sh", sys.executable, *HERE.split(), dist],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    if built.returncode != 0 and any(words in built.stderr for words in NO_INDEX):
        pytest.skip(f"the package index cannot be reached: {built.stderr.strip().splitlines()[-1]}")
    assert built.returncode == 0, built.stderr
    return Path(built.stdout.splitlines()[-1])


@pytest.fixture
def unpacked(tar: Path, tmp_path: Path) -> Path:
    with tarfile.open(tar) as opened:
        opened.extractall(tmp_path, filter="data")
    return tmp_path / f"npu-watchd-{npu_watchd.__version__}"


def install(folder: Path, image: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Into an image, so that this machine stays as it is; an index that would be asked does not exist."""
    given = {"ROOT": str(image), "PYTHON": str(PYTHON), "PIP_INDEX_URL": "http://index.invalid/", **environment}
    argv = [folder / "install.sh"]
    return subprocess.run(
        argv,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
        cwd="/",
        env={"PATH": os.environ["PATH"], "HOME": str(folder), **given},
    )


def program(image: Path, *arguments: str) -> str:
    argv = [str(image / "opt/npu-watchd/bin/python"), "-I", "-m", "npu_watchd", *arguments]
    return subprocess.run(argv, capture_output=True, text=True, timeout=30, check=True, cwd="/").stdout


def test_the_tar_alone_installs_the_program_and_again_changes_nothing_of_the_nodes_own(
    unpacked: Path, tmp_path: Path
) -> None:
    image = tmp_path / "image"
    done = install(unpacked, image)
    assert done.returncode == 0, done.stderr
    assert program(image, "--version") == f"npu-watchd, version {npu_watchd.__version__}\n"
    assert "quiet" in program(image, "demo", "--list")

    unit = image / "usr/local/lib/systemd/system/npu-watchd.service"
    assert unit.read_text() == (ROOT / "deploy/systemd/npu-watchd.service").read_text()
    assert {path.name for path in (image / "usr/local/lib").rglob("npu-watchd.conf")} == {"npu-watchd.conf"}
    assert (image / "usr/local/bin/npu-watchd").readlink() == Path("/opt/npu-watchd/bin/npu-watchd")
    assert (image / "opt/npu-watchd/bin/npu-watchd").read_text().startswith("#!/opt/npu-watchd/bin/python")
    assert (image / "opt/npu-watchd/share/npu-watchd/docs/runbooks").is_dir()

    own = [image / "etc/npu-watchd/config.toml", image / "etc/systemd/system/npu-watchd.service.d/own.conf"]
    own.append(image / "var/lib/npu-watchd/state.db")
    for file in own:
        file.parent.mkdir(parents=True)
        file.write_text("the node's own")
    # An upgrade that does not change the version, of a program that is damaged.
    (library,) = (image / "opt/npu-watchd/lib").glob("python3*/site-packages/npu_watchd/daemon.py")
    library.write_text("damaged")
    again = install(unpacked, image)
    assert again.returncode == 0, again.stderr
    assert "making" not in again.stdout, "the environment is kept"
    assert library.read_text() == (ROOT / "npu_watchd/daemon.py").read_text()
    assert {file.read_text() for file in own} == {"the node's own"}

    # A wheel that was changed on its way.
    (wheel,) = (unpacked / "wheels").glob("npu_watchd-*.whl")
    wheel.write_bytes(wheel.read_bytes() + b"x")
    refused = install(unpacked, image)
    assert refused.returncode != 0
    assert "DO NOT MATCH THE HASHES" in refused.stderr
    assert program(image, "--version"), "what was there still runs"


@pytest.mark.parametrize(
    ("built_for", "said"),
    [
        (
            "riscv64 3.11",
            ["these wheels are for", f"is for {HERE}", "The wheels are for (machine, Python): riscv64 3.11."],
        ),
        (f"{platform.machine()} 3.99", ["make wheelhouse MACHINES=... PYTHON_VERSIONS=..."]),
    ],
)
def test_another_machine_or_python_is_refused_before_anything_is_made(
    tmp_path: Path, built_for: str, said: list[str]
) -> None:
    folder = tmp_path / "unpacked"
    folder.mkdir()
    shutil.copy(ROOT / "tools/install.sh", folder)
    (folder / "built-for").write_text(f"{built_for}\n")
    refused = install(folder, tmp_path / "image")
    assert refused.returncode == 1
    for words in said:
        assert words in refused.stderr
    assert not (tmp_path / "image").exists()


def test_a_folder_that_holds_something_else_is_left_alone(tmp_path: Path) -> None:
    folder = tmp_path / "unpacked"
    folder.mkdir()
    shutil.copy(ROOT / "tools/install.sh", folder)
    (folder / "built-for").write_text(f"{HERE}\n")
    (tmp_path / "image/opt/npu-watchd").mkdir(parents=True)
    (tmp_path / "image/opt/npu-watchd/precious").touch()
    refused = install(folder, tmp_path / "image")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "holds something else; empty it, or choose another PREFIX" in refused.stderr
    assert [path.name for path in (tmp_path / "image/opt/npu-watchd").iterdir()] == ["precious"]


def test_the_script_without_wheels_says_where_it_belongs(tmp_path: Path) -> None:
    refused = install(ROOT / "tools", tmp_path / "image")
    assert refused.returncode == 1
    assert "run the install.sh of an unpacked tar of `make wheelhouse`" in refused.stderr


@pytest.mark.skipif("NPU_WATCHD_TEST_INSTALL" not in os.environ, reason="takes half a minute: `make test-install`")
def test_a_node_without_network_installs_it_and_systemd_starts_it(unpacked: Path, tmp_path: Path) -> None:
    binds = [f"--bind={unpacked}:/srv/unpacked", f"--bind-ro={sys.base_prefix}"]
    with container(tmp_path, binds) as machine:
        said = machine.run("env", f"PYTHON={PYTHON}", "/srv/unpacked/install.sh")
        assert said.splitlines()[-1] == "Next:  systemctl enable --now npu-watchd && npu-watchd status"
        machine.run("systemctl", "enable", "--now", "npu-watchd")
        assert machine.property_of("npu-watchd", "StatusText") == "? of ? devices present"
        # No npu-smi is there: nothing is known, and that is what it says.
        assert "npu-smi: not found on PATH" in machine.run("/usr/local/bin/npu-watchd", "status", check=False)
        assert machine.run("getent", "group", "npu-watchd").startswith("npu-watchd:x:")
        again = machine.run("env", f"PYTHON={PYTHON}", "/srv/unpacked/install.sh")
        assert again.splitlines()[-1] == "The old version still runs. Next:  systemctl restart npu-watchd"
