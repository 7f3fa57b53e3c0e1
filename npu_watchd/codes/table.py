"""Every code that the vendor's open sources name, from codes.tsv, and what holds for any code at this site."""

from __future__ import annotations

import csv
import functools
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources

from npu_watchd.codes.layout import Bits, Change, Code, Form, decode, raised_form
from npu_watchd.codes.overrides import NO_OVERRIDES, Override, Overrides
from npu_watchd.codes.repeats import LastingRule, RepeatRule
from npu_watchd.codes.tiers import TIERS, Tier
from npu_watchd.model.finding import Action, Severity

_DAY_S = 86400.0
_VENDOR_RULE = "the vendor's own number for this code"
_ANY_CODE = "the vendor's number for all codes but the mildest"


@dataclass(frozen=True, slots=True)
class Row:
    """One code in codes.tsv."""

    code: Code
    tier: Tier
    scope: str
    """Who has it: chip, server, switch, cluster or nic."""
    unit: str | None
    """None: the bits name it."""
    action: Action | None
    """None: the tier's own."""
    repeats: RepeatRule | None
    lasting: LastingRule | None
    lasting_tier: Tier | None
    """What it becomes once it lasts; None: the vendor's sources do not say."""
    basis: str
    """What the text rests on: vendor, bits or none."""
    text: str | None
    """None: the bits say it all."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What holds for one code at this site: the vendor's facts, or the lack of them, with the site's word on top."""

    code: Code
    listed: bool
    """In the vendor's table, or in the site's."""
    tier: Tier
    severity: Severity | None
    """Of the finding that it makes while it is there; None: it is only shown."""
    quarantines: bool
    action: Action
    scope: str | None
    """None: not known."""
    unit: str | None
    """The part that it is about; None: not known."""
    text: str
    """What it says, in our words."""
    bits: Bits | None
    """None where it is no code of a chip."""
    repeats: RepeatRule | None
    """None: returning does not make it worse."""
    lasting: LastingRule | None
    lasting_tier: Tier | None
    basis: str
    """vendor, bits, none, or site."""
    silent: bool

    @property
    def vendor_level(self) -> str | None:
        """The tier under the vendor's name, which differs with the scope; None: it has none."""
        levels = TIERS[self.tier].vendor_levels
        ending = {"server": "Fault", "switch": "Fault", "nic": "DPU"}.get(self.scope or "", "NPU")
        return next((level for level in levels if level.endswith(ending)), levels[0] if levels else None)


@functools.cache
def table() -> Mapping[str, Row]:
    """codes.tsv by the code's text; read once, when first asked for."""
    text = resources.files("npu_watchd.codes").joinpath("codes.tsv").read_text(encoding="utf-8")
    lines = (line for line in text.splitlines() if not line.startswith("#"))
    rows = (_row(fields) for fields in csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))
    return {row.code.text: row for row in rows}


def lookup(text: str, overrides: Overrides = NO_OVERRIDES) -> Entry:
    """What holds for a code. Never fails: a code that nobody lists, or of no known form, is a warning and no more."""
    try:
        code = decode(text)
    except ValueError:
        code = Code(text.strip().lower().removeprefix("0x"), Form.OTHER, None)
    said = overrides.by_code.get(code.text)
    row = table().get(code.text) or _recovered(code)
    tier = (said.tier if said else None) or (row.tier if row else Tier.UNKNOWN)
    facts = TIERS[tier]
    silent = said is not None and said.silent
    # A site that calls a code a hint means it: no rule brings it back through the other door.
    ruled = row if not silent and (said is None or said.tier is not Tier.HINT) else None
    # A server's or a switch's alarm says nothing about a device; what no table has came from npu-smi, hence from one.
    of_device = row is None or row.scope == "chip"
    bits = code.bits if of_device else None
    return Entry(
        code,
        row is not None or said is not None,
        tier,
        None if silent else facts.severity,
        facts.quarantines and of_device and not silent,
        (row.action if row else None) or facts.action,
        row.scope if row else "chip" if bits else None,
        (said.unit if said else None) or (row.unit if row else None) or (bits.unit if bits else None),
        (said.text if said else None) or (row.text if row else None) or _phrase(bits),
        bits,
        _repeat_rule(tier, ruled) if of_device and not silent else None,
        ruled.lasting if ruled else None,
        ruled.lasting_tier if ruled else None,
        _basis(said, row, bits),
        silent,
    )


def _recovered(code: Code) -> Row | None:
    """The end of a heartbeat fault: nothing is wrong any more, whatever its beginning was."""
    if code.bits is None or code.bits.change is not Change.RECOVERED:
        return None
    lost = table()[raised_form(code.text)]
    text = f"Over: {lost.code.shown} is no longer the case. It said: {lost.text or _phrase(code.bits)}"
    return Row(code, Tier.HINT, lost.scope, lost.unit, None, None, None, None, lost.basis, text)


def _repeat_rule(tier: Tier, row: Row | None) -> RepeatRule | None:
    if row is not None and row.repeats is not None:
        return row.repeats
    if tier is Tier.HINT:
        return None
    # The vendor leaves sub-health out of this count, and of an unknown code nobody knows what its return means.
    quarantines = tier not in (Tier.SUB_HEALTH, Tier.UNKNOWN)
    return RepeatRule(3, _DAY_S, 2 * _DAY_S, quarantines, _ANY_CODE)


def _basis(said: Override | None, row: Row | None, bits: Bits | None) -> str:
    if said is not None and said.text is not None:
        return "site"
    if row is not None:
        return row.basis
    return "bits" if bits is not None and bits.state_words is not None else "none"


def _phrase(bits: Bits | None) -> str:
    """A sentence out of the bits alone."""
    if bits is None:
        return "Nobody has published what it means."
    if bits.black_box:
        return "A record of the device's black box. Nobody has published what it means."
    unit = bits.unit_words or f"part with node type 0x{bits.node_type:X}, which has no public name"
    if bits.state_words is None:
        sensor = bits.sensor or f"sensor 0x{bits.sensor_type:X}"
        return f"{unit[0].upper()}{unit[1:]}: {sensor} in state 0x{bits.state:X}, which nobody has explained."
    return f"{unit[0].upper()}{unit[1:]}: {bits.state_words}."


def _row(fields: Mapping[str, str]) -> Row:
    times, lasting_s = fields["times"], fields["lasting_s"]
    release_s, recovered_s = fields["release_s"], fields["recovered_s"]
    rule = RepeatRule(
        int(times), float(fields["window_s"]), float(release_s) if release_s else None, True, _VENDOR_RULE
    ) if times else None  # fmt: skip
    return Row(
        decode(fields["code"]),
        Tier(fields["tier"]),
        fields["scope"],
        fields["unit"] or None,
        Action(fields["action"]) if fields["action"] else None,
        rule,
        LastingRule(float(lasting_s), float(recovered_s or 0)) if lasting_s else None,
        Tier(fields["lasting_tier"]) if fields["lasting_tier"] else None,
        fields["basis"],
        fields["text"] or None,
    )
