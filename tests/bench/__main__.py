"""`python -m tests.bench [--quick]`: speed and size beside the limits that we hold ourselves to; exit 1 above one."""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time

from tests.bench import alerting, fabric, jobs, judging, memory, parsing, running, scraping, starting
from tests.bench.verdict import Row, table


def main() -> int:
    """Measure, print one table, and say by the exit code whether all is within its limits."""
    options = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    options.add_argument("--quick", action="store_true", help="shorter windows: the same table in less than a minute")
    quick = options.parse_args().quick
    began = time.monotonic()
    load = os.getloadavg()[0]
    print(
        f"{os.cpu_count()} cores ({_processor()}), load {load:.1f}; {platform.system()} {platform.release()} "
        f"{platform.machine()}; Python {platform.python_version()}"
    )
    rows: list[Row] = []
    for part in (starting, parsing, fabric, jobs, judging, scraping, memory, running, alerting):
        began_part = time.monotonic()
        rows += part.rows(quick=quick)
        name = part.__name__.rpartition(".")[2]
        print(f"{name}: {time.monotonic() - began_part:.0f} s", file=sys.stderr, flush=True)
    print(f"{time.monotonic() - began:.0f} s{', quick' if quick else ''}\n\n{table(rows)}")
    over = [row for row in rows if row.over]
    print(f"\n{len(over)} above the limit" if over else "\nall within their limits")
    return 1 if over else 0


def _processor() -> str:
    """The model as /proc/cpuinfo has it (arm64 names none there)."""
    with open("/proc/cpuinfo", encoding="utf-8") as lines:
        return next(
            (line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "no model name"
        )


if __name__ == "__main__":
    sys.exit(main())
