"""Scenario files: TOML, strict. A key that nobody knows is an error that names the file and the key."""

from __future__ import annotations

from pathlib import Path

import msgspec

from npu_watchd.simnode.host_port import hca_names
from npu_watchd.simnode.scenario import Scenario
from npu_watchd.simnode.scenario_event import events
from npu_watchd.simnode.scenario_schema import File
from npu_watchd.simnode.silicon import SILICON

FOLDER = Path(__file__).parent / "scenarios"


class ScenarioError(ValueError):
    """A scenario file that cannot be used; the text names the file and what to change."""


def names() -> tuple[str, ...]:
    """The scenarios that come with the package."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.toml")))


def load(name_or_path: str | Path) -> Scenario:
    """A scenario by its name here, or from a file.

    Raises ScenarioError naming the file and the key: not there, no TOML, unknown key, wrong type, contradiction.
    """
    path = FOLDER / f"{name_or_path}.toml" if str(name_or_path) in names() else Path(name_or_path)
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        known = ", ".join(names())
        raise ScenarioError(f"{path}: {error.strerror}; the scenarios that come along are {known}") from error
    return parse(text, path.stem, str(path))


def parse(text: str, name: str, file: str) -> Scenario:
    """A scenario from TOML text; `file` is what errors name."""
    try:
        read = msgspec.toml.decode(text, type=File)
        return _scenario(read, name)
    except (msgspec.DecodeError, ValueError) as error:
        raise ScenarioError(f"{file}: {error}") from error


def _scenario(read: File, name: str) -> Scenario:
    silicon = SILICON.get(read.generation)
    if silicon is None:
        raise ValueError(f"generation {read.generation!r} is none of {', '.join(SILICON)} - at `$.generation`")
    cards = read.cards or silicon.cards
    chips = cards * silicon.chips_per_card
    hcas = silicon.hcas if read.hcas is None else read.hcas
    told = [one for at, event in enumerate(read.at) for one in events(event, f"$.at[{at}]", chips, hca_names(hcas))]
    if read.real_processes and any(event.start for event in told):
        raise ValueError("real processes and invented ones cannot be on one node - at `$.real_processes`")
    return Scenario(
        name,
        read.title,
        read.description.strip(),
        read.generation,
        read.tool_version,
        read.driver_version or read.tool_version,
        cards,
        read.chip_name,
        read.install_incomplete,
        tuple(sorted(told, key=lambda event: event.t_s)),
        hcas,
        read.firmware_owns_aer,
        read.expected_ports,
        read.host_cpu,
        read.real_processes,
    )
