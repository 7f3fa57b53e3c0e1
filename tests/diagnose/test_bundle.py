"""The archive for support: whole or not there, bounded, and without what must not leave the site."""

from __future__ import annotations

import ast
import json
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from npu_watchd.diagnose.bundle import PART_BYTES, Ask, Bundle, Item, Take, Told
from npu_watchd.diagnose.redaction import Redactor
from npu_watchd.diagnose.reproduction import script
from npu_watchd.model.reading import Failure, FailureKind, Output, Tick


def run(argv: tuple[str, ...], _timeout_s: float) -> Output | Failure:
    if argv[0] == "gone":
        return Failure(FailureKind.MISSING, "gone on 10.9.9.9: not found")
    return Output(f"{' '.join(argv)} says 10.1.2.3\n", "a warning\n", 1)


def made(path: Path, items: list[Item], most_bytes: int = 1 << 20) -> dict[str, str]:
    bundle = Bundle(run, Redactor(), lambda: Tick(1.0, 1_790_000_000.0), lambda _: "then", lambda _: None, most_bytes)
    bundle.write(path, items)
    with tarfile.open(path) as archive:
        return {name.removeprefix("npu-watchd-bundle/"): _text(archive, name) for name in archive.getnames()}


def _text(archive: tarfile.TarFile, name: str) -> str:
    file = archive.extractfile(name)
    assert file is not None
    return file.read().decode()


def test_answers_and_files_are_redacted_and_failures_are_told(tmp_path: Path) -> None:
    (tmp_path / "hccn.conf").write_text("address_0=10.1.2.3\n")
    items: list[Item] = [
        Ask("ibstat.txt", ("ibstat", "x")),
        Ask("gone.txt", ("gone",)),
        Take("hccn.conf", tmp_path / "hccn.conf"),
        Take("missing.log", tmp_path / "missing.log"),
        Told("note.txt", "token=abc"),
    ]
    found = made(tmp_path / "a.tar.gz", items)
    head = "# ibstat x\n# then, 0.00 s, exit code 1\n"
    assert found["ibstat.txt"] == f"{head}ibstat x says <ip-1>\n\n# stderr:\na warning\n"
    assert found["hccn.conf"] == "address_0=<ip-1>\n"
    assert found["note.txt"] == "token=<secret>"
    manifest = json.loads(found["MANIFEST.json"])
    assert manifest["redacted"] == {"secret": 1, "mac": 0, "ip": 2, "serial": 0, "user": 0, "host": 0}
    failures = {one["name"]: one["failure"] for one in manifest["entries"] if "failure" in one}
    assert failures["gone.txt"] == {"kind": "missing", "detail": "gone on <ip-2>: not found"}
    assert failures["missing.log"]["kind"] == "missing"
    assert (tmp_path / "a.tar.gz").stat().st_mode & 0o777 == 0o600


def test_of_a_large_log_the_end_is_kept_from_a_whole_line_on(tmp_path: Path) -> None:
    (tmp_path / "big.log").write_text("password=verysecret " * (PART_BYTES // 20) + "\nx\nlast\n")
    assert made(tmp_path / "a.tar.gz", [Take("big.log", tmp_path / "big.log")])["big.log"].endswith("bytes\nx\nlast\n")


def test_what_does_not_fit_is_left_out_and_named(tmp_path: Path) -> None:
    found = made(tmp_path / "a.tar.gz", [Told("a", "x" * 90), Told("b", "y" * 20), Told("c", "z" * 9)], 100)
    assert set(found) == {"a", "c", "MANIFEST.json"}
    assert json.loads(found["MANIFEST.json"])["entries"][1]["failure"]["kind"] == "left_out"


def test_there_is_never_half_an_archive_and_never_another_one_lost(tmp_path: Path) -> None:
    class Stopped(Exception): ...

    def items() -> Iterator[Item]:
        yield Told("a", "x")
        raise Stopped

    def told(text: str) -> None:
        raise Stopped

    bundle = Bundle(run, Redactor(), lambda: Tick(1.0, 1.0), str, told)
    for some in (items(), iter([Told("a", "x")])):
        with pytest.raises(Stopped):
            bundle.write(tmp_path / "a.tar.gz", some)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "a.tar.gz").write_text("yesterday's")
    with pytest.raises(FileExistsError):
        made(tmp_path / "a.tar.gz", [])
    assert (tmp_path / "a.tar.gz").read_text() == "yesterday's"


@pytest.mark.parametrize("devices", [(), ("0",), ("0", "1", "7")])
def test_the_reproduction_is_a_program_for_this_node(devices: tuple[str, ...]) -> None:
    text = script(devices, ("910B3",), ("CANN 8.0.RC3", "mindspore 2.4.1"))
    ast.parse(text)
    assert "CANN 8.0.RC3, mindspore 2.4.1" in text
    assert f"--worker_num={len(devices) or 1}" in text
