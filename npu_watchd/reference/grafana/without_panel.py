"""Metrics that no dashboard shows, and why."""

from __future__ import annotations

from collections.abc import Mapping

WITHOUT_PANEL: Mapping[str, str] = {
    "npu_node_rdma_port_state": "the panel of the host's ports shows up or down; which state it is, the "
    "node's page says",
    "npu_node_rdma_port_physical_state": "likewise",
}
