"""The metric names of Huawei's npu-exporter, for dashboards that exist already; `[metrics] npu_exporter_names`.

Names, units and labels are theirs (MindCluster, component/npu-exporter/collector/metrics), against our own conventions.
What we do not know has no sample: theirs has -1, or the value before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from npu_watchd.catalogue import npu_exporter_ports
from npu_watchd.catalogue.borrowed import Borrowed, scaled
from npu_watchd.catalogue.family import Kind, NodeFamily, Sample, one
from npu_watchd.model.snapshot import Device, Memory, Outcome

_MIB = 1 << 20
_MOST_CODES = 10
"""They have names for so many, by position."""
_HEALTHY = {"ok": 1.0, "warning": 0.0, "alarm": 0.0, "critical": 0.0}
"""Theirs is 1 for DCMI's health 0 and nothing else; `unknown`, their -1, has no sample."""


def _utilization(unit: str) -> Callable[[Device], Iterable[Sample]]:
    return lambda device: scaled(device.utilization_ratio.get(unit), 100)


def _memory(kind: str, read: Callable[[Memory], int | None]) -> Callable[[Device], Iterable[Sample]]:
    def samples(device: Device) -> Iterable[Sample]:
        memory = device.memory.get(kind)
        return scaled(None if memory is None else read(memory), 1 / _MIB)

    return samples


def _hbm_share(device: Device) -> Iterable[Sample]:
    hbm = device.memory.get("hbm")
    if hbm is None or hbm.used_bytes is None or not hbm.total_bytes:
        return ()
    return scaled(hbm.used_bytes / hbm.total_bytes, 100)


def _hbm_errors(field: str) -> Callable[[Device], Iterable[Sample]]:
    def samples(device: Device) -> Iterable[Sample]:
        errors = device.memory_errors.get("hbm")
        return one(None if errors is None else getattr(errors, field))

    return samples


def _code(position: int) -> Callable[[Device], Iterable[Sample]]:
    def samples(device: Device) -> Iterable[Sample]:
        codes = tuple(dict.fromkeys(device.error_codes or ()))
        return one(int(codes[position], 16)) if position < len(codes) else ()

    return samples


def _serial_number(device: Device) -> Iterable[Sample]:
    number = device.identity.serial_number
    return (({"serial_number": number}, 1.0),) if number else ()


def _process_count(device: Device) -> Iterable[Sample]:
    return one(None if device.processes is None or device.processes_cut else len(device.processes))


def _processes(device: Device) -> Iterable[Sample]:
    """As theirs: one sample of 0 without a process_id where there is no process."""
    if device.processes == ():
        return one(0)
    found: dict[str, Sample] = {}
    for process in device.jobs.attributions if device.jobs else ():
        pid = str(process.process.pid if process.process else process.pid)
        container = process.job.container if process.job else None
        if process.memory_bytes is not None:
            found.setdefault(pid, ({"process_id": pid, "container_id": container or ""}, process.memory_bytes / _MIB))
    for row in device.processes or ():
        if device.jobs is None and row.memory_bytes is not None:
            found.setdefault(str(row.pid), ({"process_id": str(row.pid)}, row.memory_bytes / _MIB))
    return found.values()


_CHIP = "npu_chip_info"
_OURS_USE = "100 * npu_device_utilization_ratio"
_ECC = (
    ("", "error_cnt", "npu_device_memory_errors_total", ""),
    ("total_", "error_cnt", "npu_device_memory_lifetime_errors_total", "_lifetime"),
    ("", "isolated_pages_cnt", "npu_device_memory_isolated_pages", "_isolated_pages"),
)
"""What their name has before the kind and after it; ours; the end of the field's name."""

_STATE = (
    Borrowed(
        f"{_CHIP}_health_status",
        "",
        'npu_device_health{state="ok"}',
        lambda device: one(_HEALTHY.get(device.health)),
    ),
    Borrowed(f"{_CHIP}_name", "", "npu_device_info", lambda _: one(1), (), "name"),
    Borrowed(
        f"{_CHIP}_serial_number",
        "",
        "`serial_number` of `/api/v1/snapshot`",
        _serial_number,
        ("serial_number",),
    ),
    *(
        Borrowed(
            f"{_CHIP}_error_code{f'_{position}' if position else ''}",
            "",
            "`npu_device_error_code_active`, code in hexadecimal",
            _code(position),
        )
        for position in range(_MOST_CODES)
    ),
    Borrowed(
        f"{_CHIP}_temperature",
        "degrees Celsius",
        'npu_device_temperature_celsius{sensor="chip"}',
        lambda device: one(device.temperature_celsius.get("chip")),
    ),
    Borrowed(f"{_CHIP}_power", "W", "npu_device_power_watts", lambda device: one(device.power_watts)),
    Borrowed(
        f"{_CHIP}_aicore_current_freq",
        "MHz",
        "npu_device_clock_hertz / 1e6",
        lambda device: scaled(device.clock_hertz, 1e-6),
    ),
    Borrowed(f"{_CHIP}_process_info_num", "", "npu_device_processes", _process_count),
    Borrowed(
        f"{_CHIP}_process_info",
        "MB",
        "`npu_device_job_memory_bytes / 2^20` by job; by process in `/api/v1/snapshot`",
        _processes,
        ("process_id", "container_id"),
    ),
    Borrowed(f"{_CHIP}_utilization", "%", f'{_OURS_USE}{{unit="aicore"}}', _utilization("aicore")),
    Borrowed(f"{_CHIP}_overall_utilization", "%", f'{_OURS_USE}{{unit="npu"}}', _utilization("npu")),
    Borrowed(f"{_CHIP}_vector_utilization", "%", f'{_OURS_USE}{{unit="aivector"}}', _utilization("aivector")),
    Borrowed(f"{_CHIP}_cube_utilization", "%", f'{_OURS_USE}{{unit="aicube"}}', _utilization("aicube")),
)
_MEMORY = (
    Borrowed(
        f"{_CHIP}_used_memory",
        "MB",
        'npu_device_memory_used_bytes{memory="ddr"} / 2^20',
        _memory("ddr", lambda memory: memory.used_bytes),
    ),
    Borrowed(
        f"{_CHIP}_total_memory",
        "MB",
        'npu_device_memory_total_bytes{memory="ddr"} / 2^20',
        _memory("ddr", lambda memory: memory.total_bytes),
    ),
    Borrowed(
        f"{_CHIP}_hbm_used_memory",
        "MB",
        'npu_device_memory_used_bytes{memory="hbm"} / 2^20',
        _memory("hbm", lambda memory: memory.used_bytes),
    ),
    Borrowed(
        f"{_CHIP}_hbm_total_memory",
        "MB",
        'npu_device_memory_total_bytes{memory="hbm"} / 2^20',
        _memory("hbm", lambda memory: memory.total_bytes),
    ),
    Borrowed(
        f"{_CHIP}_hbm_utilization",
        "%",
        '100 * npu_device_memory_used_bytes{memory="hbm"} / npu_device_memory_total_bytes',
        _hbm_share,
    ),
    Borrowed(
        f"{_CHIP}_hbm_bandwidth_utilization",
        "%",
        '100 * npu_device_memory_bandwidth_utilization_ratio{memory="hbm"}',
        lambda device: scaled(device.memory_bandwidth_utilization_ratio.get("hbm"), 100),
    ),
    Borrowed(
        f"{_CHIP}_hbm_temperature",
        "degrees Celsius",
        'npu_device_temperature_celsius{sensor="hbm"}',
        lambda device: one(device.temperature_celsius.get("hbm")),
    ),
    *(
        Borrowed(
            f"{_CHIP}_hbm_ecc_{theirs}{kind}_{end}",
            "",
            f'{ours}{{memory="hbm",kind="{kind}"}}',
            _hbm_errors(f"{kind}{suffix}"),
        )
        for theirs, end, ours, suffix in _ECC
        for kind in ("single_bit", "double_bit")
    ),
)
BORROWED: tuple[Borrowed, ...] = (*_STATE, *_MEMORY, *npu_exporter_ports.BORROWED)
"""Every metric of theirs about a chip that we can fill."""


def _machine(count: Callable[[list[Device]], int]) -> Callable[[Outcome], Iterable[Sample]]:
    """Of the devices in the newest table; nothing where there is none."""

    def samples(outcome: Outcome) -> Iterable[Sample]:
        if outcome.snapshot.devices_present is None:
            return ()
        return one(count([device for device in outcome.snapshot.devices.values() if device.present]))

    return samples


def _of_health(*states: str) -> Callable[[Outcome], Iterable[Sample]]:
    return _machine(lambda devices: sum(device.health in states for device in devices))


def _node_base(outcome: Outcome) -> Iterable[Sample]:
    driver = outcome.snapshot.driver_version
    return (({"driverVersion": driver}, 1.0),) if driver else ()


_UNHEALTHY = ("warning", "alarm", "critical")
NODE_NAMES: tuple[tuple[str, str, tuple[str, ...], Callable[[Outcome], Iterable[Sample]]], ...] = (
    ("node_base_info", "npu_node_info", ("driverVersion",), _node_base),
    ("machine_npu_nums", "npu_devices_present", (), _machine(len)),
    (
        "machine_card_nums",
        "count(count by (npu_id) (npu_device_info))",
        (),
        _machine(lambda devices: len({device.key.npu for device in devices})),
    ),
    ("machine_healthy_npu_nums", 'sum(npu_device_health{state="ok"})', (), _of_health("ok")),
    (
        "machine_unhealthy_npu_nums",
        'sum(npu_device_health{state=~"warning|alarm|critical"})',
        (),
        _of_health(*_UNHEALTHY),
    ),
    ("machine_unknown_npu_nums", 'sum(npu_device_health{state="unknown"})', (), _of_health("unknown")),
)
"""Name, the same in our own names, labels, getter."""

FAMILIES: tuple[NodeFamily, ...] = (
    *(
        NodeFamily(name, Kind.GAUGE, f"Of npu-exporter; here it is {ours}.", labels, read)
        for name, ours, labels, read in NODE_NAMES
    ),
    *(borrowed.family() for borrowed in BORROWED),
)
"""What `[metrics] npu_exporter_names = true` adds to the catalogue."""
