"""One look at the logs that are followed: the kernel's, and npu-smi's own of its errors."""

from __future__ import annotations

from collections.abc import Callable

from npu_watchd import config
from npu_watchd.lanes import Lanes
from npu_watchd.model.reading import Failure, Tick
from npu_watchd.parsers.pcie import aer_line
from npu_watchd.parsers.tool_log import failures_in
from npu_watchd.sources.kernel_log import KernelLog
from npu_watchd.sources.oom_kills import OomReader
from npu_watchd.sources.tool_log import ToolLog


class LogLook:
    """For one thread; what it reads goes to the board."""

    def __init__(self, settings: config.Config, lanes: Lanes, clock: Callable[[], Tick]) -> None:
        self._lanes = lanes
        self._board = lanes.board
        self._clock = clock
        self._tool_log = ToolLog(settings.paths.npu_tool_log)
        self._kernel_log = KernelLog(settings.paths.dev / "kmsg")
        self._oom_reader = OomReader()

    def take(self) -> None:
        """A log that cannot be read costs itself alone."""
        said = self._kernel_log.poll()
        if not isinstance(said, Failure):
            own = (aer_line(message.text) for message in said.messages if message.by_kernel)
            self._board.take_oom_kills(self._oom_reader.take(said.messages), self._clock(), old=said.old)
            errors = [error for error in own if error is not None]
            periods_s = self._lanes.periods_s().get
            self._board.take_kernel_log(errors, self._clock(), periods_s, old=said.old, lost=said.lost)
        found = self._tool_log.poll()
        if not isinstance(found, Failure):
            events = (failures_in(line) for line in found.lines)
            named = [(event.function, event.code) for event in events if event is not None]
            self._board.take_log(named, self._clock())
