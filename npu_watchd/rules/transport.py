"""What goes wrong on a port that is up: errors on the wire and in the transport, and light that fades."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from npu_watchd.memory.history import Labels
from npu_watchd.model.fabric import Limits as ModuleLimits
from npu_watchd.model.fabric import OpticalLane, OpticalModule
from npu_watchd.model.finding import Action, Evidence, Severity
from npu_watchd.model.ids import Subject
from npu_watchd.model.reading import Failure, FailureKind
from npu_watchd.model.snapshot import Device
from npu_watchd.rules.rule import Judgement, Polls, Rule, Unseen, Verified, View
from npu_watchd.rules.sight import blind, port_blind, unread
from npu_watchd.rules.window import span

_NO_LINK = Failure(FailureKind.STALE, "its port has no link, and the other end may be dark")


@dataclass(frozen=True, slots=True)
class Counter:
    """One error counter and the limit on its rate."""

    name: str
    limit: str
    per_s: float | None = 1.0
    """Seconds that the limit is about; None: the limit is on the count in the window."""


HOST_COUNTERS = (
    Counter("symbol_error", "symbol_errors_per_hour", 3600.0),
    Counter("link_error_recovery", "link_recoveries_per_minute", 60.0),
    Counter("port_rcv_errors", "receive_errors_per_second"),
    Counter("port_xmit_discards", "discards_per_second"),
    Counter("local_ack_timeout_err", "ack_timeouts_per_second"),
    Counter("local_link_integrity_errors", "integrity_errors", per_s=None),
    Counter("excessive_buffer_overrun_errors", "integrity_errors", per_s=None),
)
NPU_COUNTERS = (
    Counter("receive_fcs", "npu_crc_errors_per_second"),
    Counter("crc", "npu_crc_errors_per_second"),
    Counter("retry", "npu_retries_per_second"),
)


def _errors(view: View) -> Iterable[Judgement]:
    for key, port in view.snapshot.ports.items():
        metric, label = "npu_node_rdma_port_errors_total", "counter"
        folder = f"/sys/class/infiniband/{key.rdma_device}/ports/{key.port}"
        evidence = tuple(_climbing(view, key, metric, label, HOST_COUNTERS, f"cat {folder}/{{counters,hw_counters}}"))
        if evidence:
            yield _climb(key, f"RDMA port {key}", evidence)
        elif port.counters is None:
            because = view.snapshot.blind.get("rdma_counters") or port_blind(view.snapshot, port)
            if because is not None:
                yield Unseen(key, because)
    for npu, device in view.devices():
        metric, label = "npu_device_roce_errors_total", "kind"
        check = f"hccn_tool -i {device.device_id} -stat -g"
        evidence = tuple(_climbing(view, npu, metric, label, NPU_COUNTERS, check))
        because = blind(device, "hccn_stat")
        if because is not None:
            yield Unseen(npu, because)
        elif evidence:
            yield _climb(npu, f"device {device.device_id}: its own RoCE port", evidence)


def _climb(key: Subject, name: str, evidence: tuple[Evidence, ...]) -> Verified:
    worst = evidence[0]
    window = span(worst.window_s or 0)
    summary = f"{name}: {worst.metric.removeprefix('increase of ')} grew by {worst.observed:.0f} in {window}"
    return Verified(key, f"{summary} (limit {worst.limit:.0f})", evidence)


def _climbing(
    view: View, key: Subject, metric: str, label: str, counters: Iterable[Counter], check: str
) -> Iterator[Evidence]:
    window_s = view.limits["port_errors_window_s"]
    for counter in counters:
        grown = _grown(view, key, metric, ((label, counter.name),), window_s, rate=counter.per_s is not None)
        limit = view.limits[counter.limit] * (window_s / counter.per_s if counter.per_s else 1)
        if ("roce_errors", key) in view.active and counter.per_s:
            limit /= 2
        if grown is not None and grown >= limit:
            name = f'increase of {metric}{{{label}="{counter.name}"}}'
            yield Evidence(name, grown, limit, "", window_s, check)


def _grown(view: View, key: Subject, metric: str, labels: Labels, window_s: float, *, rate: bool) -> float | None:
    """What a rate is held against; where one is too many, all that was seen in the window, whenever it came."""
    if rate:
        return view.grown(metric, key, labels, window_s)
    found = view.history.increase(metric, key, labels, window_s)
    return found.count if found else None


def _optics(view: View) -> Iterable[Judgement]:
    for key, device in view.devices():
        module = device.roce.optical if device.roce else None
        because = blind(device, "hccn_optical") or unread(device, "hccn_optical", module)
        if because is not None:
            yield Unseen(key, because)
            continue
        if module is None or module.present is False or device.roce is None:
            continue
        if device.roce.link_up is False:
            # The other end may be dark: that is the other rule's, and no sign of this module. Nor is it mended by it.
            yield Unseen(key, _NO_LINK)
            continue
        evidence = tuple(_faults(view, device, module))
        if evidence:
            worst = evidence[0]
            summary = f"device {device.device_id}: {worst.metric} is {_shown(worst)}"
            polls = Polls("hccn_optical", int(view.limits["optical_polls"]))
            yield Verified(key, summary, evidence, for_polls=polls)


def _shown(evidence: Evidence) -> str:
    if isinstance(evidence.observed, str):
        return evidence.observed
    return f"{1000 * evidence.observed:.4g} mW (limit {1000 * float(evidence.limit or 0):.4g} mW)"


def _faults(view: View, device: Device, module: OpticalModule) -> Iterator[Evidence]:
    check = f"hccn_tool -i {device.device_id} -optical -g"
    for lane in module.lanes:
        yield from _lost(lane, check)
        for way, watts, own in (
            ("receive", lane.receive_watts, module.receive_limits),
            ("transmit", lane.transmit_watts, module.transmit_limits),
        ):
            low, high = _range(view, way, own)
            if watts is not None and not low <= watts <= high:
                metric = f'npu_device_optical_power_watts{{lane="{lane.lane}",direction="{way}"}}'
                limit = low if watts < low else high
                yield Evidence(metric, watts, limit, "watts", None, check)


def _lost(lane: OpticalLane, check: str) -> Iterator[Evidence]:
    flags = {"transmit LOS": lane.transmit_los, "receive LOS": lane.receive_los, "transmit fault": lane.transmit_fault}
    for name, raised in flags.items():
        if raised:
            yield Evidence(f"{name} of lane {lane.lane}", "raised by the module", "not raised", "", None, check)


def _range(view: View, way: str, own: ModuleLimits) -> tuple[float, float]:
    """What the module itself says, its warning before its alarm; ours where it says nothing."""
    low = own.low_warning if own.low_warning is not None else own.low_alarm
    high = own.high_warning if own.high_warning is not None else own.high_alarm
    return (
        view.limits[f"optical_{way}_low_watts"] if low is None else low,
        view.limits[f"optical_{way}_high_watts"] if high is None else high,
    )


TRANSPORT: tuple[Rule, ...] = (
    Rule(
        "roce_errors",
        "RocePortErrorsClimbing",
        Severity.WARNING,
        False,
        Action.CHECK_CABLE,
        ("rdma_counters", "hccn_stat"),
        ("port_errors_window_s", *dict.fromkeys(counter.limit for counter in (*HOST_COUNTERS, *NPU_COUNTERS))),
        "Errors or retransmissions on a port climb faster than a sound link lets them.",
        _errors,
        calm_s=600.0,
    ),
    Rule(
        "optics",
        "NpuOpticsDegraded",
        Severity.WARNING,
        False,
        Action.CHECK_OPTICS,
        ("hccn_optical",),
        (
            "optical_receive_low_watts",
            "optical_receive_high_watts",
            "optical_transmit_low_watts",
            "optical_transmit_high_watts",
            "optical_polls",
        ),
        "The optical module of an NPU's port sends or receives too little or too much light, or says that it lost it.",
        _optics,
    ),
)
