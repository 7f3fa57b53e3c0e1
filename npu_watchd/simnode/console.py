"""`python -m npu_watchd.simnode`: what a simulated node says.

    list                                      the scenarios that come along
    show NAME                                 one scenario: what happens when, and what to see
    print NAME [--t SECONDS] [-- ARGS...]     what `npu-smi ARGS` prints then (default: info)
    install NAME DIR [--speed N]              executables and a configuration in DIR

NAME is a scenario's name or a file.
"""

from __future__ import annotations

import sys
from pathlib import Path

from npu_watchd.simnode.node import install
from npu_watchd.simnode.npu_smi import answer
from npu_watchd.simnode.scenario_file import ScenarioError, load, names
from npu_watchd.simnode.timeline import state_at


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
        who = f" device {', '.join(map(str, event.devices))}:" if event.devices else ""
        print(f"  t = {event.t_s:<8g}{ends}{who} {event.note}")
    return 0


def _print(name: str, rest: list[str]) -> int:

    options, asked = (rest[: rest.index("--")], rest[rest.index("--") + 1 :]) if "--" in rest else (rest, ["info"])
    t_s = 0.0
    match options:
        case []:
            pass
        case ["--t", seconds]:
            t_s = float(seconds)
        case _:
            sys.stderr.write(f"not understood: {' '.join(options)}\n")
            return 2
    said = answer(state_at(load(name), t_s), tuple(asked))
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
