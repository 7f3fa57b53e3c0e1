"""`npu-smi info -t proc-mem`."""

from __future__ import annotations

import pytest

from npu_watchd.model.records import ProcessMemory, ProcessMemoryChip, ProcessRow
from npu_watchd.parsers import process_memory
from tests.parsers.texts import MIB, refused, typed


def test_names_may_be_blank_hold_blanks_or_read_like_a_refusal() -> None:
    assert process_memory.parse(typed("proc-mem__310P3__25.2.0__second_chip_idle")) == ProcessMemory(
        npu=2944,
        chips=(
            ProcessMemoryChip(
                0,
                (
                    ProcessRow(2944, 0, 1001, "mind ie server", 1336 * MIB),
                    ProcessRow(2944, 0, 1002, None, 72 * MIB),
                    ProcessRow(2944, 0, 1003, "ret is -8005", 73 * MIB),
                ),
            ),
            ProcessMemoryChip(1, ()),
        ),
    )


def test_950_names_no_chip_and_a_name_may_hold_the_next_key() -> None:
    assert process_memory.parse(typed("proc-mem__950PR__26.1.0__no_chip_ids")) == ProcessMemory(
        npu=4, chips=(ProcessMemoryChip(None, (ProcessRow(4, None, 395001, "Process memory(", 5118 * MIB),)),)
    )


def test_without_a_heading_a_blank_line_below_an_id_begins_another_chip() -> None:
    whole = typed("proc-mem__310P3__25.2.0__second_chip_idle")
    text = (
        whole[whole.index("\tProcess id:1001") : whole.index("\tNo process")]
        + "\tProcess id:9 Process name:a Process memory(MB):1\n"
    )
    assert str(refused(process_memory.parse, text)).startswith("line 5: values of a chip that no Chip ID names")


def test_processes_of_a_chip_that_is_said_to_have_none_are_refused() -> None:
    text = typed("proc-mem__310P3__25.2.0__second_chip_idle").replace("\tChip ID                        : 0\n", "")
    assert str(refused(process_memory.parse, text)).startswith("line 9: processes of a chip that is said to have none")


def test_a_failing_chip_is_not_idle() -> None:
    text = typed("proc-mem__310P3__25.2.0__second_chip_idle").replace(
        "\tNo process in device.\n\tChip ID                        : 1\n",
        "\tChip ID                        : 1\nFailed to query npu chip: 1 info.\n",
    )
    assert process_memory.parse(text).chips[1] == ProcessMemoryChip(1, None, "Failed to query npu chip: 1 info.")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\tProcess id:12 Process name:a\n", "line 1: a process without pid, name and memory"),
        ("\tProcess id:x Process name:a Process memory(MB):1\n", "line 1: a process without pid, name and memory"),
        (f"\tProcess id:{'1' * 5000} Process name:a Process memory(MB):1\n", "line 1: '1111"),
        ("\tProcess id:1 Process name:a Process memory(MB):1\n\tHealth : OK\n", "line 2: no process"),
    ],
)
def test_what_is_no_process_is_refused_by_its_line(text: str, message: str) -> None:
    assert str(refused(process_memory.parse, text)).startswith(message)
