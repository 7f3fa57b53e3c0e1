"""What hccn_tool of Ascend 950 prints of a port: partly lines, partly boxes.

Forms of `-link_stat`, `-speed` and `-dev_info`: the vendor's manual; of `-optical` and `-stat`: the tool's source.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from npu_watchd.simnode.hccn_optics import NO_VALUE, dbm
from npu_watchd.simnode.hccn_text import asctime
from npu_watchd.simnode.roce_port import STAT_KEYS_950, Optics, Range, RocePort

_OF_PORT = (("NPU", 3), ("UDie", 4), ("Port", 4))
_STAMP_WIDTH = 23


def link(port: RocePort) -> str:
    """`-g -link`."""
    return f"link status: {'UP' if port.up else 'DOWN'}\n"


def link_stat(port: RocePort, device: int) -> str:
    """`-g -link_stat`: no current time, and every cell one blank further in."""
    counts = f"link up count :    {port.up_count}\nlink down count :  {port.down_count or 0}\n"
    rows = [
        [f" {cell}" for cell in (device, port.udie, port.port, "LINK_UP" if change.up else "LINK_DOWN")]
        + [asctime(change.at_s, pad=1)]
        for change in port.changes
    ]
    columns = (*_OF_PORT, ("Link_Status", 11), ("Time_Stamp", _STAMP_WIDTH))
    return counts + _box(columns, rows)


def speed(port: RocePort, device: int) -> str:
    """`-g -speed`."""
    gigabits = "Unknown" if port.speed_mbps is None else f"{port.speed_mbps // 1000} G"
    state = "normal" if port.lanes == port.max_lanes else "degraded"
    row = (device, port.udie, port.port, gigabits, f"X{port.max_lanes}", f"X{port.lanes}", state)
    return _box((*_OF_PORT, ("Speed", 7), ("Cap", 3), ("Width", 5), ("Status", 9)), [row])


def stat(port: RocePort) -> str:
    """`-g -stat`."""
    counters = "".join(f"{key}: {port.counters[key]}\n" for key in STAT_KEYS_950 if key in port.counters)
    return f"packet statistics:\nport_id: {port.port}\nis_uboe_port: 0\n{counters}"


def dev_info(port: RocePort) -> str:
    """`-g -dev_info`: the ports alone; the boxes of addresses behind them are left out."""
    row = (port.udie, port.port, (port.speed_mbps or 0) // 1000, "UB", "UP" if port.up else "DOWN", "Optical")
    names = ("UDie ID", "Port ID", "Speed Ability(Gbps)", "Port Type", "Link Status", "Media Type")
    return _box([(name, len(name)) for name in names], [row])


def optical(port: RocePort, device: int) -> str:
    """`-g -optical`: flags, then values with the module's limits; of no module, that it is absent."""
    module = port.optics
    if not module.present:
        names = ("NPU", "Optical", "Present", "High_power", "Identifier", "Wave_len", "Phy_code", "Revision")
        return _box([(name, len(name)) for name in names], [(device, 0, "absent", *[NO_VALUE] * 5)])
    own = (device, port.udie, port.port)
    lanes = [(f"Lane{at}", 8) for at in range(len(module.lanes))]
    flags = _box((*_OF_PORT, ("Items", 12), *lanes), [(*own, *row) for row in _flags(module)])
    limits = (("HighAlarm", 9), ("HighWarn", 8), ("LowWarn", 8), ("LowAlarm", 8))
    columns = (*_OF_PORT, ("Items", 18), ("Value", 8), *limits, ("Status", 8), ("Optical_use", 16))
    return flags + _box(columns, [(*own, *row) for row in _values(module)])


def _flags(module: Optics) -> Iterable[tuple[str, ...]]:
    masks = (
        ("TxFault", 0),
        ("TxLos", module.transmit_los),
        ("RxLos", module.receive_los),
        ("TxLol", module.transmit_lol),
        ("RxLol", module.receive_lol),
    )
    for name, mask in masks:
        words = ("Abnormal" if mask >> at & 1 else "Normal" for at in range(len(module.lanes)))
        yield f"{name} Flag", *words


def _values(module: Optics) -> Iterable[tuple[str, ...]]:
    for at, lane in enumerate(module.lanes):
        yield _value(f"Bias Lane{at}(mA)", lane.bias_ma, module.bias, f"optical_0_lane_{at}")
    for at, lane in enumerate(module.lanes):
        yield _value(f"TxPower Lane{at}(dBm)", lane.transmit_mw, module.transmit)
    for at, lane in enumerate(module.lanes):
        yield _value(f"RxPower Lane{at}(dBm)", lane.receive_mw, module.receive)
    for side, ratios in (
        ("Host", [lane.host_snr_db for lane in module.lanes]),
        ("Media", [lane.media_snr_db for lane in module.lanes]),
    ):
        for at, ratio in enumerate(ratios):
            yield f"{side}SNR Lane{at}(dB)", NO_VALUE if ratio is None else f"{ratio:.4f}", *[NO_VALUE] * 6


def _value(item: str, value: float, limits: Range, use: str = NO_VALUE) -> tuple[str, ...]:
    shown = [value, limits.high_alarm or limits.high, limits.high, limits.low, limits.low_alarm or limits.low]
    cells = [f"{dbm(one) if item.endswith('(dBm)') else one:.4f}" for one in shown]
    return item, *cells, "Normal" if limits.low <= value <= limits.high else "Abnormal", use


def _box(columns: Sequence[tuple[str, int]], rows: Iterable[Sequence[object]]) -> str:
    rule = "+" + "+".join("-" * (width + 2) for _, width in columns) + "+"
    lines = [rule, _line(columns, [name for name, _ in columns]), rule]
    lines += [_line(columns, row) for row in rows]
    return "\n".join([*lines, rule]) + "\n"


def _line(columns: Sequence[tuple[str, int]], cells: Sequence[object]) -> str:
    return "|" + "|".join(f" {cell!s:<{width}} " for (_, width), cell in zip(columns, cells, strict=True)) + "|"
