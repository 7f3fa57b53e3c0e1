"""`/api/v1/history`: how one counter grew, as state.db has it; a disk that does not answer costs no other request."""

from __future__ import annotations

import queue
import threading
from collections.abc import Mapping
from typing import Any

from npu_watchd.model.fabric import PortKey
from npu_watchd.model.ids import DeviceKey, Subject
from npu_watchd.model.ledger import Account, Ledger, ReadLedger
from npu_watchd.model.reading import Failure, FailureKind
from npu_watchd.model.snapshot import Outcome
from npu_watchd.sinks.instants import instant

PARAMETERS = ("metric", "device_id", "since")
_WITHIN_S = 3.0
"""How long a question waits for the disk (a month of a noisy node is read in 20 ms)."""
_QUEUE_S = 1.0
_ASKERS = 2
"""Questions at once: the server has eight threads, and scrapes must find one."""


class CounterHistory:
    """Reads in a thread of its own, one question at a time: at most one thread can hang with the disk."""

    def __init__(self, metrics: tuple[str, ...], read: ReadLedger, within_s: float = _WITHIN_S) -> None:
        """metrics: those that have a history."""
        self.metrics = metrics
        self._read = read
        self._within_s = within_s
        self._seats = threading.Semaphore(_ASKERS)
        self._reading = threading.Semaphore(1)

    def ask(self, metric: str, subject: Subject | None, since_s: float) -> Ledger | Failure:
        """What is kept; a Failure where it cannot be read, or not in time. Raises what the reading itself raises."""
        if not self._seats.acquire(blocking=False):
            return Failure(FailureKind.TIMEOUT, "others are asking for the history; try again in a moment")
        try:
            if not self._reading.acquire(timeout=_QUEUE_S):
                return Failure(FailureKind.TIMEOUT, "an earlier question still waits for the disk; try again later")
            return self._answer(metric, subject, since_s)
        finally:
            self._seats.release()

    def _answer(self, metric: str, subject: Subject | None, since_s: float) -> Ledger | Failure:
        answers: queue.SimpleQueue[Ledger | Failure | Exception] = queue.SimpleQueue()

        def work() -> None:
            try:
                answers.put(self._read(metric, subject, since_s))
            except Exception as error:  # noqa: BLE001  # it is raised again where somebody waits for it
                answers.put(error)
            finally:
                self._reading.release()

        try:
            threading.Thread(target=work, name="history", daemon=True).start()
        except RuntimeError:
            self._reading.release()
            raise
        try:
            answer = answers.get(timeout=self._within_s)
        except queue.Empty:
            return Failure(FailureKind.TIMEOUT, f"the disk has not answered within {self._within_s:g} s")
        if isinstance(answer, Exception):
            raise answer
        return answer


def answer(history: CounterHistory | None, outcome: Outcome, query: Mapping[str, str]) -> tuple[int, dict[str, Any]]:
    """HTTP status and document; query: any of PARAMETERS."""
    if history is None:
        return 503, {"error": "no history is kept here"}
    there_are = f"a history is kept of {', '.join(history.metrics)}"
    if not query.get("metric"):
        return 400, {"error": f"metric is missing; {there_are}"}
    metric, device_id = query["metric"], query.get("device_id")
    if metric not in history.metrics:
        return 404, {"error": f"{metric[:100]!r}: {there_are}"}
    try:
        since_s = instant(query["since"], outcome.snapshot.at.wall_s) if "since" in query else None
    except ValueError as error:
        return 400, {"error": str(error)}
    names = {key: device.device_id for key, device in outcome.snapshot.devices.items()}
    subject = next((key for key, name in names.items() if name == device_id), None)
    if device_id is not None and subject is None:
        known = f"there are {', '.join(names[key] for key in sorted(names))}" if names else "no device was seen yet"
        return 404, {"error": f"device_id {device_id[:100]!r}: {known}"}
    found = history.ask(metric, subject, 0.0 if since_s is None else since_s)
    if isinstance(found, Failure):
        return 503, {"error": found.detail}
    return 200, {
        "at": outcome.snapshot.at.wall_s,
        "node": outcome.snapshot.node,
        "metric": metric,
        "device_id": device_id,
        "written": outcome.engine.history_written,
        "cut": found.cut,
        "unreadable": found.unreadable,
        "series": [_series(account, names) for account in found.accounts],
    }


def _series(account: Account, names: Mapping[DeviceKey, str]) -> dict[str, Any]:
    return {
        "subject": str(account.subject),
        "labels": {**_whose(account.subject, names), **dict(account.labels)},
        "value": account.value,
        "since": account.since_s,
        "points": [
            {"after": step.after_s, "first": step.first_s, "last": step.last_s, "grown": step.grown}
            for step in account.steps
        ],
    }


def _whose(subject: Subject, names: Mapping[DeviceKey, str]) -> dict[str, str]:
    """As on /metrics; a device that is no longer shown has no device_id, and `subject` tells it."""
    if isinstance(subject, DeviceKey):
        return {"device_id": names[subject]} if subject in names else {}
    return {"rdma_device": subject.rdma_device, "port": str(subject.port)} if isinstance(subject, PortKey) else {}
