"""Debian's ibstat, ibstatus and rdma over a /sys of ours; ibstat on a simulated fabric with a real state machine."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from npu_watchd.model.fabric import RdmaPort, RdmaPorts
from npu_watchd.model.reading import FailureKind, Output
from npu_watchd.parsers import ibstat, rdma_link, sysfs_ib
from npu_watchd.parsers.lines import ParseError
from npu_watchd.simnode.sysfs_ib import (
    ACTIVE,
    DISABLED,
    DOWN,
    INITIALIZING,
    LINK_UP,
    POLLING,
    SimHca,
    SimPort,
    files,
)
from tests import fabric_tree

ROCE = SimHca(
    name="mlx5_0",
    hca_type="MT4129",
    firmware="28.43.2026",
    node_guid=0x9C63C00300AA0010,
    system_image_guid=0x9C63C00300AA0010,
    ports=(SimPort(rate="400 Gb/sec (4X NDR)", guid=0x9E63C0FFFEAA0010, netdev="ens1np0"),),
)
INFINIBAND = SimHca(
    name="mlx4_0",
    hca_type="MT4099",
    firmware="2.42.5032",
    hardware_revision="1",
    node_guid=0xE41D2D0300550000,
    system_image_guid=0xE41D2D0300550003,
    ports=(
        SimPort(1, DOWN, POLLING, "10 Gb/sec (1X FDR10)", 21, 4, 0, 0x02514868, "InfiniBand", 0xE41D2D0300550001),
        SimPort(2, INITIALIZING, LINK_UP, "56 Gb/sec (4X FDR)", 22, 4, 0, 0x02514868, "InfiniBand", 0xE41D2D0300550002),
    ),
)
SOFT = SimHca(
    name="rxe0",
    hca_type=None,
    firmware=None,
    hardware_revision=None,
    node_guid=0x5054000000600E05,
    system_image_guid=0x5054000000600E05,
    ports=(SimPort(rate="2.5 Gb/sec (1X SDR)", guid=0x5054000000600E05),),
)
HCAS = (ROCE, INFINIBAND, SOFT)


def needs(*tools: str) -> pytest.MarkDecorator:
    reason = fabric_tree.unavailable(*tools)
    return pytest.mark.skipif(reason is not None, reason=reason or "")


def from_files(hcas: tuple[SimHca, ...]) -> list[RdmaPort]:
    """The same ports by our own reading of the same files, in ibstat's order."""
    texts = files(hcas)
    found = []
    for hca in sorted(hcas, key=lambda hca: hca.name):
        for port in hca.ports:
            ca_files, port_files = (
                {path.removeprefix(folder): text for path, text in texts.items() if path.startswith(folder)}
                for folder in (f"infiniband/{hca.name}/", f"infiniband/{hca.name}/ports/{port.number}/")
            )
            record, errors = sysfs_ib.port(hca.name, port.number, ca_files, port_files)
            assert errors == ()
            found.append(replace(record, netdev=None))
    return found


@needs("ibstat")
def test_real_ibstat_says_what_we_read_from_the_files(tmp_path: Path) -> None:
    output = fabric_tree.run_over(fabric_tree.tree(tmp_path, HCAS), "ibstat")
    found = ibstat.read(output)
    assert isinstance(found, RdmaPorts)
    assert (found.errors, found.warnings, found.unknown_keys) == ((), (), ())
    assert list(found.ports) == from_files(HCAS)
    assert [(str(port.key), port.state, port.physical_state, port.rate_gbps) for port in found.ports] == [
        ("mlx4_0/1", "Down", "Polling", 10.0),
        ("mlx4_0/2", "Initializing", "LinkUp", 56.0),
        ("mlx5_0/1", "Active", "LinkUp", 400.0),
        ("rxe0/1", "Active", "LinkUp", 2.5),
    ]


@needs("ibstat")
@pytest.mark.parametrize("state", range(1, 5))
@pytest.mark.parametrize("physical_state", range(1, 8))
def test_every_state_has_the_same_word_in_ibstat_and_in_the_files(
    tmp_path: Path, state: int, physical_state: int
) -> None:
    hca = replace(ROCE, ports=(replace(ROCE.ports[0], state=state, physical_state=physical_state),))
    found = ibstat.read(fabric_tree.run_over(fabric_tree.tree(tmp_path, [hca]), "ibstat"))
    assert isinstance(found, RdmaPorts)
    assert list(found.ports) == from_files((hca,))
    assert found.ports[0].state is not None
    assert found.ports[0].physical_state is not None


@needs("ibstat")
def test_a_port_that_goes_down_keeps_its_rate(tmp_path: Path) -> None:
    classes = fabric_tree.tree(tmp_path, [ROCE])
    fabric_tree.tree(tmp_path, [replace(ROCE, ports=(replace(ROCE.ports[0], state=DOWN, physical_state=DISABLED),))])
    found = ibstat.read(fabric_tree.run_over(classes, "ibstat"))
    assert isinstance(found, RdmaPorts)
    assert [(port.state, port.physical_state, port.rate_gbps) for port in found.ports] == [("Down", "Disabled", 400.0)]


@needs("ibstat")
def test_ibstat_gives_up_at_a_device_that_it_cannot_read_and_the_ports_before_it_are_kept(tmp_path: Path) -> None:
    classes = fabric_tree.tree(tmp_path, HCAS)
    (classes / "infiniband" / "rxe0" / "ports" / "1" / "rate").unlink()
    output = fabric_tree.run_over(classes, "ibstat")
    assert output.exit_code == 255
    found = ibstat.read(output)
    assert isinstance(found, RdmaPorts)
    assert [str(port.key) for port in found.ports] == ["mlx4_0/1", "mlx4_0/2", "mlx5_0/1"]
    assert [re.sub(r"\[\d+\]", "[1]", error).partition(" (")[0] for error in found.errors] == [
        "ibpanic: [1] main: stat of IB device 'rxe0' failed: No such file or directory"
    ]


@needs("ibstat")
def test_no_hca_is_silence_with_exit_0_and_a_wrong_name_is_a_refusal(tmp_path: Path) -> None:
    classes = fabric_tree.tree(tmp_path, [])
    silent = fabric_tree.run_over(classes, "ibstat")
    assert silent == Output("", "", 0)
    assert ibstat.read(silent) == RdmaPorts()
    with pytest.raises(ParseError, match="there is no such device") as refused:
        ibstat.parse(fabric_tree.run_over(classes, "ibstat", "mlx5_0").stderr)
    assert refused.value.kind is FailureKind.EXIT


@needs("ibstat")
def test_a_single_port_is_asked_for_by_name(tmp_path: Path) -> None:
    found = ibstat.read(fabric_tree.run_over(fabric_tree.tree(tmp_path, HCAS), "ibstat", "mlx4_0", "2"))
    assert isinstance(found, RdmaPorts)
    assert [(str(port.key), port.state, port.base_lid) for port in found.ports] == [("mlx4_0/2", "Initializing", 22)]


@needs("ibstatus")
def test_real_ibstatus_prints_the_very_texts_that_we_read(tmp_path: Path) -> None:
    text = fabric_tree.run_over(fabric_tree.tree(tmp_path, HCAS), "ibstatus").text
    shown = [dict(re.findall(r"^\s+([a-z _]+):\s+(.*)$", block, re.MULTILINE)) for block in text.split("\n\n")[:-1]]
    assert [
        (
            sysfs_ib.state(block["state"]),
            sysfs_ib.physical_state(block["phys state"]),
            sysfs_ib.rate_gbps(block["rate"]),
            block["link_layer"],
        )
        for block in shown
    ] == [(port.state, port.physical_state, port.rate_gbps, port.link_layer) for port in from_files(HCAS)]


@needs("rdma")
def test_real_rdma_on_a_kernel_without_rdma_is_refused_with_its_cure(tmp_path: Path) -> None:
    output = fabric_tree.run_over(fabric_tree.tree(tmp_path, HCAS), "rdma", "link", "show")
    if output.exit_code == 0:
        pytest.skip("this kernel has RDMA: the netlink socket opened")
    with pytest.raises(ParseError, match="the kernel has no RDMA") as refused:
        rdma_link.parse(output.text + output.stderr)
    assert refused.value.kind is FailureKind.EXIT


LIBRARY = next(Path("/usr/lib").glob("*/umad2sim/libumad2sim.so"), None)
FABRIC = """Switch 2 "switch"
[1] "node1 mlx5_0"[1]
[2] "smhost"[1]

Hca 1 "node1 mlx5_0"
[1] "switch"[1]

Hca 1 "smhost"
[1] "switch"[2]
"""


@contextmanager
def simulated_fabric() -> Iterator[tuple[Path, Callable[[str], None]]]:
    """ibsim in a folder of its own, and the way to give it commands. Sockets' names must be short: not tmp_path."""
    folder = Path(tempfile.mkdtemp(prefix="ibsim-"))
    (folder / "net").write_text(FABRIC)
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            [str(fabric_tree.path_of("ibsim")), "-s", "net"],
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=subprocess.STDOUT,
            text=True,
        )
    assert process.stdin is not None
    stdin = process.stdin

    def tell(command: str) -> None:
        stdin.write(command + "\n")
        stdin.flush()

    try:
        yield folder, tell
    finally:
        process.kill()
        process.wait()
        stdin.close()
        shutil.rmtree(folder, ignore_errors=True)


def port_on(folder: Path) -> RdmaPort | str:
    command = [str(fabric_tree.path_of("env")), "-C", str(folder), str(fabric_tree.path_of("ibstat"))]
    found = ibstat.read(fabric_tree.run(command, SIM_HOST="node1 mlx5_0", LD_PRELOAD=str(LIBRARY)))
    return found.ports[0] if isinstance(found, RdmaPorts) and found.ports else repr(found)


def until(folder: Path, state: str, physical_state: str, limit_s: float = 30) -> RdmaPort:
    deadline = time.monotonic() + limit_s
    while True:
        found = port_on(folder)
        if isinstance(found, RdmaPort) and (found.state, found.physical_state) == (state, physical_state):
            return found
        assert time.monotonic() < deadline, f"never {state}/{physical_state}, but {found}"
        time.sleep(0.1)


@needs("ibsim", "ibstat", "opensm")
@pytest.mark.skipif(LIBRARY is None, reason="not installed: ibsim-utils")
def test_a_port_of_a_simulated_fabric_initializes_comes_up_polls_and_returns() -> None:
    with simulated_fabric() as (folder, tell):
        first = until(folder, "Initializing", "LinkUp")
        assert (first.ca, first.ca_type, first.base_lid, first.up) == ("ibsim0", "simulator", 0, False)
        manager = subprocess.Popen(
            [str(fabric_tree.path_of("opensm")), "-f", "opensm.log"],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={"SIM_HOST": "smhost", "LD_PRELOAD": str(LIBRARY), "OSM_CACHE_DIR": ".", "OSM_TMP_DIR": "."},
        )
        try:
            active = until(folder, "Active", "LinkUp")
            assert active.up is True
            assert active.base_lid
            tell('Unlink "node1 mlx5_0"[1]')
            assert until(folder, "Down", "Polling").up is False
            tell('ReLink "node1 mlx5_0"[1]')
            assert until(folder, "Active", "LinkUp").up is True
        finally:
            manager.kill()
            manager.wait()


def test_the_numbers_of_the_tree_are_those_of_the_vocabulary() -> None:
    port = from_files((replace(ROCE, ports=(SimPort(state=ACTIVE, physical_state=LINK_UP),)),))[0]
    assert port.up is True
