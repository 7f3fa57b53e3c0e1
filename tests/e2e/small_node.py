"""Three cards whose middle one has the memory errors that a test wants, and a daemon that hurries."""

from __future__ import annotations

from dataclasses import replace

from npu_watchd.simnode.state import ErrorCounts, NodeState
from tests.e2e.fake_tool import node_at
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
