"""Reads below a root: what each way of failing is called."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from npu_watchd.model.reading import Failure, FailureKind
from npu_watchd.sources.files import Root


def test_a_file_below_the_root_is_its_text(tmp_path: Path) -> None:
    (tmp_path / "class").mkdir()
    (tmp_path / "class" / "state").write_text("4: ACTIVE\n")
    assert Root(tmp_path).read_text("class/state") == "4: ACTIVE\n"


def test_an_absolute_name_stays_below_the_root(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "hostname").write_text("of the root\n")
    assert Root(tmp_path).read_text("/etc/hostname") == "of the root\n"
    assert Root(tmp_path).read_text("/etc/passwd") == Failure(
        FailureKind.MISSING, f"{tmp_path}/etc/passwd: No such file or directory"
    )


@pytest.mark.parametrize("how", ["dots", "absolute link", "relative link"])
def test_nothing_leads_out_of_the_root(tmp_path: Path, how: str) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "root2").mkdir()
    (root / "absolute link").symlink_to(tmp_path / "secret")
    (root / "relative link").symlink_to("../secret")
    rel = "../secret" if how == "dots" else how
    assert Root(root).read_text(rel) == Failure(FailureKind.DENIED, f"{root}/{rel}: leads out of {root}")


def test_a_link_within_the_root_is_followed_as_sysfs_needs_it(tmp_path: Path) -> None:
    (tmp_path / "devices" / "mlx5_0").mkdir(parents=True)
    (tmp_path / "devices" / "mlx5_0" / "fw_ver").write_text("20.31\n")
    (tmp_path / "class").mkdir()
    (tmp_path / "class" / "mlx5_0").symlink_to("../devices/mlx5_0")
    assert Root(tmp_path).read_text("class/mlx5_0/fw_ver") == "20.31\n"


def test_a_root_that_is_itself_a_link_works(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "a").write_text("a")
    (tmp_path / "link").symlink_to("real")
    assert Root(tmp_path / "link").read_text("a") == "a"


def test_the_kernels_own_files_are_read_whole() -> None:
    text = Root("/proc").read_text("self/status")
    assert isinstance(text, str)
    assert text.startswith("Name:\t")


def test_absence_is_missing_even_where_a_folder_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert Root(tmp_path).read_text("none") == Failure(
        FailureKind.MISSING, f"{tmp_path}/none: No such file or directory"
    )
    assert Root(tmp_path).read_text("file/below") == Failure(
        FailureKind.MISSING, f"{tmp_path}/file/below: Not a directory"
    )


def test_a_name_with_nul_is_missing(tmp_path: Path) -> None:
    answer = Root(tmp_path).read_text("a\0b")
    assert isinstance(answer, Failure)
    assert answer.kind is FailureKind.MISSING


def test_no_permission_is_denied(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("x")
    (tmp_path / "secret").chmod(0)
    if os.geteuid() == 0:
        # Root may read any file: become somebody else for the length of one read.
        for folder in (tmp_path, *tmp_path.parents[:3]):
            folder.chmod(folder.stat().st_mode | 0o011)
        os.seteuid(65534)
    try:
        answer = Root(tmp_path).read_text("secret")
    finally:
        os.seteuid(os.getuid())
    assert answer == Failure(FailureKind.DENIED, f"{tmp_path}/secret: Permission denied")


def test_a_file_that_answers_eio_has_failed_with_the_kernels_words() -> None:
    """Reading one's own memory at address 0 is an EIO on every Linux."""
    assert Root("/proc").read_text("self/mem") == Failure(FailureKind.EXIT, "/proc/self/mem: Input/output error")


def test_a_folder_and_a_fifo_do_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for rel in ("fifo", "."):
        answer = Root(tmp_path).read_text(rel)
        assert isinstance(answer, Failure)
        assert answer.kind is FailureKind.DENIED
        assert answer.detail.endswith("not a regular file")


def test_a_loop_of_links_is_a_failure(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    assert Root(tmp_path).read_text("a") == Failure(
        FailureKind.EXIT, f"{tmp_path}/a: Too many levels of symbolic links"
    )


def test_the_size_limit_is_exact_and_half_a_file_is_no_answer(tmp_path: Path) -> None:
    (tmp_path / "fits").write_text("12345")
    (tmp_path / "more").write_text("123456")
    root = Root(tmp_path, max_bytes=5)
    assert root.read_text("fits") == "12345"
    assert root.read_text("more") == Failure(FailureKind.UNPARSEABLE, f"{tmp_path}/more: larger than 5 bytes")
    assert root.read_text("/dev/zero") == Failure(
        FailureKind.MISSING, f"{tmp_path}/dev/zero: No such file or directory"
    )


def test_invalid_utf8_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "name").write_bytes(b"caf\xe9\n")
    assert Root(tmp_path).read_text("name") == "caf�\n"
