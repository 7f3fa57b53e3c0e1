"""Which calls a node needs."""

from __future__ import annotations

from dataclasses import replace

from npu_watchd.chips import profile_of
from npu_watchd.model.ids import DeviceKey, Subject
from npu_watchd.sources.agenda import Plan, Task
from npu_watchd.sources.npu_smi_probes import NPU_SMI_PROBES as PROBES
from npu_watchd.sources.probe import Target
from npu_watchd.sources.rounds import Card, Pace, health_of, rounds

BY_NAME = {probe.name: probe for probe in PROBES}
PACES = {probe.name: Pace(probe.every_s, probe.timeout_s) for probe in PROBES}
A3 = Card(3, (0, 1), "Ascend910", has_chip_ids=True)
OF_310P = Card(8, (0, 1), "310P3", has_chip_ids=True)
OF_950 = Card(5, (0,), "950PR", has_chip_ids=False)


def everything_asked(_probe: str, _subject: Subject) -> bool:
    return False


def asked_of(name: str | None) -> frozenset[str]:
    return profile_of(name).probes


def calls(wanted: dict[Task, Plan]) -> dict[str, list[tuple[str, ...]]]:
    """Probe → the options of its calls, from `-i` on."""
    found: dict[str, list[tuple[str, ...]]] = {}
    for task in wanted:
        argv = BY_NAME[task.probe].argv("npu-smi", task.target)
        found.setdefault(task.probe, []).append(argv[argv.index("-i") :] if "-i" in argv else ())
    return found


def test_without_a_table_only_the_node_is_asked() -> None:
    wanted = rounds(PROBES, PACES, [], asked_of, everything_asked)
    assert calls(wanted) == {"npu_map": [()], "npu_info": [()], "npu_list": [()]}
    assert wanted[Task("npu_info", Target())] == Plan(15, 1)


def test_a_card_of_two_dies_is_asked_once_and_its_health_by_die() -> None:
    wanted = calls(rounds(PROBES, PACES, [A3], asked_of, everything_asked))
    assert wanted["npu_ecc"] == [("-i", "3")]
    assert wanted["npu_health"] == [("-i", "3", "-c", "0"), ("-i", "3", "-c", "1")]
    assert wanted["npu_hccs"] == [("-i", "3", "-c", "0"), ("-i", "3", "-c", "1")]


def test_where_the_layout_has_no_chip_ids_commands_take_none() -> None:
    wanted = rounds(PROBES, PACES, [OF_950], asked_of, everything_asked)
    assert calls(wanted)["npu_health"] == [("-i", "5")]
    assert Task("npu_health", Target(5, None, (0,))) in wanted


def test_a_chip_is_asked_what_its_silicon_can_say() -> None:
    assert "npu_hccs" not in calls(rounds(PROBES, PACES, [OF_310P], asked_of, everything_asked))
    assert "npu_temp" not in calls(rounds(PROBES, PACES, [OF_310P], asked_of, everything_asked))
    assert "npu_pcie_err" in calls(rounds(PROBES, PACES, [OF_950], asked_of, everything_asked))
    unknown = Card(0, (0,), "1020X", has_chip_ids=True, crowded=(0,))
    assert set(calls(rounds(PROBES, PACES, [unknown], asked_of, everything_asked))) == {probe.name for probe in PROBES}


def test_all_processes_are_asked_for_where_the_table_may_have_left_some_out() -> None:
    crowded = replace(A3, npu=4, crowded=(1,))
    wanted = rounds(PROBES, PACES, [A3, crowded], asked_of, everything_asked)
    assert calls(wanted)["npu_proc_mem"] == [("-i", "4")]
    assert wanted[Task("npu_proc_mem", Target(4, None, (0, 1)))] == Plan(60, 3)


def test_what_the_tool_cannot_say_of_any_chip_of_a_card_is_not_asked_again() -> None:
    refused: set[tuple[str, Subject]] = {("npu_ecc", DeviceKey(3, 0)), ("npu_health", DeviceKey(3, 0))}
    wanted = calls(rounds(PROBES, PACES, [A3], asked_of, lambda probe, subject: (probe, subject) in refused))
    # The other die may still answer, and one call asks both.
    assert wanted["npu_ecc"] == [("-i", "3")]
    assert wanted["npu_health"] == [("-i", "3", "-c", "1")]
    refused.add(("npu_ecc", DeviceKey(3, 1)))
    wanted = calls(rounds(PROBES, PACES, [A3], asked_of, lambda probe, subject: (probe, subject) in refused))
    assert "npu_ecc" not in wanted


def test_a_probe_that_is_switched_off_is_not_asked() -> None:
    paces = {name: pace for name, pace in PACES.items() if name != "npu_usages"}
    assert "npu_usages" not in calls(rounds(PROBES, paces, [A3], asked_of, everything_asked))


def test_the_configs_period_is_the_plans() -> None:
    wanted = rounds(PROBES, {"npu_info": Pace(5.0, 2.0)}, [A3], asked_of, everything_asked)
    assert wanted == {Task("npu_info", Target()): Plan(5.0, 1)}


def test_presence_and_health_outrank_how_busy_a_device_is() -> None:
    ranks = {task.probe: plan.rank for task, plan in rounds(PROBES, PACES, [A3], asked_of, everything_asked).items()}
    assert ranks["npu_map"] < ranks["npu_info"] < ranks["npu_health"] == ranks["npu_ecc"] < ranks["npu_list"]
    assert ranks["npu_usages"] == ranks["npu_board"] == ranks["npu_common"] > ranks["npu_list"]


def test_the_health_calls_of_a_chip() -> None:
    tasks = rounds(PROBES, PACES, [A3, OF_950], asked_of, everything_asked)
    assert health_of(tasks, [DeviceKey(3, 1)]) == [Task("npu_health", Target(3, 1, (1,)))]
    assert health_of(tasks, [DeviceKey(5, 0)]) == [Task("npu_health", Target(5, None, (0,)))]
    assert health_of(tasks, [DeviceKey(9, 0)]) == []
