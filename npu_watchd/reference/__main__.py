"""`python -m npu_watchd.reference [--check]`."""

from __future__ import annotations

import sys

from npu_watchd.reference import regenerate

if __name__ == "__main__":
    sys.exit(regenerate(check="--check" in sys.argv[1:]))
