"""Three cards whose middle one has the memory errors that a test wants, and a daemon that hurries."""

from __future__ import annotations

import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

from npu_watchd.memory import journal
from npu_watchd.model.reading import Failure
from npu_watchd.simnode.npu_smi import answer
from npu_watchd.simnode.state import ErrorCounts, NodeState
from tests.e2e.fake_tool import FakeTool, node_at
from tests.e2e.harness import Daemon
from tests.e2e.page import Page

_QUIET = node_at("quiet", 0)
SMALL = replace(_QUIET, cards=_QUIET.cards[:3])
ILL = "1"
"""The device_id of the one with errors."""


def with_errors(single_bit: int = 0, double_bit: int = 0) -> NodeState:
    """Of the HBM, since the device's reset."""
    first, second, third = SMALL.cards
    chip = replace(second.chips[0], hbm_errors=ErrorCounts(single_bit=single_bit, double_bit=double_bit))
    return replace(SMALL, cards=(first, replace(second, chips=(chip,)), third))


HURRIED = """
[engine]
cycle = "100ms"
tool_share = 1.0

[probes]
npu_info = { every = "600ms", timeout = "1800ms" }
npu_health = { every = "600ms", timeout = "1800ms" }
npu_ecc = { every = "300ms", timeout = "900ms" }
"""
"""For the fake tool; what else there is to ask comes as it comes."""


def single_bit_errors(page: Page) -> float | None:
    """Of the ill one; None: not read yet."""
    return page.value("npu_device_memory_errors_total", device_id=ILL, memory="hbm", kind="single_bit")


CLIMB, DOUBLE_BIT = "hbm_single_bit", "hbm_double_bit"
"""Rules that speak of those errors."""


def known(daemon: Daemon) -> None:
    """Once its errors have been read: from now on they can climb."""
    daemon.shows(lambda page: single_bit_errors(page) is not None, "the errors are read")


def database(tool: FakeTool) -> Path:
    return tool.directory / "state" / "state.db"


def kept(tool: FakeTool, kind: str | None = None) -> list[Any]:
    """The journal's lines on disk."""
    found = journal.read(database(tool))
    return [] if isinstance(found, Failure) else [event for event in found if kind in (None, event.kind)]


def count(daemon: Daemon) -> float | None:
    """By how much the errors of the last hour have grown, as the finding says; None: there is no finding."""
    finding = daemon.finding(CLIMB)
    return None if finding is None else float(finding["evidence"][0]["observed"])


def kill(daemon: Daemon) -> None:
    daemon.process.kill()
    assert daemon.wait() == -signal.SIGKILL


def ecc(errors: int) -> str:
    return answer(with_errors(errors), ("info", "-t", "ecc", "-i", "1")).text
