"""The page as a person has it: in Chromium, from the real server, its time passing when the test says so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from npu_watchd.model.ids import DeviceKey, Subject
from npu_watchd.model.ledger import Account, Growth, Ledger
from npu_watchd.model.snapshot import Outcome
from npu_watchd.sinks.metrics import Exposition
from npu_watchd.sinks.web import Published
from npu_watchd.sinks.web.history import CounterHistory
from tests.browser.chromium import Tab, until
from tests.golden.play import play
from tests.sinks.build import AT
from tests.sinks.serving import Serving

MEMORY, PCIE = "npu_device_memory_errors_total", "npu_device_pcie_errors_total"
HCCS, ROCE = "npu_device_hccs_errors_total", "npu_device_roce_errors_total"

_HELD_TIMERS = """
window.held = new Map();
window.laterMs = 0;
let number = 0;
const now = Date.now;
Date.now = () => now() + window.laterMs;
window.setTimeout = (call, ms) => { number += 1; window.held.set(number, {call, ms}); return number; };
window.clearTimeout = (which) => { window.held.delete(which); };
window.due = () => [...window.held].filter(([, timer]) => timer.ms === 5000 || timer.ms === 10000);
window.hit = [];
"""
"""The script waits for nothing but these."""


def counters(*accounts: Account) -> CounterHistory:
    """A history in which only memory errors have grown."""

    def read(metric: str, subject: Subject | None, since_s: float) -> Ledger:
        return Ledger(accounts if metric == MEMORY else ())

    return CounterHistory((MEMORY, PCIE, HCCS, ROCE), read)


def grown(number: int, *steps: tuple[float, float], kind: str = "single_bit", since_h: float = 48) -> Account:
    """steps: hours ago, and by how much."""
    seen = [(AT.wall_s - ago_h * 3600, by) for ago_h, by in steps]
    points = tuple(Growth(at_s - 60, at_s, at_s, by) for at_s, by in seen)
    labels = (("kind", kind), ("memory", "hbm"))
    return Account(DeviceKey(number), labels, sum(by for _, by in steps), AT.wall_s - since_h * 3600, points)


def look(tab: Tab, run: Serving) -> None:
    """Open the page; from now on its time stands still."""
    tab.call("Page.addScriptToEvaluateOnNewDocument", source=_HELD_TIMERS)
    tab.open(f"http://127.0.0.1:{run.port}/")


def settle(tab: Tab) -> None:
    """Until it has asked for what it wants to know beside the page."""
    until(lambda: tab.js("held.size === due().length"), "nothing is being asked for")


def let_it_refresh(tab: Tab) -> None:
    """Its next turn, to the end."""
    settle(tab)
    tab.js("(() => { laterMs += 10000; for (const [which, timer] of due()) { held.delete(which); timer.call(); } })()")
    until(lambda: tab.js("due().length === 1"), "the page has had its turn")
    settle(tab)


def publish(run: Serving, shown: Outcome) -> None:
    run.published = Published(shown, Exposition(shown, ()))


def text(tab: Tab, selector: str = "body") -> str:
    said: str = tab.js(f"document.querySelector({selector!r})?.innerText ?? ''")
    return said


def row(tab: Tab, device_id: str) -> Mapping[str, str]:
    """Its cells by the titles of their columns."""
    cells: dict[str, Any] = tab.js(
        f"Object.fromEntries([...document.getElementById('device-{device_id}').cells]"
        ".map((cell) => [cell.dataset.title, cell.innerText]))"
    )
    return cells


@lru_cache
def of_scenario(name: str, second: int) -> Outcome:
    """What the sinks are handed then; as fresh as the server's clock has it."""
    with TemporaryDirectory() as directory:
        shown = play(name, [second], Path(directory)).outcomes[second]
    at = replace(shown.snapshot.at, mono_s=AT.mono_s)
    return replace(shown, snapshot=replace(shown.snapshot, at=at))
