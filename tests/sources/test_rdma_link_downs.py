"""How often a link went down: from the port's own counter, else from its network device, never from both in turn."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from npu_watchd.model.fabric import PortCounters
from npu_watchd.simnode import sysfs_net
from npu_watchd.simnode.sysfs_ib import SimHca, SimPort, write
from npu_watchd.sources.rdma import RdmaTree

DOWNED = "class/infiniband/mlx5_0/ports/1/counters/link_downed"


def sysfs(root: Path, counters: Mapping[str, int | str]) -> Path:
    """One port whose network device lost its carrier 17 times."""
    write(root, [SimHca(ports=(SimPort(netdev="ens21np0", counters=counters),))])
    for name, text in sysfs_net.files([sysfs_net.NetDevice("ens21np0", "02:00:00:00:00:01", downs=17)]).items():
        file = root / "class/net" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return root


def counters(tree: RdmaTree) -> PortCounters:
    found = tree.counters()
    assert isinstance(found, tuple)
    return found[0]


def test_the_ports_own_counter_stands(tmp_path: Path) -> None:
    assert counters(RdmaTree(sysfs(tmp_path, {"link_downed": 3}))).link_downs == 3


def test_a_driver_without_that_counter_leaves_the_network_device_to_say_it(tmp_path: Path) -> None:
    tree = RdmaTree(sysfs(tmp_path, {"link_downed": "N/A (no PMA)"}))
    assert [counters(tree).link_downs for _ in range(2)] == [17, 17]
    (tmp_path / DOWNED).unlink()
    assert counters(RdmaTree(tmp_path)).link_downs == 17


def test_a_counter_that_fails_later_is_not_replaced_by_another(tmp_path: Path) -> None:
    tree = RdmaTree(sysfs(tmp_path, {"link_downed": 3}))
    assert counters(tree).link_downs == 3
    (tmp_path / DOWNED).write_text("rubbish\n")
    assert [counters(tree).link_downs for _ in range(2)] == [None, None]
    assert list(counters(tree).failures) == ["counters/link_downed"]
