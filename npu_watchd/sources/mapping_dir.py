"""The folder in which a site's prolog writes who runs on which chip, as dcgm-exporter's `--hpc-job-mapping-dir` has it.

One file a device, named by its id; a job's id a line. No file, or an empty one: no job.
"""

from __future__ import annotations

import re
from pathlib import Path

from npu_watchd.model.reading import Failure, FailureKind
from npu_watchd.sources.files import Root

_ID = re.compile(r"[^\s\ufffd]{1,200}")
_MOST_JOBS = 64
"""Assumption: a chip that is shared by more jobs is a file that nobody cleans up."""
_MOST_BYTES = 64 * 1024


class MappingDir:
    """Reads below `path`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._root = Root(path, _MOST_BYTES)

    def jobs(self, device_id: int) -> tuple[str, ...] | Failure:
        """In the order of the file, each once. UNPARSEABLE where a line is no id: the whole file is then not used."""
        text = self._root.read_text(str(device_id))
        if isinstance(text, Failure):
            if text.kind is FailureKind.MISSING and self._path.is_dir():
                return ()
            return text
        jobs = tuple(dict.fromkeys(line.strip() for line in text.splitlines() if line.strip()))
        if len(jobs) > _MOST_JOBS or not all(_ID.fullmatch(job) and job.isprintable() for job in jobs):
            cure = f"one job id a line, printable, at most {_MOST_JOBS}; the file is not used"
            return Failure(FailureKind.UNPARSEABLE, f"{self._path / str(device_id)}: not a mapping file: {cure}")
        return jobs
