"""The gate of a prolog, of NHC and of node-problem-detector: reads the daemon's verdict, and says go or stop.

With the standard library alone and without a scheduler's command, a tool or a network: it has 200 ms, as a process.
"""

from __future__ import annotations

import json
import os
import sys
import time
import tomllib
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

NAME = "verdict.json"
HEALTHY, WATCH, QUARANTINE, UNKNOWN = 0, 1, 2, 3
"""Exit codes of DESIGN 5."""
WORDS = ("healthy", "watch", "quarantine", "unknown")
LINE_MAX = 80
"""Characters that node-problem-detector shows of a message."""
DEFAULT_FILE = Path("/etc/npu-watchd/config.toml")
DEFAULT_RUNTIME_DIR = Path("/run/npu-watchd")
DEFAULT_PROCFS = Path("/proc")
_CODES = {"healthy": HEALTHY, "watch": WATCH, "probation": WATCH, "quarantine": QUARANTINE}
_MOST_BYTES = 4 << 20
_SET_BACK_S = 5.0
"""A verdict from so far in the future was written before the clock was set back."""


@dataclass(frozen=True, slots=True)
class Now:
    """The present, as a file that the daemon wrote can be held against it."""

    wall_s: float
    mono_s: float
    boot_id: str | None


@dataclass(frozen=True, slots=True)
class Answer:
    """What the gate says."""

    code: int
    """Before `--gate quarantine` has turned 1 into 0."""
    state: str
    """The verdict's own state; `unknown` where there is none to go by."""
    line: str
    """One line, at most 80 characters."""
    verdict: dict[str, Any] | None
    """As docs/api.md describes it; None where there is none."""
    age_s: float | None

    def exit_code(self, gate: str) -> int:
        return HEALTHY if gate == "quarantine" and self.code == WATCH else self.code

    def document(self, gate: str) -> str:
        shown = {
            "state": self.state,
            "exit_code": self.exit_code(gate),
            "gate": gate,
            "reason": self.line,
            "age_seconds": self.age_s,
            "verdict": self.verdict,
        }
        return json.dumps(shown, indent=2)


def answer(path: Path, device_id: str | None, now: Now) -> Answer:
    """The newest verdict of the node, or of one device; unknown where nobody can go by it."""
    try:
        return weighed(read(path), device_id, now)
    except FileNotFoundError:
        return unknown("no daemon runs here; start it with: systemctl start npu-watchd")
    except (OSError, ValueError) as error:
        return unknown(f"the verdict cannot be read: {error}")
    except Exception as error:  # noqa: BLE001  # ended by a fault of ours a program exits 1, and that would say watch
        return unknown(f"the verdict cannot be read: {error!r}")


def weighed(document: dict[str, Any], device_id: str | None, now: Now) -> Answer:
    """Likewise of a document that is at hand."""
    age_s, stale = _age(document, now)
    if stale is not None:
        return unknown(stale, age_s)
    found = _chosen(document["verdicts"], device_id)
    if found is None:
        return unknown(f"device {device_id} is not known here", age_s)
    state = str(found["state"])
    code = _CODES.get(state, UNKNOWN)
    # What is watched and cannot be seen is not known to be fit; what is in quarantine stays there.
    if found["blind"] and code in (HEALTHY, WATCH):
        code = UNKNOWN
    return Answer(code, state, _line(WORDS[UNKNOWN] if code == UNKNOWN else state, found), found, age_s)


def read(path: Path) -> dict[str, Any]:
    """The file's document. Raises OSError, and ValueError for what no daemon of ours has written."""
    with path.open("rb") as file:
        raw = file.read(_MOST_BYTES)
    try:
        document: Any = json.loads(raw)
    except ValueError:
        raise ValueError(f"{path} is no JSON; restart the daemon") from None
    good = isinstance(document, dict) and isinstance(document.get("verdicts"), list)
    if not good or not all(isinstance(one, dict) and one.keys() >= _KEYS for one in document["verdicts"]):
        raise ValueError(f"{path} is of another version; restart the daemon")
    if not all(isinstance(document.get(key), int | float) for key in ("at", "monotonic", "stale_after_seconds")):
        raise ValueError(f"{path} is of another version; restart the daemon")
    return dict(document)


_KEYS = frozenset({"subject", "device_id", "state", "own_state", "held", "blind", "reasons", "since", "action"})


def unknown(why: str, age_s: float | None = None) -> Answer:
    return Answer(UNKNOWN, "unknown", _cut(f"unknown: {why}"), None, age_s)


def _age(document: dict[str, Any], now: Now) -> tuple[float, str | None]:
    """How old it is, and why nobody may go by it. Within one boot by a clock that nobody can set."""
    wall_age_s = now.wall_s - document["at"]
    boots = (document.get("boot_id"), now.boot_id)
    if None not in boots and boots[0] != boots[1]:
        return wall_age_s, "the verdict is from before the node's last boot; is the daemon up?"
    age_s = now.mono_s - document["monotonic"] if None not in boots else wall_age_s
    if age_s < -_SET_BACK_S:
        return age_s, "the verdict is from the future: the clock was set back"
    if age_s > document["stale_after_seconds"]:
        return age_s, f"the verdict is {age_s:.0f} s old; is the daemon up?"
    return age_s, None


def _chosen(verdicts: list[dict[str, Any]], device_id: str | None) -> dict[str, Any] | None:
    """A device is no better than the node is for itself."""
    node = next((one for one in verdicts if one["subject"] == "node"), None)
    if device_id is None:
        return node
    device = next((one for one in verdicts if one["device_id"] == device_id), None)
    if device is None or node is None or device["state"] == "quarantine":
        return device
    return {**node, "state": "quarantine"} if node["own_state"] == "quarantine" else device


def _line(word: str, verdict: dict[str, Any]) -> str:
    reasons = [str(one.get("text", "")) for one in verdict["reasons"] if isinstance(one, dict)]
    held = " (held)" if verdict["held"] else ""
    more = f" (+{len(reasons) - 1} more)" if len(reasons) > 1 else ""
    return _cut(f"{word}{held}: {reasons[0]}" if reasons else f"{word}{held}", more)


def _cut(text: str, ending: str = "") -> str:
    """Of the tools' words nothing that could steer a terminal or end the line."""
    plain = "".join(letter if letter.isprintable() else "?" for letter in text)
    room = LINE_MAX - len(ending)
    return (plain if len(plain) <= room else plain[: room - 3].rstrip() + "...") + ending


def present(procfs: Path = DEFAULT_PROCFS) -> Now:
    try:
        boot_id = (procfs / "sys/kernel/random/boot_id").read_text().strip() or None
    except OSError:
        boot_id = None
    return Now(time.time(), time.monotonic(), boot_id)


def main(words: list[str]) -> int | None:
    """`check` with these words after it; None: they ask for more than this gate can do, or are wrong.

    The commands' own parser then takes them: it knows --help, --live and how to complain.
    """
    given: dict[str, str] = {}
    rest = iter(words)
    for word in rest:
        key, joined, value = word.partition("=")
        if key == "--json" and not joined:
            given[key] = ""
        elif key in ("--gate", "--device", "--config") and (value or not joined):
            given[key] = value or next(rest, "")
        else:
            return None
    if given.get("--gate", "watch") not in ("watch", "quarantine") or "" in (
        *(given.get("--device", "-"), given.get("--config", "-")),
    ):
        return None
    places = _places(Path(given["--config"]) if "--config" in given else None)
    if places is None:
        return None
    found = answer(places[0] / NAME, given.get("--device"), present(places[1]))
    gate = given.get("--gate", "watch")
    # Nobody may be there to read the line; the exit code is what a prolog goes by.
    with suppress(OSError, ValueError):
        sys.stdout.write((found.document(gate) if "--json" in given else found.line) + "\n")
        sys.stdout.flush()
    return found.exit_code(gate)


def _places(file: Path | None) -> tuple[Path, Path] | None:
    """Where the daemon's files and /proc are; None where the config does not simply say so."""
    try:
        table = tomllib.loads((file or DEFAULT_FILE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return (DEFAULT_RUNTIME_DIR, DEFAULT_PROCFS) if file is None else None
    except (OSError, ValueError):
        return None
    paths = table.get("paths", {})
    runtime_dir = paths.get("runtime_dir", str(DEFAULT_RUNTIME_DIR)) if isinstance(paths, dict) else None
    procfs = paths.get("procfs", str(DEFAULT_PROCFS)) if isinstance(paths, dict) else None
    if not (isinstance(runtime_dir, str) and isinstance(procfs, str)):
        return None
    return Path(runtime_dir), Path(procfs)


def end(code: int) -> NoReturn:
    """Leave at once: there is nothing to tidy up, and an interpreter takes its time over that."""
    os._exit(code)
