"""The files of deploy/systemd, looked over by systemd's own tools."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

UNITS = Path(__file__).parents[1] / "deploy" / "systemd"


def tool(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed (Debian package systemd)")
    return found


@pytest.fixture
def unit(tmp_path: Path) -> Path:
    """The program is not installed where the tests run, and verify looks for it."""
    unit = tmp_path / "npu-watchd.service"
    unit.write_text((UNITS / unit.name).read_text().replace("/opt/npu-watchd/bin/npu-watchd", "/bin/true"))
    return unit


def analyzed(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    argv = [tool("systemd-analyze"), *map(str, arguments)]
    return subprocess.run(argv, capture_output=True, text=True, timeout=30, check=False)


@pytest.mark.parametrize("with_drop_in", [False, True])
def test_systemd_finds_nothing_to_say_about_the_unit(unit: Path, with_drop_in: bool) -> None:
    if with_drop_in:
        shutil.copytree(UNITS / "npu-watchd.service.d", unit.with_name("npu-watchd.service.d"))
    checked = analyzed("verify", "--man=no", unit)
    assert (checked.returncode, [line for line in checked.stderr.splitlines() if "npu-watchd" in line]) == (0, [])


def test_the_unit_is_exposed_to_no_more_than_3(unit: Path) -> None:
    checked = analyzed("security", "--offline=true", "--threshold=30", unit)
    if "--offline" in checked.stderr:
        pytest.skip("this systemd-analyze rates no files (it needs systemd 250)")
    assert checked.returncode == 0, checked.stdout + checked.stderr


def lines() -> set[str]:
    return set((UNITS / "npu-watchd.service").read_text().splitlines())


def test_a_daemon_that_stops_thinking_is_started_again_and_a_bad_config_is_not() -> None:
    assert {"Type=notify", "WatchdogSec=60", "Restart=on-failure", "RestartPreventExitStatus=2"} <= lines()


def test_a_unit_with_mounts_of_its_own_starts_its_tools_in_the_hosts() -> None:
    """The driver takes a process in other mounts for a container's, and gives it the chips for its own."""
    assert "ProtectSystem=strict" in lines()
    assert "ExecStart=/opt/npu-watchd/bin/npu-watchd run --host-mounts" in lines()


def test_no_device_is_named_that_may_come_later() -> None:
    assert [line for line in lines() if line.startswith("DeviceAllow=")] == ["DeviceAllow=char-* rw"]


def test_the_group_is_made(tmp_path: Path) -> None:
    sysusers = tool("systemd-sysusers")
    (tmp_path / "etc").mkdir()
    subprocess.run(
        [sysusers, f"--root={tmp_path}", str(UNITS / "npu-watchd.sysusers.conf")],
        check=True,
        capture_output=True,
        timeout=30,
    )
    assert (tmp_path / "etc" / "group").read_text().startswith("npu-watchd:x:")


def test_the_config_folder_is_made(tmp_path: Path) -> None:
    tmpfiles = tool("systemd-tmpfiles")
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "passwd").write_text("root:x:0:0::/root:/bin/sh\n")
    (tmp_path / "etc" / "group").write_text("root:x:0:\nnpu-watchd:x:990:\n")
    subprocess.run(
        [tmpfiles, "--create", f"--root={tmp_path}", str(UNITS / "npu-watchd.tmpfiles.conf")],
        check=True,
        capture_output=True,
        timeout=30,
    )
    assert (tmp_path / "etc" / "npu-watchd").is_dir()
