"""A `Run` that answers from a table of texts, on a clock that only it and the test move."""

from __future__ import annotations

from dataclasses import dataclass, field

from npu_watchd.model.reading import Failure, Output, Tick
from tests.parsers.texts import CAPTURES

Answer = str | Output | Failure


def captured(name: str) -> str:
    return (CAPTURES / "npu-smi" / f"{name}.txt").read_text(encoding="utf-8")


@dataclass
class Tool:
    """npu-smi by its arguments; what it has no answer for, it does not support."""

    answers: dict[str, Answer] = field(default_factory=dict)
    took_s: float = 0.1
    now_s: float = 0.0
    calls: list[str] = field(default_factory=list)
    deadlines_s: list[float] = field(default_factory=list)

    def clock(self) -> Tick:
        return Tick(self.now_s, 1_790_000_000.0 + self.now_s)

    def run(self, argv: tuple[str, ...], timeout_s: float) -> Output | Failure:
        asked = " ".join(argv[1:])
        self.calls.append(asked)
        self.deadlines_s.append(timeout_s)
        self.now_s += self.took_s
        answer = self.answers.get(asked, "This device does not support querying this.\n")
        return Output(answer) if isinstance(answer, str) else answer

    def wait(self, seconds: float) -> None:
        self.now_s += seconds

    def heard(self) -> list[str]:
        """What was asked since the last time."""
        asked, self.calls = self.calls, []
        return asked
