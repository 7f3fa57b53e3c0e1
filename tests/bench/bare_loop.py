"""The least that a daemon could do: read a line, run the tool with it, read its answer. FIFO TOOL."""

from __future__ import annotations

import os
import subprocess
import sys


def main(called: str, tool: str) -> None:
    # Open for writing too: no call of the daemon's ever waits for a reader, and the loop does not end between two.
    with open(os.open(called, os.O_RDWR), encoding="utf-8") as lines:
        print("ready", flush=True)
        for line in lines:
            subprocess.run(
                [tool, *line.split()],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=10,
                check=True,
                env={"LC_ALL": "C"},
            )


if __name__ == "__main__":
    main(*sys.argv[1:])
