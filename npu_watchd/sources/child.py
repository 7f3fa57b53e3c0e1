"""One running tool: what it prints, when it exits, and how it is ended within a bounded time."""

from __future__ import annotations

import os
import selectors
import signal
from collections.abc import Callable
from contextlib import suppress
from enum import Enum
from threading import Event

from npu_watchd.sources import strays
from npu_watchd.sources.strays import PidfdOpen, Process

Clock = Callable[[], float]

DRAIN_S = 0.2
"""How long after a tool's exit its pipes are still read, should a child of its keep them open."""
_POLL_S = 0.02
"""Between looks at a process where the kernel has no pidfd to wait on."""
_CHUNK_BYTES = 65536


class Ending(Enum):
    """Why reading stopped."""

    EXITED = "exited"
    """It exited and its pipes are closed: the usual end."""
    PIPE_HELD = "pipe held"
    """It exited, but a process that it started keeps a pipe open."""
    TIMEOUT = "timeout"
    OVERFLOW = "overflow"
    STOPPED = "stopped"
    """The daemon stops."""


class Child:
    """A process in a session of its own, of which nobody but this object waits."""

    def __init__(
        self,
        pid: int,
        poll: Callable[[], int | None],
        pipes: tuple[int, int],
        run_id: str,
        pidfd_open: PidfdOpen | None,
    ) -> None:
        self.pid = pid
        self.run_id = run_id
        self.poll = poll
        """Reaps. The exit code, or None while it runs."""
        self.stdout = bytearray()
        self.stderr = bytearray()
        self._open_pipes = {pipes[0]: self.stdout, pipes[1]: self.stderr}
        self._pidfd_open = pidfd_open
        self._pidfd = strays.open_pidfd(pid, pidfd_open)

    def exited(self) -> bool:
        """Whether it has exited, without reaping it: as long as it is not reaped, its group's number is its own."""
        try:
            return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        except ChildProcessError:
            return True

    def collect(self, clock: Clock, until: float, max_bytes: int, stop_fd: int) -> Ending:
        """Read both pipes until the tool is done, `until` has come, or one pipe gave more than `max_bytes`."""
        exited = False
        with selectors.PollSelector() as selector:  # poll needs no file descriptor, of which we may have run out
            for fd in self._open_pipes:
                selector.register(fd, selectors.EVENT_READ)
            selector.register(stop_fd, selectors.EVENT_READ)
            if self._pidfd is not None:
                selector.register(self._pidfd, selectors.EVENT_READ)
            while self._open_pipes or not exited:
                left = until - clock()
                wait = left if exited or self._pidfd is not None else min(left, _POLL_S)
                for key, _ in selector.select(max(wait, 0)):
                    if key.fd == stop_fd:
                        return Ending.STOPPED
                    if key.fd in self._open_pipes and self._read(key.fd, selector) > max_bytes:
                        return Ending.OVERFLOW
                if not exited and self.exited():
                    exited = True
                    if self._pidfd is not None:
                        selector.unregister(self._pidfd)
                    until = min(until, clock() + DRAIN_S)
                elif left <= 0:
                    return Ending.PIPE_HELD if exited else Ending.TIMEOUT
        return Ending.EXITED

    def _read(self, fd: int, selector: selectors.BaseSelector) -> int:
        buffer = self._open_pipes[fd]
        chunk = os.read(fd, _CHUNK_BYTES)
        buffer += chunk
        if not chunk:
            selector.unregister(fd)
            del self._open_pipes[fd]
            os.close(fd)
        return len(buffer)

    def end(self, clock: Clock, term_grace_s: float, kill_grace_s: float) -> tuple[Process, ...]:
        """SIGTERM, then SIGKILL, to the group and to whoever left it; returns what lives on all the same."""
        met: dict[int, Process] = {}
        give_up = clock() + term_grace_s
        if not self.exited():
            # Before the first signal, for as long as each child still has its parent to be known by.
            met = {process.pid: process for process in strays.of_run(self.pid, self.run_id, lambda: clock() >= give_up)}
            self._signal_group(signal.SIGTERM)
            self._await_exit(clock, give_up)
        self.close_pipes()  # not earlier: a tool that says good-bye would die of SIGPIPE before it cleaned up
        give_up = clock() + kill_grace_s
        pause = 0.01
        while True:
            self.kill_group()
            for process in strays.of_run(self.pid, self.run_id, stop=lambda: clock() >= give_up):
                met[process.pid] = process
            for process in met.values():
                strays.kill(process, self._pidfd_open)
            alive = tuple(process for process in met.values() if strays.still_alive(process))
            left = give_up - clock()
            if left <= 0 or (not alive and self.exited()):
                return alive
            Event().wait(min(pause, left))
            pause *= 2

    def kill_group(self) -> None:
        """SIGKILL to all of its group. Not after `poll` has reaped it: the number may be another group's by then."""
        self._signal_group(signal.SIGKILL)

    def _signal_group(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    def _await_exit(self, clock: Clock, give_up: float) -> None:
        with selectors.PollSelector() as selector:
            if self._pidfd is not None:
                selector.register(self._pidfd, selectors.EVENT_READ)
            while not self.exited() and (left := give_up - clock()) > 0:
                selector.select(left if self._pidfd is not None else min(left, _POLL_S))

    def close_pipes(self) -> None:
        for fd in self._open_pipes:
            os.close(fd)
        self._open_pipes.clear()

    def close(self) -> None:
        """Give back every file descriptor; the process itself may live on."""
        self.close_pipes()
        if self._pidfd is not None:
            os.close(self._pidfd)
            self._pidfd = None
