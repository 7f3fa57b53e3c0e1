"""What a scrape takes, beside the same server that sends constant bytes; and fifty scrapers at once."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import threading
from collections.abc import Iterator

from tests.bench.scraper import PLAIN, PROMETHEUS, ScrapeError, Scraper
from tests.bench.verdict import Row

SCRAPERS = 50
EACH = 20


def rows(*, quick: bool) -> Iterator[Row]:
    times = 1000
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.bench.server"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with process:
        assert process.stdout is not None
        real, text, zipped = json.loads(process.stdout.readline())
        for name, port, headers in (("text", text, PLAIN), ("OpenMetrics, gzip", zipped, PROMETHEUS)):
            yield from _beside(name, Scraper(real, headers), Scraper(port, headers), times)
        yield from _at_once(real)
        assert process.stdin is not None
        process.stdin.close()


def _beside(name: str, real: Scraper, constant: Scraper, times: int) -> Iterator[Row]:
    """In turns, so that what else the machine does meets both."""
    pairs = [(real.scrape(), constant.scrape()) for _ in range(times + 20)][20:]
    ours, least = (statistics.median(column) for column in zip(*pairs, strict=True))
    size = f"{len(real.body) / 1000:.0f} kB"
    yield Row(f"scrape of 16 dies, {name}, {size}: median of {times:,}", 1000 * ours, "ms")
    yield Row(f"scrape of 16 dies, {name}: beside constant bytes", ours / least, "×", 1.3)
    yield Row(f"scrape of 16 dies, {name}: slowest, renders after a cycle", 1000 * max(ours for ours, _ in pairs), "ms")
    real.close()
    constant.close()


def _at_once(port: int) -> Iterator[Row]:
    took: list[float] = []
    failed: list[str] = []
    start = threading.Barrier(SCRAPERS)

    def scrape() -> None:
        start.wait()
        try:
            for _ in range(EACH):
                scraper = Scraper(port, PROMETHEUS)
                took.append(scraper.scrape())
                scraper.close()
        except (OSError, ScrapeError) as error:
            failed.append(repr(error))

    threads = [threading.Thread(target=scrape) for _ in range(SCRAPERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for error in sorted(set(failed)):
        print(f"a scrape failed: {error}", file=sys.stderr)
    scrapes = f"{SCRAPERS} scrapers at once, {SCRAPERS * EACH:,} scrapes on new connections"
    yield Row(f"{scrapes}: failed", len(failed), "", 0)
    yield Row(f"{scrapes}: slowest", 1000 * max(took, default=float("nan")), "ms")
