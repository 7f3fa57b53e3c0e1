"""What the chip says of itself: its health, and the codes of its faults."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from npu_watchd.codes.repeats import Burst, Occurrence, repeats, stands
from npu_watchd.codes.software import TOGETHER_S, hardware
from npu_watchd.codes.table import Entry, lookup
from npu_watchd.codes.tiers import TIERS
from npu_watchd.memory.history import KEPT_S
from npu_watchd.model.finding import Action, Evidence, Severity
from npu_watchd.model.ids import DeviceKey
from npu_watchd.model.reading import Failure, FailureKind
from npu_watchd.rules.rule import Judgement, Rule, Unseen, Verified, View
from npu_watchd.rules.sight import blind
from npu_watchd.rules.window import span

_SPELL = "error_code:"
_WINDOWS = 2
"""How far back a rule on repeats looks, in its own windows: what came back at once belongs to what was just before."""
_SEEN_LATE_S = 60.0
"""The period of `npu_health`: what came to two devices at one instant is seen up to so much apart."""
_UNSURE = Failure(
    FailureKind.STALE, "npu-smi has no word for its health, or an OK that `-t health` has not confirmed yet"
)
_ByCode = dict[str, dict[DeviceKey, tuple[Occurrence, ...]]]
_NO_CODES = Failure(FailureKind.EXIT, "npu-smi tells the device's health, and not its error codes")


def _unhealthy(view: View) -> Iterable[Judgement]:
    for key, device in view.devices():
        if device.health in ("warning", "alarm", "critical"):
            severe = device.health != "warning"
            metric = f'npu_device_health{{state="{device.health}"}}'
            source = f"npu-smi info; npu-smi info -t health -i {key.npu}: Health"
            summary = f"device {device.device_id}: npu-smi calls its health {device.health}"
            yield Verified(
                key,
                summary,
                (Evidence(metric, device.health, "ok", "", None, source),),
                severity=Severity.CRITICAL if severe else Severity.WARNING,
                quarantines=device.health == "critical",
            )
        elif device.health == "unknown":
            yield Unseen(key, blind(device, "npu_info", "npu_health") or _UNSURE)


def _active_codes(view: View) -> Iterable[Judgement]:
    for key, device in view.devices():
        because = blind(device, "npu_health") or (_NO_CODES if device.error_codes is None else None)
        if because is not None:
            yield Unseen(key, because)
            continue
        found = [code for text in device.error_codes or () if (code := _judged(view, key, text)) is not None]
        if found:
            # The worst first; of equals the one whose name comes first, so that the finding does not change its words.
            found.sort(
                key=lambda one: (not one.quarantines, one.severity is not Severity.CRITICAL, one.entry.code.text)
            )
            worst = found[0]
            others = f", and {len(found) - 1} more" if len(found) > 1 else ""
            summary = f"device {device.device_id}: error code {worst.entry.code.shown}{others}: {worst.entry.text}"
            yield Verified(
                key,
                summary,
                tuple(_code_evidence(key, one) for one in found),
                severity=worst.severity,
                quarantines=worst.quarantines,
                action=worst.action,
            )


@dataclass(frozen=True, slots=True)
class _Judged:
    """One active code that is more than a hint."""

    entry: Entry
    severity: Severity
    quarantines: bool
    action: Action
    lasted: bool
    """It is as bad as this because it has lasted."""


def _judged(view: View, key: DeviceKey, text: str) -> _Judged | None:
    entry = lookup(text, view.site.overrides)
    if entry.lasting is not None and entry.lasting_tier is not None:
        facts = TIERS[entry.lasting_tier]
        if facts.severity is not None and stands(entry.lasting, _occurrences(view, key, text), view.history.now_s):
            return _Judged(entry, facts.severity, facts.quarantines, facts.action, lasted=True)
    if entry.severity is None:
        return None
    return _Judged(entry, entry.severity, entry.quarantines, entry.action, lasted=False)


def _code_evidence(key: DeviceKey, found: _Judged) -> Evidence:
    code = found.entry.code
    tier = found.entry.lasting_tier if found.lasted and found.entry.lasting_tier else found.entry.tier
    source = f"npu-smi info -t health -i {key.npu} -c {key.chip}: Error Code; npu-watchd explain {code.shown}"
    return Evidence(
        f'npu_device_error_code_active{{code="{code.text}"}}', f"tier {tier.value}", "hint", "", None, source
    )


def _occurrences(view: View, key: DeviceKey, code: str, window_s: float = KEPT_S) -> tuple[Occurrence, ...]:
    """Every stay of the code on the device that the history knows, or those that began or ended in the window."""
    spells = view.history.spells(f"{_SPELL}{code}", key, window_s)
    return tuple(Occurrence(spell.began_s, spell.ended_s) for spell in spells)


def _returning(view: View) -> Iterable[Judgement]:
    """Judged from the history alone: that the device cannot be seen just now changes no past."""
    by_code: _ByCode = {}
    for key, _ in view.devices():
        for name in view.history.names(_SPELL, key):
            code = name.removeprefix(_SPELL)
            rule = lookup(code, view.site.overrides).repeats
            if rule is not None:
                by_code.setdefault(code, {})[key] = _occurrences(view, key, code, _WINDOWS * rule.window_s)
    left = {code: _by_hardware(view, code, some) for code, some in by_code.items()}
    for key, device in view.devices():
        found = list(_repeated(view, key, left))
        if found:
            entry, seen, window_s = max(
                found, key=lambda one: (one[0].repeats is not None and one[0].repeats.quarantines, len(one[1]))
            )
            summary = (
                f"device {device.device_id}: error code {entry.code.shown} came back: "
                f"{len(seen)} bursts in {span(window_s)}: {entry.text}"
            )
            evidence = tuple(_repeat_evidence(key, *one) for one in found)
            evidence += _not_counted(key, {one[0].code.text for one in found}, by_code, left)
            quarantines = any(one[0].repeats is not None and one[0].repeats.quarantines for one in found)
            severity = Severity.CRITICAL if quarantines else Severity.WARNING
            yield Verified(key, summary, evidence, severity=severity, quarantines=quarantines)


def _by_hardware(
    view: View, code: str, some: dict[DeviceKey, tuple[Occurrence, ...]]
) -> dict[DeviceKey, tuple[Occurrence, ...]]:
    """Without what came to two devices of one job together; where jobs are not known, everything."""
    name = f"{_SPELL}{code}"
    return hardware(
        some, lambda key, one: view.history.jobs(name, key, one.appeared_s), within_s=TOGETHER_S + _SEEN_LATE_S
    )


def _not_counted(key: DeviceKey, codes: set[str], all_of: _ByCode, left: _ByCode) -> tuple[Evidence, ...]:
    """What of these codes was the doing of a job."""
    found: list[Evidence] = []
    for code, some in all_of.items():
        count = len(some.get(key, ())) - len(left[code].get(key, ()))
        if count and lookup(code).code.text in codes:
            metric = f"times that {code} came to another device of the same job too: software, not counted"
            found.append(Evidence(metric, count, None, "", None, "npu-watchd events --since 24h"))
    return tuple(found)


def _repeated(view: View, key: DeviceKey, left: _ByCode) -> Iterator[tuple[Entry, tuple[Burst, ...], float]]:
    """What came before a person's release is no longer counted; on probation half the usual number is too many."""
    for code, by_device in sorted(left.items()):
        entry = lookup(code, view.site.overrides)
        if entry.repeats is None or not by_device.get(key):
            continue
        rule, since_s = entry.repeats, view.released_s.get(key)
        if key in view.probation:
            rule = replace(rule, times=-(-rule.times // 2))
        counted = [one for one in by_device[key] if since_s is None or one.appeared_s > since_s]
        seen = repeats(rule, counted, view.history.now_s, lasts=entry.lasting)
        if seen.reached:
            yield replace(entry, repeats=rule), seen.bursts, rule.window_s


def _repeat_evidence(key: DeviceKey, entry: Entry, seen: tuple[Burst, ...], window_s: float) -> Evidence:
    metric = f'bursts of npu_device_error_code_active{{code="{entry.code.text}"}}'
    limit = entry.repeats.times if entry.repeats else None
    source = f"npu-watchd events --since 24h; npu-smi info -t health -i {key.npu} -c {key.chip}: Error Code"
    return Evidence(metric, len(seen), limit, "", window_s, source)


HEALTH: tuple[Rule, ...] = (
    Rule(
        "device_unhealthy",
        "NpuDeviceUnhealthy",
        Severity.CRITICAL,
        True,
        Action.INSPECT,
        ("npu_info", "npu_health"),
        (),
        "npu-smi itself calls the device's health Warning, Alarm or Critical.",
        _unhealthy,
    ),
    Rule(
        "error_code",
        "NpuDeviceErrorCode",
        Severity.CRITICAL,
        True,
        Action.INSPECT,
        ("npu_health",),
        (),
        "An error code of the device is active that the vendor ranks above a hint, or that nobody knows.",
        _active_codes,
    ),
    Rule(
        "error_code_repeats",
        "NpuDeviceErrorCodeRepeats",
        Severity.CRITICAL,
        True,
        Action.INSPECT,
        ("npu_health",),
        (),
        "The same error code has come back to the device more often than the vendor's frequency rules allow.",
        _returning,
    ),
)
