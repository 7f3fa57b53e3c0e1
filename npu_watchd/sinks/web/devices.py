"""The page's table of devices: a value nobody knows is a dash, never 0."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from operator import attrgetter

from markupsafe import Markup

from npu_watchd.model.ids import Subject
from npu_watchd.model.records import MemoryErrors
from npu_watchd.model.snapshot import Device, Snapshot
from npu_watchd.sinks.plaintext import clean
from npu_watchd.sinks.web.jobs import jobs_cell
from npu_watchd.sinks.web.table import UNKNOWN, Cell, Column, table_section

_GIB = 1 << 30
_NAMES_SHOWN = 3
_NAME_MAX = 40


def devices_section(snapshot: Snapshot, verdicts: Mapping[Subject, Markup]) -> Markup:
    """The table, a row a device in the order of their keys; verdicts: what to say of each."""
    verdict: Column[Device] = Column("Verdict", "health", lambda device: verdicts.get(device.key, UNKNOWN))
    columns = (*_COLUMNS[:1], verdict, *_COLUMNS[1:])
    devices = [snapshot.devices[key] for key in sorted(snapshot.devices)]
    return table_section("devices", "Devices", columns, devices, device_anchor)


def device_anchor(device: Device) -> str:
    """The name of its row, to which links lead."""
    return f"device-{device.device_id}"


def _health(device: Device) -> Cell:
    label = Markup('<span class="state state-{0}">{0}</span>').format(device.health)
    if device.present is False:
        label = Markup('<span class="state state-missing">missing</span> ') + label
    elif device.present is None:
        label += Markup(' <span class="note">presence not known</span>')
    codes = Markup("").join(Markup(" <code>{}</code>").format(clean(code, 40)) for code in device.error_codes or ())
    return label + codes


def _temperature(device: Device) -> Cell:
    values = [
        Markup('<span class="whole">{}{:.0f} °C</span>').format("" if sensor == "chip" else f"{sensor} ", value)
        for sensor, value in device.temperature_celsius.items()
    ]
    return Markup(", ").join(values) or UNKNOWN


def _power(device: Device) -> Cell:
    return UNKNOWN if device.power_watts is None else f"{device.power_watts:.1f} W"


def _aicore(device: Device) -> Cell:
    ratio = device.utilization_ratio.get("aicore")
    return UNKNOWN if ratio is None else f"{ratio * 100:.0f} %"


def _memory(device: Device) -> Cell:
    values = [
        f"{'' if kind == 'hbm' else kind + ' '}{_gib(memory.used_bytes)} / {_gib(memory.total_bytes)} GiB"
        for kind, memory in device.memory.items()
        if memory.used_bytes is not None or memory.total_bytes is not None
    ]
    return ", ".join(values) or UNKNOWN


def _gib(size: int | None) -> str:
    return UNKNOWN if size is None else f"{size / _GIB:.1f}"


def _ecc(pick: Callable[[MemoryErrors], int | None]) -> Callable[[Device], Cell]:
    def cell(device: Device) -> Cell:
        counts = {kind: pick(errors) for kind, errors in device.memory_errors.items()}
        return _counts({kind: count for kind, count in counts.items() if count is not None})

    return cell


def _counts(counts: Mapping[str, int]) -> Cell:
    if not counts:
        return UNKNOWN
    shown = ", ".join(str(count) if kind == "hbm" else f"{kind} {count}" for kind, count in counts.items())
    return Markup("<strong>{}</strong>").format(shown) if any(counts.values()) else shown


def _processes(device: Device) -> Cell:
    if device.processes is None:
        return UNKNOWN
    if not device.processes:
        return "idle"
    names = Counter(clean(process.name, _NAME_MAX) if process.name else "(no name)" for process in device.processes)
    shown = [name if times == 1 else f"{name} × {times}" for name, times in names.most_common(_NAMES_SHOWN)]
    more = [f"and {len(names) - _NAMES_SHOWN} more"] if len(names) > _NAMES_SHOWN else []
    return ", ".join([*shown, *more, *(["perhaps more"] if device.processes_cut else [])])


def _blind(device: Device) -> Cell:
    if not device.blind:
        return Markup('<span class="quiet">sees all</span>')
    items = Markup("").join(
        Markup('<li title="{}">{}: {}</li>').format(clean(failure.detail, 1000), probe, failure.kind.value)
        for probe, failure in device.blind.items()
    )
    return Markup('<ul class="blind">{}</ul>').format(items)


_COLUMNS: tuple[Column[Device], ...] = (
    Column("Device", "id", attrgetter("device_id")),
    Column("NPU.chip", "", lambda device: f"{device.key.npu}.{device.key.chip}"),
    Column("Name", "name", lambda device: clean(device.identity.name, _NAME_MAX) if device.identity.name else UNKNOWN),
    Column("Health", "health", _health),
    Column("Temperature", "number warm", _temperature),
    Column("Power", "number", _power),
    Column("AICore", "number", _aicore),
    Column("HBM used", "number", _memory),
    Column("ECC double", "number ecc", _ecc(lambda errors: errors.double_bit)),
    Column("ECC single", "number ecc", _ecc(lambda errors: errors.single_bit)),
    Column("Processes", "processes", _processes),
    Column("Jobs", "processes", lambda device: jobs_cell(device.jobs)),
    Column("Blind", "", _blind),
)
