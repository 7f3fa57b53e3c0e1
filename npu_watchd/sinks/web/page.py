"""The node's page: one HTML document that needs no other host, and of which a script keeps what it shows up to date."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable
from datetime import UTC, datetime
from importlib.resources import files

from markupsafe import Markup

from npu_watchd.model.finding import Severity
from npu_watchd.model.snapshot import HEALTH_STATES, Outcome, Port, Snapshot
from npu_watchd.model.verdict import State
from npu_watchd.sinks.plaintext import clean
from npu_watchd.sinks.web.blindspots import blind_section
from npu_watchd.sinks.web.device_map import device_map
from npu_watchd.sinks.web.devices import devices_section
from npu_watchd.sinks.web.findings import findings_section
from npu_watchd.sinks.web.host import host_section
from npu_watchd.sinks.web.npu_ports import npu_ports_section
from npu_watchd.sinks.web.pcie import pcie_section, pcie_sockets_section
from npu_watchd.sinks.web.ports import ports_section
from npu_watchd.sinks.web.probes import probes_section
from npu_watchd.sinks.web.table import section
from npu_watchd.sinks.web.timeline import events_section
from npu_watchd.sinks.web.verdicts import node_section, node_verdict, parts_section, verdict_cells

REFRESH_S = 15

_STYLE = Markup(files("npu_watchd.sinks.web").joinpath("static/page.css").read_text(encoding="utf-8"))  # noqa: S704  # our own file
_STYLE_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()

SCRIPT_PATH = "/page.js"
SCRIPT = files("npu_watchd.sinks.web").joinpath("static/page.js").read_bytes()
EDITION = hashlib.sha256(_STYLE.encode() + SCRIPT).hexdigest()[:12]
"""Of style sheet and script: a browser keeps the script for as long as it is the page's own."""

CONTENT_SECURITY_POLICY = (
    f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; script-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""Nothing but this one style sheet and our own script, which may ask nobody but us."""

_WORST_FIRST = ("critical", "alarm", "unknown", "warning", "ok")
"""What cannot be seen may be worse than a warning."""

_PAGE = Markup("""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<noscript><meta http-equiv="refresh" content="{refresh}"></noscript>
<title>{title} · {node} · npu-watchd</title>
<link rel="icon" href="data:,">
<style>{style}</style>
<script src="{script}" defer></script>
</head>
<body>
<a class="skip" href="#main">To what is wrong</a>
<p id="lost" class="stale" role="alert" hidden></p>
<header>
<h1>{node}</h1>
{verdict}
<div role="status"><p class="summary state-{look}">{summary}</p><span class="unseen">{spoken}</span></div>
<p class="counts">{counts}</p>
{stale}
</header>
<main id="main" tabindex="-1">
{sections}
</main>
<footer>
<p>As of <time datetime="{iso}">{at}</time>. <span id="pace"></span>
<noscript>This page loads itself anew every {refresh} s.</noscript></p>
<p>{versions}</p>
<nav aria-label="For programs"><a href="/metrics">Metrics</a> · <a href="/api/v1/snapshot">Snapshot as JSON</a> ·
<a href="/api/v1/verdicts">Verdicts</a> · <a href="/api/v1/findings">Findings</a> ·
<a href="/api/v1/events">Events</a> ·
<a href="/-/ready">Ready</a> · <a href="/-/healthy">Healthy</a></nav>
</footer>
</body>
</html>
""")


def render_page(outcome: Outcome, *, stale_s: float | None = None) -> bytes:
    """The document as UTF-8.

    `stale_s`: the cycle is that old although the server still answers, so the page says that it shows the past.
    """
    snapshot = outcome.snapshot
    at = datetime.fromtimestamp(snapshot.at.wall_s, UTC)
    page = _PAGE.format(
        node=clean(snapshot.node, 256),
        title=_title(outcome),
        verdict=node_section(outcome),
        summary=summary(outcome),
        look=_look(outcome),
        spoken=_spoken(outcome),
        counts=_counts(snapshot),
        stale=_stale(stale_s),
        sections=Markup("\n").join(_sections(outcome)),
        versions=_versions(outcome),
        iso=at.isoformat(timespec="seconds"),
        at=at.strftime("%Y-%m-%d %H:%M:%S UTC"),
        refresh=REFRESH_S,
        style=_STYLE,
        script=f"{SCRIPT_PATH}?{EDITION}",
    )
    return page.encode(errors="replace")


def summary(outcome: Outcome) -> str:
    """One line: how many devices are here and can be seen, the worst health, the links that are down, the findings."""
    snapshot = outcome.snapshot
    return ", ".join([_devices(snapshot), *_links_down(snapshot), *_found(outcome)])


def _title(outcome: Outcome) -> str:
    """The verdict comes first: a tab shows no more than a few letters."""
    verdict = node_verdict(outcome)
    return f"{verdict.state}: {summary(outcome)}" if verdict is not None else summary(outcome)


def _spoken(outcome: Outcome) -> str:
    """Said by a screen reader after the summary, when either changes."""
    verdict = node_verdict(outcome)
    return "The node has no verdict yet." if verdict is None else f"The node's verdict is {verdict.state}."


def _found(outcome: Outcome) -> Iterable[str]:
    count = len(outcome.findings)
    if count:
        yield f"{count} finding{'s' if count > 1 else ''}"


def _devices(snapshot: Snapshot) -> str:
    if not snapshot.devices:
        return "No devices seen"
    expected = len(snapshot.devices) if snapshot.devices_expected is None else snapshot.devices_expected
    if snapshot.devices_present is None:
        present = f"Nobody knows how many of {expected} devices are present"
    else:
        present = f"{snapshot.devices_present} of {expected} devices present"
    blind = sum(1 for device in snapshot.devices.values() if device.blind)
    return f"{present}, {blind} blind, worst health: {_worst(snapshot)}"


def _links_down(snapshot: Snapshot) -> Iterable[str]:
    ports = len(_missed_ports(snapshot))
    links = sum(1 for device in snapshot.devices.values() if device.roce and device.roce.link_up is False)
    if ports:
        yield f"{ports} host port{'s' if ports > 1 else ''} down"
    if links:
        yield f"{links} NPU link{'s' if links > 1 else ''} down"


def _missed_ports(snapshot: Snapshot) -> list[Port]:
    return [port for port in snapshot.ports.values() if port.expected and port.up is False]


def _look(outcome: Outcome) -> str:
    """The colour of the summary: never a calmer one than the worst finding's, or the worst verdict's."""
    worst = _worst(outcome.snapshot)
    critical = [finding for finding in outcome.findings if finding.severity is Severity.CRITICAL]
    out_of_use = any(verdict.state is State.QUARANTINE for verdict in outcome.verdicts)
    if out_of_use or any(finding.quarantines for finding in critical):
        return "critical"
    if critical and worst != "critical":
        return "alarm"
    return "warning" if worst == "ok" and (outcome.findings or _missed_ports(outcome.snapshot)) else worst


def _worst(snapshot: Snapshot) -> str:
    states = {device.health for device in snapshot.devices.values()}
    return next((state for state in _WORST_FIRST if state in states), "unknown")


def _counts(snapshot: Snapshot) -> Markup:
    healths = [device.health for device in snapshot.devices.values()]
    chips = [
        Markup('<span class="state state-{state}">{count} {state}</span>').format(state=state, count=count)
        for state in HEALTH_STATES
        if (count := healths.count(state))
    ]
    return Markup(" ").join(chips)


def _stale(stale_s: float | None) -> Markup:
    if stale_s is None:
        return Markup()
    return Markup(
        '<p class="stale" role="alert">This is the past: the last cycle ended {minutes:.0f} min ago and no newer one '
        "came. Look at the daemon: systemctl status npu-watchd, journalctl -u npu-watchd.</p>"
    ).format(minutes=max(1.0, stale_s / 60))


def _sections(outcome: Outcome) -> Iterable[Markup]:
    snapshot, verdicts = outcome.snapshot, verdict_cells(outcome)
    yield parts_section(outcome)
    yield findings_section(outcome)
    if snapshot.devices:
        yield device_map(outcome)
        yield devices_section(snapshot, verdicts)
    yield blind_section(snapshot)
    yield _warnings(snapshot)
    yield ports_section(snapshot, verdicts)
    yield npu_ports_section(snapshot)
    yield pcie_section(snapshot)
    yield pcie_sockets_section(snapshot)
    yield host_section(snapshot)
    yield probes_section(snapshot)
    yield events_section(outcome.journal)


def _warnings(snapshot: Snapshot) -> Markup:
    if not snapshot.warnings:
        return Markup()
    lines = Markup("").join(
        Markup("<li><code>{}</code></li>\n").format(clean(line, 1000)) for line in snapshot.warnings
    )
    return section("warnings", "What the tools add", Markup("<ul>\n{}</ul>").format(lines))


def _versions(outcome: Outcome) -> str:
    snapshot = outcome.snapshot
    named = (
        ("npu-watchd", outcome.engine.version),
        ("npu-smi", snapshot.tool_version),
        ("driver", snapshot.driver_version),
        ("firmware", snapshot.firmware_version),
    )
    return " · ".join(f"{name} {clean(version, 100) if version else '–'}" for name, version in named)
