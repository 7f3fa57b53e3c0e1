"""A program of the site's own, started with the verdict on its stdin."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Literal

from npu_watchd.model.acting import Hold, Holder, Intention
from npu_watchd.model.reading import Failure, FailureKind, Output
from npu_watchd.sinks.plaintext import clean

Start = Callable[[tuple[str, ...], float, bytes], Output | Failure]
"""argv, deadline in seconds, and what stands on stdin."""
_TEXT_MAX = 300


class Command:
    """`COMMAND… hold` with the node's verdict as JSON, and `COMMAND… free` with the mark and the node's name.

    Exit code 0: it is done. Nobody but ourselves remembers what it did, so that after an end between its run and our
    note of it, it runs again: twice must be as good as once.
    """

    name = "command"

    def __init__(self, start: Start, argv: tuple[str, ...], node: str, timeout_s: float, held: str | None) -> None:
        """held: the mark that it was last told to hold, as far as we remember; None: none."""
        self._start = start
        self._argv = argv
        self._node = node
        self._timeout_s = timeout_s
        self._held = held

    def look(self) -> Hold | Failure:
        """What it was last told, as there is nobody to ask."""
        if self._held is None:
            return Hold(Holder.NOBODY, "the command was not told to hold the node")
        return Hold(Holder.OURS, f"the command was told to hold the node, mark {self._held}", self._held)

    def hold(self, intention: Intention) -> Failure | None:
        if self._held is not None:
            return None
        failure = self._run("hold", intention.document)
        if failure is None:
            self._held = intention.mark
        return failure

    def free(self, mark: str) -> Failure | None:
        if self._held != mark:
            return None
        failure = self._run("free", json.dumps({"mark": mark, "node": self._node}).encode())
        if failure is None:
            self._held = None
        return failure

    def _run(self, order: Literal["hold", "free"], document: bytes) -> Failure | None:
        output = self._start((*self._argv, order), self._timeout_s, document)
        if isinstance(output, Failure):
            return output
        if output.exit_code == 0:
            return None
        lines = (output.stderr.strip() or output.text.strip()).splitlines()
        said = clean(lines[-1], _TEXT_MAX) if lines else "it said nothing"
        cure = "mend what it says; it is started again later, with what the verdict is then"
        return Failure(
            FailureKind.EXIT, f"{' '.join(self._argv)} {order}: exit code {output.exit_code}: {said}; {cure}"
        )
