"""A reader of a published file sees a whole document, or none."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from npu_watchd.sinks.published_file import PublishedFile


def test_the_file_holds_the_newest_document(tmp_path: Path) -> None:
    runtime = tmp_path / "run" / "npu-watchd"
    file = PublishedFile(runtime, "snapshot.json")
    assert file.write(b"{}") is None
    assert file.write(b'{"node": "node-17"}') is None
    assert [(entry.name, entry.read_bytes()) for entry in runtime.iterdir()] == [
        ("snapshot.json", b'{"node": "node-17"}')
    ]
    assert (runtime / "snapshot.json").stat().st_mode & 0o777 == 0o644


def test_a_reader_never_sees_half_of_one(tmp_path: Path) -> None:
    file = PublishedFile(tmp_path, "snapshot.json")
    documents = (b"a" * 200_000, b"b" * 100_000)
    file.write(documents[0])
    stop = threading.Event()
    torn: list[int] = []

    def read() -> None:
        while not stop.is_set():
            seen = (tmp_path / "snapshot.json").read_bytes()
            if seen not in documents:
                torn.append(len(seen))

    reader = threading.Thread(target=read)
    reader.start()
    for turn in range(300):
        file.write(documents[turn % 2])
    stop.set()
    reader.join()
    assert torn == []


def test_whoever_holds_the_old_document_keeps_it(tmp_path: Path) -> None:
    file = PublishedFile(tmp_path, "snapshot.json")
    file.write(b"old")
    with (tmp_path / "snapshot.json").open("rb") as held:
        file.write(b"new")
        assert held.read() == b"old"
    assert (tmp_path / "snapshot.json").read_bytes() == b"new"


def test_a_directory_that_cannot_be_made_is_reported_with_its_path(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    problem = PublishedFile(tmp_path / "file" / "run", "snapshot.json").write(b"{}")
    assert problem is not None
    assert str(tmp_path / "file") in problem
    assert "Not a directory" in problem


def test_a_path_that_is_taken_is_reported_and_the_next_write_may_succeed(tmp_path: Path) -> None:
    blocked = tmp_path / "snapshot.new"
    blocked.mkdir()
    file = PublishedFile(tmp_path, "snapshot.json")
    assert file.write(b"{}") == f"{blocked}: Is a directory"
    blocked.rmdir()
    assert file.write(b"{}") is None


def test_a_full_disk_leaves_the_old_document(tmp_path: Path) -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("this system has no /dev/full to stand for a full disk")
    file = PublishedFile(tmp_path, "snapshot.json")
    file.write(b"old")
    (tmp_path / "snapshot.new").symlink_to(full)
    problem = file.write(b"new")
    assert problem is not None
    assert "No space left" in problem
    assert (tmp_path / "snapshot.json").read_bytes() == b"old"


def test_a_daemon_that_ends_takes_its_file_along(tmp_path: Path) -> None:
    file = PublishedFile(tmp_path, "snapshot.json")
    file.remove()
    file.write(b"{}")
    file.remove()
    assert list(tmp_path.iterdir()) == []
