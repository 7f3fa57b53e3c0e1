"""`python -m npu_watchd.simnode`: what a simulated node says. DIR/bin/npu-smi runs `tool npu-smi DIR ARGS...`."""

from __future__ import annotations

import sys

if __name__ == "__main__":
    # A tool's call imports no more than it needs: it comes several times a minute, msgspec is not on its path, and
    # pathlib alone would take a tenth of its time.
    if sys.argv[1:2] == ["tool"] and len(sys.argv) > 3:
        from npu_watchd.simnode.tools import call

        sys.exit(call(sys.argv[2], sys.argv[3], tuple(sys.argv[4:])))
    else:
        from npu_watchd.simnode.console import main

        sys.exit(main(sys.argv[1:]))
