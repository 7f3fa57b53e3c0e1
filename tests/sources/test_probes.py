"""One question to the tool: every subject of it gets a reading, whatever comes back."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from npu_watchd.model.ids import NODE, DeviceKey, Subject
from npu_watchd.model.reading import Failure, FailureKind, Output
from npu_watchd.model.records import (
    Board,
    Clocks,
    EccChip,
    Hccs,
    HealthChip,
    InfoTable,
    MemoryErrors,
    MemoryTemperature,
)
from npu_watchd.sources.npu_smi_probes import NPU_SMI_PROBES as PROBES
from npu_watchd.sources.probe import Probe, Scope, Target, ask
from tests.parsers.texts import CAPTURES, TYPED
from tests.sources.answers import Answer, Tool, captured

BY_NAME = {probe.name: probe for probe in PROBES}
CARD = Target(3, None, (0,))
CHIP = Target(3, 0, (0,))
TWO_DIES = Target(2, None, (0, 1))


def asked(name: str, target: Target, answer: Answer) -> dict[Subject, Any]:
    """What the probe learnt of each subject."""
    probe = BY_NAME[name]
    tool = Tool()
    tool.answers = {" ".join(probe.argv("", target)[1:]): answer}
    readings = ask(probe, target, tool.run, "npu-smi", probe.timeout_s, tool.clock, tool.wait)
    assert [reading.subject for reading in readings] == list(target.subjects())
    return {reading.subject: reading.result for reading in readings}


def failed(name: str, target: Target, answer: Answer) -> Failure:
    """The failure that every subject of the target shares."""
    results = set(asked(name, target, answer).values())
    assert len(results) == 1
    (result,) = results
    assert isinstance(result, Failure)
    return result


@pytest.mark.parametrize(
    ("name", "target", "command"),
    [
        ("npu_info", Target(), "npu-smi info"),
        ("npu_map", Target(), "npu-smi info -m"),
        ("npu_list", Target(), "npu-smi info -l"),
        ("npu_health", Target(3, 1, (1,)), "npu-smi info -t health -i 3 -c 1"),
        ("npu_health", Target(5, None, (0,)), "npu-smi info -t health -i 5"),
        ("npu_ecc", TWO_DIES, "npu-smi info -t ecc -i 2"),
        ("npu_usages", CARD, "npu-smi info -t usages -i 3"),
        ("npu_common", CARD, "npu-smi info -t common -i 3"),
        ("npu_temp", CARD, "npu-smi info -t memory -i 3"),
        ("npu_proc_mem", CARD, "npu-smi info -t proc-mem -i 3"),
        ("npu_hccs", CHIP, "npu-smi info -t hccs -i 3 -c 0"),
        ("npu_pcie_err", CARD, "npu-smi info -t pcie-err -i 3"),
        ("npu_board", CARD, "npu-smi info -t board -i 3"),
    ],
)
def test_the_command(name: str, target: Target, command: str) -> None:
    assert " ".join(BY_NAME[name].argv("npu-smi", target)) == command


def test_periods_and_deadlines_are_the_designs() -> None:
    assert {probe.name: (probe.every_s, probe.timeout_s) for probe in PROBES} == {
        "npu_info": (15, 10),
        "npu_map": (3600, 10),
        "npu_list": (3600, 10),
        "npu_health": (60, 10),
        "npu_ecc": (60, 10),
        "npu_usages": (60, 10),
        "npu_common": (60, 10),
        "npu_temp": (60, 10),
        "npu_proc_mem": (60, 10),
        "npu_hccs": (60, 10),
        "npu_pcie_err": (60, 10),
        "npu_board": (3600, 10),
    }


def test_a_reading_is_taken_when_the_answer_is_there_and_knows_how_long_it_took() -> None:
    tool = Tool({"info": captured("info__910B3__26.0.rc1__idle")}, took_s=1.5, now_s=100.0)
    (reading,) = ask(BY_NAME["npu_info"], Target(), tool.run, "npu-smi", 10, tool.clock, tool.wait)
    assert (reading.probe, reading.subject, reading.taken_at.mono_s, reading.duration_s) == (
        "npu_info",
        NODE,
        101.5,
        1.5,
    )
    assert isinstance(reading.result, InfoTable)
    assert len(reading.result.devices) == 8


def test_the_deadline_is_the_configs() -> None:
    tool = Tool()
    ask(BY_NAME["npu_info"], Target(), tool.run, "npu-smi", 2.5, tool.clock, tool.wait)
    assert tool.deadlines_s == [2.5]


def test_what_each_probe_learns() -> None:
    errors = MemoryErrors(203, 214, 5203, 7203, 3, 13, 0, 4)
    assert asked("npu_ecc", CARD, captured("ecc__910B3__25.5.1__card")) == {DeviceKey(3): EccChip(0, errors, None)}
    health = asked("npu_health", CHIP, captured("health__910B3__25.5.1__chip"))[DeviceKey(3)]
    assert isinstance(health, HealthChip)
    assert (health.health, health.error_codes) == ("Alarm", ("80e01801", "80c98008", "8c084e00"))
    assert asked("npu_common", CARD, captured("common__910B3__25.5.1__card")) == {
        DeviceKey(3): Clocks(875_000_000, 1_800_000_000)
    }
    assert asked("npu_temp", CARD, captured("memory__910B3__25.5.1__card")) == {DeviceKey(3): MemoryTemperature(63.0)}
    assert asked("npu_hccs", CHIP, captured("hccs__910B3__25.5.1__chip")) == {
        DeviceKey(3): Hccs(True, (0, 0, 4, 0, 0, 0, 0), (30, 31, 32, 33, 34, 35, 36), None)
    }
    usages = asked("npu_usages", CARD, captured("usages__910B3__25.5.1__card"))[DeviceKey(3)]
    assert usages.unit_utilization_ratio["aivector"] == 0.68


def test_the_board_answers_for_all_chips_of_its_card() -> None:
    board = Board("7.8.0.6.201", "25.5.1", "IT21HMDC_Bin5", "SN320000000004", "OK")
    answer = captured("board__910B3__25.5.1__card")
    assert asked("npu_board", TWO_DIES, answer) == {DeviceKey(2, 0): board, DeviceKey(2, 1): board}


def test_one_die_that_cannot_be_read_costs_only_itself() -> None:
    results = asked("npu_ecc", TWO_DIES, captured("ecc__A3__25.5.1__fails"))
    assert isinstance(results[DeviceKey(2, 0)], EccChip)
    assert results[DeviceKey(2, 1)] == Failure(FailureKind.EXIT, "Failed to query npu chip: 1 info.")


def test_a_chip_of_which_the_answer_does_not_speak_has_a_failure_of_its_own() -> None:
    results = asked("npu_ecc", Target(3, None, (0, 1)), captured("ecc__910B3__25.5.1__card"))
    assert isinstance(results[DeviceKey(3, 0)], EccChip)
    assert results[DeviceKey(3, 1)] == Failure(FailureKind.EXIT, "the answer does not speak of this chip")


def test_the_mcu_is_no_chip() -> None:
    assert asked("npu_health", CARD, captured("health__910B3__25.5.1__critical_card")) == {
        DeviceKey(3): HealthChip(0, "Critical", None, ())
    }


MISSING = Failure(FailureKind.MISSING, "npu-smi: not found on PATH")
LOADER = "npu-smi: error while loading shared libraries: libdrvdsmi_host.so: cannot open shared object file\n"


@pytest.mark.parametrize("kind", [FailureKind.MISSING, FailureKind.DENIED, FailureKind.TIMEOUT, FailureKind.WEDGED])
@pytest.mark.parametrize(("name", "target"), [("npu_info", Target()), ("npu_ecc", TWO_DIES), ("npu_health", CHIP)])
def test_a_tool_that_does_not_answer_fails_for_every_subject(name: str, target: Target, kind: FailureKind) -> None:
    assert failed(name, target, Failure(kind, "why")) == Failure(kind, "why")


@pytest.mark.parametrize(
    ("answer", "kind", "says"),
    [
        (Output("", "segfault in libdrv\nmore", 1), FailureKind.EXIT, "exit code 1: segfault in libdrv"),
        (Output("", "", 3), FailureKind.EXIT, "exit code 3, saying nothing"),
        (Output("no idea\n", "", 1), FailureKind.EXIT, "exit code 1: line 1: "),
        (Output("", LOADER, 127), FailureKind.MISSING, "mount the driver, set LD_LIBRARY_PATH"),
        (Output("", "", 0), FailureKind.UNPARSEABLE, "npu-smi printed nothing"),
        (Output("no idea\n", "", 0), FailureKind.UNPARSEABLE, "no idea"),
        (Output("dcmi module initialize failed. ret is -8005\n", "", 0), FailureKind.EXIT, "-8005"),
        (Output("dcmi module initialize failed. ret is -8002\n", "", 1), FailureKind.DENIED, "run as root"),
        (Output("This device does not support querying info.\n"), FailureKind.UNSUPPORTED, "does not support"),
    ],
)
def test_an_answer_without_a_table(answer: Output, kind: FailureKind, says: str) -> None:
    failure = failed("npu_info", Target(), answer)
    assert failure.kind is kind
    assert says in failure.detail


def test_a_good_table_counts_whatever_the_exit_code() -> None:
    text = captured("info__910B3__26.0.rc1__idle")
    assert isinstance(asked("npu_info", Target(), Output(text, "", 1))[NODE], InfoTable)


def test_a_tool_that_a_signal_ended_has_not_said_all() -> None:
    text = captured("info__910B3__26.0.rc1__idle")
    assert failed("npu_info", Target(), Output(text, "", -9)) == Failure(
        FailureKind.EXIT, "npu-smi was ended by signal 9 before it had said all"
    )


@pytest.mark.parametrize("lines", range(3, 30))
def test_a_cut_table_is_no_table(lines: int) -> None:
    """A device that the cut took away must not become a device that is gone."""
    whole = captured("info__910B3__26.0.rc1__busy_mixed_health").splitlines(keepends=True)
    text = "".join(whole[:lines]) + whole[lines][:40]
    assert failed("npu_info", Target(), text).kind is FailureKind.UNPARSEABLE


@pytest.mark.parametrize("exit_code", [-9, 137, 139, 143])
def test_a_table_that_ends_at_a_frame_because_the_tool_was_killed_is_no_table(exit_code: int) -> None:
    """A shell script around npu-smi reports a signal as 128 and its number."""
    whole = captured("info__910B3__26.0.rc1__busy_mixed_health").splitlines(keepends=True)
    assert whole[11].startswith("+===")
    failure = failed("npu_info", Target(), Output("".join(whole[:12]), "", exit_code))
    assert failure.kind is FailureKind.EXIT


def test_a_cut_table_of_a_failed_call_says_where_it_ends() -> None:
    text = captured("info__910B3__26.0.rc1__idle")
    failure = failed("npu_info", Target(), Output(text[:1500], "", 1))
    assert failure.kind is FailureKind.EXIT
    assert "+----" not in failure.detail


def test_keys_that_no_parser_knows_are_counted_once_a_call() -> None:
    text = captured("ecc__910B3__25.5.1__card").replace("\tChip ID", "\tHBM Sideways Bit Count : 3\n\tChip ID")
    tool = Tool({"info -t ecc -i 3": text})
    readings = ask(BY_NAME["npu_ecc"], Target(3, None, (0, 1)), tool.run, "npu-smi", 10, tool.clock, tool.wait)
    assert [reading.unknown_keys for reading in readings] == [1, 0]


TEXTS = sorted([*(CAPTURES / "npu-smi").glob("*.txt"), *TYPED.glob("*.txt")])


@pytest.mark.parametrize("probe", PROBES, ids=lambda probe: str(probe.name))
def test_no_text_of_any_kind_makes_a_probe_raise(probe: Probe) -> None:
    """Every capture, to every probe: what is not its own is a failure, never an exception."""
    target = Target() if probe.scope is Scope.NODE else TWO_DIES
    for path in TEXTS:
        results = asked(probe.name, target, path.read_text(encoding="utf-8"))
        assert set(results) == set(target.subjects()), path


@settings(max_examples=60)
@given(probe=st.sampled_from(PROBES), path=st.sampled_from(TEXTS), data=st.data())
def test_no_damage_to_a_text_makes_a_probe_raise(probe: Probe, path: Any, data: st.DataObject) -> None:
    text = path.read_text(encoding="utf-8")
    begin = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(begin, min(len(text), begin + 200)))
    patch = data.draw(st.sampled_from(("", "\n", "|", ":", "-1", "NA", "\x00", "Chip ID : 0\n", "9" * 30)))
    damaged = text[:begin] + patch + text[end:]
    target = Target() if probe.scope is Scope.NODE else TWO_DIES
    assert set(asked(probe.name, target, damaged)) == set(target.subjects())
