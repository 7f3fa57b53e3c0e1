"""`python -m tests.scenarios [NAME …]`: play the campaign, or the cases whose names contain one of these words."""

from __future__ import annotations

import sys
from multiprocessing import Pool

from tests.scenarios.campaign import CASES, played
from tests.scenarios.report import lines
from tests.scenarios.score import Score


def _play(at: int) -> Score:
    return played(CASES[at])


def main(words: list[str]) -> int:
    """0: all is as labelled; 1: something is not."""
    chosen = [at for at, case in enumerate(CASES) if not words or any(word in case.name for word in words)]
    if not chosen:
        sys.stderr.write(f"no case has {' or '.join(map(repr, words))} in its name\n")
        return 2
    with Pool() as pool:
        rows = [(CASES[at], score) for at, score in zip(chosen, pool.imap(_play, chosen), strict=True)]
    sys.stdout.writelines(f"{line}\n" for line in lines(rows))
    return int(any(score.complaints for _, score in rows))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
