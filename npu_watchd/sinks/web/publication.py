"""What one cycle published, and the documents made from it: each once, when first asked for."""

from __future__ import annotations

import gzip
import threading
from dataclasses import dataclass

from npu_watchd.model.snapshot import Outcome
from npu_watchd.sinks.metrics import Exposition
from npu_watchd.sinks.web.api import encoded, snapshot_json
from npu_watchd.sinks.web.findings import events_document, findings_document
from npu_watchd.sinks.web.page import render_page
from npu_watchd.sinks.web.verdicts import verdicts_document

STALE_AFTER_S = 60.0
"""Age from which the page says that the daemon's cycles have stopped; a dozen cycles at the default of 5 s."""

_GZIP_LEVEL = 6
"""A page of 64 devices, 74 to 122 kB, becomes 7 kB in half a millisecond; level 9 makes no less of it."""


@dataclass(frozen=True, slots=True)
class Published:
    """One cycle's outcome and its metrics; the daemon replaces the whole."""

    outcome: Outcome
    exposition: Exposition


class Documents:
    """The page and the API's answer for one publication."""

    def __init__(self, published: Published) -> None:
        self.published = published
        self._lock = threading.Lock()
        self._snapshot: bytes | None = None
        self._page: bytes | None = None
        self._page_gzipped: bytes | None = None
        self._findings: bytes | None = None
        self._verdicts: bytes | None = None

    def findings(self) -> bytes:
        """The JSON of `/api/v1/findings`."""
        with self._lock:
            if self._findings is None:
                self._findings = encoded(findings_document(self.published.outcome))
            return self._findings

    def verdicts(self) -> bytes:
        """The JSON of `/api/v1/verdicts`."""
        with self._lock:
            if self._verdicts is None:
                self._verdicts = encoded(verdicts_document(self.published.outcome))
            return self._verdicts

    def events(self, since_s: float | None, device_id: str | None) -> bytes:
        """The JSON of `/api/v1/events`."""
        return encoded(events_document(self.published.outcome, since_s, device_id))

    def snapshot(self) -> bytes:
        """The JSON of `/api/v1/snapshot`."""
        with self._lock:
            if self._snapshot is None:
                self._snapshot = snapshot_json(self.published.outcome)
            return self._snapshot

    def page(self, age_s: float, *, gzipped: bool = False) -> bytes:
        """The page; one that is shown long after its cycle says so."""
        if age_s > STALE_AFTER_S:
            page = render_page(self.published.outcome, stale_s=age_s)
            return _packed(page) if gzipped else page
        with self._lock:
            if self._page is None:
                self._page = render_page(self.published.outcome)
            if not gzipped:
                return self._page
            if self._page_gzipped is None:
                self._page_gzipped = _packed(self._page)
            return self._page_gzipped


def _packed(page: bytes) -> bytes:
    return gzip.compress(page, _GZIP_LEVEL, mtime=0)
