"""What the daemon lays into the runtime directory each cycle, for the node's other programs."""

from __future__ import annotations

from pathlib import Path

from npu_watchd.model.snapshot import Outcome
from npu_watchd.sinks import snapshot_file, verdict_file
from npu_watchd.sinks.published_file import PublishedFile, stale_after_s
from npu_watchd.sinks.web.api import snapshot_json


class RuntimeFiles:
    """`snapshot.json` and `verdict.json`."""

    def __init__(self, runtime_dir: Path) -> None:
        self._snapshot = PublishedFile(runtime_dir, snapshot_file.NAME)
        self._verdict = PublishedFile(runtime_dir, verdict_file.NAME)

    def write(self, outcome: Outcome, cycle_s: float) -> str | None:
        """Why one of them could not be written; None: both were."""
        problem = self._verdict.write(verdict_file.verdict_json(outcome, stale_after_s(cycle_s)))
        return self._snapshot.write(snapshot_json(outcome)) or problem

    def remove(self) -> None:
        """At the daemon's end. The verdict stays: a restart must stop no job, and its age tells what it is worth."""
        self._snapshot.remove()
