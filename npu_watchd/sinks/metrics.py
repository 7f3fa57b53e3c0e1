"""One cycle's Outcome as Prometheus exposition: rendered when first asked for, once a form, then the same bytes."""

from __future__ import annotations

import gzip
import math
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.exposition import generate_latest as generate_text
from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics.exposition import CONTENT_TYPE_LATEST
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics

from npu_watchd.catalogue import DeviceFamily, Family, Kind, Sample
from npu_watchd.model.snapshot import Outcome
from npu_watchd.sinks.plaintext import clean

LABEL_VALUE_MAX = 256
"""Characters of a label value; a longer one ends in an ellipsis."""

GZIP_LEVEL = 1
"""On the page of a 16-die node, level 9 takes ten times as long to save a further third of few kilobytes."""


class Format(Enum):
    """The two exposition formats that Prometheus reads; the value is the Content-Type."""

    TEXT = CONTENT_TYPE_PLAIN_0_0_4
    OPENMETRICS = CONTENT_TYPE_LATEST


class Collector(Protocol):
    """What prometheus_client's renderers need of a registry."""

    def collect(self) -> Iterable[Metric]: ...


@dataclass(frozen=True, slots=True)
class _Page:
    metrics: tuple[Metric, ...]
    problems: tuple[str, ...]

    def collect(self) -> Iterable[Metric]:
        return self.metrics


class Exposition:
    """The metrics of one cycle.

    Reading the families and rendering happen on the first demand, under a lock, so that any number of scrapers at
    once cost one rendering a form. Nothing a getter or a label value does can break the page: what cannot be
    exported is left out and named in `problems`.
    """

    def __init__(self, outcome: Outcome, families: Sequence[Family]) -> None:
        self._outcome = outcome
        self._families = tuple(families)
        self._lock = threading.Lock()
        self._page: _Page | None = None
        self._bodies: dict[tuple[Format, bool], bytes] = {}

    @property
    def problems(self) -> tuple[str, ...]:
        """Samples and families left out, in words; empty when the catalogue is sound."""
        with self._lock:
            return self._collected().problems

    @property
    def problems_met(self) -> tuple[str, ...] | None:
        """`problems`, None where nobody has asked for the page: of itself a cycle reads no family."""
        with self._lock:
            return None if self._page is None else self._page.problems

    def body(self, form: Format, *, gzipped: bool = False) -> bytes:
        """The page in this format; the same bytes object at each call."""
        with self._lock:
            return self._rendered(form, gzipped)

    def _rendered(self, form: Format, gzipped: bool) -> bytes:
        body = self._bodies.get((form, gzipped))
        if body is None:
            if gzipped:
                body = gzip.compress(self._rendered(form, False), GZIP_LEVEL, mtime=0)
            else:
                body = _render(self._collected(), form)
            self._bodies[form, gzipped] = body
        return body

    def _collected(self) -> _Page:
        if self._page is None:
            self._page = _collect(self._outcome, self._families)
        return self._page


def _render(page: Collector, form: Format) -> bytes:
    generate = generate_openmetrics if form is Format.OPENMETRICS else generate_text
    return generate(page)


def _collect(outcome: Outcome, families: Sequence[Family]) -> _Page:
    metrics: list[Metric] = []
    problems: list[str] = []
    seen: set[str] = set()
    for family in families:
        base = family.name.removesuffix("_total") if family.kind is Kind.COUNTER else family.name
        if base in seen:
            problems.append(f"{family.name}: declared twice; only the first is exported")
            continue
        seen.add(base)
        metric = Metric(base, family.help, family.kind.value)
        _fill(metric, family, outcome, problems)
        if metric.samples:
            metrics.append(metric)
    return _Page(tuple(metrics), tuple(problems))


def _fill(metric: Metric, family: Family, outcome: Outcome, problems: list[str]) -> None:
    name = f"{metric.name}_total" if family.kind is Kind.COUNTER else metric.name
    allowed = {*family.labels, "device_id"} if isinstance(family, DeviceFamily) else set(family.labels)
    exported: set[tuple[tuple[str, str], ...]] = set()
    for raw_labels, value in _samples(family, outcome, problems):
        labels = {key: clean(text, LABEL_VALUE_MAX) for key, text in raw_labels.items() if text != ""}
        identity = tuple(sorted(labels.items()))
        fault = _fault(labels, allowed, identity in exported, value, family.kind)
        if fault:
            problems.append(f"{family.name}{dict(identity)}: {fault}; left out")
            continue
        exported.add(identity)
        metric.add_sample(name, labels, value)


def _fault(labels: Mapping[str, str], allowed: set[str], duplicate: bool, value: float, kind: Kind) -> str | None:
    if not labels.keys() <= allowed:
        return f"labels {sorted(labels.keys() - allowed)} are not declared"
    if duplicate:
        return "a second sample with these labels"
    if not math.isfinite(value):
        return f"{value} is no reading"
    if kind is Kind.COUNTER and value < 0:
        return f"a counter cannot be {value}"
    return None


def _samples(family: Family, outcome: Outcome, problems: list[str]) -> Iterator[Sample]:
    if not isinstance(family, DeviceFamily):
        yield from _guarded(family.name, lambda: family.read(outcome), problems)
        return
    for key in sorted(outcome.snapshot.devices):
        device = outcome.snapshot.devices[key]
        for labels, value in _guarded(f"{family.name} of {key}", lambda: family.read(device), problems):  # noqa: B023
            yield {"device_id": device.device_id, **labels}, value


def _guarded(what: str, read: _Read, problems: list[str]) -> Sequence[Sample]:
    """The getter's samples; none when it raises, since one faulty getter must not cost the node its page."""
    try:
        return [(labels, float(value)) for labels, value in read()]
    except Exception as error:  # noqa: BLE001  # the reason is the docstring's
        problems.append(f"{what}: the getter raised {type(error).__name__}: {error}")
        return ()


class _Read(Protocol):
    def __call__(self) -> Iterable[Sample]: ...
