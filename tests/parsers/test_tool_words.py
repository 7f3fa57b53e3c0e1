"""What npu-smi says when it fails: the right kind of failure, the tool's own words, and the cure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from npu_watchd.model.reading import Failure, FailureKind, Output
from npu_watchd.parsers import blocks, card_list, device_map, ecc, health, info_table, process_memory
from npu_watchd.parsers.tool_words import may_refuse, refusal_of
from tests.parsers.texts import said

LOADER = (
    "npu-smi: error while loading shared libraries: libdrvdsmi_host.so: cannot open shared object file: "
    "No such file or directory"
)
USAGE = "Usage: npu-smi info <watch|proc|-h|-m|-l|-t type> [Options...]\n\nCommands:\n       -m      mapping\n"
NOT_LOADED = "dcmi module initialize failed. ret is -8005"

SAID = [
    pytest.param(f"{NOT_LOADED}\n", FailureKind.EXIT, NOT_LOADED, "`ls /dev/davinci*`", id="-8005"),
    pytest.param(
        f"DrvMngGetConsoleLogLevel failed. (g_conLogLevel=3)\n{NOT_LOADED}\n",
        FailureKind.EXIT,
        NOT_LOADED,
        "the driver is not loaded",
        id="a prelude of the library",
    ),
    pytest.param(
        f"DrvMngGetConsoleLogLevel failed. (ret=4)\n{NOT_LOADED}\n",
        FailureKind.EXIT,
        NOT_LOADED,
        "the driver is not loaded",
        id="a newer prelude",
    ),
    pytest.param(
        "dcmi model initialized failed, because the device is used. ret is -8020\n"
        "npu get board type failed. ret is -9005\n",
        FailureKind.EXIT,
        "dcmi model initialized failed, because the device is used. ret is -8020",
        "another container holds the card",
        id="-8020 then -9005",
    ),
    pytest.param(
        "npu get board type failed. ret is -9005\n",
        FailureKind.EXIT,
        "npu get board type failed. ret is -9005",
        "lacks the davinci devices",
        id="-9005",
    ),
    pytest.param(
        "dcmi module initialize failed. ret is -8255\n",
        FailureKind.UNSUPPORTED,
        "dcmi module initialize failed. ret is -8255",
        "another chip generation",
        id="-8255",
    ),
    pytest.param(
        "dcmi module initialize failed. ret is -8002\n",
        FailureKind.DENIED,
        "dcmi module initialize failed. ret is -8002",
        "run as root",
        id="-8002",
    ),
    pytest.param(
        "dcmi module initialize failed. ret is -8099\n",
        FailureKind.EXIT,
        "dcmi module initialize failed. ret is -8099",
        "unknown code",
        id="a code of no list",
    ),
    pytest.param(
        f"Invalid card id.\nError parameter of -i\n{USAGE}",
        FailureKind.EXIT,
        "Invalid card id.",
        "fell off the bus",
        id="invalid card",
    ),
    pytest.param(f"Invalid chip id.\n{USAGE}", FailureKind.EXIT, "Invalid chip id.", "no such chip", id="invalid chip"),
    pytest.param(
        "This device does not support querying hccs.\n",
        FailureKind.UNSUPPORTED,
        "This device does not support querying hccs.",
        "",
        id="not supported",
    ),
    pytest.param(
        "This command cannot be executed on a VM.\n",
        FailureKind.UNSUPPORTED,
        "This command cannot be executed on a VM.",
        "",
        id="virtual machine",
    ),
    pytest.param(
        "This command can be executed only by the root user.\n",
        FailureKind.DENIED,
        "This command can be executed only by the root user.",
        "as root",
        id="not root",
    ),
    pytest.param(
        "Error parameter of -t\n" + USAGE,
        FailureKind.UNSUPPORTED,
        "Error parameter of -t",
        "knows no such type",
        id="unknown type",
    ),
    pytest.param(USAGE, FailureKind.EXIT, USAGE.splitlines()[0], "usage page only", id="usage page only"),
    pytest.param(
        "Failed to execute npu-smi info. ret is -8006.\n",
        FailureKind.EXIT,
        "Failed to execute npu-smi info. ret is -8006.",
        "may be wedged",
        id="-8006",
    ),
    pytest.param(
        'Failed to query "ecc" result.\n', FailureKind.EXIT, 'Failed to query "ecc" result.', "", id="chip form fails"
    ),
    pytest.param(
        "There is no NPU card on this server.\n",
        FailureKind.EXIT,
        "There is no NPU card on this server.",
        "the driver sees no card",
        id="no card",
    ),
]


@pytest.mark.parametrize(("text", "kind", "words", "cure"), SAID)
@pytest.mark.parametrize(
    "parse",
    [info_table.parse, card_list.parse, device_map.parse, ecc.parse, health.parse, blocks.parse, process_memory.parse],
    ids=lambda parse: parse.__module__.rpartition(".")[2],
)
def test_every_parser_hands_on_kind_words_and_cure(
    parse: Callable[[str], Any], text: str, kind: FailureKind, words: str, cure: str
) -> None:
    found, detail = said(parse, text)
    assert found is kind
    assert detail.startswith(words)
    assert cure in detail


def test_the_loaders_message_is_on_stderr() -> None:
    assert refusal_of(Output("", LOADER + "\n", 127)) == Failure(
        FailureKind.MISSING, f"{LOADER} (mount the driver, set LD_LIBRARY_PATH)"
    )


def test_stdout_comes_before_stderr_and_a_good_answer_is_no_refusal() -> None:
    assert refusal_of(Output(NOT_LOADED, LOADER, 187)) == Failure(
        FailureKind.EXIT,
        f"{NOT_LOADED} (the driver is not loaded, this container lacks the davinci devices or the rights to them, or "
        "the driver was upgraded without a reboot; check `lsmod | grep drv_` and `ls /dev/davinci*`)",
    )
    assert refusal_of(Output("\tHealth Status : OK\n", "", 0)) is None


def test_a_card_whose_every_chip_fails_says_so_in_the_tools_words() -> None:
    text = '\tNPU ID : 0\nFailed to query npu chip: 0 info.\n\nFailed to query "usages" info.\n'
    assert said(blocks.parse, text) == (FailureKind.EXIT, "Failed to query npu chip: 0 info.")


@pytest.mark.parametrize("text", [case.values[0] for case in SAID], ids=[case.id for case in SAID])
def test_the_quick_look_misses_no_refusal(text: str) -> None:
    assert may_refuse(text)
    assert may_refuse(f"\tNPU ID : 0\n{text}")


def test_the_quick_look_passes_over_a_good_answer() -> None:
    assert not may_refuse("\tHealth Status : OK\n\tError Code : NA\n")
