"""Small builders of the fabric: host port, NPU port and PCIe link, all well, with what a test wants changed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from npu_watchd.model.fabric import (
    Limits,
    NpuPortStatistics,
    OpticalLane,
    OpticalModule,
    PortCounters,
    PortKey,
    RdmaPort,
)
from npu_watchd.model.pcie import PcieErrors, PcieLink
from npu_watchd.model.snapshot import NpuPort, Port

ROOT_PORT, NPU = "0000:c0:01.0", "0000:c1:00.0"


def host_port(name: str = "mlx5_0", *, expected: bool = True, **facts: Any) -> Port:
    """An Active port of 200 Gb/s; `facts` change what ibstat says of it."""
    key = PortKey(name, 1)
    well = RdmaPort(
        ca=name,
        port=1,
        firmware="20.43.1014",
        state="Active",
        physical_state="LinkUp",
        rate_gbps=200.0,
        link_layer="Ethernet",
    )
    counters = PortCounters(
        key,
        errors={"symbol_error": 0, "out_of_sequence": 0},
        bytes={"receive": 4096, "transmit": 8192},
        link_downs=0,
        netdev="ens21np0",
    )
    return Port(key, present=True, expected=expected, facts=replace(well, **facts), counters=counters)


def down_port(name: str = "mlx5_0", *, expected: bool = True) -> Port:
    return host_port(name, expected=expected, state="Down", physical_state="Disabled", rate_gbps=40.0)


def missing_port(name: str = "mlx5_0") -> Port:
    return Port(PortKey(name, 1), present=False, expected=True, facts=None, counters=None)


def unseen_port(name: str = "mlx5_0") -> Port:
    """Expected, and nobody could read whether it is there."""
    return Port(PortKey(name, 1), present=None, expected=True, facts=None, counters=None)


def ports(*which: Port) -> dict[PortKey, Port]:
    return {port.key: port for port in which}


def lane(number: int, receive_watts: float | None = 0.00093, **changes: Any) -> OpticalLane:
    lit = OpticalLane(number, transmit_watts=0.00105, receive_watts=receive_watts, receive_los=False)
    return replace(lit, **changes)


def module(*lanes: OpticalLane, **changes: Any) -> OpticalModule:
    """A module that wants at least 0.1 mW in, and at most 72 °C."""
    well = OpticalModule(
        present=True,
        temperature_celsius=41.0,
        lanes=lanes or (lane(0), lane(1)),
        temperature_limits=Limits(high_warning=72.0, low_warning=-2.0),
        receive_limits=Limits(high_warning=0.002, low_warning=0.0001),
    )
    return replace(well, **changes)


def npu_port(**changes: Any) -> NpuPort:
    well = NpuPort(
        link_up=True,
        link_downs=0,
        bits_per_second=200_000_000_000,
        reachability="success",
        statistics=NpuPortStatistics(
            packets={"receive": 9001, "transmit": 8002}, errors={"receive_fcs": 0}, retries=0, pfc_frames={"receive": 3}
        ),
        optical=module(),
    )
    return replace(well, **changes)


def pcie_link(**changes: Any) -> PcieLink:
    """x16 at 16 GT/s, as the path allows; the device itself could do 32."""
    return replace(PcieLink(NPU, (ROOT_PORT, NPU), 16e9, 32e9, 16, 16, 16e9, 16e9, 16, 16), **changes)


def pcie_errors(correctable: int | None = 0, *, at_far_end: int = 0) -> PcieErrors:
    port = PcieErrors(ROOT_PORT, at_far_end, 0, 0)
    return PcieErrors(NPU, correctable, 0, 0, ports=(port,), far_end=ROOT_PORT)
