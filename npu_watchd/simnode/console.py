"""`python -m npu_watchd.simnode`: what a simulated node says.

    list                                      the scenarios that come along
    show NAME                                 one scenario: what happens when, and what to see
    print NAME [--t SECONDS] [--tool TOOL] [-- ARGS...]
                                              what `TOOL ARGS` prints then (default: npu-smi, and info)
    install NAME DIR [--speed N]              executables, a sysfs tree and a configuration in DIR
    sysfs DIR                                 keep the sysfs tree of DIR as the scenario has it, until interrupted

NAME is a scenario's name or a file.
"""

from __future__ import annotations

import sys
import threading
from pathlib import Path

from npu_watchd.simnode.node import install, keep_fresh
from npu_watchd.simnode.scenario_file import ScenarioError, load, names
from npu_watchd.simnode.timeline import state_at
from npu_watchd.simnode.tools import TOOLS, answer


def main(argv: list[str]) -> int:
    """The exit code: the tool's own for `print`, 2 for what cannot be understood or used."""
    try:
        return _command(argv)
    except (ScenarioError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 2


def _command(argv: list[str]) -> int:
    match argv:
        case ["list"]:
            return _list()
        case ["show", name]:
            return _show(name)
        case ["print", name, *rest]:
            return _print(name, rest)
        case ["install", name, directory]:
            return _install(name, directory, 1.0)
        case ["install", name, directory, "--speed", speed]:
            return _install(name, directory, float(speed))
        case ["sysfs", directory]:
            return _sysfs(directory)
    sys.stderr.write(__doc__ or "")
    return 2


def _list() -> int:
    for name in names():
        print(f"{name:<24}{load(name).title}")
    return 0


def _show(name: str) -> int:
    scenario = load(name)
    print(f"{scenario.name}: {scenario.title}\n\n{scenario.description}\n")
    print(f"{scenario.cards} cards of {scenario.generation}, npu-smi {scenario.tool_version}")
    for event in scenario.events:
        ends = "" if event.lasts_s is None else f" for {event.lasts_s:g} s"
        who = "".join(
            f" {what} {', '.join(map(str, which))}:"
            for what, which in (("device", event.devices), ("port", event.hcas))
            if which
        )
        print(f"  t = {event.t_s:<8g}{ends}{who} {event.note}")
    return 0


def _print(name: str, rest: list[str]) -> int:
    options, asked = (rest[: rest.index("--")], rest[rest.index("--") + 1 :]) if "--" in rest else (rest, ["info"])
    chosen = dict(zip(options[::2], options[1::2], strict=False))
    tool = chosen.get("--tool", "npu-smi")
    if len(options) % 2 or chosen.keys() - {"--t", "--tool"} or tool not in TOOLS:
        sys.stderr.write(f"not understood: {' '.join(options)}\n")
        return 2
    said = answer(tool, state_at(load(name), float(chosen.get("--t", 0.0))), tuple(asked))
    sys.stdout.write(said.text)
    sys.stderr.write(said.stderr)
    if said.hangs:
        sys.stderr.write("(the tool hangs: it prints nothing and does not end)\n")
    elif said.delay_s:
        sys.stderr.write(f"(the tool takes {said.delay_s:g} s for it)\n")
    return said.exit_code


def _install(name: str, directory: str, speed: float) -> int:
    print(install(name, Path(directory), speed=speed))
    return 0


def _sysfs(directory: str) -> int:
    try:
        keep_fresh(Path(directory), threading.Event())
    except KeyboardInterrupt:
        return 0
    return 0
