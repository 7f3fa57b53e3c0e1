"""Metrics that no dashboard shows, and why."""

from __future__ import annotations

from collections.abc import Mapping

WITHOUT_PANEL: Mapping[str, str] = {
    "npu_node_rdma_port_state": "the panel of the host's ports shows up or down; which state it is, the "
    "node's page says",
    "npu_node_rdma_port_physical_state": "likewise",
    "npu_watchd_actions_total": "acting is off by default; every act is a line of the node's journal",
    "npu_watchd_action_blocked": "likewise: what stands in the way of an act is in the journal, once",
    "npu_watchd_actuator_hold": "likewise: who holds the node is the scheduler's to show",
}
