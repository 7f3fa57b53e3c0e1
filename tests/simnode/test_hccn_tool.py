"""The simulated hccn_tool: which words come on which stream with which exit code, and what the parsers call it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from npu_watchd.model.reading import Failure, FailureKind, Output
from npu_watchd.parsers import hccn, hccn_words
from npu_watchd.simnode.answer import Answer
from npu_watchd.simnode.hccn_tool import answer
from npu_watchd.simnode.roce_port import PortMood, RocePort
from npu_watchd.simnode.scenario_file import load
from npu_watchd.simnode.silicon import SILICON, new_cards
from npu_watchd.simnode.state import Family, NodeState
from npu_watchd.simnode.timeline import state_at
from tests.simnode.fabric_states import node


def said(argv: str, family: Family = "910B", port: RocePort | None = None) -> Answer:
    return answer(node(port or RocePort(), family), tuple(argv.split()))


def words(told: Answer) -> tuple[str, str, int]:
    return told.text.partition("\n")[0], told.stderr.partition("\n")[0], told.exit_code


@pytest.mark.parametrize(
    ("argv", "text", "stderr", "code"),
    [
        ("-i 0 -link -g", "link status: UP", "", 0),
        ("-i 7 -link -g", "link status: UP", "", 0),
        ("-i 8 -link -g", "", "Get invalid device id.", 4),
        ("-i x -link -g", "", "Get invalid device id.", 4),
        ("-i -1 -link -g", "", "Get invalid device id.", 4),
        ("", "", "Get invalid major cmd number. Please check your input.", 2),
        ("-v", "", 'Get invalid major cmd type. The valid major cmd type should be "-a" or "-i".', 1),
        ("-i", "", "Get invalid major cmd.", 3),
        ("-i 0", "", "Get invalid major cmd.", 3),
        ("-i 0 -nosuch -g", "", "Get invalid major cmd.", 3),
        (
            "-i 0 -link",
            "[ hccn_tool -i devid -link ] needs the following parameters:",
            "The total count of input parameters is wrong!",
            4,
        ),
        ("-i 0 -link -x", "[ hccn_tool -i devid -link ] needs the following parameters:", "Get unknown option!", 3),
        ("-i 0 -link -g foo", "[ hccn_tool -i devid -link ] needs the following parameters:", "Get unknown option!", 3),
        ("-i 0 -optical -g v2", "=" * 92, "", 0),
        ("-h", "Usage", "", 0),
        (
            "-g -link -i 0 -u 0 -p 4",
            "",
            'Get invalid major cmd type. The valid major cmd type should be "-a" or "-i".',
            1,
        ),
    ],
)
def test_what_training_chips_are_asked_and_how_it_is_refused(argv: str, text: str, stderr: str, code: int) -> None:
    assert words(said(argv)) == (text, stderr, code)


@pytest.mark.parametrize(
    ("argv", "text", "stderr", "code"),
    [
        ("-g -link -i 0 -u 0 -p 4", "link status: UP", "", 0),
        ("-g -link -p 4 -i 0 -u 0", "link status: UP", "", 0),
        (
            "-g -dev_info -i 0",
            "+---------+---------+---------------------+-----------+-------------+------------+",
            "",
            0,
        ),
        ("-g -link -i 0", "", "Please specify a udie id.", 4),
        ("-g -link -i 0 -u 0 -p 9", "", "target port is invalid", 4),
        ("-g -link -i 0 -u 3 -p 4", "", "target udie is invalid", 4),
        ("-g -link -i 9 -u 0 -p 4", "", "Get invalid device id.", 4),
        ("-g -net_health -i 0 -u 0 -p 4", "", "Get invalid major cmd.", 3),
        ("-g -link -i 0 -u 0 -p 4 -x 1", "", "Get unknown option!", 3),
        ("-i 0 -link -g", "", "Get unknown option!", 3),
        ("-h", "Usage", "", 0),
    ],
)
def test_what_ascend_950_is_asked_and_how_it_is_refused(argv: str, text: str, stderr: str, code: int) -> None:
    assert words(said(argv, "950")) == (text, stderr, code)


MOODS: tuple[tuple[PortMood, str, str, int], ...] = (
    ("busy", "hccn_tool is busy, please try again.", "", 11),
    ("lock_failed", "", "Get lock failed. Please try again.", 25),
    ("denied", "", "permission denied: pls check this cmd run permission.", 12),
    ("refused", "", "Command execute failed!", 1),
    ("no_link", "", "Execute failed: Link status is down.", 22),
)


@pytest.mark.parametrize(("mood", "text", "stderr", "code"), MOODS)
def test_a_device_that_does_not_answer_is_told_on_the_right_stream(
    mood: PortMood, text: str, stderr: str, code: int
) -> None:
    told = said("-i 0 -stat -g", port=RocePort(answers=mood))
    assert words(told) == (text, stderr, code)
    output = Output(told.text, told.stderr, told.exit_code)
    failure = hccn_words.read(output, hccn.link)
    assert isinstance(failure, Failure)
    assert hccn_words.is_busy(output) is (mood in ("busy", "lock_failed"))
    assert (failure.kind is FailureKind.DENIED) is (mood == "denied")


def test_a_sick_device_is_silent_for_five_minutes_and_the_next_one_answers_at_once() -> None:
    sick = node(RocePort(answers="sick"), device=3)
    told = answer(sick, ("-i", "3", "-link", "-g"))
    assert (told.delay_s, told.text, told.stderr, told.exit_code) == (
        300.0,
        "",
        "Get device health status failed!\n",
        3,
    )
    assert answer(sick, ("-i", "4", "-link", "-g")) == Answer("link status: UP\n")


def test_the_modules_bus_may_be_busy_while_the_port_answers() -> None:
    port = RocePort(answers="i2c_busy")
    assert words(said("-i 0 -optical -g", port=port)) == ("", "I2c is busy. Please try again.", 12)
    assert words(said("-i 0 -link -g", port=port)) == ("link status: UP", "", 0)


def test_a_port_without_a_link_refuses_its_speed_and_says_so_when_asked() -> None:
    down = RocePort(up=False)
    assert words(said("-i 0 -speed -g", port=down)) == ("", "Execute failed: Link status is down.", 22)
    assert words(said("-i 0 -link -g", port=down)) == ("link status: DOWN", "", 0)


def test_a_held_log_hangs_every_call_and_a_lost_driver_knows_no_device() -> None:
    base = node(RocePort())
    assert answer(replace(base, hccn="locked"), ("-i", "0", "-link", "-g")).hangs
    assert answer(replace(base, driver="gone"), ("-i", "0", "-link", "-g")).stderr == "Get invalid device id.\n"
    assert answer(replace(base, hccn="missing"), ("-i", "0", "-link", "-g")).exit_code == 127


@pytest.mark.parametrize("generation", ["310", "310B4", "310P3", "310P Duo"])
def test_inference_chips_have_no_such_tool(generation: str) -> None:
    silicon = SILICON[generation]
    bare = NodeState(silicon.family, "25.5.1", "25.5.1", new_cards(silicon, 1))
    assert words(answer(bare, ("-i", "0", "-link", "-g"))) == ("", "hccn_tool: not found", 127)


def test_a_chip_that_fails_its_health_query_or_is_lost_fails_here_as_well() -> None:
    assert [
        words(answer(state_at(load("device_lost"), t_s), ("-i", "5", "-link", "-g"))) for t_s in (179.0, 181.0, 301.0)
    ] == [
        ("link status: UP", "", 0),
        ("", "Get device health status failed!", 3),
        ("", "The device is not exist!", 4),
    ]
