"""What is installed against the table: what fits, what does not and what would, and what the table does not know."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import partial

from npu_watchd.compatibility.table import Row, table
from npu_watchd.model.versions import Installed, Packages, VersionFile, VersionSpan

_CANN = re.compile(r"(?P<major>\d+)\.(?P<minor>\d+)\.(?:(?P<rc>RC\d+)|(?P<patch>\d+))(?:\..*)?", re.IGNORECASE)
_NUMBERS = re.compile(r"\d{1,9}(?:\.\d{1,9})*")


class Standing(StrEnum):
    """How two parts stand to each other."""

    FITS = "fits"
    MISFIT = "misfit"
    UNLISTED = "unlisted"
    """The table does not know one of the two, or only prefers another: nobody can tell."""


@dataclass(frozen=True, slots=True)
class Pairing:
    """Two parts, and what the table says of them."""

    part: str
    """`mindspore 2.4.1`."""
    beside: str
    """`CANN 8.0.RC3`."""
    standing: Standing
    why: str
    would: str | None = None
    """What would fit; None: it does, or nobody knows."""
    source: str | None = None
    """Of the row; None: there is none."""
    where: str = ""
    """The folder or file in which the part was found."""


def pairings(installed: Installed) -> tuple[Pairing, ...]:
    """Each pair that could matter; () where only one part, or none, was found."""
    found = [*_firmware(installed), *_mixed(installed.cann)]
    for packages in installed.packages:
        found += _with_cann(packages, installed.cann_versions)
        found += _with_each_other(packages)
    return tuple(found)


def misfits(installed: Installed) -> tuple[Pairing, ...]:
    """The pairs of which the table is certain that they do not belong together."""
    return tuple(one for one in pairings(installed) if one.standing is Standing.MISFIT)


def cann_line(version: str) -> str | None:
    """8.0.RC3 of `8.0.RC3.beta1` and of `8.0.RC3.10`; 8.0 of 8.0.0 and 8.0.1. None: a test build, or no such version.

    A patch is made to replace its release, so it is not held against it (assumption).
    """
    match = _CANN.fullmatch(version)
    if match is None:
        return None
    base = f"{match['major']}.{match['minor']}"
    return f"{base}.{match['rc'].upper()}" if match["rc"] else base


def _firmware(installed: Installed) -> Iterator[Pairing]:
    """By the driver's own declaration. The firmware's of drivers is not read: the vendor's own pair breaks it."""
    driver, firmware = installed.driver, installed.firmware
    if driver is None or firmware is None or firmware.version is None or driver.version is None:
        return
    part, beside = f"driver {driver.version}", f"firmware {firmware.version}"
    spans, number = driver.compatible_firmware, _numbers(firmware.version)
    if spans is None or number is None or any(_ends(span) is None for span in spans):
        yield Pairing(part, beside, Standing.UNLISTED, "the driver does not say in numbers which firmware it takes")
        return
    shown = ", ".join(f"{span.first} to {span.last}" for span in spans)
    source = "driver/version.info: compatible_version_fw"
    if any(_within(number, span) for span in spans):
        yield Pairing(part, beside, Standing.FITS, f"the driver takes firmware {shown}", source=source)
    else:
        yield Pairing(
            part, beside, Standing.MISFIT, f"the driver takes firmware {shown} only", f"firmware {shown}", source
        )


def _numbers(version: str) -> tuple[int, ...] | None:
    return tuple(int(part) for part in version.split(".")) if _NUMBERS.fullmatch(version) else None


def _ends(span: VersionSpan) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    first, last = _numbers(span.first), _numbers(span.last)
    return (first, last) if first is not None and last is not None else None


def _within(number: tuple[int, ...], span: VersionSpan) -> bool:
    """The last end holds for all that begins with it: 7.1.99 for 7.1.99.5."""
    ends = _ends(span)
    return ends is not None and ends[0] <= number and number[: len(ends[1])] <= ends[1]


def _mixed(cann: Mapping[str, VersionFile]) -> Iterator[Pairing]:
    """Parts of one installation that come from two releases."""
    for folder, file in cann.items():
        by_line: dict[str, list[str]] = {}
        for name, component in file.components.items():
            line = cann_line(component.version)
            if line is not None:
                by_line.setdefault(line, []).append(name)
        if len(by_line) > 1:
            parts = [f"{', '.join(sorted(names))} {line}" for line, names in sorted(by_line.items())]
            why = "the parts of one installation are of different releases"
            yield Pairing(
                f"CANN {parts[0]}",
                "; ".join(parts[1:]),
                Standing.MISFIT,
                why,
                "one release for all parts: install the toolkit anew",
                "version.cfg: *_running_version",
                folder,
            )


def _with_cann(packages: Packages, versions: tuple[str, ...]) -> Iterator[Pairing]:
    """Several installations of CANN: a package fits if it fits one, since its user chooses."""
    if not versions:
        return
    beside = " or ".join(f"CANN {version}" for version in versions)
    for name, version in sorted(packages.versions.items()):
        rows = _rows(name, version, "cann")
        if rows or any(row.part == name for row in table()):
            lines = frozenset(cann_line(one) for one in versions)
            yield _paired(
                f"{name} {version}",
                beside,
                rows,
                partial(_needs_line, lines),
                packages.folder,
                other_known=all(line in _known_lines() for line in lines),
            )


def _with_each_other(packages: Packages) -> Iterator[Pairing]:
    for name, version in sorted(packages.versions.items()):
        for other in ("torch", "torch-npu"):
            beside = packages.versions.get(other)
            rows = _rows(name, version, other) if beside is not None else ()
            if beside is None or not rows:
                continue
            bare = beside.partition("+")[0]
            yield _paired(
                f"{name} {version}",
                f"{other} {beside}",
                rows,
                partial(_needs_just, bare),
                packages.folder,
                other_known=any(row.needs == other and row.needs_version == bare for row in table()),
            )


def _needs_line(lines: frozenset[str | None], row: Row) -> bool:
    line = cann_line(row.needs_version)
    return line is not None and line in lines


def _needs_just(version: str, row: Row) -> bool:
    return row.needs_version == version


def _rows(part: str, version: str, needs: str) -> tuple[Row, ...]:
    """Pages for just this version first, then those for its branch."""
    bare = version.partition("+")[0]
    rows = (row for row in table() if row.needs == needs and row.speaks_of(part, bare))
    return tuple(sorted(rows, key=lambda row: row.version != bare))


def _paired(
    part: str, beside: str, rows: tuple[Row, ...], fits: Callable[[Row], bool], where: str, *, other_known: bool
) -> Pairing:
    good = next((row for row in rows if fits(row)), None)
    if good is not None:
        why = f"the table pairs it with {good.needs} {good.needs_version}"
        return Pairing(part, beside, Standing.FITS, why, None, good.source, where)
    if not rows:
        return Pairing(part, beside, Standing.UNLISTED, f"{part} is not in our table", where=where)
    exact = tuple(row for row in rows if not row.version.endswith("*"))
    rows = exact or rows
    would = " or ".join(dict.fromkeys(f"{row.needs} {row.needs_version}" for row in rows))
    source = rows[0].source
    if not other_known:
        return Pairing(part, beside, Standing.UNLISTED, f"{beside} is not in our table", would, source, where)
    if not all(row.certain for row in rows):
        why = "another one is named, but not required for just this version"
        return Pairing(part, beside, Standing.UNLISTED, why, would, source, where)
    return Pairing(
        part, beside, Standing.MISFIT, f"no row of the table has both; it needs {would}", would, source, where
    )


def _known_lines() -> frozenset[str]:
    lines = (cann_line(row.needs_version) for row in table() if row.needs == "cann")
    return frozenset(line for line in lines if line is not None)
