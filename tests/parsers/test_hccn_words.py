"""What hccn_tool says when it fails: the kind, its own words, the cure, and whether to ask again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from npu_watchd.model.fabric import NpuLink
from npu_watchd.model.reading import Failure, FailureKind, Output
from npu_watchd.parsers import hccn, hccn_optical, hccn_stat
from npu_watchd.parsers.hccn_words import Busy, is_busy, read
from tests.parsers.fabric_texts import PARSERS, written
from tests.parsers.texts import refused

HCCN = {kind: parse for kind, parse in PARSERS.items() if kind.startswith("hccn-")}
BUSY = [
    "hccn_tool is busy, please try again.",
    "I2c is busy. Please try again.",
    "Get lock failed. Please try again.",
    "The device is occupied. Please try again later.",
    "The system is in optical module initializing, please try again later.",
]
REFUSALS = [
    ("permission denied: pls check this cmd run permission.", FailureKind.DENIED, "as root"),
    ("permission denied: pls check this cmd run environment.", FailureKind.DENIED, "container"),
    (
        "Open file failed, cmd execute failed! pls check the conf path or cmd run permission.",
        FailureKind.DENIED,
        "root",
    ),
    ("The conf file can't access, cmd execute failed!", FailureKind.DENIED, "root"),
    ("The command is not supported on this product.", FailureKind.UNSUPPORTED, "not supported"),
    ("The command is not supported on this optical media.", FailureKind.UNSUPPORTED, "not supported"),
    ("Command unsupported on this optical module.", FailureKind.UNSUPPORTED, "unsupported"),
    ("The VM does not support this command.", FailureKind.UNSUPPORTED, "VM"),
    ("Get unknown option!", FailureKind.UNSUPPORTED, "Ascend 950"),
    ("Get invalid major cmd.", FailureKind.UNSUPPORTED, "Ascend 950"),
    ("The total count of input parameters is wrong!", FailureKind.UNSUPPORTED, "Ascend 950"),
    ("Please specify a valid mode.", FailureKind.UNSUPPORTED, "910B"),
    ("Get invalid device id.", FailureKind.EXIT, "npu-smi info -m"),
    ("The device is not exist!", FailureKind.EXIT, "npu-smi info -m"),
    ("target port is invalid, please check.", FailureKind.EXIT, "-dev_info"),
    ("Get device health status failed!", FailureKind.EXIT, "300 s"),
    ("Execute failed: Link status is down.", FailureKind.EXIT, "-link_stat -g"),
    ("Command execute failed!", FailureKind.EXIT, "/var/log/hccn_tool"),
    ("Cmd execute failed!", FailureKind.EXIT, "/var/log/hccn_tool"),
    ("The cmd line execute timeout!", FailureKind.EXIT, "did not answer"),
    ("Control link unreachable.", FailureKind.EXIT, "does not reach"),
    (
        "hccn_tool: error while loading shared libraries: libascend_hal.so: cannot open shared object file",
        FailureKind.MISSING,
        "LD_LIBRARY_PATH",
    ),
]
EVERY_PARSER = pytest.mark.parametrize("parse", HCCN.values(), ids=HCCN.keys())


@EVERY_PARSER
@pytest.mark.parametrize(("words", "kind", "cure"), REFUSALS)
def test_a_refusal_keeps_its_words_and_names_the_cure_on_either_stream(
    parse: Callable[[str], Any], words: str, kind: FailureKind, cure: str
) -> None:
    for output in (Output(words + "\n", "", 0), Output("", words + "\n", 3)):
        found = read(output, parse)
        assert isinstance(found, Failure)
        assert found.kind is kind
        assert found.detail.startswith(words)
        assert cure in found.detail
        assert not is_busy(output)


@EVERY_PARSER
@pytest.mark.parametrize("words", BUSY)
def test_busy_is_told_from_every_other_failure(parse: Callable[[str], Any], words: str) -> None:
    assert isinstance(refused(parse, words + "\n"), Busy)
    for output in (Output(words + "\n", "", 0), Output("", words + "\n", 25)):
        assert read(output, parse) == Failure(FailureKind.EXIT, words)
        assert is_busy(output)


def test_an_answer_is_not_busy_and_an_exit_code_alone_decides_nothing() -> None:
    up = Output("link status: UP\n", "", 0)
    assert not is_busy(up)
    assert read(up, hccn.link) == NpuLink(up=True)
    assert read(Output("link status: DOWN\n", "", 1), hccn.link) == NpuLink(up=False)
    assert not is_busy(Output("", "", 11))


def test_a_refusal_on_stderr_counts_more_than_the_usage_page_on_stdout() -> None:
    usage = "[ hccn_tool -i devid -link ] needs the following parameters:\n   [-g]  : get the eth ports link status\n"
    found = read(Output(usage, "Get unknown option!\n", 3), hccn.link)
    assert isinstance(found, Failure)
    assert found.detail.startswith("Get unknown option! (")
    alone = read(Output(usage, "", 3), hccn.link)
    assert isinstance(alone, Failure)
    assert alone.kind is FailureKind.UNSUPPORTED


def test_a_failed_query_is_neither_a_link_down_nor_a_zero() -> None:
    down = Output("", "Execute failed: Link status is down.\n", 22)
    for parse in (hccn.link, hccn.link_history, hccn.speed, hccn_stat.parse, hccn_optical.parse):
        assert isinstance(read(down, parse), Failure)


def test_words_that_nobody_knows_are_shown_where_there_is_no_answer() -> None:
    assert read(Output("", "A new excuse.\n", 9), hccn.link) == Failure(FailureKind.EXIT, "A new excuse.")
    assert read(Output("link status: UP\n", "A new remark.\n", 0), hccn.link) == NpuLink(up=True)


def test_silence_is_a_failure_with_its_exit_code() -> None:
    assert read(Output("", "", -15), hccn.link) == Failure(
        FailureKind.EXIT, "hccn_tool printed nothing and ended with exit code -15"
    )
    assert refused(hccn.link, "").problem == "hccn_tool printed nothing; its refusals are on stderr"


@pytest.mark.parametrize(
    "command",
    [
        "/usr/local/Ascend/driver/tools/hccn_tool -i 5 -link_stat -g",
        "$ hccn_tool -i 5 -link_stat -g",
        "root@node7:~# hccn_tool -i 5 -link_stat -g",
        "[root@node7 ~]# hccn_tool -i 5 -link_stat -g",
    ],
)
def test_the_command_in_front_of_a_paste_is_no_part_of_the_answer(command: str) -> None:
    text = written("hccn-link-stat__down_since_four_minutes")
    assert hccn.link_history(f"{command}\n{text}") == hccn.link_history(text)
