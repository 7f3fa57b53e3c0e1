"""The metrics of each device that npu-smi feeds."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from npu_watchd.catalogue.family import DeviceFamily, Kind, Sample, each, one, states
from npu_watchd.model.jobs import JobOnDevice
from npu_watchd.model.snapshot import HEALTH_STATES, Device

_G, _C = Kind.GAUGE, Kind.COUNTER
_SMI = "npu-smi info"
_MOST_JOBS = 16
"""DESIGN 7 bounds a device's series, and nobody reads further."""


def _device_info(device: Device) -> Iterable[Sample]:
    identity = device.identity
    labels = {
        "npu_id": str(device.key.npu),
        "chip_id": str(device.key.chip),
        "phy_id": "" if identity.phy_id is None else str(identity.phy_id),
        "name": identity.name or "",
        "pci_address": identity.pci_address or "",
        "firmware": identity.firmware or "",
    }
    return ((labels, 1.0),)


def _error_codes(device: Device) -> Iterable[Sample]:
    codes = dict.fromkeys(device.error_codes or ())
    return [({"code": code, "level": device.code_tiers.get(code, "unknown")}, 1.0) for code in codes]


def _memory_errors(suffix: str) -> Callable[[Device], Iterable[Sample]]:
    """Counts by memory and kind, of the fields of MemoryErrors with this suffix."""

    def read(device: Device) -> Iterable[Sample]:
        for memory, errors in device.memory_errors.items():
            for kind in ("single_bit", "double_bit"):
                count = getattr(errors, kind + suffix)
                if count is not None:
                    yield {"memory": memory, "kind": kind}, float(count)

    return read


def _links(counts: tuple[int, ...] | None) -> Iterable[Sample]:
    return [({"link": str(link)}, float(count)) for link, count in enumerate(counts or ())]


def _jobs(device: Device) -> list[JobOnDevice]:
    return list(device.jobs.by_job.values()) if device.jobs else []


def _job_info(device: Device) -> Iterable[Sample]:
    for found in _jobs(device)[:_MOST_JOBS]:
        yield {"scheduler": found.job.scheduler, "job": found.job.id, "user": found.job.user or ""}, 1.0
    if len(_jobs(device)) > _MOST_JOBS:
        yield {"scheduler": "other"}, 1.0


def _job_memory(device: Device) -> Iterable[Sample]:
    jobs = _jobs(device)
    for found in jobs[:_MOST_JOBS]:
        if found.memory_bytes is not None:
            yield {"scheduler": found.job.scheduler, "job": found.job.id}, float(found.memory_bytes)
    sizes = [found.memory_bytes for found in jobs[_MOST_JOBS:]]
    if sizes and None not in sizes:
        yield {"scheduler": "other"}, float(sum(size for size in sizes if size is not None))


def unattributed_bytes(device: Device) -> int | None:
    """Memory in use that no process has; None where use or processes are not all known, or one has no size.

    npu-smi rounds each process to a MiB: what would be below zero is 0.
    """
    memory = device.memory.get("hbm") or device.memory.get("ddr")
    if memory is None or memory.used_bytes is None or device.processes is None or device.processes_cut:
        return None
    sizes = [process.memory_bytes for process in device.processes]
    if None in sizes:
        return None
    return max(0, memory.used_bytes - sum(size for size in sizes if size is not None))


DEVICE_FAMILIES: tuple[DeviceFamily, ...] = (
    DeviceFamily(
        "npu_device_info",
        _G,
        f"Who the device is (`{_SMI}`, `-m`, `-t board`); join it on device_id.",
        ("npu_id", "chip_id", "phy_id", "name", "pci_address", "firmware"),
        _device_info,
    ),
    DeviceFamily(
        "npu_device_present",
        _G,
        f"1 while the newest table shows the device, 0 while it does not; absent: no table (`{_SMI}`).",
        (),
        lambda device: one(device.present),
    ),
    DeviceFamily(
        "npu_device_health",
        _G,
        f"State set: the worse of `{_SMI}` and `-t health`; ok only when both say so, unknown when one cannot be read.",
        ("state",),
        lambda device: states("state", HEALTH_STATES, device.health),
    ),
    DeviceFamily(
        "npu_device_error_code_active",
        _G,
        f"1 for each error code that is active, its tier (docs/codes.md) as level (`{_SMI} -t health`: Error Code).",
        ("code", "level"),
        _error_codes,
    ),
    DeviceFamily(
        "npu_device_temperature_celsius",
        _G,
        f"Temperature by sensor: chip (`{_SMI}`: Temp), hbm (`-t memory`: HBM Temperature).",
        ("sensor",),
        lambda device: each("sensor", device.temperature_celsius),
    ),
    DeviceFamily(
        "npu_device_power_watts",
        _G,
        f"Power; on A3 the whole card's, on its first die; rated instead of measured on 310 (`{_SMI}`: Power).",
        (),
        lambda device: one(device.power_watts),
    ),
    DeviceFamily(
        "npu_device_utilization_ratio",
        _G,
        f"Utilisation by unit, 0 to 1 (`{_SMI}`: AICore; `-t usages`: the others).",
        ("unit",),
        lambda device: each("unit", device.utilization_ratio),
    ),
    DeviceFamily(
        "npu_device_clock_hertz",
        _G,
        f"Present AICore clock (`{_SMI} -t common`: Aicore curFreq).",
        (),
        lambda device: one(device.clock_hertz),
    ),
    DeviceFamily(
        "npu_device_clock_max_hertz",
        _G,
        f"Nominal AICore clock (`{_SMI} -t common`: Aicore Freq).",
        (),
        lambda device: one(device.clock_max_hertz),
    ),
    DeviceFamily(
        "npu_device_memory_used_bytes",
        _G,
        f"Memory in use, the device's own share included (`{_SMI}`: HBM-Usage, Memory-Usage).",
        ("memory",),
        lambda device: each("memory", {name: memory.used_bytes for name, memory in device.memory.items()}),
    ),
    DeviceFamily(
        "npu_device_memory_total_bytes",
        _G,
        f"Memory there is (`{_SMI}`: HBM-Usage, Memory-Usage).",
        ("memory",),
        lambda device: each("memory", {name: memory.total_bytes for name, memory in device.memory.items()}),
    ),
    DeviceFamily(
        "npu_device_memory_bandwidth_utilization_ratio",
        _G,
        f"Share of the memory bandwidth in use, 0 to 1 (`{_SMI} -t usages`: Bandwidth Usage Rate).",
        ("memory",),
        lambda device: each("memory", device.memory_bandwidth_utilization_ratio),
    ),
    DeviceFamily(
        "npu_device_memory_errors_total",
        _C,
        f"ECC errors since the device was last reset (`{_SMI} -t ecc`: Bit Error Count).",
        ("memory", "kind"),
        _memory_errors(""),
    ),
    DeviceFamily(
        "npu_device_memory_lifetime_errors_total",
        _C,
        f"ECC errors in the device's life (`{_SMI} -t ecc`: Aggregate Total Err Cnt).",
        ("memory", "kind"),
        _memory_errors("_lifetime"),
    ),
    DeviceFamily(
        "npu_device_memory_isolated_pages",
        _G,
        f"Pages taken out of use (`{_SMI} -t ecc`: Isolated Pages Count).",
        ("memory", "kind"),
        _memory_errors("_isolated_pages"),
    ),
    DeviceFamily(
        "npu_device_processes",
        _G,
        f"Processes that the table lists; where these are 8, its most, those of `-t proc-mem`, and if that does not "
        f"tell, 8 means 8 or more; absent where it lists none at all (`{_SMI}`).",
        (),
        lambda device: one(None if device.processes is None else len(device.processes)),
    ),
    DeviceFamily(
        "npu_device_jobs",
        _G,
        f"Distinct jobs on the device, as far as they can be told (`/proc/PID/cgroup` of the processes of `{_SMI}`).",
        (),
        lambda device: one(None if device.jobs is None else len(device.jobs.by_job)),
    ),
    DeviceFamily(
        "npu_device_job_info",
        _G,
        f"1 for each job on the device, at most 16, the rest as other (`/proc/PID` of the processes of `{_SMI}`).",
        ("scheduler", "job", "user"),
        _job_info,
    ),
    DeviceFamily(
        "npu_device_job_memory_bytes",
        _G,
        f"Device memory of each of these jobs' processes (`{_SMI}`: Process memory).",
        ("scheduler", "job"),
        _job_memory,
    ),
    DeviceFamily(
        "npu_device_unattributed_memory_bytes",
        _G,
        f"Memory in use that no listed process has, the chip's own included (`{_SMI}`: HBM-Usage less processes).",
        (),
        lambda device: one(unattributed_bytes(device)),
    ),
    DeviceFamily(
        "npu_device_hccs_errors_total",
        _C,
        f"Errors by HCCS link, in the tool's order (`{_SMI} -t hccs`: hccs error count).",
        ("link",),
        lambda device: _links(device.hccs.error_counts if device.hccs else None),
    ),
    DeviceFamily(
        "npu_device_hccs_retries_total",
        _C,
        f"Retries by HCCS link, in the tool's order (`{_SMI} -t hccs`: hccs retry count).",
        ("link",),
        lambda device: _links(device.hccs.retry_counts if device.hccs else None),
    ),
    DeviceFamily(
        "npu_device_pcie_link_errors_total",
        _C,
        f"PCIe link errors as the device counts them (`{_SMI} -t pcie-err`).",
        ("kind",),
        lambda device: each("kind", device.pcie_link_errors.counts if device.pcie_link_errors else {}),
    ),
)
