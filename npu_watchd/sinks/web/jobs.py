"""Who is on a device: for the API and for the page."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from npu_watchd.model.jobs import Attribution, DeviceJobs, JobOnDevice
from npu_watchd.sinks.plaintext import clean

_SHOWN = 3
_ID_MAX = 40


def jobs_document(jobs: DeviceJobs) -> dict[str, Any]:
    """The jobs that can be told, and the processes whose job cannot; docs/api.md."""
    return {
        "known": [_job(found) for found in jobs.by_job.values()],
        "unknown": [_process(one) for one in jobs.unknown],
    }


def _job(found: JobOnDevice) -> dict[str, Any]:
    job = found.job
    return {
        "scheduler": job.scheduler.value,
        "job": job.id,
        "user": job.user,
        "name": job.name,
        "step": job.step,
        "pod": job.pod,
        "container": job.container,
        "since": found.since_wall_s,
        "alive": found.alive,
        "memory_bytes": found.memory_bytes,
        "pids": list(found.pids),
        "process_names": list(found.names),
        "notes": list(found.notes),
        "settings": {name: list(those) for name, those in found.settings.items()},
        "listening": None if found.listening is None else [str(one) for one in found.listening],
    }


def _process(one: Attribution) -> dict[str, Any]:
    return {"pid": one.pid, "process_name": one.name, "memory_bytes": one.memory_bytes, "note": one.note}


def jobs_cell(jobs: DeviceJobs | None) -> str | Markup:
    """Scheduler, id and user of each job; a dash where nobody knows."""
    if jobs is None:
        return "–"
    known = [
        f"{found.job.scheduler} {clean(found.job.id, _ID_MAX)}"
        + (f" ({clean(found.job.user, _ID_MAX)})" if found.job.user else "")
        + (", left over" if found.alive is False else "")
        for found in jobs.by_job.values()
    ]
    parts = known[:_SHOWN] + ([f"and {len(known) - _SHOWN} more"] if len(known) > _SHOWN else [])
    if jobs.unknown:
        parts.append(f"{len(jobs.unknown)} of unknown jobs")
    shown = ", ".join(parts) or "none"
    return Markup("<strong>{}</strong>").format(shown) if len(known) > 1 else shown
