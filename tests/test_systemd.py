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


def test_systemd_finds_nothing_to_say_about_the_unit(tmp_path: Path) -> None:
    analyze = tool("systemd-analyze")
    # The program is not installed where the tests run, and verify looks for it.
    unit = tmp_path / "npu-watchd.service"
    unit.write_text((UNITS / unit.name).read_text().replace("/opt/npu-watchd/bin/npu-watchd", "/bin/true"))
    checked = subprocess.run(
        [analyze, "verify", "--man=no", str(unit)], capture_output=True, text=True, timeout=30, check=False
    )
    assert (checked.returncode, [line for line in checked.stderr.splitlines() if "npu-watchd" in line]) == (0, [])


def test_a_daemon_that_stops_thinking_is_started_again_and_a_bad_config_is_not() -> None:
    lines = (UNITS / "npu-watchd.service").read_text().splitlines()
    assert {"Type=notify", "WatchdogSec=60", "Restart=on-failure", "RestartPreventExitStatus=2"} <= set(lines)


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
