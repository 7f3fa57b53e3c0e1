"""Slurm: this node drained with our reason, and undrained while that reason is still ours; by scontrol."""

from __future__ import annotations

import re

from npu_watchd.model.acting import MARK, Hold, Holder, Intention
from npu_watchd.model.reading import Failure, FailureKind, Output, Run
from npu_watchd.sinks.plaintext import clean

US = "npu-watchd: "
_REASON_MAX = 200
_TEXT_MAX = 400
_STATE = re.compile(r"\bState=(\S+)")
_REASON = re.compile(r"^ *Reason=(.*)$", re.MULTILINE)
_OURS = re.compile(rf"{US}.* \[(?P<mark>{MARK})\](?: \[[^\[\]]*@[^\[\]]*\])?")
"""The whole reason: where somebody has added anything it is no longer ours. Slurm itself adds who and when."""
_SUFFIXES = "*~#!%$@^-"
"""Of a state's word: not responding, powered down, planned, …"""
_DRAINED = frozenset({"DRAIN", "DRAINED", "DRAINING"})
_OUT = frozenset({"DOWN", "FAIL", "FAILING", "ERROR", "FUTURE"})
_CURES: tuple[tuple[re.Pattern[str], FailureKind, str], ...] = (
    (
        re.compile(r"unable to contact|connection refused|timed out|connect failure|zero bytes", re.IGNORECASE),
        FailureKind.TIMEOUT,
        "the controller does not answer; `scontrol ping` says which of them is up",
    ),
    (
        re.compile(r"munge|authentication|credential", re.IGNORECASE),
        FailureKind.DENIED,
        "munged must run on this node with the cluster's key: `munge -n | unmunge`",
    ),
    (
        re.compile(r"permission denied|invalid user id|access", re.IGNORECASE),
        FailureKind.DENIED,
        "the user that npu-watchd runs as may not drain nodes: root may, or an operator (`sacctmgr`, AdminLevel)",
    ),
    (
        re.compile(r"invalid node name|not found", re.IGNORECASE),
        FailureKind.MISSING,
        "set [slurm] node_name to this node's name as `sinfo -N` has it",
    ),
    (
        re.compile(r"slurm\.conf|configuration", re.IGNORECASE),
        FailureKind.MISSING,
        "set SLURM_CONF in the daemon's environment, or let tools.scontrol name a script that does",
    ),
)


class Slurm:
    """One node of one cluster. Each call runs scontrol once or twice, each time bounded."""

    name = "slurm"

    def __init__(self, run: Run, scontrol: str, node: str, timeout_s: float) -> None:
        """timeout_s: of one scontrol; where no controller answers it gives up by itself after nine."""
        self._run = run
        self._scontrol = scontrol
        self._node = node
        self._timeout_s = timeout_s

    def look(self) -> Hold | Failure:
        """From State and Reason of `scontrol show node`."""
        output = self._said("show", "node", self._node)
        return output if isinstance(output, Failure) else hold_of(output.text)

    def hold(self, intention: Intention) -> Failure | None:
        """Drain it: what runs may end, nothing new starts.

        A person's drain that came in the instant between our looking and our draining would be overwritten.
        """
        found = self.look()
        if isinstance(found, Failure):
            return found
        if found.holder is not Holder.NOBODY:
            return None
        reason = f"{US}{clean(intention.reason, _REASON_MAX)} [{intention.mark}]"
        return self._told("update", f"nodename={self._node}", "state=drain", f"reason={reason}")

    def free(self, mark: str) -> Failure | None:
        """`undrain`, which unlike `resume` leaves a node down that Slurm or a person has set down."""
        found = self.look()
        if isinstance(found, Failure):
            return found
        if found.holder is not Holder.OURS or found.mark != mark:
            return None
        return self._told("update", f"nodename={self._node}", "state=undrain")

    def _told(self, *words: str) -> Failure | None:
        output = self._said(*words)
        return output if isinstance(output, Failure) else None

    def _said(self, *words: str) -> Output | Failure:
        output = self._run((self._scontrol, *words), self._timeout_s)
        if isinstance(output, Failure) or output.exit_code == 0:
            return output
        line = clean((output.stderr.strip() or output.text.strip() or "it said nothing").splitlines()[0], _TEXT_MAX)
        kind, cure = next(
            ((kind, cure) for words_, kind, cure in _CURES if words_.search(line)),
            (FailureKind.EXIT, f"try `{self._scontrol} {words[0]}` by hand"),
        )
        return Failure(kind, f"scontrol {words[0]}, exit code {output.exit_code}: {line}; {cure}")


def hold_of(text: str) -> Hold | Failure:
    """Who holds the node that `scontrol show node` (of one node) describes."""
    state = _STATE.search(text)
    if state is None:
        return Failure(FailureKind.UNPARSEABLE, f"`scontrol show node` names no State: {clean(text, 100)!r}")
    words = {word.rstrip(_SUFFIXES) for word in state[1].split("+")}
    if "UNKNOWN" in words:
        return Failure(FailureKind.STALE, f"the controller does not know the node's state yet: {state[1]}")
    reason = _REASON.search(text)
    shown = clean(state[1] + (f", {reason[1].strip()}" if reason else ""), _TEXT_MAX)
    ours = _OURS.fullmatch(reason[1].strip()) if reason and words & _DRAINED else None
    if ours and not words & {"FAIL", "FAILING"}:
        return Hold(Holder.OURS, shown, ours["mark"])
    return Hold(Holder.OTHER if words & (_DRAINED | _OUT) else Holder.NOBODY, shown)
