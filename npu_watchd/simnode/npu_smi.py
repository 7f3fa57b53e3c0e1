"""The simulated npu-smi: arguments and the node's state → what the tool prints and how it ends."""

from __future__ import annotations

from dataclasses import dataclass, replace

from npu_watchd.simnode.answer import Answer
from npu_watchd.simnode.blocks import QUERIES, card_form, chip_form
from npu_watchd.simnode.board import board_card, board_chip
from npu_watchd.simnode.listing import card_list, device_map
from npu_watchd.simnode.state import DriverMood, NodeState
from npu_watchd.simnode.table import info_table
from npu_watchd.simnode.usage import INFO_USAGE, TOOL_USAGE

DRIVER_ANSWERS: dict[DriverMood, Answer] = {
    "gone": Answer(
        "DrvMngGetConsoleLogLevel failed. (g_conLogLevel=3)\ndcmi module initialize failed. ret is -8005\n", 187
    ),
    "occupied": Answer("dcmi model initialized failed, because the device is used. ret is -8020\n", 172),
    "no_board": Answer("npu get board type failed. ret is -9005\n", 211),
}
"""What every command says, `-h` and `-v` included, while the driver cannot be initialised."""

NO_DRIVER_VERSION = Answer("Failed to execute npu-smi info. ret is -8006.\n", 186)
NO_LIBRARY = (
    "npu-smi: error while loading shared libraries: libdrvdsmi_host.so: "
    "cannot open shared object file: No such file or directory\n"
)
RUBBISH = "\x00\x1b[2Jnpu-smi\ufffd +--+ | 0 0 OK 4\x00\n| 0000:C1:0"
MCU_RETRIES_S = 2.0
"""A dead MCU costs every command ten tries."""

NOT_SIMULATED = frozenset({"product", "flash", "sensors", "topo", "sio-info", "spod-info", "err-count"})
"""Types that the real tool knows; here every chip says that it does not support them."""
KNOWN_TYPES = frozenset(QUERIES) | NOT_SIMULATED | {"board"}
TYPES_OF_950 = KNOWN_TYPES - {"hccs"}


@dataclass(frozen=True, slots=True)
class Asked:
    """The options of `npu-smi info`."""

    kind: str | None = None
    npu: int | None = None
    chip: int | None = None


def answer(node: NodeState, argv: tuple[str, ...]) -> Answer:
    """What npu-smi does with these arguments (the tool's own name left out)."""
    tool = node.tool
    if tool.mood == "hang":
        return Answer("", hangs=True, ignores_sigterm=tool.ignores_sigterm)
    if tool.mood == "missing":
        return Answer("", 127, "npu-smi: not found\n")
    if tool.mood == "unloadable":
        return Answer("", 127, NO_LIBRARY)
    if tool.mood == "rubbish":
        return Answer(RUBBISH, delay_s=tool.delay_s)
    said = DRIVER_ANSWERS.get(node.driver) or _command(node, argv)
    dead_mcus = sum(card.mcu is not None and card.mcu.dead for card in node.seen())
    return replace(said, delay_s=tool.delay_s + MCU_RETRIES_S * dead_mcus)


def _command(node: NodeState, argv: tuple[str, ...]) -> Answer:
    match argv:
        case ():
            return Answer(TOOL_USAGE, 215)
        case ("-v",):
            return Answer(f"npu-smi version: {node.tool_version}\n")
        case ("-h" | "--help",):
            return Answer(TOOL_USAGE)
        case ("info",):
            return NO_DRIVER_VERSION if node.driver == "no_version" else Answer(info_table(node))
        case ("info", "-l"):
            return Answer(card_list(node))
        case ("info", "-m"):
            return Answer(device_map(node))
        case ("info", "-h" | "--help"):
            return Answer(INFO_USAGE)
        case ("info", *options):
            return _type(node, options)
    return Answer("Command or option is not found.\n" + TOOL_USAGE, 211)


def _type(node: NodeState, options: list[str]) -> Answer:
    asked = _options(options)
    if isinstance(asked, Answer):
        return asked
    kind = asked.kind
    if kind is None or kind not in (TYPES_OF_950 if node.family == "950" else KNOWN_TYPES):
        return _bad("-t")
    if asked.npu is None:
        return Answer("This command must input card id.\n\n" + INFO_USAGE, 215)
    card = next((one for one in node.seen() if one.npu == asked.npu), None)
    if card is None:
        return Answer("Invalid card id.\nError parameter of -i\n" + INFO_USAGE, 215)
    if kind == "board":
        chip = next((one for one in card.chips if one.chip == asked.chip), None)
        return Answer(board_card(node, card) if chip is None else board_chip(node, card, chip))
    if kind not in QUERIES:
        return Answer(f"This device does not support querying {kind}.\n")
    if asked.chip is None:
        return card_form(node, card, kind)
    return _bad("-c") if node.family == "950" else chip_form(node, card, asked.chip, kind)


def _options(options: list[str]) -> Asked | Answer:
    if len(options) % 2:
        return _bad(options[-1])
    asked = Asked()
    for name, value in zip(options[::2], options[1::2], strict=True):
        if name == "-t":
            asked = replace(asked, kind=value)
        elif name in ("-i", "-c") and value.isdecimal():
            asked = replace(asked, npu=int(value)) if name == "-i" else replace(asked, chip=int(value))
        else:
            return _bad(name)
    return asked


def _bad(option: str) -> Answer:
    return Answer(f"Error parameter of {option}\n{INFO_USAGE}", 215)
