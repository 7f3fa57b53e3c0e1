"""The simulated pcm-pcie: one interval of `-csv`, two sockets, on an Ice Lake whose devices are NPUs, NICs and disks.

Form: pcm-pcie.h of intel/pcm, with the events of that generation; bytes are 64 an event.
"""

from __future__ import annotations

from npu_watchd.simnode.answer import Answer
from npu_watchd.simnode.state import NodeState
from npu_watchd.simnode.wander import wander

SOCKETS = (0, 1)
LINE_BYTES = 64
START_DELAY_S = 0.5
OTHERS_BYTES_PER_SECOND = 2.5e8
"""What NICs and disks of one socket move each way."""

EVENTS = ("PCIRdCur", "ItoM", "ItoMCacheNear", "UCRdF", "WiL")
BYTES = ("PCIe Rd (B)", "PCIe Wr (B)")
_HEAD = """
 Processor Counter Monitor: PCIe Bandwidth Monitoring Utility
 PCIe event definitions (each event counts as a transfer):
   PCIe read events (PCI devices reading from memory - application writes to disk/network/PCIe device):
     PCIRdCur  - PCIe read current transfer (full cache line)
"""
USAGE = "\n Usage: \n pcm-pcie --help | [delay] [options] [-- external_program [external_program_options]]\n"


def answer(node: NodeState, argv: tuple[str, ...]) -> Answer:
    """What pcm-pcie does with these arguments; it takes as long as its interval."""
    if argv[1:2] != ("-csv",) or "-i=1" not in argv:
        return Answer(USAGE, 1)
    window_s, with_bytes = float(argv[0]), "-B" in argv
    header = ",".join(("Skt", *EVENTS, *(BYTES if with_bytes else ())))
    rows = (_row(node, socket, window_s, with_bytes=with_bytes) for socket in SOCKETS)
    return Answer("\n".join((_HEAD + header, *rows)) + "\n", delay_s=START_DELAY_S + window_s)


def _row(node: NodeState, socket: int, window_s: float, *, with_bytes: bool) -> str:
    slots = [slot for slot in node.slots() if slot.socket == socket and node.on_the_bus(slot)]
    others = OTHERS_BYTES_PER_SECOND * (1 + 0.3 * wander(f"socket{socket} others", node.now_s))
    received = others + sum(slot.receive_bytes_per_second for slot in slots)
    sent = others + sum(slot.transmit_bytes_per_second for slot in slots)
    reads, writes = (int(rate * window_s / LINE_BYTES) for rate in (received, sent))
    cells = [socket, reads, writes, 0, 0, 0, *((reads * LINE_BYTES, writes * LINE_BYTES) if with_bytes else ())]
    return ",".join(map(str, cells))
