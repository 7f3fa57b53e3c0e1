"""`npu-watchd check --live`: one look at the node by ourselves, where no daemon runs."""

from __future__ import annotations

import threading
from collections.abc import Callable

import msgspec

from npu_watchd import __version__, config, gate
from npu_watchd.chips import profile_of
from npu_watchd.daemon import clock
from npu_watchd.decide.cycle import Judging
from npu_watchd.docket import overrides_of
from npu_watchd.lanes import Lanes, boot_id_of
from npu_watchd.memory.history import History
from npu_watchd.model.reading import NOT_READ_YET
from npu_watchd.model.snapshot import Engine, NpuPort, Outcome, Snapshot
from npu_watchd.rules import RULES
from npu_watchd.rules.rule import Site
from npu_watchd.sinks.verdict_file import verdict_json
from npu_watchd.sources.runner import ToolRunner

Say = Callable[[str], None]

MOST_S = 120.0
"""For all devices of the largest node, where each call takes a second; what has not answered by then is unknown."""
_LESSER_S = 30.0
"""hccn_tool takes a second a device and question, one after another; what it has not told by then is unknown."""
_QUIET_S = 2.0
"""After which somebody at a terminal wants to see that it goes on."""


def answer_now(settings: config.Config, device_id: str | None, say: Say = lambda _: None) -> gate.Answer:
    """The verdict on what the tools say now: level rules alone, since nothing is known of what was.

    say: told of the progress, from the second second on.
    """
    outcome = look_now(settings, say)
    document = msgspec.json.decode(verdict_json(outcome, MOST_S))
    at = outcome.snapshot.at
    return gate.weighed(document, device_id, gate.Now(at.wall_s, at.mono_s, outcome.snapshot.boot_id))


def look_now(settings: config.Config, say: Say = lambda _: None, *, whole: bool = False) -> Outcome:
    """The node as the tools show it now, and its verdict.

    whole: wait for ports, versions and the host as well, which no verdict needs, but for no longer than 30 s.
    """
    began = clock()
    snapshot = _look(settings, say, _LESSER_S if whole else 0.0)
    judging = Judging(History(), RULES, config.limits_of(settings), settings.rules.off, Site(overrides_of(settings)))
    judging.bench.node_when = settings.quarantine.node_when
    judged = judging.step(snapshot, snapshot.at.wall_s, {})
    engine = Engine(__version__, None, True, began.wall_s, None)
    return Outcome(snapshot, engine, judged.findings, judged.events, judged.verdicts)


def _look(settings: config.Config, say: Say, lesser_s: float) -> Snapshot:
    """Until all that is vital was asked once, and so long for the rest, or the time is up."""
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
            waits = _waiting(snapshot) or (_waiting_for_more(snapshot) if now.mono_s - began_s < lesser_s else "")
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


def _waiting_for_more(snapshot: Snapshot) -> str:
    """Likewise of what no verdict rests on."""
    if snapshot.installed is None and snapshot.blind.get("versions") is NOT_READ_YET:
        return "versions"
    waiting = [
        device.device_id
        for device in snapshot.devices.values()
        if device.present
        and {"hccn_link", "hccn_speed"} & profile_of(device.identity.name).probes
        and not {"hccn_link", "hccn_speed"} & (device.blind.keys() | device.unsupported.keys())
        and (device.roce is None or device.roce.link_up is None or _without_speed(device.roce))
    ]
    return f"port of device {', '.join(waiting)}" if waiting else ""


def _without_speed(port: NpuPort) -> bool:
    """A link that is down has none."""
    return port.link_up is True and port.bits_per_second is None
