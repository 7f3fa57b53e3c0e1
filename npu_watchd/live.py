"""`npu-watchd check --live`: one look at the node by ourselves, where no daemon runs."""

from __future__ import annotations

import threading
from collections.abc import Callable

import msgspec

from npu_watchd import __version__, config, gate
from npu_watchd.daemon import boot_id_of, clock
from npu_watchd.decide.cycle import Judging
from npu_watchd.docket import overrides_of
from npu_watchd.lanes import Lanes
from npu_watchd.memory.history import History
from npu_watchd.model.reading import NOT_READ_YET
from npu_watchd.model.snapshot import Engine, Outcome, Snapshot
from npu_watchd.rules import RULES
from npu_watchd.rules.rule import Site
from npu_watchd.sinks.verdict_file import verdict_json
from npu_watchd.sources.runner import ToolRunner

Say = Callable[[str], None]

MOST_S = 120.0
"""For all devices of the largest node, where each call takes a second; what has not answered by then is unknown."""
_QUIET_S = 2.0
"""After which somebody at a terminal wants to see that it goes on."""


def answer_now(settings: config.Config, device_id: str | None, say: Say = lambda _: None) -> gate.Answer:
    """The verdict on what the tools say now: level rules alone, since nothing is known of what was.

    say: told of the progress, from the second second on.
    """
    began = clock()
    snapshot = _look(settings, say)
    judging = Judging(History(), RULES, config.limits_of(settings), settings.rules.off, Site(overrides_of(settings)))
    judging.bench.node_when = settings.quarantine.node_when
    judged = judging.step(snapshot, snapshot.at.wall_s, {})
    engine = Engine(__version__, None, True, began.wall_s, None)
    outcome = Outcome(snapshot, engine, judged.findings, judged.events, judged.verdicts)
    document = msgspec.json.decode(verdict_json(outcome, MOST_S))
    return gate.weighed(document, device_id, gate.Now(snapshot.at.wall_s, snapshot.at.mono_s, snapshot.boot_id))


def _look(settings: config.Config, say: Say) -> Snapshot:
    """Until all that is vital was asked once, or the time is up."""
    halt, answered = threading.Event(), threading.Event()
    runner = ToolRunner(clock=lambda: clock().mono_s)
    lanes = Lanes(settings, boot_id_of(settings), runner.run, clock, halt, jitter=lambda: 0.0)
    began_s = clock().mono_s
    lanes.start(lambda _: answered.set(), lambda _: None)
    try:
        while True:
            answered.wait(1.0)
            answered.clear()
            now = clock()
            snapshot = lanes.board.snapshot(now, lanes.periods_s().get)
            waits = _waiting(snapshot)
            if not waits or now.mono_s - began_s > MOST_S:
                return snapshot
            if now.mono_s - began_s > _QUIET_S:
                say(f"asking the tools: {waits}")
    finally:
        halt.set()
        runner.close()


def _waiting(snapshot: Snapshot) -> str:
    """Whom we still wait for; "": for nobody."""
    if snapshot.blind.get("npu_info") is NOT_READ_YET or (not snapshot.devices and not snapshot.blind):
        return "npu-smi info"
    waiting = [
        device.device_id
        for device in snapshot.devices.values()
        if any(failure is NOT_READ_YET for probe, failure in device.blind.items() if probe in device.vital)
    ]
    return f"device {', '.join(waiting)}" if waiting else ""
