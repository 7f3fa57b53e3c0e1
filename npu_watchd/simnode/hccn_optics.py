"""What hccn_tool of 910A, 910B and A3 prints of an optical module: `-optical -g`, and its tables with `v2`."""

from __future__ import annotations

from collections.abc import Iterator
from math import log10

from npu_watchd.simnode.roce_port import Lane, Optics, Range

_WIDE = "=" * 92
_THIN = "-" * 92
NO_VALUE = "-"


def text(module: Optics) -> str:
    """`-optical -g`. Of an absent module the tool goes on printing who the last one was."""
    return "optical info:\n" + "".join(f"{key:<21}: {value}\n" for key, value in _pairs(module)) + _tail(module)


def _pairs(module: Optics) -> Iterator[tuple[str, str]]:
    yield "present", "present" if module.present else "not present"
    yield "temperature", f"{module.temperature_c:g} C" if module.present else "NA"
    yield "high power enable reg", "enabled"
    yield "vendor name", module.vendor
    yield "vendor part number", module.part
    yield "vendor serial number", module.serial
    yield "vendor org unique id", "0x0 0x0 0x0"
    yield "xsfp identifier", module.identifier or "NA"
    yield "xsfp wave length", f"{module.wavelength_nm} nm"
    yield "manufact date code", module.made_on
    if _measures(module):
        yield from _measured(module)
    else:
        yield from ((key, "NA") for key in ("Vcc", "Tx Power", "Rx Power"))
        yield from ((f"{what} {side} Thres", "NA") for what, _, _ in _limits(module) for side in ("High", "Low"))


def _measures(module: Optics) -> bool:
    return module.present and module.voltage_mv is not None


def _measured(module: Optics) -> Iterator[tuple[str, str]]:
    yield "Vcc", f"{module.voltage_mv:.2f} mV"
    for at, lane in enumerate(module.lanes):
        yield f"Tx Power{at}", f"{lane.transmit_mw:.4f} mW"
        yield f"Rx Power{at}", f"{lane.receive_mw:.4f} mW"
    for what, limits, form in _limits(module):
        yield f"{what} High Thres", form.format(limits.high)
        yield f"{what} Low Thres", form.format(limits.low)
    for at, lane in enumerate(module.lanes):
        yield f"Tx Bias{at}", f"{lane.bias_ma:.4f} mA"
    yield "Tx Los Flag", f"0x{module.transmit_los:x}"
    yield "Rx Los Flag", f"0x{module.receive_los:x}"
    yield "Tx LoL Flag", f"0x{module.transmit_lol:x}"
    yield "Rx LoL Flag", f"0x{module.receive_lol:x}"
    for side, ratios in (("Host", _host), ("Media", _media)):
        for at, lane in enumerate(module.lanes):
            ratio = ratios(lane)
            yield f"{side} SNR Lane{at}", "not supported" if ratio is None else f"{ratio:.4f} dB"
    yield "Physical Code", "NA"
    yield "vendor rev", "NA"


def _tail(module: Optics) -> str:
    """The one line whose key is longer than the column."""
    return f"Specification compliance: {' '.join(['0x00'] * 8)}\n" if _measures(module) else ""


def _limits(module: Optics) -> tuple[tuple[str, Range, str], ...]:
    return (
        ("Vcc", module.voltage, "{:.2f} mV"),
        ("Temp", module.temperature, "{:g} C"),
        ("TxPower", module.transmit, "{:.4f} mW"),
        ("RxPower", module.receive, "{:.4f} mW"),
    )


def _host(lane: Lane) -> float | None:
    return lane.host_snr_db


def _media(lane: Lane) -> float | None:
    return lane.media_snr_db


def tables(module: Optics) -> str:
    """`-optical -g v2`."""
    lines = [_WIDE, "State-flag Diagnostic Monitoring:", _THIN, "Items            Status", _THIN, *_flags(module)]
    lines += ["High power enable reg: enabled", _THIN, _WIDE, "Digital Diagnostic Monitoring:", _THIN]
    lines.append("Items               Value       HighAlarm   HighWarn    LowAlarm    LowWarn     Status")
    lines += [f"{item:<20}" + "".join(f"{cell:<12}" for cell in (*cells, NO_VALUE)) for item, *cells in _rows(module)]
    return "\n".join(lines) + "\n"


def _flags(module: Optics) -> Iterator[str]:
    masks = {
        "TxFault": 0,
        "RxLos": module.receive_los,
        "TxLos": module.transmit_los,
        "TxLol": module.transmit_lol,
        "RxLol": module.receive_lol,
    }
    for name, mask in masks.items():
        words = [_flag_word(module, mask >> at & 1) for at in range(len(module.lanes))]
        yield f"{name + ' Flag':<17}" + "| ".join(f"{word:<10}" for word in words)


def _flag_word(module: Optics, raised: int) -> str:
    return NO_VALUE if not _measures(module) else "Abnormal" if raised else "Normal"


def _rows(module: Optics) -> Iterator[tuple[str, ...]]:
    """Item, value and limits. Signal-to-noise ratios go on being printed of a module that is gone."""
    yield _row(module, "Temperature(C)", module.temperature_c, module.temperature)
    volts = Range(*(value / 1000 for value in (module.voltage.high, module.voltage.low)))
    yield _row(module, "Voltage(V)", (module.voltage_mv or 0.0) / 1000, volts)
    for at, lane in enumerate(module.lanes):
        yield _row(module, f"Bias lane{at}(mA)", lane.bias_ma, module.bias)
    for at, lane in enumerate(module.lanes):
        yield _row(module, f"RxPower Lane{at}(dBm)", lane.receive_mw, module.receive)
    for at, lane in enumerate(module.lanes):
        yield _row(module, f"TxPower Lane{at}(dBm)", lane.transmit_mw, module.transmit)
    for side, ratios in (("Media", _media), ("Host", _host)):
        for at, lane in enumerate(module.lanes):
            ratio = ratios(lane)
            yield f"{side}SNR Lane{at}(dB)", NO_VALUE if ratio is None else f"{ratio:.2f}", *[NO_VALUE] * 4


def _row(module: Optics, item: str, value: float, limits: Range) -> tuple[str, ...]:
    if not _measures(module):
        return item, *[NO_VALUE] * 5
    shown = (value, limits.high_alarm, limits.high, limits.low_alarm, limits.low)
    return item, *(f"{dbm(one) if item.endswith('(dBm)') else one:.2f}" for one in shown)


def dbm(milliwatts: float) -> float:
    """No light at all is minus infinity."""
    return 10 * log10(milliwatts) if milliwatts > 0 else float("-inf")
