"""compatibility.tsv: which version of what needs which version of what else, each row with its source."""

from __future__ import annotations

import csv
import functools
from dataclasses import dataclass
from importlib import resources


@dataclass(frozen=True, slots=True)
class Row:
    """One statement of one page."""

    part: str
    version: str
    """`2.2.*`: a branch's page, for all of its patches."""
    needs: str
    needs_version: str
    certain: bool
    """False: the page prefers it, or does not say for which patch: another version is no finding."""
    source: str

    def speaks_of(self, part: str, version: str) -> bool:
        if part != self.part:
            return False
        if self.version.endswith("*"):
            return f"{version}.".startswith(self.version[:-1])
        return version == self.version


@functools.cache
def table() -> tuple[Row, ...]:
    """All rows; read once, when first asked for."""
    text = resources.files("npu_watchd.compatibility").joinpath("compatibility.tsv").read_text(encoding="utf-8")
    lines = (line for line in text.splitlines() if not line.startswith("#"))
    return tuple(
        Row(
            fields["part"],
            fields["version"],
            fields["needs"],
            fields["needs_version"],
            fields["certain"] == "yes",
            fields["source"],
        )
        for fields in csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
    )
