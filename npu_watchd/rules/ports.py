"""The ports that rules judge: the host's RDMA ports and the NPUs' own, seen alike."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from npu_watchd.model.fabric import PortKey
from npu_watchd.model.ids import DeviceKey
from npu_watchd.model.reading import NOT_READ_YET, Failure
from npu_watchd.rules.rule import View
from npu_watchd.rules.sight import blind, port_blind


@dataclass(frozen=True, slots=True)
class SeenPort:
    """One port, whichever it is."""

    key: PortKey | DeviceKey
    name: str
    up: bool | None
    because: Failure | None
    """Why `up` is None."""
    state: str
    """Name of its state in the history."""
    up_metric: str
    speed_metric: str
    link_downs_metric: str
    bits_per_second: float | None
    check: str
    """The command that shows its state."""
    speed_check: str
    downs_check: str


def ports(view: View) -> Iterator[SeenPort]:
    """All ports that are or should be in use: one that never was up is nobody's loss."""
    for key, port in view.snapshot.ports.items():
        # What was up before the daemon was started anew is missed as well.
        if port.expected or view.history.ever("port_up", key):
            rdma = key.rdma_device
            yield SeenPort(
                key=key,
                name=f"RDMA port {key}",
                up=port.up,
                because=port_blind(view.snapshot, port),
                state="port_up",
                up_metric="npu_node_rdma_port_up",
                speed_metric="npu_node_rdma_port_bits_per_second",
                link_downs_metric="npu_node_rdma_port_link_downs_total",
                bits_per_second=1e9 * port.facts.rate_gbps if port.up and port.facts and port.facts.rate_gbps else None,
                check=f"ibstat {rdma} {key.port}",
                speed_check=f"ibstat {rdma} {key.port}: Rate",
                downs_check=f"cat /sys/class/infiniband/{rdma}/ports/{key.port}/counters/link_downed",
            )
    for npu, device in view.devices():
        if not view.history.ever("npu_port_up", npu):
            continue
        roce, logic_id = device.roce, device.device_id
        up = roce.link_up if roce else None
        yield SeenPort(
            key=npu,
            name=f"device {device.device_id}: its own RoCE port",
            up=up,
            because=None if up is not None else blind(device, "hccn_link") or NOT_READ_YET,
            state="npu_port_up",
            up_metric="npu_device_roce_link_up",
            speed_metric="npu_device_roce_link_bits_per_second",
            link_downs_metric="npu_device_roce_link_downs_total",
            bits_per_second=roce.bits_per_second if roce and up else None,
            check=f"hccn_tool -i {logic_id} -link -g",
            speed_check=f"hccn_tool -i {logic_id} -speed -g",
            downs_check=f"hccn_tool -i {logic_id} -link_stat -g: link down count",
        )
