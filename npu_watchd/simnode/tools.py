"""The executables' insides: one call of a simulated tool, with its delay, its hang and its exit code."""

from __future__ import annotations

import select
import signal
import sys
from pathlib import Path
from typing import NoReturn

from npu_watchd.simnode.answer import Answer
from npu_watchd.simnode.error_log import append
from npu_watchd.simnode.installed import read, wall_clock
from npu_watchd.simnode.npu_smi import answer
from npu_watchd.simnode.timeline import state_at

TOOLS = ("npu-smi",)


def call(tool: str, directory: Path, argv: tuple[str, ...]) -> int:
    """Do what the tool does, and return its exit code. Does not return while the scenario lets the tool hang."""
    if tool not in TOOLS:
        sys.stderr.write(f"{tool}: not simulated\n")
        return 127
    installed = read(directory)
    node = state_at(installed.scenario, installed.time_at(wall_clock()))
    said = answer(node, argv)
    if said.hangs:
        _hang(said)
    if said.delay_s > 0:
        select.select([], [], [], said.delay_s)
    append(directory, node, argv)
    sys.stdout.buffer.write(said.text.encode())
    sys.stdout.buffer.flush()
    sys.stderr.write(said.stderr)
    return said.exit_code


def _hang(said: Answer) -> NoReturn:
    """For ever, even when the scenario goes on: a call that is stuck in the driver stays stuck."""
    if said.ignores_sigterm:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
    while True:
        signal.pause()
