"""What each scenario puts on /metrics and into the log, byte for byte. `pytest --update-golden` writes it anew."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from npu_watchd.catalogue import CATALOGUE
from npu_watchd.simnode import scenario_file
from tests import promtool
from tests.golden.play import LEFT_OUT, play

HERE = Path(__file__).parent

TELLING: Mapping[str, tuple[int, ...]] = {
    "a3_16_dies": (300, 390),
    "ascend950": (300, 560),
    "busy_node": (90, 300, 680),
    "container_pids": (90, 330, 450),
    "device_lost": (260, 370),
    "double_bit_then_reset": (200, 630, 760),
    "driver_gone": (60, 290, 660),
    "duo_310p": (240, 380),
    "handover": (90, 240),
    "hbm_storm": (3000, 6950, 7950),
    "hccl_ports": (90, 300, 560),
    "hccn_busy": (230, 450, 1215),
    "leftover": (90, 450, 630),
    "nine_processes": (90, 300, 620),
    "no_hca": (150, 920, 1270),
    "oom_kill": (90, 240, 600),
    "optics_dim": (540, 1020, 1680),
    "pcie_contention": (210, 450, 750, 960),
    "pcie_errors": (690, 1215, 1290),
    "pcie_narrow": (240, 460, 600),
    "pcie_saturated": (450, 980),
    "pcie_sockets": (90, 300),
    "quiet": (55, 300),
    "roce_down": (270, 540, 1160),
    "roce_flap": (150, 750),
    "two_jobs_one_device": (90, 300, 530),
    "unknown_chip": (60, 200),
    "wedged_driver": (230, 500, 720),
}
"""Scenario → the seconds of its pages; its events are kept up to the last of them."""
SPEED = {"hbm_storm": 10, "no_hca": 2, "optics_dim": 2}
"""Scenario seconds a second of the daemon, where hours would take the test too long."""


def files_of(scenario: str) -> list[str]:
    return [f"{scenario}@{second}.metrics" for second in TELLING[scenario]] + [f"{scenario}.events"]


@pytest.mark.parametrize("scenario", TELLING)
def test_a_scenario_looks_as_it_did(scenario: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    played = play(scenario, TELLING[scenario], tmp_path, SPEED.get(scenario, 1))
    found = {f"{scenario}@{second}.metrics": page for second, page in played.pages.items()}
    found[f"{scenario}.events"] = "".join(f"{line}\n" for line in played.events)
    assert sorted(found) == sorted(files_of(scenario))
    for name, text in found.items():
        file = HERE / name
        if request.config.getoption("--update-golden"):
            file.write_text(text, encoding="utf-8")
        golden = file.read_text(encoding="utf-8") if file.exists() else ""
        assert text.splitlines() == golden.splitlines(), (
            f"{name} is not as it was; `pytest --update-golden` if it is right"
        )
        assert text == golden


def test_every_scenario_has_its_golden_files_and_there_are_no_others(request: pytest.FixtureRequest) -> None:
    assert sorted(TELLING) == sorted(scenario_file.names())
    expected = {name for scenario in TELLING for name in files_of(scenario)}
    there = {file.name for file in HERE.iterdir() if file.suffix in {".metrics", ".events"}}
    if request.config.getoption("--update-golden"):
        for name in there - expected:
            (HERE / name).unlink()
        return  # what is missing is just being made
    assert sorted(there) == sorted(expected)


def test_every_family_is_on_some_golden_page_or_left_out_by_name() -> None:
    pages = "".join(file.read_text(encoding="utf-8") for file in HERE.glob("*.metrics"))
    names = {family.name for family in CATALOGUE}
    shown = {name for name in names if f"# TYPE {name} " in pages}
    assert LEFT_OUT.keys() <= names
    assert names - shown == LEFT_OUT.keys()


@pytest.mark.parametrize("scenario", TELLING)
def test_promtool_finds_every_golden_page_clean(scenario: str) -> None:
    for second in TELLING[scenario]:
        found = promtool.problems((HERE / f"{scenario}@{second}.metrics").read_text(encoding="utf-8"))
        if found is None:
            pytest.skip("promtool is not installed: it comes with the Debian package prometheus")
        assert found == []
