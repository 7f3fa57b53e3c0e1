"""The simulator is held to real text: for a parsed output of the real tool it prints that output, byte for byte.

Runs over the folder that NPU_WATCHD_CAPTURES names; outputs that a person cut or edited are not there to be matched.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from npu_watchd.parsers import blocks, card_list, device_map, ecc, health, info_table, process_memory
from npu_watchd.simnode.npu_smi import answer
from npu_watchd.simnode.state import DriverMood, Family, NodeState
from tests.simnode import rebuild

CAPTURES = Path(os.environ.get("NPU_WATCHD_CAPTURES", "/nonexistent"))
pytestmark = pytest.mark.skipif(not CAPTURES.is_dir(), reason="NPU_WATCHD_CAPTURES names no folder of captures")

FAMILIES: dict[str, Family] = {"910b": "910B", "a3": "A3", "310p": "310P", "950": "950", "950ub": "950", "910a": "910A"}
CHIPS: dict[Family, int] = {"A3": 2, "310P": 2}
WHOLE_PASTES: dict[str, Family] = {
    "info_310_20.2.2_5cards_20chips_id2048.txt": "310",
    "info_310P3_22.0.0_drv22.0.3_1card.txt": "310P",
    "info_310B4_23.0.rc3_OK.txt": "310B",
    "info_910A_1.8.21_drv20.2.2.spc001_8cards.txt": "910A",
    "info_910A_21.0.3.2_2cards.txt": "910A",
    "info_910B2C_23.0.3_2cards_noprocs.txt": "910B",
    "info_A3_25.2.0_2npus_proc_on_die1.txt": "A3",
    "info_A3_26.0.rc1_procs_container_pid_NA.txt": "A3",
}


def family_of(name: str) -> Family:
    return FAMILIES[name.split("__", maxsplit=1)[0].split("_", maxsplit=1)[0]]


def tables() -> list[tuple[Path, Family]]:
    """Every table of the built tool and of its derived layouts, and the pastes that are whole."""
    built = [*CAPTURES.glob("npu-smi-built/*__info__*.txt"), *CAPTURES.glob("npu-smi-derived/*/*__info__*.txt")]
    found = [(path, family_of(path.name)) for path in sorted(built) if path.read_text().startswith("+--")]
    return found + [(CAPTURES / "npu-smi" / name, family) for name, family in WHOLE_PASTES.items()]


def commands() -> list[tuple[str, str, str]]:
    """File, command and exit code of the built tool's calls that ended by themselves."""
    manifest = CAPTURES / "npu-smi-built" / "MANIFEST.tsv"
    if not manifest.exists():
        return []
    with manifest.open() as rows:
        return [
            (row["file"], row["command"], row["exit"])
            for row in csv.DictReader(rows, delimiter="\t")
            if row["exit"].isdigit()
        ]


def asked(command: str, family: Family) -> rebuild.Asked | None:
    match command.split():
        case ["npu-smi", "info", "-t", kind, "-i", npu] if npu.isdigit():
            return rebuild.Asked(kind, int(npu), None, CHIPS.get(family, 1))
        case ["npu-smi", "info", "-t", kind, "-i", npu, "-c", chip]:
            return rebuild.Asked(kind, int(npu), int(chip), CHIPS.get(family, 1))
    return None


def prints(node: NodeState, command: str) -> tuple[str, int]:
    said = answer(node, tuple(command.split()[1:]))
    return said.text, said.exit_code


@pytest.mark.parametrize(("path", "family"), tables(), ids=lambda value: getattr(value, "name", value))
def test_a_parsed_table_is_printed_again_byte_for_byte(path: Path, family: Family) -> None:
    text = path.read_text()
    node = rebuild.node_of_table(info_table.parse(text), family)
    assert prints(node, "npu-smi info") == (text, 0)


Parsed = Callable[[str, Family, rebuild.Asked], NodeState]
PARSED: dict[str, Parsed] = {
    "ecc": lambda text, family, question: rebuild.node_of_ecc(ecc.parse(text), family, question),
    "health": lambda text, family, question: rebuild.node_of_health(health.parse(text), family, question),
    "proc-mem": lambda text, family, question: rebuild.node_of_process_memory(
        process_memory.parse(text), family, question
    ),
    **dict.fromkeys(
        ("usages", "common", "temp", "power", "volt", "memory", "board", "pcie-err", "hccs"),
        lambda text, family, question: rebuild.node_of_block(
            blocks.parse(text), family, question, rebuild.mcu_of(family)
        ),
    ),
}

# What of the asked chip fails in answers that hold no value at all, from which nothing could be parsed.
WITHOUT_VALUES: dict[str, frozenset[str]] = {
    "910b__common__chip0.txt": frozenset(),
    "310p__common__chip0.txt": frozenset(),
    "a3__hccs__card.txt": frozenset(),
    "310p__hccs__card.txt": frozenset(),
    "910b__hccs__fail.txt": frozenset({"hccs"}),
    "310p__power__chip1.txt": frozenset(),
    "310p__pcie-err__card.txt": frozenset(),
    "910b__ecc__record_notperm.txt": frozenset({"ecc_record"}),
    "910b_user_noperm__ecc.txt": frozenset({"ecc_record"}),
    "910a__ecc__fail_isolated_card.txt": frozenset({"isolated"}),
    "910b__health__fail_codes_chip.txt": frozenset({"codes"}),
    "910b__usage__bad_card.txt": frozenset(),
    "950__usage__bad_card.txt": frozenset(),
    "910b_ctr__health_c1_mcu.txt": frozenset({"mcu"}),
    "910b_user_noperm__health_c1_mcu.txt": frozenset({"mcu"}),
}
OTHER_CAUSES = {
    "910b_ctr__board.txt": "a container without rights to the MCU",
    "910b__ecc__gone_card.txt": "another card's numbers are not in it",
    "a3_ctr1die__usages.txt": "a container with half an NPU",
}


def answers(with_values: bool) -> list[tuple[str, str, int]]:
    found = []
    for file, command, code in commands():
        if file.split("__")[0].split("_")[0] not in FAMILIES or file in OTHER_CAUSES:
            continue
        question = asked(command, family_of(file))
        text = (CAPTURES / "npu-smi-built" / file).read_text()
        if question is not None and question.kind in PARSED and with_values is not _is_refusal(file, text):
            found.append((file, command, int(code)))
    return found


def _is_refusal(file: str, text: str) -> bool:
    """Not one chip says anything."""
    if file in WITHOUT_VALUES or "does not support" in text or text.startswith(("Failed", "Usage")):
        return True
    return (
        "Failed to query npu chip: 0 info." in text
        and "Chip Count                     : 2" not in text
        and ("Chip Count                               : 2" not in text)
    )


@pytest.mark.parametrize(("file", "command", "code"), answers(with_values=True))
def test_a_parsed_answer_is_printed_again_byte_for_byte(file: str, command: str, code: int) -> None:
    family = family_of(file)
    question = asked(command, family)
    assert question is not None
    text = (CAPTURES / "npu-smi-built" / file).read_text()
    node = PARSED[question.kind](text, family, question)
    assert prints(node, command) == (text, code)


@pytest.mark.parametrize(("file", "command", "code"), answers(with_values=False))
def test_an_answer_without_a_value_is_refused_in_the_same_words(file: str, command: str, code: int) -> None:
    """The usage page behind a refusal is our own, so only what stands before it is compared."""
    family = family_of(file)
    question = asked(command, family)
    assert question is not None
    text = (CAPTURES / "npu-smi-built" / file).read_text()
    fails = WITHOUT_VALUES.get(file, frozenset({"all"}))
    health_out_of_range = "value9" in file
    npu = 0 if "bad_card" in file else question.npu
    node = rebuild.failing_node(family, npu, question, frozenset() if health_out_of_range else fails)
    if health_out_of_range:
        node = rebuild.without_health(node)
    said, said_code = prints(node, command)
    assert (said.partition("Usage:")[0], said_code) == (text.partition("Usage:")[0], code)


@pytest.mark.parametrize(
    ("file", "option"),
    [
        ("910b__list__gone_card.txt", "-l"),
        ("a3__list__gone_die.txt", "-l"),
        ("910b_user__list.txt", "-l"),
        ("910a__list.txt", "-l"),
        ("950__list.txt", "-l"),
        ("910b__map__gone_card.txt", "-m"),
        ("910b_user__map.txt", "-m"),
        ("910b_ctr__map.txt", "-m"),
        ("a3__map.txt", "-m"),
        ("a3__map__gone_die.txt", "-m"),
        ("910a__map.txt", "-m"),
        ("950__map.txt", "-m"),
        ("950ub__map.txt", "-m"),
    ],
)
def test_lists_and_maps_are_printed_again_byte_for_byte(file: str, option: str) -> None:
    text = (CAPTURES / "npu-smi-built" / file).read_text()
    family = family_of(file)
    if option == "-l":
        node = rebuild.node_of_list(card_list.parse(text), family)
    else:
        node = rebuild.node_of_map(device_map.parse(text), family)
    assert prints(node, f"npu-smi info {option}") == (text, 0)


@pytest.mark.parametrize(
    ("file", "driver"),
    [
        ("910b__info__enum_zero.txt", "gone"),
        ("910b__info__enum_busy.txt", "occupied"),
        ("950__info__enum_zero.txt", "no_board"),
        ("910b__info__fail_driver_version.txt", "no_version"),
    ],
)
def test_a_driver_that_does_not_answer_is_told_in_the_same_words(file: str, driver: DriverMood) -> None:
    """Below the real tool, the driver may print a line of its own first."""
    text = (CAPTURES / "npu-smi-built" / file).read_text()
    code = {name: int(code) for name, _, code in commands()}[file]
    node = NodeState(family_of(file), "26.1.0.b061", "26.1.0.b061", (), driver=driver)
    said, said_code = prints(node, "npu-smi info")
    assert (said.splitlines()[-1], said_code) == (text.splitlines()[-1], code)


def test_enough_real_outputs_are_matched() -> None:
    """A capture that stops matching fails its own test; a folder that lost its captures fails this one."""
    assert len(tables()) >= 150
    assert len(answers(with_values=True)) >= 200
