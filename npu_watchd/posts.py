"""The schedulers that `[quarantine] act` names, each as the config says to reach it."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Mapping
from dataclasses import replace
from math import inf

from npu_watchd import config
from npu_watchd.lanes import node_name
from npu_watchd.model.acting import Acting, Hold
from npu_watchd.model.reading import Failure
from npu_watchd.sinks.actuators.actuator import Actuator
from npu_watchd.sinks.actuators.budget import Budget
from npu_watchd.sinks.actuators.command import Command, Start
from npu_watchd.sinks.actuators.kubernetes import kubernetes
from npu_watchd.sinks.actuators.slurm import Slurm

Wall = Callable[[], float]
"""Unix seconds."""
Make = Callable[[config.Config, Start, Wall, str | None], Actuator]
"""The last: the mark that we remember to hold there."""


class Post:
    """One scheduler, and when to look at it again. `acting` is read by others, as a whole."""

    def __init__(self, actuator: Actuator, acting: Acting) -> None:
        self.actuator = actuator
        self.acting = acting
        self.due_s = -inf
        """On the monotonic clock. At first at once: a mark of before the start may stand there."""
        self.failures = 0
        """One after another."""
        self.asked: tuple[str | None, int] | None = None
        """The quarantine and the newest release when it was last looked at."""
        self.told: tuple[object, ...] | None = None
        """What blocked it when it was last told."""

    def look(self) -> Hold | Failure:
        hold = self.actuator.look()
        self.acting = replace(self.acting, holder=None if isinstance(hold, Failure) else hold.holder)
        return hold

    def count(self, action: str, result: str) -> None:
        key = (action, result)
        times = self.acting.actions.get(key, 0) + 1
        self.acting = replace(self.acting, actions={**self.acting.actions, key: times})


def actuators(settings: config.Config, start: Start, wall: Wall, held: Mapping[str, str]) -> list[Actuator]:
    """In the order of `act`. held: name → the mark that we remember to hold there."""
    return [_MAKE[name](settings, start, wall, held.get(name)) for name in settings.quarantine.act]


def budget(settings: config.Config) -> Budget | None:
    """None: there is nobody to ask."""
    chosen = settings.quarantine
    if chosen.prometheus is None:
        return None
    return Budget(chosen.prometheus, node_name(settings), chosen.max_share)


def _slurm(settings: config.Config, start: Start, _: Wall, __: str | None) -> Actuator:
    node = settings.slurm.node_name or settings.node.name or socket.gethostname().split(".")[0]
    return Slurm(lambda argv, left_s: start(argv, left_s, b""), settings.tools.scontrol, node, settings.slurm.timeout_s)


def _kubernetes(settings: config.Config, _: Start, wall: Wall, __: str | None) -> Actuator:
    return kubernetes(settings.kubernetes, os.environ, socket.gethostname(), wall)


def _command(settings: config.Config, start: Start, _: Wall, held: str | None) -> Actuator:
    chosen = settings.quarantine
    return Command(start, tuple(chosen.command), node_name(settings), chosen.command_timeout_s, held)


_MAKE: Mapping[str, Make] = {"slurm": _slurm, "kubernetes": _kubernetes, "command": _command}
