"""Devices that are too hot."""

from __future__ import annotations

from collections.abc import Iterable

from npu_watchd.model.finding import Action, Evidence, Severity
from npu_watchd.model.ids import DeviceKey
from npu_watchd.model.snapshot import Device
from npu_watchd.rules.rule import Judgement, Rule, Unseen, Verified, View
from npu_watchd.rules.sight import blind

_PROBES = {"chip": "npu_info", "hbm": "npu_temp"}
_KEYS = {"chip": "npu-smi info: Temp", "hbm": "npu-smi info -t memory -i {npu}: HBM Temperature"}


def _overheating(view: View) -> Iterable[Judgement]:
    for key, device in view.devices():
        hot = [found for sensor in _PROBES if (found := _hot(view, key, device, sensor)) is not None]
        if hot:
            yield max(hot, key=lambda found: found.severity is Severity.CRITICAL)
            continue
        # A sensor that cannot be read may be the hot one; the others being cool says nothing of it.
        because = blind(device, *_PROBES.values())
        if because is not None:
            yield Unseen(key, because)


def _hot(view: View, key: DeviceKey, device: Device, sensor: str) -> Verified | None:
    celsius = device.temperature_celsius.get(sensor)
    if celsius is None:
        return None
    # Once found it must be some degrees cooler, so that a fan's ripple about the limit is one finding and not twenty.
    cooled = view.limit("cooled_celsius", device) if ("overheating", key) in view.active else 0.0
    limits = {step: view.limit(f"{sensor}_{step}_celsius", device) for step in ("critical", "warning")}
    step = next((step for step, limit in limits.items() if celsius >= limit), None)
    if step is None and cooled and celsius >= limits["warning"] - cooled:
        step = "warning"
    if step is None:
        return None
    metric = f'npu_device_temperature_celsius{{sensor="{sensor}"}}'
    evidence = Evidence(metric, celsius, limits[step], "celsius", None, _KEYS[sensor].format(npu=key.npu))
    summary = f"device {device.device_id}: {sensor} at {celsius:.0f} °C (limit {limits[step]:.0f} °C)"
    return Verified(key, summary, (evidence,), severity=Severity(step), for_s=view.limit("overheating_s", device))


THERMAL: tuple[Rule, ...] = (
    Rule(
        "overheating",
        "NpuDeviceOverheating",
        Severity.CRITICAL,
        False,
        Action.INSPECT_COOLING,
        ("npu_info", "npu_temp"),
        (
            "chip_warning_celsius",
            "chip_critical_celsius",
            "hbm_warning_celsius",
            "hbm_critical_celsius",
            "cooled_celsius",
            "overheating_s",
        ),
        "The chip or its memory has been too hot for a minute.",
        _overheating,
        calm_s=60.0,
    ),
)
