"""Runs services, and is the parent of all that they start and lose: `python keeper.py SERVICES.json`.

Lines on its stdin: `start NAME`, `stop NAME`. When its stdin ends, and so also when the test is killed, it ends the
services and every process that came of them, and removes their cgroups: nothing outlives it.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

_PR_SET_CHILD_SUBREAPER = 36
_BEAT_S = 0.1
_GENTLE_S, _HARD_S = 3.0, 3.0
"""How long the services may take to end by themselves; how long anything may take to die."""


class Keeper:
    def __init__(self, services: dict[str, Any], cgroup: str) -> None:
        """services: name → argv, env and log. cgroup: the folder that they make below each hierarchy."""
        self._services = services
        self._cgroup = cgroup
        self._pids: dict[str, int] = {}

    def start(self, name: str) -> None:
        service = self._services[name]
        with open(service["log"], "ab") as log:
            child = subprocess.Popen(
                service["argv"], stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=service["env"], cwd="/"
            )
        self._pids[name] = child.pid
        # reap() waits for it, and for those that it leaves behind.
        child.returncode = 0

    def stop(self, name: str) -> None:
        pid = self._pids.get(name)
        if pid is not None:
            os.kill(pid, signal.SIGTERM)
            if not self._until(lambda: name not in self._pids, _GENTLE_S):
                os.kill(pid, signal.SIGKILL)
                self._until(lambda: name not in self._pids, _HARD_S)

    def reap(self) -> None:
        """Of all children those that have ended."""
        with contextlib.suppress(ChildProcessError):
            while (found := os.waitpid(-1, os.WNOHANG)[0]) != 0:
                self._pids = {name: pid for name, pid in self._pids.items() if pid != found}

    def end(self) -> None:
        for pid in self._pids.values():
            os.kill(pid, signal.SIGTERM)
        self._until(lambda: not self._pids, _GENTLE_S)
        self._until(self._none_left, _HARD_S)
        for folder in self._folders():
            with contextlib.suppress(OSError):
                folder.rmdir()

    def _none_left(self) -> bool:
        """Whether nothing lives any more that ever came of a service; kills what does."""
        for folder in self._folders():
            with contextlib.suppress(OSError):
                # Slurm freezes a job while it ends it, and what is frozen does not die.
                (folder / "freezer.state").write_text("THAWED")
        left = list(_descendants(os.getpid()))
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return not left

    def _folders(self) -> Iterator[Path]:
        """Their cgroups, innermost first."""
        for top in Path("/sys/fs/cgroup").glob(f"*/{self._cgroup}"):
            for folder, _, _ in os.walk(top, topdown=False):
                yield Path(folder)

    def _until(self, claim: Callable[[], bool], within_s: float) -> bool:
        give_up_s = time.monotonic() + within_s
        while not claim():
            if time.monotonic() > give_up_s:
                return False
            time.sleep(0.01)
            self.reap()
        return True


def _descendants(root: int) -> Iterator[int]:
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError):
                fields = Path(f"/proc/{name}/stat").read_text(errors="replace").rpartition(") ")[2].split()
                children.setdefault(int(fields[1]), []).append(int(name))
    waiting = children.get(root, [])
    while waiting:
        pid = waiting.pop()
        yield pid
        waiting += children.get(pid, [])


def _main(file: str) -> None:
    told = json.loads(Path(file).read_text())
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    keeper = Keeper(told["services"], told["cgroup"])
    orders = {"start": keeper.start, "stop": keeper.stop}
    rest = b""
    try:
        while True:
            if select.select([0], [], [], _BEAT_S)[0]:
                read = os.read(0, 4096)
                if not read:
                    return
                *lines, rest = (rest + read).split(b"\n")
                for line in lines:
                    order, name = line.decode().split()
                    orders[order](name)
            keeper.reap()
    finally:
        keeper.end()


if __name__ == "__main__":
    _main(sys.argv[1])
