"""The simulated hccn_tool: arguments and the node's state → what it prints and how it ends.

Refusals on stderr, `busy` on stdout; the exit code is the low byte of the tool's own. 910A, 910B and A3 are asked
`-i N -COMMAND -g`, Ascend 950 `-g -COMMAND -i N -u DIE -p PORT`; neither understands the other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from npu_watchd.simnode import hccn_boxes, hccn_optics, hccn_text
from npu_watchd.simnode.answer import Answer
from npu_watchd.simnode.roce_port import PortMood, RocePort
from npu_watchd.simnode.state import ChipState, NodeState

SICK_S = 300.0
"""So long the tool asks a device for its health, once a second, before it says a word."""
MORE = "Enter [ hccn_tool -h ] for more details.\n"
NO_COMMAND = Answer("", 3, "Get invalid major cmd.\n" + MORE)
BAD_DEVICE = Answer("", 4, "Get invalid device id.\n")
NO_LINK = Answer("", 22, "Execute failed: Link status is down.\n")
MOODS: Mapping[PortMood, Answer] = {
    "busy": Answer("hccn_tool is busy, please try again.\n", 11),
    "lock_failed": Answer("", 25, "Get lock failed. Please try again.\n"),
    "sick": Answer("", 3, "Get device health status failed!\n", delay_s=SICK_S),
    "denied": Answer("", 12, "permission denied: pls check this cmd run permission.\n"),
    "refused": Answer("", 1, "Command execute failed!\n"),
    "no_link": NO_LINK,
}
I2C_BUSY = Answer("", 12, "I2c is busy. Please try again.\n")
USAGE = """\
Usage
        hccn_tool -i devid -cmd -g
        cmd: link, link_stat, net_health, optical, speed, stat
"""
USAGE_OF_950 = """\
Usage
        hccn_tool -g -cmd -i devid -u udie -p port
        cmd: dev_info, link, link_stat, optical, speed, stat
"""


@dataclass(frozen=True, slots=True)
class Asked:
    """What an answer depends on."""

    node: NodeState
    chip: ChipState
    port: RocePort


COMMANDS: Mapping[str, Callable[[Asked], str]] = {
    "-link": lambda asked: hccn_text.link(asked.port),
    "-link_stat": lambda asked: hccn_text.link_stat(asked.port, asked.chip.logic_id, asked.node.now_s),
    "-speed": lambda asked: hccn_text.speed(asked.port),
    "-stat": lambda asked: hccn_text.stat(asked.port),
    "-net_health": lambda asked: hccn_text.net_health(asked.port),
    "-optical": lambda asked: hccn_optics.text(asked.port.optics),
}
COMMANDS_OF_950: Mapping[str, Callable[[Asked], str]] = {
    "-link": lambda asked: hccn_boxes.link(asked.port),
    "-link_stat": lambda asked: hccn_boxes.link_stat(asked.port, asked.chip.logic_id),
    "-speed": lambda asked: hccn_boxes.speed(asked.port, asked.chip.logic_id),
    "-stat": lambda asked: hccn_boxes.stat(asked.port),
    "-optical": lambda asked: hccn_boxes.optical(asked.port, asked.chip.logic_id),
    "-dev_info": lambda asked: hccn_boxes.dev_info(asked.port),
}
NEEDS_A_LINK = frozenset({"-speed"})


def answer(node: NodeState, argv: tuple[str, ...]) -> Answer:
    """What hccn_tool does with these arguments (the tool's own name left out)."""
    if node.hccn == "missing" or not any(chip.roce for chip in node.chips):
        return Answer("", 127, "hccn_tool: not found\n")
    if node.hccn == "locked":
        return Answer("", hangs=True)
    return _of_950(node, argv) if node.family == "950" else _of_training_chips(node, argv)


def _of_training_chips(node: NodeState, argv: tuple[str, ...]) -> Answer:
    match argv:
        case ():
            return Answer("", 2, "Get invalid major cmd number. Please check your input.\n" + MORE)
        case ("-h",):
            return Answer(USAGE)
        case ("-i", _, command, *_) if command not in COMMANDS:
            return NO_COMMAND
        case ("-i", device, command, "-g"):
            return _ask(node, device, command, COMMANDS[command])
        case ("-i", device, "-optical", "-g", "v2"):
            return _ask(node, device, "-optical", lambda asked: hccn_optics.tables(asked.port.optics))
        case ("-i", _, command):
            return Answer(_parameters(command), 4, "The total count of input parameters is wrong!\n")
        case ("-i", _, command, *_):
            return Answer(_parameters(command), 3, "Get unknown option!\n")
        case ("-i", *_):
            return NO_COMMAND
    text = 'Get invalid major cmd type. The valid major cmd type should be "-a" or "-i".\n'
    return Answer("", 1, text + MORE)


def _parameters(command: str) -> str:
    return f"[ hccn_tool -i devid {command} ] needs the following parameters:\n   [-g]                   : get\n\n"


def _of_950(node: NodeState, argv: tuple[str, ...]) -> Answer:
    match argv:
        case () | ("-h",):
            return Answer(USAGE_OF_950)
        case ("-g", command, *options) if command in COMMANDS_OF_950 and len(options) % 2 == 0:
            return _of_port(node, command, dict(zip(options[::2], options[1::2], strict=True)))
        case ("-g", *_):
            return NO_COMMAND
    return Answer("", 3, "Get unknown option!\n" + MORE)


def _of_port(node: NodeState, command: str, options: Mapping[str, str]) -> Answer:
    """A device has one port here; another number is refused."""
    if options.keys() - {"-i", "-u", "-p"}:
        return Answer("", 3, "Get unknown option!\n" + MORE)
    needed = {"-i": "device id"} if command == "-dev_info" else {"-i": "device id", "-u": "udie id", "-p": "port id"}
    for option, name in needed.items():
        if option not in options:
            return Answer("", 4, f"Please specify a {name}.\n")
    chip = _chip(node, options["-i"])
    if chip is not None and chip.roce is not None and command != "-dev_info":
        for option, name, number in (("-u", "udie", chip.roce.udie), ("-p", "port", chip.roce.port)):
            if options[option] != str(number):
                return Answer("", 4, f"target {name} is invalid\n")
    return _ask(node, options["-i"], command, COMMANDS_OF_950[command])


def _ask(node: NodeState, device: str, command: str, render: Callable[[Asked], str]) -> Answer:
    chip = _chip(node, device)
    if chip is None or chip.roce is None:
        return BAD_DEVICE
    if chip.lost:
        return Answer("", 4, "The device is not exist!\n")
    port = chip.roce
    if port.answers == "i2c_busy" and command == "-optical":
        return I2C_BUSY
    if port.answers in MOODS:
        return MOODS[port.answers]
    if command in NEEDS_A_LINK and not port.up:
        return NO_LINK
    return Answer(render(Asked(node, chip, port)))


def _chip(node: NodeState, device: str) -> ChipState | None:
    """By its logic id. Without a driver there are no devices, so any number is a wrong one."""
    if node.driver != "ok" or not device.isdecimal():
        return None
    return next((chip for chip in node.chips if chip.logic_id == int(device)), None)
