"""The sysfs tree: what the daemon's readers and real tools see in it, and how it is brought up to date."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from npu_watchd.model.fabric import RdmaPorts
from npu_watchd.model.pcie import PcieErrors, PcieLink
from npu_watchd.model.pcie_tools import LspciDevice
from npu_watchd.model.reading import Failure, FailureKind, Output
from npu_watchd.parsers import ibstat, lspci
from npu_watchd.simnode import ibstat as fake_ibstat
from npu_watchd.simnode.node import install, keep_fresh, refresh, set_clock
from npu_watchd.simnode.scenario_file import load
from npu_watchd.simnode.sysfs import Tree, tree
from npu_watchd.simnode.timeline import state_at
from npu_watchd.simnode.tree_on_disk import TreeOnDisk
from npu_watchd.sources.pci import PciTree
from npu_watchd.sources.pcie_load import PcieUnit, units
from npu_watchd.sources.rdma import RdmaTree
from tests import fabric_tree


def put(root: Path, name: str, t_s: float) -> Path:
    TreeOnDisk(root / "sys", root / "workshop").put(tree(state_at(load(name), t_s)))
    return root / "sys"


@pytest.fixture
def at(tmp_path: Path) -> Callable[[str, float], Path]:
    """The sysfs of a scenario at a second."""
    (tmp_path / "sys").mkdir()
    return lambda name, t_s: put(tmp_path, name, t_s)


def test_a_quiet_node_has_full_links_no_errors_and_two_ports(at: Callable[[str, float], Path]) -> None:
    sysfs = at("quiet", 600.0)
    slots = [slot.address for slot in state_at(load("quiet"), 600.0).slots()]
    for link in PciTree(sysfs).links(slots).values():
        assert isinstance(link, PcieLink)
        assert (link.transfers_per_second, link.lanes, link.narrow, link.slow) == (16e9, 16, False, False)
        assert len(link.path) == 2
    for errors in PciTree(sysfs).errors(slots).values():
        assert isinstance(errors, PcieErrors)
        assert (errors.correctable, errors.nonfatal, errors.fatal, len(errors.ports)) == (0, 0, 0, 1)
    ports = RdmaTree(sysfs).ports()
    assert isinstance(ports, RdmaPorts)
    assert [(str(port.key), port.up, port.rate_gbps, port.netdev) for port in ports.ports] == [
        ("mlx5_0/1", True, 200.0, "ens21np0"),
        ("mlx5_1/1", True, 200.0, "ens22np0"),
    ]


def test_counters_are_where_the_daemon_looks(at: Callable[[str, float], Path]) -> None:
    counters = RdmaTree(at("roce_flap", 280.0)).counters()
    assert not isinstance(counters, Failure)
    assert [(port.link_downs, port.errors["local_ack_timeout_err"], port.failures) for port in counters] == [
        (0, 0, {}),
        (1, 90, {}),
    ]
    busy = RdmaTree(at("busy_node", 100.0)).counters()
    assert not isinstance(busy, Failure)
    assert 205e9 < busy[0].bytes["receive"] < 215e9


def test_a_narrow_link_a_slow_one_and_one_asleep(at: Callable[[str, float], Path]) -> None:
    sysfs = at("pcie_narrow", 400.0)
    chips = state_at(load("pcie_narrow"), 400.0).chips
    addresses = [chip.slot.address for chip in chips if chip.slot is not None]
    links = PciTree(sysfs).links(addresses)
    seen = {device: links[addresses[device]] for device in range(8)}
    assert [link.narrow for link in seen.values() if isinstance(link, PcieLink)] == [at == 2 for at in range(8)]
    degraded = [link.degraded(busy=device not in (5, 7)) for device, link in seen.items() if isinstance(link, PcieLink)]
    assert degraded == [device in (2, 6) for device in range(8)]


def test_a_device_that_falls_off_leaves_its_port_and_what_the_port_counted(at: Callable[[str, float], Path]) -> None:
    slot = state_at(load("pcie_errors"), 1205.0).chips[4].slot
    assert slot is not None
    found = PciTree(at("pcie_errors", 1205.0)).errors([slot.address])[slot.address]
    assert isinstance(found, PcieErrors)
    assert (found.nonfatal, found.fatal, found.ports[0].fatal) == (1, 0, 1)
    gone = PciTree(at("pcie_errors", 1211.0)).errors([slot.address, slot.root_port])
    left = gone[slot.root_port]
    assert isinstance(left, PcieErrors)
    assert left.fatal == 1
    lost = gone[slot.address]
    assert isinstance(lost, Failure)
    assert lost.kind is FailureKind.MISSING


def test_where_firmware_owns_aer_the_reader_says_unsupported(at: Callable[[str, float], Path]) -> None:
    found = PciTree(at("duo_310p", 10.0)).errors(["0000:01:00.0"])["0000:01:00.0"]
    assert isinstance(found, Failure)
    assert found.kind is FailureKind.UNSUPPORTED
    assert not (at("duo_310p", 10.0) / "class" / "infiniband").exists()


def test_the_counting_units_are_listed(at: Callable[[str, float], Path]) -> None:
    assert units(at("pcie_saturated", 0.0)) == (PcieUnit("hisi_pcie0_core0", 0x80), PcieUnit("hisi_pcie0_core1", 0x80))


def test_adapters_that_vanish_leave_an_empty_directory(at: Callable[[str, float], Path]) -> None:
    assert sorted(path.name for path in (at("no_hca", 400.0) / "class" / "infiniband").iterdir()) == [
        "mlx5_0",
        "mlx5_1",
    ]
    assert list((at("no_hca", 200.0) / "class" / "infiniband").iterdir()) == []
    assert list((at("no_hca", 200.0) / "class" / "net").iterdir()) == []
    assert (at("no_hca", 601.0) / "class" / "infiniband" / "mlx5_1" / "ports" / "1" / "rate").exists()


REAL = fabric_tree.unavailable("ibstat")


@pytest.mark.skipif(REAL is not None, reason=REAL or "")
@pytest.mark.parametrize(
    ("name", "t_s"),
    [
        ("quiet", 0.0),
        ("roce_flap", 250.0),
        ("roce_down", 600.0),
        ("no_hca", 200.0),
        ("no_hca", 850.0),
        ("ascend950", 5.0),
    ],
)
@pytest.mark.parametrize("argv", [(), ("-l",), ("mlx5_0",), ("mlx5_0", "1"), ("mlx5_0", "3"), ("nosuch",)])
def test_the_simulated_ibstat_says_what_the_real_one_says_over_the_tree(
    at: Callable[[str, float], Path], name: str, t_s: float, argv: tuple[str, ...]
) -> None:
    real = fabric_tree.run_over(at(name, t_s) / "class", "ibstat", *argv)
    ours = fake_ibstat.answer(state_at(load(name), t_s), argv)
    assert (ours.text, ours.exit_code) == (
        real.text.removesuffix("\n") + "\n" if ours.text else real.text,
        real.exit_code,
    )
    without_pid = [line.partition("] ")[2] for line in ours.stderr.splitlines()]
    assert without_pid == [line.partition("] ")[2] for line in real.stderr.splitlines()]


def test_the_simulated_ibstat_is_read_as_the_daemon_reads_it() -> None:
    said = fake_ibstat.answer(state_at(load("no_hca"), 850.0), ())
    found = ibstat.read(Output(said.text, said.stderr, said.exit_code))
    assert isinstance(found, RdmaPorts)
    assert [str(port.key) for port in found.ports] == ["mlx5_0/1"]
    assert "stat of IB device 'mlx5_1' failed" in found.errors[0]


SMALL = Tree({"a/b/one": b"1\n", "a/b/two": b"2\n", "a/c/three": b"3\n"}, {"a/link": "b"}, frozenset({"empty"}))


def listed(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*"))


def test_only_what_changed_is_written(tmp_path: Path) -> None:
    root = tmp_path / "sys"
    root.mkdir()
    disk = TreeOnDisk(root, tmp_path / "workshop")
    assert disk.put(SMALL) == 3
    untouched = (root / "a/b/two").stat().st_ino
    assert disk.put(SMALL) == 0
    assert disk.put(Tree({**SMALL.files, "a/b/one": b"9\n"}, SMALL.links, SMALL.folders)) == 1
    assert (root / "a/b/one").read_text() == "9\n"
    assert (root / "a/b/two").stat().st_ino == untouched
    assert listed(root) == ["a", "a/b", "a/b/one", "a/b/two", "a/c", "a/c/three", "a/link", "empty"]
    assert listed(tmp_path / "workshop") == ["lock"]


def test_what_is_gone_is_removed_and_what_is_empty_stays(tmp_path: Path) -> None:
    root = tmp_path / "sys"
    root.mkdir()
    TreeOnDisk(root, tmp_path / "workshop").put(SMALL)
    # Another process goes on where the first one left off.
    TreeOnDisk(root, tmp_path / "workshop").put(Tree({"a/b/two": b"2\n"}, {}, frozenset({"empty"})))
    assert listed(root) == ["a", "a/b", "a/b/two", "empty"]


def test_a_held_directory_keeps_its_files_while_its_device_is_pulled(tmp_path: Path) -> None:
    root = tmp_path / "sys"
    root.mkdir()
    disk = TreeOnDisk(root, tmp_path / "workshop")
    disk.put(SMALL)
    with (root / "a/c/three").open() as held:
        disk.put(Tree({"a/b/one": b"1\n"}))
        assert held.read() == "3\n"
    assert not (root / "a/c").exists()


def test_two_writers_take_turns(tmp_path: Path) -> None:
    root = tmp_path / "sys"
    root.mkdir()
    first, second = (TreeOnDisk(root, tmp_path / "workshop") for _ in range(2))
    other = Tree({"a/d/four": b"4\n"})
    for disk, wanted in ((first, SMALL), (second, other), (first, SMALL), (first, other), (second, other)):
        disk.put(wanted)
        assert {name for name in listed(root) if (root / name).is_file()} == set(wanted.files)


def test_what_one_writer_left_unfinished_the_next_put_finishes(tmp_path: Path) -> None:
    root = tmp_path / "sys"
    root.mkdir()
    disk = TreeOnDisk(root, tmp_path / "workshop")
    disk.put(SMALL)
    (root / "a/c").rename(tmp_path / "elsewhere")
    with pytest.raises(FileNotFoundError):
        disk.put(Tree({"a/b/one": b"1\n"}))
    assert disk.put(SMALL) == 1
    assert (root / "a/c/three").read_text() == "3\n"


def test_a_directory_that_is_gone_is_not_made_anew(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        keep_fresh(tmp_path / "gone", threading.Event())
    assert list(tmp_path.iterdir()) == []


LSPCI = """
mount --make-rprivate / && mount --bind "$0/bus/pci" /sys/bus/pci && mount --bind "$0/devices" /sys/devices && exec "$@"
"""
NO_LSPCI = fabric_tree.unavailable("lspci")


@pytest.mark.skipif(NO_LSPCI is not None, reason=NO_LSPCI or "")
def test_real_lspci_sees_the_bus_with_its_npus_and_an_empty_port(at: Callable[[str, float], Path]) -> None:
    def real(name: str, t_s: float) -> tuple[LspciDevice, ...]:
        command = ["unshare", "-m", "sh", "-c", LSPCI, str(at(name, t_s)), str(fabric_tree.path_of("lspci")), "-Dnnvv"]
        return lspci.parse(fabric_tree.run(command).text).devices

    found = real("pcie_narrow", 400.0)
    npus = [device for device in found if device.device_id == "d802"]
    assert [device.address for device in npus] == [slot.address for slot in state_at(load("quiet"), 0.0).slots()]
    assert [(device.lanes, device.max_lanes) for device in npus if device.width_judgement] == [(8, 16)]
    assert sum(device.device_id == "a120" for device in found) == 8
    left = real("pcie_errors", 1300.0)
    assert sum(device.device_id == "d802" for device in left) == 7
    assert [device.lanes for device in left if device.address == "0000:00:01.0"] == [None]


def width(directory: Path) -> str:
    address = "0000:81:00.0"
    return (directory / "sys/bus/pci/devices" / address / "current_link_width").read_text()


def test_install_set_clock_and_refresh_bring_the_tree_up_to_date(tmp_path: Path) -> None:
    install("pcie_narrow", tmp_path, speed=0.0, at=10.0)
    assert width(tmp_path) == "16\n"
    set_clock(tmp_path, 130.0)
    assert width(tmp_path) == "8\n"
    (tmp_path / "sys/bus/pci/devices/0000:81:00.0/current_link_width").write_text("4\n")
    refresh(tmp_path)
    assert width(tmp_path) == "8\n"


def test_a_thread_keeps_the_tree_fresh_until_it_is_told_to_stop(tmp_path: Path) -> None:
    install("pcie_narrow", tmp_path, speed=40.0, at=100.0)
    stop = threading.Event()
    thread = threading.Thread(target=keep_fresh, args=(tmp_path, stop))
    thread.start()
    try:
        deadline = time.monotonic() + 20
        while width(tmp_path) != "8\n":
            assert time.monotonic() < deadline, "the tree never followed the scenario"
            time.sleep(0.05)
    finally:
        stop.set()
        thread.join(10)
    assert not thread.is_alive()
    shutil.rmtree(tmp_path)
