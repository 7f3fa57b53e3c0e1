"""What npu-smi wrote into its own error log while its tables showed harmless zeros."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from npu_watchd.model.reading import Tick

RECENT_S = 180.0
"""How long a failed health query is held up: three periods of `-t health`, which says by device what is wrong."""


@dataclass(slots=True)
class ToolTrouble:
    """Counts by error code; and the newest failure of a health query, whose zero the table prints as OK."""

    counts: dict[str, int] = field(default_factory=dict)
    health_failure: tuple[float, str, int] | None = None
    """Monotonic seconds, the function and its code."""

    def take(self, events: Iterable[tuple[str, int]], now: Tick) -> None:
        """events: the driver call that failed, and its code."""
        for function, code in events:
            self.counts[str(code)] = self.counts.get(str(code), 0) + 1
            if "health" in function.lower():
                self.health_failure = (now.mono_s, function, code)

    def warnings(self, now: Tick) -> list[str]:
        """Says that an OK may be a failed query, while that is recent; other failures are told apart by their marks."""
        if self.health_failure is None or now.mono_s - self.health_failure[0] > RECENT_S:
            return []
        _, function, code = self.health_failure
        return [
            f"npu-smi logged that {function} failed ({code}): an OK in its table may be a query that failed;"
            " `npu-smi info -t health -i N` says of which device"
        ]
