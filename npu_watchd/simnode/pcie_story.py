"""What has happened to a chip's PCIe link up to an instant: speed and width, errors, load."""

from __future__ import annotations

from dataclasses import replace

from npu_watchd.simnode.chip_story import ChipStory
from npu_watchd.simnode.pcie_slot import Errors, PcieSlot, capacity_bytes_per_second
from npu_watchd.simnode.wander import wander

GIGA = 1e9
IDLE_BYTES_PER_SECOND = 1.5e6
BUSY_RECEIVE, BUSY_TRANSMIT = 3.4 * GIGA, 1.2 * GIGA
"""Of a training job between its checkpoints."""
MOST = 0.93
"""What packet headers leave of a link at best."""


def slot(idle: PcieSlot, story: ChipStory, firmware_owns_aer: bool, t_s: float) -> PcieSlot:
    """The device and its root port at `t_s`."""
    levels = story.levels
    speed, lanes = levels.get("link.speed", idle.link.speed), levels.get("link.lanes", idle.link.lanes)
    link = replace(idle.link, speed=speed, lanes=lanes)
    most = MOST * capacity_bytes_per_second(replace(link, speed=link.max_speed))
    receive, transmit = IDLE_BYTES_PER_SECOND, IDLE_BYTES_PER_SECOND / 3
    if story.processes:
        receive = BUSY_RECEIVE * (1 + 0.4 * wander(f"{idle.address} receive", t_s))
        transmit = BUSY_TRANSMIT * (1 + 0.4 * wander(f"{idle.address} transmit", t_s))
    receive = levels.get("pcie_load.receive", receive / GIGA) * GIGA
    transmit = levels.get("pcie_load.transmit", transmit / GIGA) * GIGA
    return replace(
        idle,
        link=link,
        errors=None if firmware_owns_aer else _errors(story, "device"),
        port_errors=None if firmware_owns_aer else _errors(story, "port"),
        receive_bytes_per_second=min(receive, most),
        transmit_bytes_per_second=min(transmit, most),
    )


def _errors(story: ChipStory, end: str) -> Errors:
    found: dict[str, dict[str, int]] = {}
    for key in sorted(story.counts):
        if key.startswith(f"aer.{end}."):
            _, _, severity, name = key.split(".")
            found.setdefault(severity, {})[name] = story.count(key)
    return found
