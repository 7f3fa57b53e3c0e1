"""The simulated node inside a test's own process: the seam `Run` with a clock that the test moves."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePath

from npu_watchd.model.reading import Failure, FailureKind, Output, Run
from npu_watchd.simnode.scenario import Scenario
from npu_watchd.simnode.timeline import state_at
from npu_watchd.simnode.tools import answer, installed_on


def simulated_run(scenario: Scenario, clock: Callable[[], float]) -> Run:
    """A Run that answers as the node's executables would, at the second of the scenario that `clock` says.

    Nothing waits: an answer that would come after the deadline is a Failure(TIMEOUT) at once.
    """

    def run(argv: tuple[str, ...], timeout_s: float) -> Output | Failure:
        tool = PurePath(argv[0]).name
        node = state_at(scenario, clock())
        moods = {"npu-smi": node.tool.mood, "hccn_tool": node.hccn}
        if tool not in installed_on(node) or moods.get(tool) == "missing":
            return Failure(FailureKind.MISSING, f"{argv[0]}: not found")
        said = answer(tool, node, argv[1:])
        if said.hangs or said.delay_s > timeout_s:
            return Failure(FailureKind.TIMEOUT, f"`{' '.join(argv)}` did not answer within {timeout_s:g} s")
        return Output(said.text, said.stderr, said.exit_code)

    return run
