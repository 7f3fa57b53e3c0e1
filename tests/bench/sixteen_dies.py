"""The node that is measured: an A3 with sixteen dies, its texts, the calls it needs, and a tool as dear as npu-smi."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from npu_watchd.chips import profile_of
from npu_watchd.model.reading import Output
from npu_watchd.simnode import node, scenario_file
from npu_watchd.simnode.run import simulated_run
from npu_watchd.sources.agenda import Task
from npu_watchd.sources.npu_smi_probes import NPU_SMI_PROBES as PROBES
from npu_watchd.sources.probe import Probe, Target
from npu_watchd.sources.probes import DEFAULTS
from npu_watchd.sources.rounds import Card, Pace, rounds

SCENARIO = "a3_16_dies"
NAME = "Ascend910"
CARDS = tuple(Card(npu, (0, 1), NAME, has_chip_ids=True) for npu in range(8))
BUSY_S = 30.0
"""A second of the scenario at which all dies are there and each has its processes."""
PACES = {probe.name: Pace(probe.every_s, probe.timeout_s) for probe in PROBES}

_BY_NAME = {probe.name: probe for probe in PROBES}


@dataclass(frozen=True, slots=True)
class Call:
    """One call of the tool and its answer."""

    probe: Probe
    target: Target
    a_minute: float
    text: str

    @property
    def arguments(self) -> tuple[str, ...]:
        return self.probe.argv("npu-smi", self.target)[1:]

    def parse(self) -> None:
        self.probe.read(Output(self.text), self.target)


def calls() -> list[Call]:
    """What the daemon asks of this node at default periods."""
    run = simulated_run(scenario_file.load(SCENARIO), lambda: BUSY_S)
    wanted = rounds(PROBES, PACES, CARDS, lambda name: profile_of(name).probes, lambda _probe, _subject: False)

    def call(task: Task, every_s: float) -> Call:
        probe = _BY_NAME[task.probe]
        answer = run(probe.argv("npu-smi", task.target), probe.timeout_s)
        assert isinstance(answer, Output), f"{task}: {answer}"
        assert answer.exit_code == 0, f"{task}: {answer}"
        return Call(probe, task.target, 60 / every_s, answer.text)

    return [call(task, plan.every_s) for task, plan in wanted.items()]


@dataclass(frozen=True, slots=True)
class Installed:
    """The node on disk."""

    config: Path
    called: Path
    """A FIFO: the arguments of each call that the daemon has made."""
    bare_tool: Path
    """The same tool, which tells nobody that it was called."""


def install(directory: Path, listen: str, pace: int = 1) -> Installed:
    """Make DIRECTORY this node. Its npu-smi prints texts made beforehand, so that it costs what the real one does.

    pace: how many times as often as by default everything is asked and put together.

    On a host npu-smi starts 17 helpers at each call, whatever it is asked; its calls to the driver come on top and are
    not counted here, so a real tool is dearer than this one and the daemon's share beside it smaller.
    """
    config = node.install(SCENARIO, directory, speed=0, at=BUSY_S, listen=(listen,))
    _leave_out_the_fabric(config)
    if pace != 1:
        _hurry(config, pace)
    texts = directory / "texts"
    texts.mkdir()
    for call in calls():
        (texts / " ".join(call.arguments)).write_text(call.text, encoding="utf-8")
    installed = Installed(config, directory / "called", directory / "bin" / "bare-npu-smi")
    os.mkfifo(installed.called)
    for tool, told in ((directory / "bin" / "npu-smi", installed.called), (installed.bare_tool, Path("/dev/null"))):
        tool.write_text(_TOOL.format(texts=texts, told=told), encoding="utf-8")
        tool.chmod(0o755)
    return installed


def _leave_out_the_fabric(config: Path) -> None:
    """The bare loop repeats npu-smi's calls only, and the fabric's fakes are Python: nothing to compare with."""
    text = config.read_text(encoding="utf-8").replace("[probes.pcie_load]\nenabled = true", "")
    for probe in DEFAULTS:
        if not probe.startswith("npu_"):
            text += f"\n[probes.{probe}]\nenabled = false\n"
    config.write_text(text, encoding="utf-8")


def _hurry(config: Path, pace: int) -> None:
    """Every period and the cycle that much shorter; the cap on the tool's share would stretch them again."""
    text = config.read_text(encoding="utf-8")
    text += f'\n[engine]\ncycle = "{5000 // pace}ms"\ntool_share = 1.0\n'
    for probe in PROBES:
        every_s = probe.every_s / pace
        timeout_s = min(probe.timeout_s, 3 * every_s)
        text += f'\n[probes.{probe.name}]\nevery = "{1000 * every_s:.0f}ms"\ntimeout = "{1000 * timeout_s:.0f}ms"\n'
    config.write_text(text, encoding="utf-8")


_TOOL = """\
#!/bin/sh
for _ in 1 2; do
  /bin/sh -c '/bin/true | /bin/grep -q x; :'
  /bin/sh -c '/bin/cat /proc/mounts | /bin/grep x | /bin/grep -q y; :'
done
/bin/sh -c '/bin/true; /bin/true; :'
/bin/cat "{texts}/$*"
echo "$*" >"{told}"
"""
