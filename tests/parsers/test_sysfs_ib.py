"""Files below /sys/class/infiniband: the same words as ibstat's, one file at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest

from npu_watchd.model.fabric import RdmaPort
from npu_watchd.parsers import sysfs_ib
from npu_watchd.parsers.lines import ParseError
from npu_watchd.simnode.sysfs_ib import DISABLED, DOWN, SimHca, SimPort, files

HCA = SimHca(
    node_guid=0x0C42A10300B12A7E,
    system_image_guid=0x0C42A10300B12A70,
    ports=(
        SimPort(1, lid=5, sm_lid=1, link_layer="InfiniBand", guid=0x0C42A10300B12A7F, capability_mask=0x2651E848),
        SimPort(2, DOWN, DISABLED, "10 Gb/sec (1X FDR10)", netdev="ens1f1"),
    ),
)
TREE = files([HCA])


def of_port(number: int) -> tuple[RdmaPort, tuple[str, ...]]:
    return sysfs_ib.port("mlx5_0", number, below("infiniband/mlx5_0/"), below(f"infiniband/mlx5_0/ports/{number}/"))


def below(folder: str) -> dict[str, str]:
    return {path.removeprefix(folder): text for path, text in TREE.items() if path.startswith(folder)}


def test_a_port_is_what_ibstat_would_say_and_its_network_device() -> None:
    assert of_port(1) == (
        RdmaPort(
            ca="mlx5_0",
            port=1,
            ca_type="MT4123",
            firmware="20.31.1014",
            hardware_version="0",
            node_guid="0x0c42a10300b12a7e",
            system_image_guid="0x0c42a10300b12a70",
            state="Active",
            physical_state="LinkUp",
            rate_gbps=200.0,
            base_lid=5,
            lmc=0,
            sm_lid=1,
            capability_mask=0x2651E848,
            port_guid="0x0c42a10300b12a7f",
            link_layer="InfiniBand",
        ),
        (),
    )
    port, errors = of_port(2)
    assert (port.state, port.physical_state, port.rate_gbps, port.netdev, errors) == (
        "Down",
        "Disabled",
        10.0,
        "ens1f1",
        (),
    )


def test_a_file_that_cannot_be_trusted_costs_its_own_value() -> None:
    port, errors = sysfs_ib.port("mlx5_0", 1, {}, {"state": "4: ACTIVE\n", "rate": "lots\n", "lid": "5\n"})
    assert port == RdmaPort(ca="mlx5_0", port=1, state="Active")
    assert errors == (
        "mlx5_0/1 rate: no rate: 'lots'",
        "mlx5_0/1 lid: '5' is no hexadecimal number: '5'",
    )


def test_the_files_that_a_source_must_read_are_named() -> None:
    assert set(sysfs_ib.CA_FILES) <= below("infiniband/mlx5_0/").keys()
    assert {*sysfs_ib.PORT_FILES, sysfs_ib.GID_FILE, sysfs_ib.NETDEV_FILE} <= below("infiniband/mlx5_0/ports/2/").keys()


@pytest.mark.parametrize(
    ("read", "text", "value"),
    [
        (sysfs_ib.state, "1: DOWN\n", "Down"),
        (sysfs_ib.state, "2: INIT\n", "Initializing"),
        (sysfs_ib.state, "5: ACTIVE_DEFER\n", "ActiveDefer"),
        (sysfs_ib.state, "0: NOP\n", None),
        (sysfs_ib.physical_state, "7: Phy Test\n", "PhyTest"),
        (sysfs_ib.physical_state, "12: <unknown>\n", None),
        (sysfs_ib.rate_gbps, "2.5 Gb/sec (1X SDR)\n", 2.5),
        (sysfs_ib.rate_gbps, "0 Gb/sec\n", None),
        (sysfs_ib.counter, "18446744073709551615\n", 18446744073709551615),
        (sysfs_ib.counter, "N/A (no PMA)\n", None),
    ],
)
def test_one_file_one_value(read: Callable[[str], object], text: str, value: object) -> None:
    assert read(text) == value


@pytest.mark.parametrize(
    ("read", "texts"),
    [
        (sysfs_ib.state, ["", "ACTIVE\n", ": ACTIVE\n", "four: ACTIVE\n"]),
        (sysfs_ib.rate_gbps, ["", "200\n", "200 Mb/sec\n"]),
        (sysfs_ib.counter, ["-1\n", "0x10\n", "1 2\n", "9" * 30]),
    ],
)
def test_what_is_no_value_is_refused(read: Callable[[str], object], texts: Iterable[str]) -> None:
    for text in texts:
        with pytest.raises(ParseError):
            read(text)
