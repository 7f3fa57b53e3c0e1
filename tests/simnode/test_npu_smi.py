"""The simulated npu-smi takes what the real one takes, refuses what it refuses, and hides what it hides."""

from __future__ import annotations

from dataclasses import replace

import pytest

from npu_watchd.simnode.npu_smi import answer
from npu_watchd.simnode.silicon import SILICON, new_cards
from npu_watchd.simnode.state import ChipState, DriverMood, NodeState, Process, Tool, ToolMood


def node(generation: str, version: str = "25.5.1", cards: int = 2) -> NodeState:
    silicon = SILICON[generation]
    return NodeState(silicon.family, version, version, new_cards(silicon, cards))


def with_chip(base: NodeState, logic_id: int, **changes: object) -> NodeState:
    def changed(chip: ChipState) -> ChipState:
        return replace(chip, **changes) if chip.logic_id == logic_id else chip  # type: ignore[arg-type]

    return replace(
        base, cards=tuple(replace(card, chips=tuple(changed(chip) for chip in card.chips)) for card in base.cards)
    )


def failing(base: NodeState, logic_id: int, *queries: str) -> NodeState:
    return with_chip(base, logic_id, fails=frozenset(queries))


def table(state: NodeState) -> list[str]:
    said = answer(state, ("info",))
    assert said.exit_code == 0
    return said.text.splitlines()


@pytest.mark.parametrize(
    ("command", "first_line", "exit_code"),
    [
        ("-v", "npu-smi version: 25.5.1", 0),
        ("-h", "Usage: npu-smi <Command|-h|-v> [Options...]", 0),
        ("", "Usage: npu-smi <Command|-h|-v> [Options...]", 215),
        ("nosuch", "Command or option is not found.", 211),
        ("info -x", "Error parameter of -x", 215),
        ("info -h", "Usage: npu-smi info <watch|proc|-h|-m|-l|-t type> [Options...]", 0),
        ("info -t", "Error parameter of -t", 215),
        ("info -t nosuch -i 0", "Error parameter of -t", 215),
        ("info -t health", "This command must input card id.", 215),
        ("info -t health -i 9", "Invalid card id.", 215),
        ("info -t health -i abc", "Error parameter of -i", 215),
        ("info -t health -i 0 -c 7", "Invalid chip id.", 215),
        ("info -t common -i 0 -c 0", 'Error parameter in querying chip info, type: "common".', 215),
        ("info -t hccs -i 0", "Must input parameter of chip id.", 215),
        ("info -t pcie-err -i 0 -c 0", "This device does not support querying pcie-err.", 0),
        ("info -t flash -i 0", "This device does not support querying flash.", 0),
        ("info -i 0 -t power -c 0", "\tNPU Real-time Power(W)         : 91.2", 0),
    ],
)
def test_arguments_are_taken_and_refused_as_by_the_real_tool(command: str, first_line: str, exit_code: int) -> None:
    said = answer(node("910B3"), tuple(command.split()))
    assert (said.text.splitlines()[0], said.exit_code) == (first_line, exit_code)


def test_a_950_knows_neither_chips_nor_hccs() -> None:
    assert answer(node("950PR"), ("info", "-t", "ecc", "-i", "0", "-c", "0")).text.startswith("Error parameter of -c")
    assert answer(node("950PR"), ("info", "-t", "hccs", "-i", "0")).text.startswith("Error parameter of -t")


@pytest.mark.parametrize("command", ["info", "-v", "-h", "info -l", "info -t ecc -i 0"])
@pytest.mark.parametrize(
    ("driver", "last_line", "exit_code"),
    [
        ("gone", "dcmi module initialize failed. ret is -8005", 187),
        ("occupied", "dcmi model initialized failed, because the device is used. ret is -8020", 172),
        ("no_board", "npu get board type failed. ret is -9005", 211),
    ],
)
def test_without_a_driver_every_command_fails_alike(
    command: str, driver: DriverMood, last_line: str, exit_code: int
) -> None:
    state = replace(node("910B3"), driver=driver)
    said = answer(state, tuple(command.split()))
    assert (said.text.splitlines()[-1], said.exit_code) == (last_line, exit_code)


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        (
            "health",
            [
                "| 1     910B3               | OK            | 91.2        40                0    / 0             |",
                "| 0                         | 0000:C2:00.0  | 0           0    / 0          3393 / 65536         |",
            ],
        ),
        (
            "pci",
            [
                "| 1     910B3               | Alarm         | 91.2        40                0    / 0             |",
                "| 0                         | 0000:00:00.0  | 0           0    / 0          3393 / 65536         |",
            ],
        ),
        (
            "name",
            [
                "| 1                         | Alarm         | 91.2        40                0    / 0             |",
                "| 0                         | 0000:C2:00.0  | 0           0    / 0          3393 / 65536         |",
            ],
        ),
        (
            "all",
            [
                "| 1     910B3               | OK            | 0.0         0                 0    / 0             |",
                "| 0                         | 0000:C2:00.0  | 0           0    / 0          0    / 0             |",
            ],
        ),
    ],
)
def test_a_failed_sub_query_looks_like_a_harmless_value(query: str, rows: list[str]) -> None:
    state = failing(with_chip(node("910B3"), 1, health="Alarm"), 1, query)
    assert table(state)[9:11] == rows


def test_a_failed_address_query_says_na_for_the_whole_card_of_a_duo() -> None:
    lines = table(failing(node("310P Duo"), 2, "pci"))
    assert [line[34:50].strip() for line in lines if line.startswith(("| 0 ", "| 1 "))] == [
        "0000:01:00.0",
        "0000:01:00.0",
        "NA",
        "NA",
    ]


def test_a_failed_phy_id_query_takes_the_card_out_of_the_upper_part_only() -> None:
    lines = table(failing(node("910B3"), 1, "phyid"))
    assert not [line for line in lines if line.startswith("| 1     910B3")]
    assert "| No running processes found in NPU 1                                                            |" in lines


def test_a_health_value_without_a_word_leaves_one_row_of_two() -> None:
    lines = table(with_chip(node("910B3"), 1, health=None))
    assert [line[:30] for line in lines[5:11]] == [
        "+===========================+=",
        "| 0     910B3               | ",
        "| 0                         | ",
        "+===========================+=",
        "| 0                         | ",
        "+===========================+=",
    ]


@pytest.mark.parametrize(
    ("generation", "left"), [("A3", [2, 3]), ("310P Duo", [1, 2, 3]), ("910B3", [1]), ("950PR", [1])]
)
def test_a_lost_chip_is_simply_not_there(generation: str, left: list[int]) -> None:
    """One dead die takes its A3 twin along; a Duo loses only the dead chip. The exit code stays 0."""
    state = with_chip(node(generation), 0, lost=True)
    assert [chip.logic_id for card in state.seen() for chip in card.chips] == left
    assert answer(state, ("info",)).exit_code == 0


def test_a_lost_card_leaves_minus_one_in_list_and_map_and_cannot_be_asked() -> None:
    state = with_chip(node("910B3", cards=3), 1, lost=True)
    assert answer(state, ("info", "-l")).text.splitlines()[:4] == [
        "\tTotal Count                    : 3",
        "",
        "\tNPU ID                         : -1",
        "\tChip Count                     : 0",
    ]
    assert answer(state, ("info", "-m")).text.splitlines()[1].split() == ["-1", "0", "-", "Mcu"]
    assert answer(state, ("info", "-t", "ecc", "-i", "1")).text.startswith("Invalid card id.\n")


def test_nine_processes_are_eight_in_the_table_and_nine_in_proc_mem() -> None:
    state = with_chip(node("910B3"), 0, processes=tuple(Process(100 + at, "python", 10) for at in range(9)))
    assert sum("| python " in line for line in table(state)) == 8
    assert answer(state, ("info", "-t", "proc-mem", "-i", "0")).text.count("Process id:") == 9


def test_names_lose_their_colons_and_what_is_beyond_fifteen_characters() -> None:
    names = ("VLLM::Worker_TP", "VLLM::EngineCore", "a b  c", None)
    state = with_chip(node("910B3"), 0, processes=tuple(Process(7, name, 1) for name in names))
    shown = [line.split("|")[3].strip() for line in table(state) if line.startswith("| 0       0 ")]
    assert shown == ["VLLMWorker_TP", "VLLMEngineCor", "a b  c", ""]


@pytest.mark.parametrize("generation", ["310", "310B4"])
def test_old_and_small_chips_list_no_processes_at_all(generation: str) -> None:
    state = with_chip(node(generation, "25.5.1"), 0, processes=(Process(7, "python", 1),))
    assert not [line for line in table(state) if "rocess" in line]


def test_a_dead_mcu_slows_every_command_and_changes_no_table() -> None:
    well = node("910B3", cards=3)
    dead = replace(
        well, cards=tuple(replace(card, mcu=card.mcu and replace(card.mcu, dead=True)) for card in well.cards)
    )
    said = answer(dead, ("info",))
    assert (said.text, said.delay_s) == (answer(well, ("info",)).text, 6.0)
    assert answer(dead, ("-v",)).delay_s == 6.0


def test_a_failing_chip_spoils_nothing_of_its_twin_and_costs_no_exit_code() -> None:
    said = answer(failing(node("A3"), 1, "ecc"), ("info", "-t", "ecc", "-i", "0"))
    assert said.exit_code == 0
    assert said.text.count("HBM Single Bit Error Count") == 1
    assert said.text.endswith("\tChip ID                                  : 1\nFailed to query npu chip: 1 info.\n\n")


@pytest.mark.parametrize(
    ("mood", "text", "stderr", "exit_code"),
    [
        ("missing", "", "npu-smi: not found\n", 127),
        (
            "unloadable",
            "",
            "npu-smi: error while loading shared libraries: libdrvdsmi_host.so: "
            "cannot open shared object file: No such file or directory\n",
            127,
        ),
    ],
)
def test_a_tool_that_cannot_start_says_so_on_stderr(mood: ToolMood, text: str, stderr: str, exit_code: int) -> None:
    said = answer(replace(node("910B3"), tool=Tool(mood)), ("info",))
    assert (said.text, said.stderr, said.exit_code) == (text, stderr, exit_code)


def test_rubbish_is_no_table_and_ends_well() -> None:
    said = answer(replace(node("910B3"), tool=Tool("rubbish")), ("info",))
    assert (said.text[0], said.exit_code) == ("\x00", 0)
