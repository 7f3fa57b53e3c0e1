"""`pcm-pcie` of Intel PCM: what all PCIe devices of a CPU socket move, where nothing tells the devices apart.

It needs root and the `msr` module, and takes over the uncore counters for its interval: of two at the same time one
says that they are taken.
"""

from __future__ import annotations

from npu_watchd.model.pcie import SocketPcieLoad
from npu_watchd.model.pcie_tools import PcieSocketLoad
from npu_watchd.model.reading import Failure, FailureKind, Output
from npu_watchd.parsers import pcm
from npu_watchd.parsers.lines import ParseError
from npu_watchd.sources.pcie_load import tool_failure

PCM_WINDOW_S = 1.0
"""At one second `PCIe Rd (B)` is the same as bytes and as bytes per second, which PCM's own text mixes up."""
_MOST_SOCKETS = 32
"""Largest Intel machine with one system image that PCM knows has 8 (assumption: four times that is nonsense)."""


def pcm_argv(pcm_pcie: str) -> tuple[str, ...]:
    """One interval of one second, with bytes."""
    return (pcm_pcie, f"{PCM_WINDOW_S:g}", "-csv", "-B", "-i=1")


def pcm_loads(answer: Output) -> tuple[SocketPcieLoad, ...] | Failure:
    """Bytes a second by socket: of all its PCIe devices, so of no NPU in particular. Never without a socket."""
    try:
        rows = pcm.parse(answer.text).sockets
    except ParseError as error:
        refused = pcm.refusal(answer.stderr)
        return refused.failure() if refused is not None else tool_failure(error, answer, "pcm-pcie")
    newest = max(row.sample for row in rows)
    found = tuple(_socket_load(row) for row in rows if row.sample == newest)
    if all(load.receive_bytes_per_second is None and load.transmit_bytes_per_second is None for load in found):
        return Failure(FailureKind.UNPARSEABLE, "pcm-pcie: a table without bytes, although it was asked for them (-B)")
    if len(found) > _MOST_SOCKETS:
        return Failure(FailureKind.UNPARSEABLE, f"pcm-pcie: {len(found)} sockets, which no machine has")
    return found


def _socket_load(row: PcieSocketLoad) -> SocketPcieLoad:
    return SocketPcieLoad(
        row.socket,
        receive_bytes_per_second=_per_second(row.read_bytes),
        transmit_bytes_per_second=_per_second(row.write_bytes),
        window_s=PCM_WINDOW_S,
    )


def _per_second(count: int | None) -> float | None:
    return None if count is None else count / PCM_WINDOW_S
