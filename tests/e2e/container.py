"""A real systemd as the first process of a container: the machine itself below an overlay, booted in half a second."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.e2e.harness import until

_CGROUPS = Path("/sys/fs/cgroup")
_PLACES = [
    root / name for root in (_CGROUPS, _CGROUPS / "systemd", _CGROUPS / "unified") for name in ("payload", "supervisor")
]
"""Where systemd-nspawn puts itself and the container."""


class Container:
    """Below ROOT lies what its processes see as /."""

    def __init__(self, root: Path, nspawn: subprocess.Popen[bytes]) -> None:
        self.root = root
        self._nspawn = nspawn
        first = until(self._first_process, "systemd-nspawn starts systemd")
        self._enter = ("nsenter", "-t", str(first), "-m", "-u", "-i", "-n", "-p", "-C", "--")

    def run(self, *argv: str | Path, check: bool = True) -> str:
        """What a command in it prints on stdout."""
        done = subprocess.run(
            [*self._enter, *map(str, argv)], capture_output=True, text=True, timeout=30, check=False, cwd="/"
        )
        assert not check or done.returncode == 0, f"{argv}: exit {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout

    def property_of(self, unit: str, name: str) -> str:
        return self.run("systemctl", "show", "--value", "--property", name, unit).strip()

    def log_of(self, unit: str) -> str:
        return self.run("journalctl", "--no-pager", "--output=cat", "--unit", unit)

    def _first_process(self) -> int | None:
        assert self._nspawn.poll() is None, "systemd-nspawn gave up"
        children = Path(f"/proc/{self._nspawn.pid}/task/{self._nspawn.pid}/children").read_text().split()
        named = {pid: Path(f"/proc/{pid}/comm").read_text().strip() for pid in children}
        return next((int(pid) for pid, name in named.items() if name == "systemd"), None)


@contextlib.contextmanager
def container(directory: Path, binds: Sequence[str]) -> Iterator[Container]:
    """Booted and running; skips the test where this machine cannot do that. `binds`: options of systemd-nspawn."""
    if os.geteuid() != 0:
        pytest.skip("needs root for a container")
    if shutil.which("systemd-nspawn") is None:
        pytest.skip("systemd-nspawn is not installed (Debian package systemd-container)")
    before = {place for place in _PLACES if place.exists()}
    layer, root = directory / "layer", directory / "root"
    with contextlib.ExitStack() as stack:
        _mount(stack, layer, "-t", "tmpfs", "-o", "size=1g", "tmpfs")
        for name in ("upper", "work"):
            (layer / name).mkdir()
        how = f"lowerdir=/,upperdir={layer / 'upper'},workdir={layer / 'work'}"
        _mount(stack, root, "-t", "overlay", "-o", how, "overlay")
        stack.callback(_leave, before)
        with (directory / "boot.log").open("wb") as log:
            nspawn = subprocess.Popen(
                [
                    *("systemd-nspawn", "--quiet", "--register=no", "--keep-unit", "--boot", "--private-network"),
                    *("--console=pipe", f"--directory={root}", f"--machine=npu-watchd-{os.getpid()}", *binds),
                    # The units that the machine has enabled for itself stay off.
                    "systemd.unit=basic.target",
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        stack.callback(_end, nspawn)
        try:
            booted = Container(root, nspawn)
            until(lambda: "running" in booted.run("systemctl", "is-system-running", check=False), "the container runs")
        except AssertionError as error:
            pytest.skip(f"no container boots here: {error}; {(directory / 'boot.log').read_text(errors='replace')}")
        yield booted


def _mount(stack: contextlib.ExitStack, target: Path, *arguments: str) -> None:
    target.mkdir()
    done = subprocess.run(["mount", *arguments, str(target)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"cannot mount here: {done.stderr.strip()}")
    stack.callback(subprocess.run, ["umount", "--lazy", str(target)], check=False)


def _leave(before: set[Path]) -> None:
    for place in _PLACES:
        if place not in before:
            for folder, _, _ in os.walk(place, topdown=False):
                Path(folder).rmdir()


def _end(nspawn: subprocess.Popen[bytes]) -> None:
    """SIGTERM makes systemd-nspawn power the container off; what is left then is killed with it."""
    nspawn.terminate()
    try:
        nspawn.wait(10)
    except subprocess.TimeoutExpired:
        nspawn.kill()
        nspawn.wait()
