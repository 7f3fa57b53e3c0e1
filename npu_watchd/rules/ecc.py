"""Memory errors: those that destroyed data, corrected ones that come too often, and pages taken out of use."""

from __future__ import annotations

from collections.abc import Iterable

from npu_watchd.model.finding import Action, Evidence, Severity
from npu_watchd.model.ids import DeviceKey
from npu_watchd.model.snapshot import Device
from npu_watchd.rules.rule import Judgement, Rule, Unseen, Verified, View
from npu_watchd.rules.sight import blind

_ERRORS = "npu_device_memory_errors_total"
_PAGES = "npu_device_memory_isolated_pages"
_HOUR_S, _DAY_S, _WEEK_S = 3600.0, 86400.0, 7 * 86400.0


def _command(key: DeviceKey, row: str) -> str:
    return f"npu-smi info -t ecc -i {key.npu}: {row}"


def _unseen(key: DeviceKey, device: Device) -> Unseen | None:
    because = blind(device, "npu_ecc")
    return None if because is None else Unseen(key, because)


def _double_bit(view: View) -> Iterable[Judgement]:
    for key, device in view.devices():
        unseen = _unseen(key, device)
        if unseen is not None:
            yield unseen
            continue
        limit = view.limit("double_bit_errors", device)
        for memory, errors in sorted(device.memory_errors.items()):
            if errors.double_bit is None or errors.double_bit < limit:
                continue
            name = memory.upper()
            labels = f'{{memory="{memory}",kind="double_bit"}}'
            source = _command(key, f"{name} Double Bit Error Count")
            evidence = [Evidence(_ERRORS + labels, errors.double_bit, limit, "", None, source)]
            evidence += _grown(view, key, memory)
            summary = f"device {device.device_id}: {errors.double_bit} uncorrectable {name} errors since its last reset"
            yield Verified(key, summary, tuple(evidence))
            break


def _grown(view: View, key: DeviceKey, memory: str) -> list[Evidence]:
    """How many came while we watched; what was there before is inventory."""
    labels = (("kind", "double_bit"), ("memory", memory))
    grown = view.history.increase(_ERRORS, key, labels, _DAY_S)
    if grown is None:
        return []
    source = _command(key, f"{memory.upper()} Double Bit Error Count, twice")
    return [Evidence(f"increase of {_ERRORS}", grown.count, None, "", _DAY_S, source)]


def _single_bit(view: View) -> Iterable[Judgement]:
    hourly = _hourly(view)
    for key, device in view.devices():
        unseen = _unseen(key, device)
        if unseen is not None:
            yield unseen
            continue
        for memory in sorted(device.memory_errors):
            count = hourly.get((key, memory))
            limit, reasons = _allowed(view, key, device, memory, hourly)
            if count is not None and count >= limit:
                labels = f'{{memory="{memory}",kind="single_bit"}}'
                source = _command(key, f"{memory.upper()} Single Bit Error Count, an hour apart")
                evidence = (Evidence(f"increase of {_ERRORS}{labels}", count, limit, "", _HOUR_S, source), *reasons)
                summary = (
                    f"device {device.device_id}: {count:.0f} corrected {memory.upper()} errors in the last hour "
                    f"(limit {limit:.0f})"
                )
                yield Verified(key, summary, evidence)
                break


def _hourly(view: View) -> dict[tuple[DeviceKey, str], float]:
    """Corrected errors of the last hour by device and memory, where they are counted."""
    found = {}
    for key, device in view.devices():
        for memory in device.memory_errors:
            labels = (("kind", "single_bit"), ("memory", memory))
            grown = view.grown(_ERRORS, key, labels, _HOUR_S)
            if grown is not None:
                found[key, memory] = grown
    return found


def _allowed(
    view: View, key: DeviceKey, device: Device, memory: str, hourly: dict[tuple[DeviceKey, str], float]
) -> tuple[float, list[Evidence]]:
    """The limit for this device: the fixed one, or a multiple of its own week and of its neighbours, whichever is more.

    Half of it once the finding stands, so that a rate about the limit does not come and go.
    """
    fixed, factor = view.limit("single_bit_errors_per_hour", device), view.limit("single_bit_factor", device)
    others = [count for (other, name), count in hourly.items() if other != key and name == memory]
    neighbours = _median(others)
    own = _own_past(view, key, memory)
    limit = max(fixed, factor * neighbours, factor * own)
    if ("hbm_single_bit", key) in view.active:
        limit /= 2
    source = "npu-smi info -t ecc of the other devices"
    reasons = [Evidence("median of the neighbours' increase", neighbours, None, "", _HOUR_S, source)] if others else []
    reasons.append(Evidence("its own mean an hour before that", own, None, "", _WEEK_S, "/api/v1/events"))
    return limit, reasons


def _median(counts: list[float]) -> float:
    """0 of none. The standard library's brings in decimals and fractions, a MiB that the daemon need not hold."""
    if not counts:
        return 0.0
    ordered, half = sorted(counts), len(counts) // 2
    return ordered[half] if len(counts) % 2 else (ordered[half - 1] + ordered[half]) / 2


def _own_past(view: View, key: DeviceKey, memory: str) -> float:
    """Errors an hour over the week before the last day; 0 where it has been watched for less than two days."""
    labels = (("kind", "single_bit"), ("memory", memory))
    week = view.history.increase(_ERRORS, key, labels, _WEEK_S)
    day = view.history.increase(_ERRORS, key, labels, _DAY_S)
    if week is None or day is None or week.covered_s < 2 * _DAY_S:
        return 0.0
    return (week.count - day.count) / ((week.covered_s - _DAY_S) / _HOUR_S)


def _isolated(view: View) -> Iterable[Judgement]:
    for key, device in view.devices():
        unseen = _unseen(key, device)
        if unseen is not None:
            yield unseen
            continue
        warning, critical = (view.limit(f"isolated_pages_{step}", device) for step in ("warning", "critical"))
        counts = {
            memory: errors.double_bit_isolated_pages
            for memory, errors in device.memory_errors.items()
            if errors.double_bit_isolated_pages is not None
        }
        if not counts:
            continue
        memory, pages = max(counts.items(), key=lambda item: item[1])
        if pages < warning:
            continue
        bad = pages >= critical
        limit = critical if bad else warning
        metric = f'{_PAGES}{{memory="{memory}",kind="double_bit"}}'
        source = _command(key, f"{memory.upper()} Double Bit Isolated Pages Count")
        summary = f"device {device.device_id}: {pages} {memory.upper()} pages isolated for uncorrectable errors "
        yield Verified(
            key,
            f"{summary}(limit {limit:.0f})",
            (Evidence(metric, pages, limit, "", None, source),),
            severity=Severity.CRITICAL if bad else Severity.WARNING,
            quarantines=bad,
            action=Action.REPLACE if bad else Action.OBSERVE,
        )


ECC: tuple[Rule, ...] = (
    Rule(
        "hbm_double_bit",
        "NpuMemoryUncorrectableErrors",
        Severity.CRITICAL,
        True,
        Action.RESET_DEVICE,
        ("npu_ecc",),
        ("double_bit_errors",),
        "The device's memory has had an error that could not be corrected since its last reset.",
        _double_bit,
    ),
    Rule(
        "hbm_single_bit",
        "NpuMemoryErrorsClimbing",
        Severity.WARNING,
        False,
        Action.OBSERVE,
        ("npu_ecc",),
        ("single_bit_errors_per_hour", "single_bit_factor"),
        "Corrected memory errors climb: more in an hour than the limit, the device's own past and its neighbours.",
        _single_bit,
    ),
    Rule(
        "isolated_pages",
        "NpuMemoryPagesIsolated",
        Severity.CRITICAL,
        True,
        Action.REPLACE,
        ("npu_ecc",),
        ("isolated_pages_warning", "isolated_pages_critical"),
        "Many pages of the device's memory had to be taken out of use.",
        _isolated,
    ),
)
