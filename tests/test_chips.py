"""Every name that npu-smi has been seen to print finds its silicon."""

from __future__ import annotations

import pytest

from npu_watchd.chips import GENERIC, PROFILES, profile_of


@pytest.mark.parametrize(
    ("name", "profile"),
    [
        # As the table of `npu-smi info` prints them.
        ("310", "310"),
        ("310P3", "310P"),
        ("310Pvir01", "310P"),
        ("310B1", "310B"),
        ("310B4", "310B"),
        ("910A", "910A"),
        ("910ProA", "910A"),
        ("910ProB", "910A"),
        ("910PremiumA", "910A"),
        ("910B2", "910B"),
        ("910B2C", "910B"),
        ("910B3", "910B"),
        ("910B4", "910B"),
        ("910B4-1", "910B"),
        ("Ascend910", "A3"),
        ("950PR", "950"),
        ("Ascend950PR", "950"),
        ("Ascend950DT", "950"),
        # As `-m` does.
        ("Ascend 310", "310"),
        ("Ascend 310P3", "310P"),
        ("Ascend 310B4", "310B"),
        ("Ascend 910A", "910A"),
        ("Ascend 910B3", "910B"),
        ("Ascend 910B4-1", "910B"),
        # Without a digit it is the first generation's bin B.
        ("910B", "910A"),
        ("Ascend 910B", "910A"),
        # As other tools name A3.
        ("Ascend910_9391", "A3"),
        ("910C", "A3"),
    ],
)
def test_the_profile_of_a_name(name: str, profile: str) -> None:
    assert profile_of(name).name == profile


@pytest.mark.parametrize(
    "name", [None, "", " ", "Ascend", "1020X", "Ascend1020", "B910B3", "31", "3100", "910D", "Mcu"]
)
def test_an_unknown_name_is_asked_everything_and_trusted_with_nothing(name: str | None) -> None:
    profile = profile_of(name)
    assert profile is GENERIC
    assert (profile.known, profile.has_hbm) == (False, None)
    assert profile.probes == frozenset().union(*(known.probes for known in PROFILES))


def test_no_chip_is_healthy_without_table_health_and_ecc() -> None:
    for profile in (*PROFILES, GENERIC):
        assert profile.vital == {"npu_info", "npu_health", "npu_ecc"}
        # A vital probe that nobody asks would leave every such chip unknown for ever.
        assert profile.vital <= profile.probes | {"npu_info"}


def test_chips_without_hbm_are_not_asked_for_its_temperature() -> None:
    assert {profile.name: "npu_temp" in profile.probes for profile in PROFILES} == {
        "310": False,
        "310P": False,
        "310B": False,
        "910A": True,
        "910B": True,
        "A3": True,
        "950": True,
    }
    assert all(("npu_temp" in profile.probes) is profile.has_hbm for profile in PROFILES)
