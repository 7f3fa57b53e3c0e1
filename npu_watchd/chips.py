"""What each silicon has, by the name that npu-smi prints; GENERIC for one that nobody has met yet."""

from __future__ import annotations

import re
from dataclasses import dataclass

_EVERY_CHIP = frozenset({"npu_ecc", "npu_health", "npu_usages", "npu_common", "npu_board", "npu_proc_mem"})
# The training chips have a RoCE port each, asked about by logic id. The 950's forms want die and port: not asked yet.
_OWN_PORT = frozenset({"hccn_link", "hccn_link_stat", "hccn_stat", "hccn_net_health", "hccn_optical", "hccn_speed"})
_VITAL = frozenset({"npu_info", "npu_ecc", "npu_health"})


@dataclass(frozen=True, slots=True)
class ChipProfile:
    """One silicon."""

    name: str
    pattern: re.Pattern[str]
    """Of the name in `npu-smi info`, its `Ascend` prefix and blanks removed."""
    has_hbm: bool | None
    """None: unknown."""
    probes: frozenset[str]
    """Per-device probes that are worth asking: what a chip cannot say is not asked, since each call costs all cards."""
    vital: frozenset[str] = _VITAL
    """Probes without which nobody may call the device healthy, unless the tool itself says `does not support`."""
    known: bool = True


# Which -t types answer on which chip: captures of the tool's own source (docs/parse.md), and the vendor's manuals.
PROFILES: tuple[ChipProfile, ...] = (
    ChipProfile("310P", re.compile(r"310P"), False, _EVERY_CHIP),
    ChipProfile("310B", re.compile(r"310B"), False, _EVERY_CHIP),
    ChipProfile("310", re.compile(r"310$"), False, _EVERY_CHIP),
    ChipProfile("910A", re.compile(r"910(?:A|Pro|Premium|B$)"), True, _EVERY_CHIP | _OWN_PORT | {"npu_temp"}),
    ChipProfile("910B", re.compile(r"910B\d"), True, _EVERY_CHIP | _OWN_PORT | {"npu_temp", "npu_hccs"}),
    # A3 prints the family's name only; it alone does so with an `Ascend` prefix in the table.
    ChipProfile("A3", re.compile(r"910(?:_93|C|$)"), True, _EVERY_CHIP | _OWN_PORT | {"npu_temp", "npu_hccs"}),
    ChipProfile("950", re.compile(r"950"), True, _EVERY_CHIP | {"npu_temp", "npu_pcie_err"}),
)
GENERIC = ChipProfile(
    "GENERIC", re.compile(r""), None, _EVERY_CHIP | _OWN_PORT | {"npu_temp", "npu_hccs", "npu_pcie_err"}, known=False
)


def profile_of(name: str | None) -> ChipProfile:
    """The profile of a chip by its name (`910B3`, `Ascend910`, `Ascend 910A`, `310P3`); GENERIC where none fits."""
    bare = (name or "").replace("Ascend", "").strip()
    if not bare:
        return GENERIC
    return next((profile for profile in PROFILES if profile.pattern.match(bare)), GENERIC)
