"""Ports that are down, that come and go, or that are slower than they were."""

from __future__ import annotations

from collections.abc import Iterable

from npu_watchd.model.finding import Action, Evidence, Severity
from npu_watchd.model.ids import NODE
from npu_watchd.model.reading import Failure, FailureKind
from npu_watchd.rules.ports import SeenPort, ports
from npu_watchd.rules.rule import Judgement, Polls, Rule, Unseen, Verified, View
from npu_watchd.rules.window import span

_COMES_UP_S = 60.0
"""A port that is down in its first reading after a boot has not fallen: two periods of ibstat, one of hccn_tool."""
_DOWN = Failure(FailureKind.STALE, "a port that is down has no speed")


def _down(view: View) -> Iterable[Judgement]:
    for port in ports(view):
        if port.because is not None:
            yield Unseen(port.key, port.because)
        elif port.up is False:
            since_s = view.history.since(port.state, port.key)
            lasted_s = 0.0 if since_s is None else view.history.now_s - since_s
            limit_s = view.limits["port_down_s"]
            if lasted_s >= limit_s:
                evidence = (
                    Evidence(port.up_metric, 0, 1, "", None, port.check),
                    Evidence("down for", lasted_s, limit_s, "s", None, port.check),
                )
                yield Verified(port.key, f"{port.name} has been down for {span(limit_s)} or longer", evidence)


def _flapping(view: View) -> Iterable[Judgement]:
    for port in ports(view):
        # Both counts look back over hours: that the port cannot be seen just now changes neither.
        found = _flaps(view, port) or _drops(view, port)
        if found is not None:
            yield found
        elif port.because is not None:
            yield Unseen(port.key, port.because)


def _flaps(view: View, port: SeenPort) -> Verified | None:
    window_s, limit = view.limits["flap_window_s"], view.limits["flaps"]
    down = view.history.spells(port.state, port.key, window_s, value=False)
    earliest_s = view.history.now_s - window_s
    boots_s = [view.history.since(name, NODE) or 0.0 for name in view.history.names("boot:", NODE)]
    count = sum(
        spell.ended_s is not None
        and spell.ended_s > earliest_s
        and spell.ended_s - spell.began_s >= view.limits["flap_down_s"]
        # That it takes its time to come up after a boot is no fall of the port.
        and not any(0 <= spell.began_s - boot_s <= _COMES_UP_S for boot_s in boots_s)
        for spell in down
    )
    if count < limit:
        return None
    evidence = Evidence(f"{port.up_metric} 0, then 1 again", count, limit, "", window_s, port.check)
    return Verified(port.key, f"{port.name} went down and came back {count} times in {span(window_s)}", (evidence,))


def _drops(view: View, port: SeenPort) -> Verified | None:
    window_s, limit = view.limits["link_downs_window_s"], view.limits["link_downs"]
    grown = view.grown(port.link_downs_metric, port.key, (), window_s)
    if grown is None or grown < limit:
        return None
    metric = f"increase of {port.link_downs_metric}"
    evidence = Evidence(metric, grown, limit, "", window_s, port.downs_check)
    summary = f"{port.name} lost its link {grown:.0f} times in {span(window_s)}"
    return Verified(port.key, summary, (evidence,))


def _slow(view: View) -> Iterable[Judgement]:
    for port in ports(view):
        peak = view.history.peak(port.speed_metric, port.key, ())
        if port.bits_per_second is None:
            # What is down is another rule's; whether it is slow as well shows when it is up.
            if peak is not None:
                yield Unseen(port.key, port.because or _DOWN)
        elif peak is not None and port.bits_per_second < peak:
            evidence = Evidence(port.speed_metric, port.bits_per_second, peak, "bit/s", None, port.speed_check)
            summary = f"{port.name} runs at {_gbps(port.bits_per_second)}; it has run at {_gbps(peak)}"
            probe = "ibstat" if port.state == "port_up" else "hccn_speed"
            yield Verified(port.key, summary, (evidence,), for_polls=Polls(probe, int(view.limits["slow_polls"])))


def _gbps(bits_per_second: float) -> str:
    return f"{bits_per_second / 1e9:g} Gbit/s"


LINK: tuple[Rule, ...] = (
    Rule(
        "roce_down",
        "RocePortDown",
        Severity.CRITICAL,
        False,
        Action.CHECK_CABLE,
        ("ibstat", "hccn_link"),
        ("port_down_s",),
        "A port that was up, or that the config expects, has been down for four minutes.",
        _down,
    ),
    Rule(
        "roce_flap",
        "RocePortFlapping",
        Severity.WARNING,
        False,
        Action.CHECK_CABLE,
        ("ibstat", "hccn_link", "hccn_link_stat", "rdma_counters"),
        ("flaps", "flap_down_s", "flap_window_s", "link_downs", "link_downs_window_s"),
        "A port keeps losing its link and getting it back.",
        _flapping,
    ),
    Rule(
        "roce_slow",
        "RocePortSlow",
        Severity.WARNING,
        False,
        Action.CHECK_CABLE,
        ("ibstat", "hccn_speed"),
        ("slow_polls",),
        "A port is up at a lower speed than it has had.",
        _slow,
    ),
)
