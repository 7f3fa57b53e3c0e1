"""What it costs to understand the tool's texts."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator

from tests.bench.sixteen_dies import calls
from tests.bench.verdict import Row


def rows(*, quick: bool) -> Iterator[Row]:
    times = 50 if quick else 300
    asked = calls()
    table = next(call for call in asked if call.probe.name == "npu_info")
    yield Row("parse the table of 16 dies, CPU", _median_ms(table.parse, times), "ms", 1.0)
    yield Row("the same, once in 0.2 s as caches grow cold", _median_ms(table.parse, 15, pause_s=0.2), "ms")
    a_minute = sum(_median_ms(call.parse, times // 10) * call.a_minute for call in asked)
    number = sum(call.a_minute for call in asked)
    yield Row(f"parse the {number:.0f} answers of a minute, CPU", a_minute, "ms", 10.0)


def _median_ms(work: Callable[[], object], times: int, pause_s: float = 0.0) -> float:
    def once() -> float:
        time.sleep(pause_s)
        began = time.thread_time()
        work()
        return time.thread_time() - began

    once()
    return 1000 * statistics.median(once() for _ in range(times))
