"""deploy/grafana/fleet.json: all nodes, and which of them to look at first."""

from __future__ import annotations

from npu_watchd.reference.fleet_alerts import FLEET_ALERTS
from npu_watchd.reference.grafana.dashboard import CLUSTER, DATASOURCE, JOB_CHOICE, Dashboard, Row
from npu_watchd.reference.grafana.expressions import NAME_OF, ONE_IS_BAD, VERDICTS, of_fleet, to_node
from npu_watchd.reference.grafana.panel import Kind, Line, Panel, Query, Shown

_NAMED = f"* on (instance, job) group_left (node) {NAME_OF}"
_FROM_TABLE = to_node("${__data.fields.instance}")
_FROM_SERIES = to_node("${__field.labels.instance}")
_CLUSTER = 'cluster=~"$cluster"'
_ONE_A_NODE = f"topk by (cluster, node) (1, {NAME_OF}{{{_CLUSTER}}})"
"""The address of each node, for links; one, where two daemons claim the same name."""
_NODES, _DEVICES = of_fleet("npu_watchd:node_verdicts:sum"), of_fleet("npu_watchd:device_verdicts:sum")
_QUARANTINED = of_fleet("npu_watchd:node_verdicts:sum", 'state="quarantine"')
_SHARE = next(limit for alert in FLEET_ALERTS for limit in alert.limits if limit.name == "quarantine_share")
_KEPT = of_fleet("npu_watchd:node_quarantine:node")
_LINK_PROBES = 'probe=~"hccn_link|ibstat"'
_PORTS_DOWN = of_fleet("npu_watchd:roce_ports_down:sum")
_PORTS_SEEN = (
    f"({_PORTS_DOWN} > 0 or {_PORTS_DOWN}"
    f" unless on (instance, job) {of_fleet('npu_watchd:blind_probes:count', _LINK_PROBES)})"
)
"""None down counts only where every port could be asked."""
_FINDINGS = of_fleet("npu_watchd:finding_active:node")
_IS_UNKNOWN, _NOT_HEALTHY = 'state="unknown"', 'state!="healthy"'


def _ranked(metric: str, labels: str) -> str:
    """The worst 20, with the address that the link needs where it is known."""
    worst = f"topk(20, {metric}{{{_CLUSTER}}})"
    return f"{worst} * on (cluster, node) group_left (instance) ({_ONE_A_NODE}) or on (cluster, {labels}) {worst}"


def _why(condition: str, why: str) -> str:
    return f'label_replace({condition}, "why", "{why}", "", "")'


_SILENT = _why(f"{of_fleet('up')} == 0", "its daemon does not answer")
_UNKNOWN = _why(f"{of_fleet('npu_watchd_node_verdict', _IS_UNKNOWN)} == 1", "its verdict is unknown")
_BLIND = f"max by (cluster, job, instance, why) ({_SILENT} or {_UNKNOWN})"

_TOP = (
    Panel(
        "Nodes by verdict",
        Kind.STAT,
        "Of the daemons that answer.",
        (Query(f"sum by (state) ({_NODES})", "{{state}}"),),
        width=10,
        height=5,
        coloured=VERDICTS,
    ),
    Panel(
        "Nodes that do not answer",
        Kind.STAT,
        "Prometheus' newest scrape of their daemons failed; what they were last known to be is in the alerts.",
        (Query(f"sum(1 - {of_fleet('up')})"),),
        width=4,
        height=5,
        colours=ONE_IS_BAD,
    ),
    Panel(
        "Devices by verdict",
        Kind.STAT,
        "Of the daemons that answer.",
        (Query(f"sum by (state) ({_DEVICES})", "{{state}}"),),
        width=10,
        height=5,
        coloured=VERDICTS,
    ),
    Panel(
        "Nodes by verdict, over time",
        Kind.SERIES,
        "Of the daemons that answer, and those that do not.",
        (
            Query(f"sum by (state) ({_NODES})", "{{state}}"),
            Query(f"sum(1 - {of_fleet('up')})", "does not answer"),
        ),
        width=14,
        height=8,
        coloured=(*VERDICTS, Shown(0, "does not answer", "text")),
        custom={"lineWidth": 2},
    ),
    Panel(
        "Share in quarantine",
        Kind.SERIES,
        "Of all nodes that Prometheus asks, silent ones included; the alert is NpuFleetQuarantineShare.",
        (Query(f"(count({_KEPT}) or sum({_QUARANTINED})) / count({of_fleet('up')})", "in quarantine"),),
        "percentunit",
        10,
        8,
        lines=(Line(_SHARE, "red", _SHARE.default),),
    ),
)
_WHICH = (
    Panel(
        "Nodes that are not healthy",
        Kind.TABLE,
        "At most 100. The link of a node leads to its dashboard.",
        (
            Query(
                "topk(100, max by (cluster, job, instance, state)"
                f" ({of_fleet('npu_watchd_node_verdict', _NOT_HEALTHY)} == 1)) {_NAMED}"
            ),
        ),
        width=12,
        height=10,
        columns={"node": "node", "state": "verdict", "instance": "instance", "cluster": "cluster"},
        link=_FROM_TABLE,
    ),
    Panel(
        "Blind nodes",
        Kind.TABLE,
        "At most 100 of those about which nothing can be said right now, healthy or not.",
        (Query(f"topk(100, {_BLIND} {_NAMED} or on (instance, job, why) {_BLIND})"),),
        width=12,
        height=10,
        columns={"node": "node", "why": "why", "instance": "instance", "cluster": "cluster"},
        link=_FROM_TABLE,
    ),
    Panel(
        "What they cannot read",
        Kind.TABLE,
        "At most 100 probes whose newest calls failed, with the number of devices they failed for.",
        (Query(f"topk(100, {of_fleet('npu_watchd:blind_probes:count')} {_NAMED})"),),
        width=12,
        height=10,
        columns={"node": "node", "probe": "probe", "Value": "devices", "instance": "instance"},
        link=_FROM_TABLE,
    ),
    Panel(
        "Ports down, by node",
        Kind.STAT,
        "Ports of the NPUs and of the host that are known to be down, the 100 nodes with most; a node whose "
        "ports nobody can see is not here.",
        (Query(f"topk(100, {_PORTS_SEEN} {_NAMED})", "{{node}}"),),
        width=12,
        height=10,
        colours=ONE_IS_BAD,
        custom={"textMode": "value_and_name"},
        link=_FROM_SERIES,
    ),
)
_ALERTS = (
    Panel(
        "Findings by rule",
        Kind.TABLE,
        "That stand now, those of nodes that stopped answering included.",
        (Query(f"count by (rule, severity) ({_FINDINGS})"),),
        height=10,
        columns={"rule": "rule", "severity": "severity", "Value": "findings"},
    ),
    Panel(
        "Findings by rule, over time",
        Kind.SERIES,
        "The same; a gap is none, or no rule file in Prometheus.",
        (Query(f"count by (rule) ({_FINDINGS})", "{{rule}}"),),
        height=10,
    ),
    Panel(
        "Alerts that fire in Prometheus",
        Kind.TABLE,
        "Of deploy/prometheus/npu-watchd.rules.yml, of all clusters; also those that no daemon can raise.",
        (
            Query(
                'count by (alertname, severity) (ALERTS{alertstate="firing", alertname=~"(Npu|Roce).+"})',
            ),
        ),
        height=10,
        columns={"alertname": "alert", "severity": "severity", "Value": "firing"},
    ),
)
_RANKING = (
    Panel(
        "The worst 20 devices and ports of 28 days",
        Kind.TABLE,
        "Days on which a critical finding began. Prometheus must keep 29 days or more; the ranking is made "
        "once an hour.",
        (Query(_ranked("npu_watchd:device_bad_days:28d", "node, device_id, rdma_device, port")),),
        width=12,
        height=10,
        columns={
            "node": "node",
            "device_id": "device",
            "rdma_device": "RDMA device",
            "port": "port",
            "Value": "bad days",
            "instance": "instance",
        },
        link=_FROM_TABLE,
    ),
    Panel(
        "The worst 20 nodes of 28 days",
        Kind.TABLE,
        "Likewise of the node with all its parts.",
        (Query(_ranked("npu_watchd:node_bad_days:28d", "node")),),
        width=12,
        height=10,
        columns={"node": "node", "Value": "bad days", "instance": "instance", "cluster": "cluster"},
        link=_FROM_TABLE,
    ),
)
_VERSIONS = (
    Panel(
        "Drivers and tools",
        Kind.TABLE,
        "How many nodes have which.",
        (Query(f"count by (driver, npu_smi, firmware) ({of_fleet('npu_node_info')})"),),
        width=10,
        columns={"driver": "driver", "npu_smi": "npu-smi", "firmware": "firmware", "Value": "nodes"},
    ),
    Panel(
        "Chips and firmware",
        Kind.TABLE,
        "How many devices have which.",
        (Query(f"count by (name, firmware) ({of_fleet('npu_device_info')})"),),
        width=8,
        columns={"name": "chip", "firmware": "firmware", "Value": "devices"},
    ),
    Panel(
        "Versions of npu-watchd",
        Kind.TABLE,
        "How many nodes have which.",
        (Query(f"count by (version) ({of_fleet('npu_watchd_build_info')})"),),
        width=6,
        columns={"version": "version", "Value": "nodes"},
    ),
)

FLEET = Dashboard(
    "npu-watchd-fleet",
    "Ascend NPU fleet",
    "All nodes: verdicts, what is wrong where, the worst of the last weeks, versions. It needs deploy/prometheus/"
    "npu-watchd.rules.yml in Prometheus.",
    (DATASOURCE, CLUSTER, JOB_CHOICE),
    (),
    (
        Row("", _TOP),
        Row("Which nodes", _WHICH),
        Row("Alerts", _ALERTS),
        Row("The worst", _RANKING),
        Row("Versions", _VERSIONS),
    ),
    "24h",
)
