"""The `parse` kinds about PCIe, and the function of each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from npu_watchd.parsers import lspci, pcie, pcm, perf_stat

KINDS: dict[str, Callable[[str], Any]] = {
    "aer": pcie.aer,
    "lspci": lspci.parse,
    "perf-stat": perf_stat.parse,
    "pcm-pcie": pcm.parse,
}
