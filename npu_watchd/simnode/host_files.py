"""What the simulated host has left, as procfs shows it: pressure, memory, tasks, and how many were killed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from npu_watchd.simnode.scenario import Scenario

RESOURCES = ("cpu", "memory", "io")
PRESSURE_LEVELS = frozenset(f"{resource}_pressure" for resource in RESOURCES)
_QUIET_PERCENT: Mapping[str, float] = {"cpu": 1.5, "memory": 0.0, "io": 0.3}
_ALL_OF_SOME = 0.6
"""How much of the time that some work waits all of it does. Of the CPU the kernel says 0 for the whole node."""
_TOTAL_KIB, _AVAILABLE_KIB = 1_582_817_280, 1_449_551_462
"""1.5 TiB, as such nodes have."""
_TASKS, _RUNNABLE = 3120, 9
_PID_MAX = 4_194_304


def files(scenario: Scenario, t_s: float, up_s: float) -> dict[str, str]:
    """Paths below the root of procfs."""
    levels = _levels(scenario, t_s)
    available_kib = levels.get("memory_available", _AVAILABLE_KIB // 1024) * 1024
    found = {f"pressure/{resource}": _pressure(resource, levels, up_s) for resource in RESOURCES}
    return {
        **found,
        "meminfo": _meminfo(available_kib),
        "vmstat": f"nr_free_pages {available_kib // 4}\noom_kill {killed(scenario, t_s)}\nswap_ra 0\n",
        "loadavg": f"8.12 8.40 8.33 {_RUNNABLE}/{_TASKS} 64021\n",
        "sys/kernel/pid_max": f"{_PID_MAX}\n",
        "sys/net/ipv4/ip_local_port_range": "32768\t60999\n",
        "sys/net/ipv4/ip_local_reserved_ports": "60000-60031\n",
    }


def killed(scenario: Scenario, t_s: float) -> int:
    """How many the kernel has killed for want of memory so far."""
    return sum(len(event.oom) for event in scenario.events if event.t_s <= max(0.0, t_s))


def _levels(scenario: Scenario, t_s: float) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for event in scenario.events:
        if event.in_force(max(0.0, t_s)):
            named = ((key.partition(".")[2], value) for key, value in event.levels.items() if key.startswith("host."))
            found.update(named)
    return found


def _pressure(resource: str, levels: Mapping[str, Any], up_s: float) -> str:
    quiet = _QUIET_PERCENT[resource]
    some = float(levels.get(f"{resource}_pressure", quiet))
    full = 0.0 if resource == "cpu" else some * _ALL_OF_SOME
    waited_us = int(quiet / 100 * up_s * 1e6)
    return "".join(
        f"{kind} avg10={percent:.2f} avg60={percent:.2f} avg300={percent:.2f} total={total_us}\n"
        for kind, percent, total_us in (("some", some, waited_us), ("full", full, waited_us // 2))
    )


def _meminfo(available_kib: int) -> str:
    rows = {
        "MemTotal": _TOTAL_KIB,
        "MemFree": available_kib // 2,
        "MemAvailable": available_kib,
        "Buffers": 51_200,
        "SwapTotal": 0,
        "SwapFree": 0,
    }
    return "".join(f"{name + ':':15} {kib:>9} kB\n" for name, kib in rows.items()) + "HugePages_Total:       0\n"
