"""Panels of the node's devices: memory errors, jobs, heat, memory."""

from __future__ import annotations

from npu_watchd.reference.grafana.expressions import by_device, of_device
from npu_watchd.reference.grafana.panel import Kind, Line, Panel, Query

_SINGLE, _DOUBLE = 'kind="single_bit"', 'kind="double_bit"'
_ERRORS = "npu_device_memory_errors_total"

MEMORY_ERRORS = (
    Panel(
        "Corrected errors in an hour",
        Kind.SERIES,
        "How much the count grew in the hour before, resets of the device left out. The alert also asks that "
        "it is far above the device's own past and its neighbours.",
        (Query(f"increase({of_device(_ERRORS, _SINGLE)}[1h])", "{{device_id}} {{memory}}"),),
        lines=(Line.of("single_bit_errors_per_hour", "orange"),),
    ),
    Panel(
        "Uncorrectable errors since reset",
        Kind.SERIES,
        "Each has destroyed data; a reset of the device takes the count back to 0, not the verdict.",
        (Query(of_device(_ERRORS, _DOUBLE), "{{device_id}} {{memory}}"),),
        lines=(Line.of("double_bit_errors"),),
    ),
    Panel(
        "Corrected errors since reset",
        Kind.SERIES,
        "The count of `npu-smi info -t ecc` itself.",
        (Query(of_device(_ERRORS, _SINGLE), "{{device_id}} {{memory}}"),),
    ),
    Panel(
        "Errors in the device's life",
        Kind.SERIES,
        "Both kinds, as far as the chip keeps count over resets.",
        (Query(of_device("npu_device_memory_lifetime_errors_total"), "{{device_id}} {{memory}} {{kind}}"),),
    ),
    Panel(
        "Isolated pages",
        Kind.SERIES,
        "Pages of memory taken out of use.",
        (Query(of_device("npu_device_memory_isolated_pages"), "{{device_id}} {{memory}} {{kind}}"),),
        lines=(Line.of("isolated_pages_warning", "orange"), Line.of("isolated_pages_critical")),
    ),
    Panel(
        "HCCS errors and retries a second",
        Kind.SERIES,
        "Of the links between the NPUs, all links of a device together.",
        (
            Query(
                f"sum by (device_id) (rate({of_device('npu_device_hccs_errors_total')}[$__rate_interval]))",
                "{{device_id}} errors",
            ),
            Query(
                f"sum by (device_id) (rate({of_device('npu_device_hccs_retries_total')}[$__rate_interval]))",
                "{{device_id}} retries",
            ),
        ),
        "cps",
    ),
)
_TEMPERATURE = "npu_device_temperature_celsius"
HEAT = (
    Panel(
        "Chip temperature",
        Kind.SERIES,
        "Temp of `npu-smi info`.",
        by_device(of_device(_TEMPERATURE, 'sensor="chip"')),
        "celsius",
        lines=(Line.of("chip_warning_celsius", "orange"), Line.of("chip_critical_celsius")),
    ),
    Panel(
        "Memory temperature",
        Kind.SERIES,
        "HBM Temperature of `npu-smi info -t memory`.",
        by_device(of_device(_TEMPERATURE, 'sensor="hbm"')),
        "celsius",
        lines=(Line.of("hbm_warning_celsius", "orange"), Line.of("hbm_critical_celsius")),
    ),
    Panel(
        "Power",
        Kind.SERIES,
        "On A3 the whole card's, on its first die; rated instead of measured on 310.",
        by_device(of_device("npu_device_power_watts")),
        "watt",
    ),
    Panel(
        "AICore utilisation",
        Kind.SERIES,
        "AICore of `npu-smi info`.",
        by_device(of_device("npu_device_utilization_ratio", 'unit="aicore"')),
        "percentunit",
        bounds=(0, 1),
    ),
    Panel(
        "Utilisation of the other units",
        Kind.SERIES,
        "From `npu-smi info -t usages`: vector and cube units, the chip's own CPUs.",
        (Query(of_device("npu_device_utilization_ratio", 'unit!="aicore"'), "{{device_id}} {{unit}}"),),
        "percentunit",
        bounds=(0, 1),
    ),
    Panel(
        "AICore clock",
        Kind.SERIES,
        "Present and nominal; a chip that is too hot slows down.",
        (
            Query(of_device("npu_device_clock_hertz"), "{{device_id}}"),
            Query(f"max({of_device('npu_device_clock_max_hertz')})", "nominal, the highest"),
        ),
        "hertz",
    ),
)
MEMORY = (
    Panel(
        "Memory in use",
        Kind.SERIES,
        "The device's own share included.",
        (Query(of_device("npu_device_memory_used_bytes"), "{{device_id}} {{memory}}"),),
        "bytes",
    ),
    Panel(
        "Memory in use, of all there is",
        Kind.SERIES,
        "The same as a share.",
        (
            Query(
                f"{of_device('npu_device_memory_used_bytes')} / {of_device('npu_device_memory_total_bytes')}",
                "{{device_id}} {{memory}}",
            ),
        ),
        "percentunit",
        bounds=(0, 1),
    ),
    Panel(
        "Memory bandwidth in use",
        Kind.SERIES,
        "Bandwidth Usage Rate of `npu-smi info -t usages`.",
        (Query(of_device("npu_device_memory_bandwidth_utilization_ratio"), "{{device_id}} {{memory}}"),),
        "percentunit",
        bounds=(0, 1),
    ),
)
_JOB = "device_id, scheduler, exported_job"
JOBS = (
    Panel(
        "Jobs on each device",
        Kind.STATES,
        "Distinct jobs, as far as they can be told: two or more share the device. A gap: nobody could tell.",
        by_device(of_device("npu_device_jobs")),
        width=12,
        height=8,
        colours=((None, "text"), (1, "blue"), (2, "orange")),
    ),
    Panel(
        "Who is on it",
        Kind.TABLE,
        "Each job on each device, with the memory of its processes.",
        (Query(f"max by ({_JOB}) ({of_device('npu_device_job_memory_bytes')})"),),
        "bytes",
        7,
        8,
        columns={"device_id": "device", "scheduler": "of", "exported_job": "job", "Value": "memory"},
    ),
    Panel(
        "Whose they are",
        Kind.TABLE,
        "Each job's user, by number.",
        (Query(f"count by (exported_job, scheduler, user) ({of_device('npu_device_job_info')})"),),
        width=5,
        height=8,
        columns={"exported_job": "job", "user": "user", "Value": "devices"},
    ),
    Panel(
        "Processes",
        Kind.SERIES,
        "That npu-smi lists; its table ends at 8 a chip.",
        by_device(of_device("npu_device_processes")),
        width=12,
    ),
    Panel(
        "Memory that no process has",
        Kind.SERIES,
        "In use, but no listed process has it; the chip's own share included.",
        by_device(of_device("npu_device_unattributed_memory_bytes")),
        "bytes",
        12,
        lines=(Line.of("leftover_bytes", "orange"),),
    ),
)
