"""`npu-watchd status`: the newest snapshot as a table for people, and as an exit code for scripts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from npu_watchd.model.reading import NOT_READ_YET
from npu_watchd.model.verdict import State
from npu_watchd.sinks import verdict_text
from npu_watchd.sinks.plaintext import clean
from npu_watchd.sinks.published_file import STALE_AFTER_S
from npu_watchd.sinks.screen import hanging

Document = Mapping[str, Any]
"""The JSON of `/api/v1/snapshot` (docs/api.md)."""

HEALTHY, WATCH, QUARANTINE, UNKNOWN = 0, 1, 2, 3

_STYLES = {"ok": "green", "warning": "yellow", "alarm": "red", "critical": "bold red", "unknown": "magenta"}
_VERDICT_STYLES = {
    State.HEALTHY: "green",
    State.WATCH: "yellow",
    State.QUARANTINE: "bold red",
    State.PROBATION: "cyan",
    State.UNKNOWN: "magenta",
}
_REASONS_SHOWN = 3
_REASON_MAX = 155
"""Two lines of 80 columns."""
_GIB = 1024**3
NOTHING = "–"
_LINE_MAX = 500
"""Characters of a tool's words that are shown: all of a failure's detail, but not a page."""


def exit_code(document: Document, age_s: float, stale_s: float = STALE_AFTER_S) -> int:
    """0 healthy, 1 watch or probation, 2 quarantine, 3 unknown; of the node's verdict, as `check` counts (DESIGN 5).

    Unknown is also what is stale, what was never judged, and what is watched or on probation while something vital
    cannot be seen.
    """
    verdict = verdict_text.of_node(document)
    if age_s > stale_s or verdict is None:
        return UNKNOWN
    if verdict["state"] == State.QUARANTINE:
        return QUARANTINE
    if verdict["blind"]:
        return UNKNOWN
    return {State.HEALTHY: HEALTHY, State.WATCH: WATCH, State.PROBATION: WATCH}.get(verdict["state"], UNKNOWN)


def rendered(document: Document, age_s: float, stale_s: float = STALE_AFTER_S) -> RenderableType:
    """All that a person needs to see at once, in the width there is."""
    parts: list[RenderableType] = [*_headline(document, age_s, stale_s), _devices(document)]
    verdicts = list(_verdicts(document))
    if verdicts:
        parts.append(Text("\nWhat no finding explains", style="bold"))
        parts.extend(verdicts)
    findings = list(_findings(document))
    if findings:
        parts.append(Text("\nWhat is wrong", style="bold"))
        parts.extend(findings)
    if document["ports"]:
        parts.extend([Text(), _ports(document)])
    jobs = list(_jobs(document))
    if jobs:
        parts.append(Text("\nJobs", style="bold"))
        parts.extend(jobs)
    links = list(_links(document))
    if links:
        parts.append(Text("\nLinks", style="bold"))
        parts.extend(links)
    host = _host(document)
    if host is not None:
        parts.extend([Text("\nHost", style="bold"), host])
    codes = list(_error_codes(document))
    if codes:
        parts.append(Text("\nActive error codes", style="bold"))
        parts.extend(codes)
    blind = list(_blindness(document))
    if blind:
        parts.append(Text("\nWhat we cannot see", style="bold"))
        parts.extend(blind)
    parts.extend(Text(f"! {shown_safely(warning)}", style="yellow") for warning in document["warnings"])
    return Group(*map(hanging, parts))


def _headline(document: Document, age_s: float, stale_s: float) -> Iterator[Text]:
    """The node's verdict with its reasons, then what is there."""
    text, verdict = Text(), verdict_text.of_node(document)
    text.append(shown_safely(document["node"]), style="bold")
    if verdict is None:
        text.append("  no verdict yet", style=_VERDICT_STYLES[State.UNKNOWN])
    else:
        text.append(f"  {verdict_text.state_line(verdict)}", style=_VERDICT_STYLES.get(verdict["state"], ""))
    if age_s > stale_s:
        text.append(f"  STALE: the daemon last wrote this {age_s:.0f} s ago", style="bold red")
    yield text
    if verdict is not None:
        yield from (Text(f"  {line}") for line in verdict_text.reason_lines(verdict, _REASONS_SHOWN, _REASON_MAX))
    present, expected = document["devices_present"], document["devices_expected"]
    yield Text(
        f"{_shown(present)} of {_shown(expected)} devices present"
        f"  npu-smi {shown_safely(document['tool_version'])}  driver {shown_safely(document['driver_version'])}"
    )


def _verdicts(document: Document) -> Iterator[Text]:
    """Parts whose state no finding below accounts for: held, on probation, by a person's word, not seen."""
    standing = {(finding["subject"], finding["rule"]) for finding in document["findings"]}
    for name, part in verdict_text.unhealthy_parts(document):
        if all((part["subject"], reason["rule"]) in standing for reason in part["reasons"]):
            continue
        yield Text(f"  {name}: {verdict_text.state_line(part)}", style=_VERDICT_STYLES.get(part["state"], ""))
        yield from (Text(f"    {line}") for line in verdict_text.reason_lines(part, _REASONS_SHOWN))


def _verdict(verdict: Document | None) -> Text:
    if verdict is None:
        return Text(NOTHING)
    return Text(verdict["state"], style=_VERDICT_STYLES.get(verdict["state"], ""))


def _devices(document: Document) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", collapse_padding=True)
    # The names are short so that all of it fits 80 columns.
    for name in ("id", "NPU", "name", "health", "verdict"):
        table.add_column(name, no_wrap=True)
    for name in ("°C", "W", "AICore", "mem GiB", "1b/2b", "procs"):
        table.add_column(name, justify="right", no_wrap=True)
    for device in document["devices"]:
        table.add_row(*_row(device, verdict_text.of_device(document, device["device_id"])))
    return table


def _row(device: Document, verdict: Document | None) -> Iterator[RenderableType]:
    health = device["health"] if device["present"] is not False else "unknown"
    gone = device["present"] is False
    yield device["device_id"]
    yield f"{device['npu']}.{device['chip']}"
    yield Text(shown_safely(device["name"]))
    yield Text("not present" if gone else health, style=_STYLES["unknown" if gone else health])
    yield _verdict(verdict)
    yield _shown(device["temperature_celsius"].get("chip"), "{:.0f}")
    yield _shown(device["power_watts"], "{:.0f}")
    busy = device["utilization_ratio"]
    yield _shown(busy.get("aicore", busy.get("npu")), "{:.0%}")
    memory = device["memory"].get("hbm") or device["memory"].get("ddr")
    yield f"{_gib(memory['used_bytes'])}/{_gib(memory['total_bytes'])}" if memory else NOTHING
    errors = device["memory_errors"].get("hbm") or device["memory_errors"].get("ddr")
    yield f"{_shown(errors['single_bit'])}/{_shown(errors['double_bit'])}" if errors else NOTHING
    yield _processes(device)


def _processes(device: Document) -> str:
    if device["processes"] is None:
        return NOTHING
    return f"{len(device['processes'])}{'+' if device.get('processes_cut') else ''}"


def _ports(document: Document) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", collapse_padding=True)
    for name in ("host port", "net device", "state", "physical", "verdict"):
        table.add_column(name, no_wrap=True)
    for name in ("Gb/s", "downs", "errors"):
        table.add_column(name, justify="right", no_wrap=True)
    for port in document["ports"]:
        table.add_row(*_port_row(port, verdict_text.of_port(document, port["rdma_device"], port["port"])))
    return table


def _port_row(port: Document, verdict: Document | None) -> Iterator[RenderableType]:
    yield Text(shown_safely(f"{port['rdma_device']}/{port['port']}"))
    yield Text(shown_safely(port["netdev"]))
    if port["present"] is False:
        yield Text("missing", style="red")
    else:
        unused = port["up"] is False and not port["expected"]
        style = "dim" if unused else {True: "green", False: "red", None: "magenta"}[port["up"]]
        yield Text(shown_safely(port["state"]) + (", unused" if unused else ""), style=style)
    yield shown_safely(port["physical_state"])
    yield _verdict(verdict)
    # Of a port that is not up the rate is a leftover or a default.
    yield _shown(port["rate_gbps"] if port["up"] is not False else None, "{:g}")
    yield _shown(port["link_downs"])
    yield _shown(sum(port["errors"].values()) if port["errors"] else None)


def _links(document: Document) -> Iterator[Text]:
    """What is wrong with the devices' own links: a port that is down, a PCIe link on fewer lanes than it could have."""
    for device in document["devices"]:
        port, link = device["roce"], device["pcie_link"]
        if port and port["link_up"] is False:
            yield Text(f"  device {device['device_id']}: its own port is down", style="red")
        if link and link["narrow"]:
            lanes = link["lanes"] if link["path_lanes"] is None else link["path_lanes"]
            yield Text(
                f"  device {device['device_id']}: PCIe is narrow, x{_shown(lanes)} of x{link['path_max_lanes']}",
                style="yellow",
            )


def _findings(document: Document) -> Iterator[Text]:
    """Each finding with the command that checks it; the worst first, as the daemon sorts them."""
    for finding in document["findings"]:
        marks = [finding["severity"], *(("quarantine",) if finding["quarantines"] else ())]
        marks += ["held"] if finding["held"] else []
        style = "red" if finding["severity"] == "critical" else "yellow"
        yield Text(f"  {shown_safely(finding['summary'])}", style=style)
        yield Text(f"    {finding['alert']} ({', '.join(marks)}); next: {finding['action'].replace('_', ' ')}")
        if finding["acknowledged"] is not None:
            yield Text(f"    acknowledged {shown_safely(finding['acknowledged'])}")
        for evidence in finding["evidence"][:1]:
            yield Text(f"    check: {shown_safely(evidence['source'])}", style="dim")


def _jobs(document: Document) -> Iterator[Text]:
    """Who is on which device, and how many processes belong to nobody that is known."""
    for device in document["devices"]:
        jobs = device["jobs"] or {"known": (), "unknown": ()}
        words = [_job(job) for job in jobs["known"]]
        if jobs["unknown"]:
            words.append(f"{len(jobs['unknown'])} processes of unknown jobs")
        if words:
            style = "yellow" if len(jobs["known"]) > 1 else ""
            yield Text(f"  device {device['device_id']}: {', '.join(words)}", style=style)


def _job(job: Document) -> str:
    whose = f" of {shown_safely(job['user'])}" if job["user"] else ""
    told = "".join(f", {name} {shown_safely('/'.join(those))}" for name, those in _patience(job))
    return f"{job['scheduler']} {shown_safely(job['job'])}{whose}, {_gib(job['memory_bytes'])} GiB{told}"


def _patience(job: Document) -> Iterator[tuple[str, list[str]]]:
    """How long its ranks wait for each other, where it was told. A daemon of before does not say."""
    settings = job.get("settings") or {}
    for name in ("HCCL_CONNECT_TIMEOUT", "HCCL_EXEC_TIMEOUT"):
        if settings.get(name):
            yield name.removeprefix("HCCL_").lower().replace("_", " "), settings[name]


def _host(document: Document) -> Text | None:
    """Memory, what work waits for, and how many were killed; nothing where the host was not read."""
    host = document["host"]
    if host is None:
        return None
    free = f"{_gib(host['memory_available_bytes'])} of {_gib(host['memory_total_bytes'])} GiB memory available"
    shm = f"shared memory {_gib(host['shm_used_bytes'])}/{_gib(host['shm_total_bytes'])} GiB"
    waits = [
        f"{resource} {found['some']['avg60_ratio']:.0%}"
        for resource in ("cpu", "memory", "io")
        if (found := host["pressure"].get(resource))
    ]
    killed = _shown(host["oom_kills"], "{} OOM kills since boot")
    return Text(f"  {free}  {shm}\n  waits: {' '.join(waits) or NOTHING}  {killed}")


def _error_codes(document: Document) -> Iterator[Text]:
    for device in document["devices"]:
        if device["error_codes"]:
            yield Text(f"  device {device['device_id']}: {' '.join(device['error_codes'])}")


def _blindness(document: Document) -> Iterator[Text]:
    """Each cause once, with the devices that it concerns."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for probe, failure in document["blind"].items():
        found.setdefault((probe, failure["kind"], failure["detail"]), [])
    for device in document["devices"]:
        for probe, failure in device["blind"].items():
            found.setdefault((probe, failure["kind"], failure["detail"]), []).append(device["device_id"])
    waiting = sorted({probe for probe, _, detail in found if detail == NOT_READ_YET.detail})
    for (probe, kind, detail), ids in sorted(found.items()):
        if detail != NOT_READ_YET.detail:
            whose = f" of device {', '.join(ids)}" if ids else ""
            yield Text(f"  {probe}{whose}: {kind}: {shown_safely(detail)}")
    if waiting:
        yield Text(f"  not read yet, for some devices: {', '.join(waiting)}", style="dim")


def _shown(value: float | str | None, form: str = "{}") -> str:
    return NOTHING if value is None else form.format(value)


def shown_safely(text: str | None) -> str:
    """The tools' words without what could steer the terminal."""
    return clean(text, _LINE_MAX) if text else NOTHING


def _gib(size: int | None) -> str:
    return NOTHING if size is None else f"{size / _GIB:.1f}"
