"""The scenarios that come along: each is well-formed around every event, and shows what its description promises."""

from __future__ import annotations

import json

import pytest

from npu_watchd.model.records import DeviceRow
from npu_watchd.parsers import card_list, device_map, ecc, info_table
from npu_watchd.parsers.lines import ParseError
from npu_watchd.simnode.npu_smi import answer
from npu_watchd.simnode.scenario import to_json
from npu_watchd.simnode.scenario_file import ScenarioError, load, names, parse
from npu_watchd.simnode.timeline import state_at

ALL = (
    "a3_16_dies",
    "ascend950",
    "busy_node",
    "container_pids",
    "device_lost",
    "double_bit_then_reset",
    "driver_gone",
    "duo_310p",
    "handover",
    "hbm_storm",
    "hccl_ports",
    "hccn_busy",
    "leftover",
    "nine_processes",
    "no_hca",
    "oom_kill",
    "optics_dim",
    "pcie_contention",
    "pcie_errors",
    "pcie_narrow",
    "pcie_saturated",
    "pcie_sockets",
    "quiet",
    "roce_down",
    "roce_flap",
    "two_jobs_one_device",
    "unknown_chip",
    "wedged_driver",
)


def answering(name: str, t_s: float) -> bool:
    state = state_at(load(name), t_s)
    return state.driver == "ok" and state.tool.mood == "ok"


# The seconds in which npu-smi says nothing about chips are the matter of test_npu_smi.py and test_node.py.
AROUND = [
    (name, t_s + by)
    for name in ALL
    for t_s in load(name).instants()
    for by in (-1.0, 0.0, 1.0)
    if answering(name, t_s + by)
]


def said(name: str, t_s: float, command: str) -> str:
    return answer(state_at(load(name), t_s), tuple(command.split())).text


def rows(name: str, t_s: float) -> dict[tuple[int | None, int | None], DeviceRow]:
    return {(row.npu, row.chip): row for row in info_table.parse(said(name, t_s, "info")).devices}


def test_these_scenarios_come_along() -> None:
    assert names() == ALL


@pytest.mark.parametrize("name", ALL)
def test_a_scenario_says_what_to_see(name: str) -> None:
    scenario = load(name)
    assert scenario.title
    assert "To see:" in scenario.description
    assert json.loads(json.dumps(to_json(scenario)))["name"] == name


@pytest.mark.parametrize(("name", "t_s"), AROUND)
def test_around_every_event_the_node_answers_in_words_that_can_be_parsed(name: str, t_s: float) -> None:
    seen = state_at(load(name), t_s).seen()
    chips = sum(len(card.chips) for card in seen)
    table = info_table.parse(said(name, t_s, "info"))
    assert len(table.devices) == chips
    assert table.tool_version == load(name).tool_version
    assert len(device_map.parse(said(name, t_s, "info -m")).devices) == chips
    cards = card_list.parse(said(name, t_s, "info -l")).cards
    assert [card.npu for card in cards if card.npu is not None] == [card.npu for card in seen]
    for card in seen:
        text = said(name, t_s, f"info -t ecc -i {card.npu}")
        if not any(chip.failing("ecc") for chip in card.chips):
            assert len(ecc.parse(text).chips) == len(card.chips)


def test_quiet_is_quiet_from_first_to_last() -> None:
    for t_s in (0.0, 59.0, 3600.0, 4 * 3600.0):
        assert {row.health for row in rows("quiet", t_s).values()} == {"OK"}
        assert all(row.trusted for row in rows("quiet", t_s).values())
    assert len(info_table.parse(said("quiet", 3600, "info")).processes or ()) == 8


def test_hbm_storm_climbs_on_device_3_alone() -> None:
    def counts(t_s: float, npu: int) -> tuple[int | None, int | None]:
        errors = ecc.parse(said("hbm_storm", t_s, f"info -t ecc -i {npu}")).chips[0].hbm
        assert errors is not None
        return errors.single_bit, errors.double_bit

    assert [counts(t_s, 3) for t_s in (0, 120 + 90, 3600, 7199, 7200)] == [(0, 0), (1, 0), (38, 0), (638, 0), (638, 1)]
    assert {counts(t_s, 2) for t_s in (0, 3600, 7200)} == {(0, 0)}
    assert {counts(t_s, 5) for t_s in (0, 3600, 7200)} == {(7, 0)}


def test_double_bit_then_reset_hides_the_errors_and_not_the_lifetime() -> None:
    def errors(t_s: float) -> tuple[int | None, int | None, int | None]:
        counts = ecc.parse(said("double_bit_then_reset", t_s, "info -t ecc -i 3")).chips[0].hbm
        assert counts is not None
        return counts.double_bit, counts.double_bit_lifetime, counts.double_bit_isolated_pages

    assert [errors(t_s) for t_s in (119, 120, 641)] == [(0, 0, 0), (2, 2, 0), (0, 2, 2)]
    with pytest.raises(ParseError, match="Invalid card id"):
        errors(620)


def test_device_lost_first_zeros_then_nothing() -> None:
    assert not rows("device_lost", 181)[5, 0].trusted
    assert sorted(rows("device_lost", 301)) == [(npu, 0) for npu in (0, 1, 2, 3, 4, 6, 7)]
    assert device_map.parse(said("device_lost", 301, "info -m")).lost_cards == 1


def test_a3_16_dies_loses_both_dies_of_npu_1() -> None:
    assert len(rows("a3_16_dies", 0)) == 16
    # None: the first row of device 9, which has a health value without a word.
    assert {npu for npu, _ in rows("a3_16_dies", 361)} == {0, 2, 3, 4, 5, 6, 7, None}
    assert len(rows("a3_16_dies", 361)) == 14
    assert [row.power_watts is None for row in rows("a3_16_dies", 0).values()] == [False, True] * 8


def test_duo_310p_loses_one_chip_of_two() -> None:
    assert sorted(rows("duo_310p", 301)) == [(8, 0), (8, 1), (32776, 0)]
    assert {row.power_watts for row in rows("duo_310p", 0).values()} == {None}


def test_ascend950_shows_zeros_while_the_heartbeat_is_lost() -> None:
    assert [rows("ascend950", t_s)[6, None].trusted for t_s in (179, 180, 359, 360)] == [True, False, False, True]
    wedged = rows("ascend950", 500)[2, None]
    assert (wedged.health, wedged.aicore_utilization_ratio) == ("Alarm", 1.0)


def test_unknown_chip_has_all_its_values() -> None:
    table = rows("unknown_chip", 200)
    assert [row.name for row in table.values()] == ["970C2"] * 4
    assert all(row.trusted for row in table.values())


def test_busy_node_has_two_programs_on_device_3_and_memory_without_a_process_on_5() -> None:
    processes = info_table.parse(said("busy_node", 300, "info")).processes or ()
    assert sorted(row.pid for row in processes if row.npu == 3) == [10101, 10102, 20201, 20202]
    assert [row.name for row in processes if row.npu == 7] == [None, 'x"{a="b"}\\n<i>']
    assert sum(row.npu == 6 for row in processes) == 8
    after = info_table.parse(said("busy_node", 601, "info"))
    assert 5 in after.idle_npus
    used = [rows("busy_node", t_s)[5, 0].hbm_used_bytes for t_s in (601, 779, 780)]
    assert used == [23880 * 1024 * 1024, 23880 * 1024 * 1024, 3393 * 1024 * 1024]


def test_driver_gone_fails_in_four_ways() -> None:
    codes = [answer(state_at(load("driver_gone"), t_s), ("info",)).exit_code for t_s in (0, 120, 300, 420, 480, 540)]
    assert codes == [0, 187, 172, 127, 0, 0]


def test_wedged_driver_hangs_and_recovers() -> None:
    seen = [answer(state_at(load("wedged_driver"), t_s), ("info",)) for t_s in (0, 121, 241, 599, 601, 661)]
    assert [(one.hangs, one.ignores_sigterm, one.delay_s) for one in seen] == [
        (False, False, 0.0),
        (False, False, 4.0),
        (True, True, 0.0),
        (True, True, 0.0),
        (False, False, 2.0),
        (False, False, 0.0),
    ]


HEAD = 'title = "t"\ndescription = "d"\ngeneration = "910B3"\ntool_version = "25.5.1"\ncards = 2\n'


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("titel = 1", "x.toml: Object contains unknown field `titel`"),
        (HEAD + "[[at]]\nt = 0\ndevise = 1", "x.toml: Object contains unknown field `devise` - at `$.at[0]`"),
        (
            HEAD + "[[at]]\nt = 0\ndevice = 0\nhbm.dubble_bit = 1",
            "x.toml: Object contains unknown field `dubble_bit` - at `$.at[0].hbm`",
        ),
        (HEAD + "[[at]]\nt = 0\ndevice = 2\nlost = true", "x.toml: device 2 is not there, the node has 0 to 1"),
        (HEAD + "[[at]]\nt = 0\nlost = true", "x.toml: an event of a chip needs `device` or `devices` - at `$.at[0]`"),
        (HEAD + '[[at]]\nt = "5 min"\ndriver = "gone"', "x.toml: '5 min' is no time like 90"),
        (HEAD + '[[at]]\nt = 0\ndevice = 0\nclimb.hbm.single_bit = "40"', "x.toml: '40' is no rate like"),
        (HEAD + '[[at]]\nt = 0\ndevice = 0\nfails = ["echo"]', "x.toml: 'echo' is none of all, clock, codes"),
        (
            HEAD + "[[at]]\nt = 0\nlasts = 5\ndevice = 0\nhbm.double_bit = 1",
            "x.toml: counts, reset, oom and stop are not taken back after a while - at `$.at[0].lasts`",
        ),
        (HEAD.replace("910B3", "910X"), "x.toml: generation '910X' is none of 310, 310B4"),
        ("title =", "x.toml: "),
    ],
)
def test_a_wrong_scenario_is_refused_with_file_and_key(text: str, problem: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        parse(text, "x", "x.toml")
    assert str(refused.value).startswith(problem)


def test_a_scenario_that_is_not_there_names_those_that_are() -> None:
    with pytest.raises(
        ScenarioError, match=r"nosuch: No such file or directory; the scenarios .* a3_16_dies, ascend950"
    ):
        load("nosuch")
