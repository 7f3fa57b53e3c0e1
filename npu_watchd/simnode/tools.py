"""The executables' insides: one call of a simulated tool, with its delay, its hang and its exit code."""

from __future__ import annotations

import select
import signal
import sys
from collections.abc import Callable
from importlib import import_module
from typing import NoReturn

from npu_watchd.simnode.answer import Answer
from npu_watchd.simnode.error_log import append
from npu_watchd.simnode.holders import held
from npu_watchd.simnode.installed import read, wall_clock
from npu_watchd.simnode.state import NodeState

TOOLS = ("npu-smi", "hccn_tool", "ibstat", "perf", "pcm-pcie")


def answer(tool: str, node: NodeState, argv: tuple[str, ...]) -> Answer:
    """What one of TOOLS does with these arguments (its own name left out)."""
    # Each call of an executable asks one tool, and should not load the others.
    module = import_module(f"npu_watchd.simnode.{tool.replace('-', '_')}")
    ask: Callable[[NodeState, tuple[str, ...]], Answer] = module.answer
    return ask(node, argv)


def installed_on(node: NodeState) -> tuple[str, ...]:
    """The tools that such a node has: hccn_tool where chips have ports, ibstat where the host does RDMA.

    pcm-pcie is on Intel hosts, and perf is everywhere: it says itself where there is nothing to count.
    """
    there = {
        "hccn_tool": any(chip.roce for chip in node.chips),
        "ibstat": node.hcas is not None,
        "pcm-pcie": node.host_cpu == "intel",
    }
    return tuple(tool for tool in TOOLS if there.get(tool, True))


def call(tool: str, directory: str, argv: tuple[str, ...]) -> int:
    """Do what the tool does, and return its exit code. Does not return while the scenario lets the tool hang."""
    if tool not in TOOLS:
        sys.stderr.write(f"{tool}: not simulated\n")
        return 127
    installed = read(directory)
    node = installed.state_at(wall_clock())
    if installed.scenario.real_processes:
        node = held(node, directory)
    said = answer(tool, node, argv)
    if said.hangs:
        _hang(said)
    if said.delay_s > 0:
        select.select([], [], [], said.delay_s)
    if tool == "npu-smi":
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
