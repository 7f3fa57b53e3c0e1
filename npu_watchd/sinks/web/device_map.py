"""All devices of a large node in a few lines: one link each to its row, which looks as its verdict does."""

from __future__ import annotations

from markupsafe import Markup

from npu_watchd.model.snapshot import Device, Outcome
from npu_watchd.model.verdict import Verdict
from npu_watchd.sinks.web.devices import device_anchor
from npu_watchd.sinks.web.verdicts import LOOKS

_FROM = 9
"""Devices from which on their table is longer than a screen."""


def device_map(outcome: Outcome) -> Markup:
    """The links, in the order of the table; nothing on a small node."""
    snapshot = outcome.snapshot
    if len(snapshot.devices) < _FROM:
        return Markup()
    verdicts = {verdict.subject: verdict for verdict in outcome.verdicts}
    links = Markup("\n").join(_link(snapshot.devices[key], verdicts.get(key)) for key in sorted(snapshot.devices))
    return Markup('<nav id="map" aria-label="Devices by verdict">\n{}\n</nav>').format(links)


def _link(device: Device, verdict: Verdict | None) -> Markup:
    look, word = ("unknown", "no verdict yet") if verdict is None else (LOOKS[verdict.state], verdict.state.value)
    return Markup('<a href="#{}" class="state state-{}" aria-label="device {}: {}">{}</a>').format(
        device_anchor(device), look, device.device_id, word, device.device_id
    )
