"""`npu-watchd explain`: all that we know of one error code, as lines for a person and as a document."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from npu_watchd.codes.layout import Bits, Form, decode
from npu_watchd.codes.log_code import LogCode
from npu_watchd.codes.log_codes import log_code
from npu_watchd.codes.overrides import NO_OVERRIDES, Overrides
from npu_watchd.codes.repeats import LastingRule, RepeatRule
from npu_watchd.codes.table import Entry, lookup
from npu_watchd.codes.tiers import TIERS, Tier
from npu_watchd.model.ids import DeviceKey

_COLUMN, _WIDTH = 10, 110
_VENDOR = "the vendor's open sources (MindCluster, driver)"
_BASES = {
    "vendor": f"meaning from {_VENDOR}, in our words",
    "bits": f"meaning from the code's bits alone, as laid out in {_VENDOR}",
    "none": "nobody has published a meaning",
}
_CHECKS = {
    Form.ALARM: "the alarms of the server's BMC, or of the NIC",
    Form.CLUSTER: "the vendor's cluster software, which makes this code",
    Form.SWITCH: "the alarms of the switch inside the node",
}


class NotKnownError(ValueError):
    """Nothing that we can explain; the text says what can be."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """One code, explained. `str()` is the text for a person."""

    entry: Entry
    check: str
    """The command with which a person sees it, or the place where it stands."""
    source: str
    """What the explanation rests on."""

    def lines(self) -> list[str]:
        """A heading, the meaning, and the facts, wrapped for a terminal."""
        entry = self.entry
        head = "  ".join(part for part in (entry.code.shown, entry.unit, entry.tier.value) if part)
        facts = [(name, text) for name, text in self._facts() if text]
        told = [line for name, text in facts for line in _wrapped(text, f"  {name:{_COLUMN}}")]
        return [head, *_wrapped(entry.text, ""), "", *told]

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def _facts(self) -> Iterator[tuple[str, str]]:
        entry = self.entry
        yield "tier", _tier(entry)
        yield "finding", _finding(entry)
        yield "action", entry.action.value
        yield "bits", _bits(entry.bits) if entry.bits else ""
        yield "repeats", _repeats(entry.repeats) if entry.repeats else ""
        yield "lasting", _lasting(entry.lasting, entry.lasting_tier) if entry.lasting else ""
        yield "check", self.check
        yield "source", self.source

    def document(self) -> dict[str, object]:
        """The same as plain data, for JSON. null: not known, or none."""
        entry = self.entry
        return {
            "code": entry.code.text,
            "form": entry.code.form.value,
            "listed": entry.listed,
            "tier": entry.tier.value,
            "vendor_level": entry.vendor_level,
            "severity": entry.severity.value if entry.severity else None,
            "quarantines": entry.quarantines,
            "silent": entry.silent,
            "action": entry.action.value,
            "scope": entry.scope,
            "unit": entry.unit,
            "text": entry.text,
            "bits": _bits_document(entry.bits) if entry.bits else None,
            "repeats": _repeats_document(entry.repeats) if entry.repeats else None,
            "lasting": _lasting_document(entry.lasting, entry.lasting_tier) if entry.lasting else None,
            "check": self.check,
            "source": self.source,
        }


def explain(words: Sequence[str], overrides: Overrides = NO_OVERRIDES) -> Explanation | LogCode:
    """What the words of the command line ask about: a code of a chip or of a log, which a shell may have cut.

    Raises NotKnownError, with the text for the person.
    """
    written = log_code(" ".join(words))
    if written is not None:
        return written
    try:
        return explanation(" ".join(words), overrides)
    except ValueError as error:
        raise NotKnownError(str(error)) from error


def explanation(code: str, overrides: Overrides = NO_OVERRIDES, device: DeviceKey | None = None) -> Explanation:
    """All that we know of one code at this site.

    device: for the command to check it with; None leaves N and M in their places.
    Raises ValueError naming a text that is no code.
    """
    entry = lookup(decode(code).text, overrides)
    return Explanation(entry, _check(entry, device), _source(entry, overrides))


def _wrapped(text: str, head: str) -> list[str]:
    """Lines of a readable width, the later ones under the first one's text."""
    indent = " " * len(head)
    return textwrap.wrap(text, _WIDTH, initial_indent=head, subsequent_indent=indent, break_on_hyphens=False)


def _check(entry: Entry, device: DeviceKey | None) -> str:
    if entry.code.form in _CHECKS:
        return _CHECKS[entry.code.form]
    npu, chip = (device.npu, device.chip) if device else ("N", "M")
    return f"npu-smi info -t health -i {npu} -c {chip}"


def _source(entry: Entry, overrides: Overrides) -> str:
    site = overrides.by_code.get(entry.code.text)
    if not entry.listed:
        tier = "in no table"
    elif site is not None and site.tier is not None:
        tier = f"tier from {overrides.file}"
    else:
        tier = "listed without a level" if entry.tier is Tier.UNKNOWN else "tier of the vendor's table"
    said = f"meaning from {overrides.file}" if entry.basis == "site" else _BASES[entry.basis]
    return f"{tier}; {said}"


def _tier(entry: Entry) -> str:
    level = f" (the vendor's {entry.vendor_level})" if entry.vendor_level else ""
    return f"{entry.tier.value}{level}: {TIERS[entry.tier].what}"


def _finding(entry: Entry) -> str:
    if entry.silent:
        return "none: silenced by the site; it is still shown"
    if entry.severity is None:
        return "none: it is only shown"
    if entry.scope not in ("chip", None):
        return f"{entry.severity.value}; it is not about a device, and quarantines none"
    return (
        f"{entry.severity.value}; {'quarantines the device' if entry.quarantines else 'does not quarantine by itself'}"
    )


def _bits(bits: Bits) -> str:
    said_by = f"{bits.side.value} side"
    if bits.black_box:
        change = f", {bits.change.value}" if bits.change else ""
        return f"{said_by}, black-box record{change}"
    fields = (
        _field("node type", bits.node_type, 2, bits.unit_words),
        _field("sensor", bits.sensor_type, 2, bits.sensor),
        _field("state", bits.state, 3, bits.state_words),
    )
    return "; ".join((said_by, *fields))


def _field(name: str, number: int | None, digits: int, words: str | None) -> str:
    return f"{name} 0x{number:0{digits}X} ({words or 'no public name'})"


def _repeats(rule: RepeatRule) -> str:
    then = "quarantine" if rule.quarantines else "a finding, no quarantine"
    release = f", until away for {_span(rule.release_s)}" if rule.release_s is not None else ""
    return f"{rule.times} bursts within {_span(rule.window_s)}: {then}{release} ({rule.source})"


def _lasting(rule: LastingRule, tier: Tier | None) -> str:
    then = f"tier {tier.value}" if tier else "the vendor acts, its sources do not say how"
    over = f"; over once away for {_span(rule.recovered_s)}" if rule.recovered_s else ""
    return f"there for more than {_span(rule.lasting_s)}: {then}{over}"


def _span(seconds: float) -> str:
    hours, rest = divmod(seconds, 3600)
    return f"{hours:g} h" if hours and not rest else f"{seconds:g} s"


def _bits_document(bits: Bits) -> dict[str, object]:
    return {
        "side": bits.side.value,
        "black_box": bits.black_box,
        "change": bits.change.value if bits.change else None,
        "node_type": bits.node_type,
        "node_type_words": bits.unit_words,
        "sensor_type": bits.sensor_type,
        "sensor_words": bits.sensor,
        "state": bits.state,
        "state_words": bits.state_words,
    }


def _repeats_document(rule: RepeatRule) -> dict[str, object]:
    return {
        "times": rule.times,
        "window_s": rule.window_s,
        "release_s": rule.release_s,
        "quarantines": rule.quarantines,
        "source": rule.source,
    }


def _lasting_document(rule: LastingRule, tier: Tier | None) -> dict[str, object]:
    return {"lasting_s": rule.lasting_s, "recovered_s": rule.recovered_s, "tier": tier.value if tier else None}
