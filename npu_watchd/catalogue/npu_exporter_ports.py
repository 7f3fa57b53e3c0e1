"""npu-exporter's metric names of the NPU's own RoCE port and its optical module.

On Ascend 950 theirs are others, by die and port; its ports are not asked about here (docs/decisions/0016).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from npu_watchd.catalogue.borrowed import Borrowed, scaled
from npu_watchd.catalogue.family import Sample, one
from npu_watchd.model.fabric import OpticalModule
from npu_watchd.model.snapshot import Device, NpuPort

_LANES = range(4)
_REACHABLE = frozenset({"success", "init"})
"""DCMI's network health 0 and 6, which they take for healthy."""


def _port(read: Callable[[NpuPort], Iterable[Sample]]) -> Callable[[Device], Iterable[Sample]]:
    return lambda device: () if device.roce is None else read(device.roce)


def _reachable(port: NpuPort) -> Iterable[Sample]:
    return () if port.reachability in (None, "unknown") else one(port.reachability in _REACHABLE)


def _counter(key: str) -> Callable[[Device], Iterable[Sample]]:
    """A key that the tool does not print stays absent; theirs makes it 0."""
    return _port(lambda port: one(port.statistics.counters.get(key) if port.statistics else None))


def _optical(
    read: Callable[[OpticalModule], float | bool | None], factor: float
) -> Callable[[Device], Iterable[Sample]]:
    return _port(lambda port: scaled(read(port.optical) if port.optical else None, factor))


def _light(number: int, field: str) -> Callable[[OpticalModule], float | None]:
    return lambda module: next((getattr(lane, field) for lane in module.lanes if lane.lane == number), None)


_API = "`roce.errors` of `/api/v1/snapshot`"
_PAUSE = "npu_device_roce_pause_frames_total"
_ERRORS = "npu_device_roce_errors_total"
_WAYS = {"rx": "receive", "tx": "transmit"}

_LINK = (
    Borrowed(
        "npu_chip_info_network_status",
        "",
        'npu_device_roce_reachability{state=~"success|init"}',
        _port(_reachable),
    ),
    Borrowed("npu_chip_info_link_status", "", "npu_device_roce_link_up", _port(lambda port: one(port.link_up))),
    Borrowed(
        "npu_chip_link_speed",
        "Mb/s",
        "npu_device_roce_link_bits_per_second / 1e6",
        _port(lambda port: scaled(port.bits_per_second, 1e-6)),
    ),
)


def _counted(name: str, key: str, ours: str) -> Borrowed:
    return Borrowed(name, "", ours, _counter(key))


_COUNTED = (
    *(
        _counted(f"npu_chip_mac_{way}_{theirs}", f"mac_{way}_{key}", ours.format(direction))
        for way, direction in _WAYS.items()
        for theirs, key, ours in (
            ("pause_num", "mac_pause_num", _PAUSE + '{{kind="pause",direction="{}"}}'),
            ("pfc_pkt_num", "pfc_pkt_num", _PAUSE + '{{kind="priority",direction="{}"}}'),
            ("bad_pkt_num", "bad_pkt_num", _API),
            ("bad_oct_num", "bad_oct_num", "in `hccn_tool -stat`"),
        )
    ),
    _counted("npu_chip_info_rx_fcs_num", "mac_rx_fcs_err_pkt_num", _ERRORS + '{kind="receive_fcs"}'),
    _counted("npu_chip_info_rx_ecn_num", "roce_ecn_db_num", "in `hccn_tool -stat`"),
    *(
        _counted(f"npu_chip_roce_{way}_{what}_pkt_num", f"roce_{way}_{what}_pkt_num", ours)
        for way in _WAYS
        for what, ours in (
            ("all", "`npu_device_roce_packets_total`, of RoCE and all else"),
            ("err", _API),
            ("cnp", "`roce.congestion_notifications` of `/api/v1/snapshot`"),
        )
    ),
    _counted("npu_chip_roce_new_pkt_rty_num", "roce_new_pkt_rty_num", _ERRORS + '{kind="retry"}'),
    _counted("npu_chip_roce_out_of_order_num", "roce_out_of_order_num", _ERRORS + '{kind="out_of_order"}'),
    *(
        _counted(f"npu_chip_roce_{what}_num", f"roce_{what}_num", _API)
        for what in ("unexpected_ack", "verification_err", "qp_status_err")
    ),
)
_OPTICAL = (
    Borrowed("npu_chip_optical_state", "", "npu_device_optical_present", _optical(lambda module: module.present, 1)),
    Borrowed(
        "npu_chip_optical_vcc",
        "mV",
        "`roce.optical` of `/api/v1/snapshot`",
        _optical(lambda module: module.voltage_volts, 1000),
    ),
    Borrowed(
        "npu_chip_optical_temp",
        "degrees Celsius",
        "npu_device_optical_temperature_celsius",
        _optical(lambda module: module.temperature_celsius, 1),
    ),
    *(
        Borrowed(
            f"npu_chip_optical_{way}_power_{lane}",
            "mW",
            f'1000 * npu_device_optical_power_watts{{lane="{lane}",direction="{direction}"}}',
            _optical(_light(lane, f"{direction}_watts"), 1000),
        )
        for way, direction in _WAYS.items()
        for lane in _LANES
    ),
)
BORROWED: tuple[Borrowed, ...] = (*_LINK, *_COUNTED, *_OPTICAL)
