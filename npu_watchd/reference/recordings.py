"""Series that Prometheus computes for the alerts and for the ranking of nodes."""

from __future__ import annotations

from dataclasses import dataclass

from npu_watchd.reference.fleet_alerts import NAMED, UP

_SUBJECT = "cluster, node, device_id, rdma_device, port"
_BEGAN = "npu_watchd:finding_began:critical"


@dataclass(frozen=True, slots=True)
class Recording:
    """One recording rule."""

    record: str
    expr: str
    what: str
    """One line for the file and for docs/alerts.md."""


RECORDINGS: tuple[Recording, ...] = (
    Recording(
        "npu_watchd:node_info:last",
        "max by (cluster, instance, job, node) (npu_node_info)"
        " or on (instance, job) (npu_watchd:node_info:last and on (instance, job) up)",
        "The node's name of each target, kept while the target does not answer.",
    ),
    Recording(
        "npu_watchd:finding_active:node",
        f"npu_watchd_finding_active {NAMED} npu_node_info"
        " or (npu_watchd:finding_active:node and on (instance, job) up == 0)",
        "Every finding with its node's name; kept while the target does not answer, since silence mends nothing.",
    ),
    Recording(
        _BEGAN,
        'npu_watchd:finding_active:node{severity="critical"} unless npu_watchd:finding_active:node offset 10m'
        " and on (instance, job) up offset 10m == 1",
        "Critical findings that were not there ten minutes ago, when their daemon did answer.",
    ),
    Recording(
        "npu_watchd:node_quarantine:node",
        f'(npu_watchd_node_verdict{{state="quarantine"}} == 1) {NAMED} npu_node_info'
        " or (npu_watchd:node_quarantine:node and on (instance, job) up == 0)",
        "Nodes whose verdict is quarantine; kept while the target does not answer, since only a person ends it.",
    ),
    Recording(
        "npu_watchd:quarantine_candidates:nodes",
        "count(count by (node) (npu_watchd:node_quarantine:node)) or vector(0)",
        "Nodes whose verdict is quarantine.",
    ),
    Recording(
        "npu_watchd:quarantine_candidates:share",
        f"npu_watchd:quarantine_candidates:nodes / count({UP})",
        "The same as a share of all nodes that Prometheus asks.",
    ),
)
"""Evaluated in this order, before the alerts of the same group."""

RANKING: tuple[Recording, ...] = (
    Recording(
        "npu_watchd:device_bad_days:28d",
        f"count_over_time((max by ({_SUBJECT}) (max_over_time({_BEGAN}[1d])))[28d:1d])",
        "Of the last 28 days (UTC), those on which a critical finding of the device or port began.",
    ),
    Recording(
        "npu_watchd:node_bad_days:28d",
        f"count_over_time((max by (cluster, node) (max_over_time({_BEGAN}[1d])))[28d:1d])",
        "Likewise of the node with all its parts: `topk(20, …)` is the ranking of lemons.",
    ),
)
"""Once an hour; Prometheus must keep 29 days or more."""

FOR_DASHBOARDS: tuple[Recording, ...] = (
    Recording(
        "npu_watchd:node_verdicts:sum",
        "sum by (cluster, job, state) (npu_watchd_node_verdict)",
        "Nodes by verdict, of the daemons that answer.",
    ),
    Recording(
        "npu_watchd:device_verdicts:sum",
        "sum by (cluster, job, state) (npu_watchd_device_verdict)",
        "Devices by verdict, likewise: of 2,000 nodes with 16 devices each 160,000 series.",
    ),
    Recording(
        "npu_watchd:roce_ports_down:sum",
        "sum by (cluster, job, instance) (1 - npu_device_roce_link_up or 1 - npu_node_rdma_port_up)",
        "Ports of each node that are known to be down; absent where nobody can tell of any.",
    ),
    Recording(
        "npu_watchd:blind_probes:count",
        "count by (cluster, job, instance, probe) (npu_watchd_probe_up == 0)",
        "Probes of each node whose newest calls failed, and for how many devices.",
    ),
)
"""What the fleet's dashboard would otherwise read more than 50,000 series for, each time that somebody looks."""
