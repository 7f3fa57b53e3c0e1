"""`npu-watchd`, and `python -m npu_watchd`, which is the same."""

from __future__ import annotations

import sys


def main() -> None:
    """`check` has 200 ms: it takes a way of its own, past all that the other commands need."""
    if sys.argv[1:2] == ["check"]:
        from npu_watchd import gate

        code = gate.main(sys.argv[2:])
        if code is not None:
            gate.end(code)
    from npu_watchd.cli import main as commands

    commands()


if __name__ == "__main__":
    main()
