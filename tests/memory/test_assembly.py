"""What may be said of one chip, from what is fresh about it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from npu_watchd.memory.assembly import Facts, device_of, merged_health
from npu_watchd.model.ids import DeviceKey
from npu_watchd.model.jobs import DeviceJobs
from npu_watchd.model.reading import Failure, FailureKind
from npu_watchd.model.records import (
    Clocks,
    DeviceRow,
    EccChip,
    Hccs,
    MemoryErrors,
    MemoryTemperature,
    PcieLinkErrors,
    Usages,
)
from npu_watchd.model.snapshot import Device, Identity, Memory
from tests.memory.build import GIB, TIMEOUT, ecc, health, row, table

VITAL = frozenset({"npu_info", "npu_health", "npu_ecc"})
SOUND = {"npu_health": health("OK"), "npu_ecc": ecc(0)}


def assembled(shown: DeviceRow | None, records: dict[str, Any] | None = None, **changes: Any) -> Device:
    whole = table(shown) if shown else table(row(9))
    facts = Facts(
        key=DeviceKey(0, 0),
        device_id="0",
        device_id_source="logic_id",
        identity=Identity(name="910B3", pci_address="0000:80:00.0"),
        profile="910B",
        table=whole,
        row=shown,
        records=SOUND if records is None else records,
        blind={},
        unsupported={},
        vital=VITAL,
        code_tier=lambda _: "hint",
    )
    return device_of(replace(facts, **changes))


@pytest.mark.parametrize(
    ("shown", "answered", "health_is"),
    [
        ("OK", "OK", "ok"),
        ("OK", None, "unknown"),
        (None, "OK", "unknown"),
        (None, None, "unknown"),
        ("OK", "Warning", "warning"),
        ("Warning", "OK", "warning"),
        ("Alarm", "Warning", "alarm"),
        ("Warning", "Critical", "critical"),
        ("Critical", "OK", "critical"),
        # A bad word counts by itself.
        ("Alarm", None, "alarm"),
        (None, "Critical", "critical"),
        ("UNKNOWN", "OK", "unknown"),
        ("OK", "UNKNOWN", "unknown"),
        ("UNKNOWN", "Alarm", "alarm"),
    ],
)
def test_the_worse_word_stands_and_ok_needs_both(shown: str | None, answered: str | None, health_is: str) -> None:
    said = None if answered is None else health(answered)
    assert merged_health(shown, said, asked=True) == health_is


@pytest.mark.parametrize(
    ("shown", "health_is"),
    [("OK", "ok"), ("Warning", "warning"), ("Critical", "critical"), ("UNKNOWN", "unknown"), (None, "unknown")],
)
def test_a_chip_that_cannot_answer_leaves_the_tables_word(shown: str | None, health_is: str) -> None:
    assert merged_health(shown, None, asked=False) == health_is


def test_an_ok_from_before_the_tables_last_bad_word_confirms_none_now() -> None:
    assert merged_health("OK", health("OK"), asked=True, outdated=True) == "unknown"
    assert merged_health("OK", health("Critical"), asked=True, outdated=True) == "critical"
    assert merged_health("OK", None, asked=False, outdated=True) == "ok"


def test_an_answer_without_a_health_word_is_no_ok() -> None:
    assert merged_health("OK", health(None), asked=True) == "unknown"


def test_a_sound_device() -> None:
    device = assembled(row(0))
    assert (device.present, device.health, device.vital_blind, device.blind) == (True, "ok", False, {})
    assert device.power_watts == 91.5
    assert device.temperature_celsius == {"chip": 46.0}
    assert device.utilization_ratio == {"aicore": 0.25}
    assert device.memory == {"hbm": Memory(3 * GIB, 64 * GIB)}
    assert device.memory_errors == {"hbm": MemoryErrors(single_bit=4, double_bit=0)}
    assert device.error_codes == ()


def test_an_untrusted_row_exports_nothing_and_blinds_the_device() -> None:
    device = assembled(row(0, trusted=False, distrust=("HBM 0 / 0", "power 0.0")))
    assert device.present is True
    assert device.health == "unknown"
    assert device.vital_blind is True
    assert device.blind["npu_info"] == Failure(
        FailureKind.UNPARSEABLE, "the row bears the marks of a failed query: HBM 0 / 0, power 0.0"
    )
    assert (device.power_watts, device.temperature_celsius, device.utilization_ratio) == (None, {}, {})
    assert device.memory == {}


def test_an_untrusted_row_does_not_hide_what_health_says_by_itself() -> None:
    shown = row(0, trusted=False, distrust=("temperature 0",))
    device = assembled(shown, {"npu_health": health("Alarm", "80e01801"), "npu_ecc": ecc(1)})
    assert device.health == "alarm"
    assert device.error_codes == ("80e01801",)
    assert device.memory_errors["hbm"].double_bit == 1


def test_a_chip_that_is_not_in_the_table_has_no_values_but_its_identity() -> None:
    device = assembled(None, {**SOUND, "npu_usages": Usages({"npu": 0.5}, {"hbm": 0.5}), "npu_hccs": hccs()})
    assert device.present is False
    assert device.health == "unknown"
    assert device.vital_blind is True
    assert device.identity == Identity(name="910B3", pci_address="0000:80:00.0")
    assert (device.error_codes, device.memory_errors, device.utilization_ratio) == (None, {}, {})
    assert (device.memory_bandwidth_utilization_ratio, device.hccs, device.processes) == ({}, None, None)
    assert device.blind == {
        "npu_info": Failure(
            FailureKind.EXIT, "`npu-smi info` shows no such chip; compare `npu-smi info -l` and `lspci -d 19e5:`"
        )
    }


def test_without_a_table_nobody_knows_whether_a_chip_is_there() -> None:
    device = assembled(None, table=None, blind={"npu_info": TIMEOUT})
    assert device.present is None
    assert device.health == "unknown"
    assert device.vital_blind is True
    # What its own probes said still stands.
    assert device.memory_errors == {"hbm": MemoryErrors(single_bit=4, double_bit=0)}


def test_a_blind_vital_probe_is_told_apart_from_a_blind_other_one() -> None:
    assert assembled(row(0), {"npu_health": health("OK")}, blind={"npu_ecc": TIMEOUT}).vital_blind is True
    assert assembled(row(0), blind={"npu_usages": TIMEOUT}).vital_blind is False


def test_nobody_is_seen_who_is_not_there_whatever_is_vital() -> None:
    assert assembled(None, vital=frozenset()).vital_blind is True
    assert assembled(None, table=None, vital=frozenset()).vital_blind is True


def test_a_health_probe_that_the_chip_does_not_support_blinds_nobody() -> None:
    words = {"npu_health": "This device does not support querying health."}
    device = assembled(row(0), {"npu_ecc": ecc(0)}, unsupported=words)
    assert (device.health, device.vital_blind, device.error_codes) == ("ok", False, None)
    assert device.unsupported == words


def hccs() -> Hccs:
    return Hccs(True, (0, 0, 4), (30, 31, 32), None)


def test_every_probe_has_its_place() -> None:
    device = assembled(
        row(0),
        {
            **SOUND,
            "npu_usages": Usages({"aicore": 0.5, "aivector": 0.68, "ctrlcpu": 0.15}, {"hbm": 0.47}),
            "npu_common": Clocks(875e6, 1800e6),
            "npu_temp": MemoryTemperature(63.0),
            "npu_hccs": hccs(),
            "npu_pcie_err": PcieLinkErrors({"tx_err": 2}),
        },
    )
    # The table is read four times as often as -t usages, so its AICore value stands.
    assert device.utilization_ratio == {"aicore": 0.25, "aivector": 0.68, "ctrlcpu": 0.15}
    assert device.memory_bandwidth_utilization_ratio == {"hbm": 0.47}
    assert (device.clock_hertz, device.clock_max_hertz) == (875_000_000.0, 1_800_000_000.0)
    assert device.temperature_celsius == {"chip": 46.0, "hbm": 63.0}
    assert device.hccs == hccs()
    assert device.pcie_link_errors == PcieLinkErrors({"tx_err": 2})


def test_on_ascend_950_the_tables_rate_is_that_of_the_whole_npu() -> None:
    assert assembled(row(0, None)).utilization_ratio == {"npu": 0.25}


def test_what_the_tool_calls_na_is_absent() -> None:
    bare = row(0, power_watts=None, temperature_celsius=None, aicore_utilization_ratio=None, hbm_total_bytes=None)
    device = assembled(bare, {"npu_health": health("OK"), "npu_ecc": EccChip(0, None, None)})
    assert (device.power_watts, device.temperature_celsius, device.utilization_ratio) == (None, {}, {})
    assert (device.memory, device.memory_errors) == ({}, {})


def test_ddr_and_hbm_stand_apart() -> None:
    shown = row(0, memory_used_bytes=2 * GIB, memory_total_bytes=15 * GIB)
    counts = EccChip(0, MemoryErrors(single_bit=1), MemoryErrors(single_bit=2))
    device = assembled(shown, {**SOUND, "npu_ecc": counts})
    assert device.memory == {"hbm": Memory(3 * GIB, 64 * GIB), "ddr": Memory(2 * GIB, 15 * GIB)}
    assert {name: errors.single_bit for name, errors in device.memory_errors.items()} == {"hbm": 1, "ddr": 2}


def test_without_a_table_nobody_knows_whose_the_chip_is() -> None:
    seen = {**SOUND, "processes": DeviceJobs(())}
    assert assembled(row(0), seen, table=table(row(0), processes=(), idle_npus=(0,))).jobs == DeviceJobs(())
    assert assembled(None, seen, table=None, row=None).jobs is None
