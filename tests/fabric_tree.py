"""A /sys/class of RDMA devices on disk, and a mount namespace of its own in which real tools see it as theirs."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from npu_watchd.model.reading import Output
from npu_watchd.simnode.sysfs_ib import SimHca, write

_ENTER = 'mount --make-rprivate / && mount --bind "$0" /sys/class && exec "$@"'
_LIMIT_S = 30


@cache
def unavailable(*tools: str) -> str | None:
    """Why real tools cannot run over a tree of ours here; None where they can."""
    missing = [tool for tool in ("unshare", *tools) if path_of(tool) is None]
    if missing:
        return f"not installed: {' '.join(missing)} (infiniband-diags, ibsim-utils, opensm, iproute2)"
    if os.geteuid() != 0:
        return "a mount namespace needs root"
    probe = subprocess.run([str(path_of("unshare")), "-m", "true"], capture_output=True, timeout=_LIMIT_S, check=False)
    return None if probe.returncode == 0 else f"no mount namespace here: {probe.stderr.decode().strip()}"


def path_of(tool: str) -> str | None:
    """Debian puts these tools where only root looks."""
    return shutil.which(tool, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin:/usr/bin")


def tree(folder: Path, hcas: Iterable[SimHca]) -> Path:
    """The folder to mount over /sys/class."""
    write(folder, hcas)
    return folder / "class"


def run_over(classes: Path, *command: str) -> Output:
    """A real tool that sees `classes` as /sys/class, and nothing else changed."""
    tool = path_of(command[0])
    assert tool is not None, command
    return run(["unshare", "-m", "sh", "-c", _ENTER, str(classes), tool, *command[1:]])


def run(command: list[str], **environment: str) -> Output:
    found = subprocess.run(
        command,
        capture_output=True,
        timeout=_LIMIT_S,
        check=False,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "LC_ALL": "C", **environment},
    )
    return Output(found.stdout.decode(), found.stderr.decode(), found.returncode)
