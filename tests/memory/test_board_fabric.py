"""What the board makes of the fabric: ports expected and missed, PCIe paths, and what leaves whom blind."""

from __future__ import annotations

from npu_watchd.memory.board import Board, Watch
from npu_watchd.model.fabric import PortKey, RdmaPort, RdmaPorts
from npu_watchd.model.ids import NODE, DeviceKey, Subject
from npu_watchd.model.pcie import AerLine, PcieLink, SocketPcieLoad
from npu_watchd.model.reading import Failure, FailureKind
from npu_watchd.model.records import DeviceMap
from npu_watchd.model.snapshot import Snapshot
from tests.memory.build import (
    PERIODS_S,
    TIMEOUT,
    UNSUPPORTED,
    at,
    info,
    map_row,
    new_board,
    reading,
    row,
    said,
    table,
    well,
)

LINK = PcieLink("0000:80:00.0", ("0000:00:01.0", "0000:80:00.0"), 16e9, 16e9, 16, 16, 16e9, 16e9, 16, 16)
MISSING = Failure(FailureKind.MISSING, "/sys/bus/pci/devices/0000:80:00.0: No such file or directory")
NO_AER = Failure(FailureKind.UNSUPPORTED, "the kernel keeps no AER counters of this device")
A_PORT = PortKey("mlx5_0", 1)
FABRIC_PERIODS_S = {**PERIODS_S, "ibstat": 30.0, "rdma_counters": 30.0, "pcie_link": 60.0, "pcie_aer": 30.0}


def fabric_board(*results: tuple[str, Subject, object], ports: frozenset[PortKey] = frozenset()) -> Board:
    """A healthy chip, and these readings at second 0."""
    probes = frozenset({"npu_health", "npu_ecc", "pcie_link", "pcie_aer"})
    vital = frozenset({"npu_info", "npu_health", "npu_ecc"})
    board = Board("node-17", "0b1c", None, lambda _: Watch("910B", probes, vital, frozenset()), ports)
    board.put([info(table(row(0))), *well(0), *(reading(*result) for result in results)])
    return board


def fabric(board: Board, now_s: float = 1.0) -> Snapshot:
    return board.snapshot(at(now_s), FABRIC_PERIODS_S.get)


def test_a_chip_that_sysfs_does_not_show_is_blind_for_its_path_and_for_nothing_else() -> None:
    shown_device = fabric(fabric_board(("pcie_link", DeviceKey(0), MISSING))).devices[DeviceKey(0)]
    assert shown_device.blind == {"pcie_link": MISSING}
    assert (shown_device.health, shown_device.vital_blind, shown_device.pcie_link) == ("ok", False, None)


def test_where_the_kernel_keeps_no_aer_counters_nobody_is_blind_and_nothing_failed() -> None:
    board = fabric_board(("pcie_link", DeviceKey(0), LINK), ("pcie_aer", DeviceKey(0), NO_AER))
    snapshot = fabric(board)
    shown_device = snapshot.devices[DeviceKey(0)]
    assert (shown_device.blind, shown_device.unsupported) == ({}, {"pcie_aer": NO_AER.detail})
    assert (shown_device.pcie_link, shown_device.pcie_errors) == (LINK, None)
    assert "pcie_aer" not in [state.probe for state in snapshot.probes]
    assert {tally.probe: tally.failures for tally in snapshot.tallies}["pcie_aer"] == {}


def test_a_chip_without_a_pci_address_is_not_blind_for_its_path() -> None:
    board = fabric_board()
    board.put([info(table(row(1, pci_address=None)))])
    assert not {"pcie_link", "pcie_aer"} & set(fabric(board).devices[DeviceKey(1)].blind)


def test_probes_of_the_fabric_that_have_not_had_their_turn_leave_nobody_blind() -> None:
    snapshot = fabric(fabric_board())
    assert snapshot.devices[DeviceKey(0)].blind == {}
    assert not {"ibstat", "rdma_counters"} & set(snapshot.blind)


def test_an_expected_port_of_a_node_without_rdma_devices_is_missing_and_no_probe_failed() -> None:
    board = fabric_board(("ibstat", NODE, RdmaPorts()), ports=frozenset({A_PORT}))
    snapshot = fabric(board)
    port = snapshot.ports[A_PORT]
    assert (port.present, port.expected, port.facts, port.counters) == (False, True, None, None)
    assert "ibstat" not in snapshot.blind
    board.configure("node-17", None, frozenset())
    assert fabric(board).ports == {}


def test_ports_that_could_not_be_read_are_unknown_and_the_node_is_blind_for_them() -> None:
    up = RdmaPort("mlx5_0", 1, state="Active", physical_state="LinkUp")
    board = fabric_board(("ibstat", NODE, RdmaPorts((up,))), ("rdma_counters", NODE, ()))
    board.put([reading("ibstat", NODE, TIMEOUT, 30.0)])
    assert fabric(board, 90.0).ports[A_PORT].up is True
    late = fabric(board, 91.0)
    port = late.ports[A_PORT]
    assert (port.present, port.expected, port.facts, port.up) == (None, True, None, None)
    assert late.blind["ibstat"] == TIMEOUT


def test_half_an_answer_leaves_the_node_blind_in_the_tools_words_and_no_port_missed() -> None:
    up = [RdmaPort(name, 1, state="Active", physical_state="LinkUp") for name in ("mlx5_0", "mlx5_1")]
    board = fabric_board(("ibstat", NODE, RdmaPorts(tuple(up))))
    gave_up = "ibpanic: [12] main: stat of IB device 'mlx5_1' failed: Input/output error"
    board.put([reading("ibstat", NODE, RdmaPorts((up[0],), (gave_up,)), 1.0)])
    snapshot = fabric(board, 2.0)
    assert {str(key): port.up for key, port in snapshot.ports.items()} == {"mlx5_0/1": True, "mlx5_1/1": None}
    assert snapshot.blind["ibstat"] == Failure(FailureKind.EXIT, gave_up)


def test_an_error_of_this_boot_is_the_chips_once_its_path_is_known_and_a_restart_shows_it_again() -> None:
    for _ in ("before the restart", "after it"):
        board = fabric_board()
        board.take_kernel_log([AerLine(LINK.address, "fatal", "", False)], at(1.0), FABRIC_PERIODS_S.get, old=True)
        assert fabric(board).pcie_log_events == {}
        board.put([reading("pcie_link", DeviceKey(0), LINK, 2.0)])
        board.take_kernel_log([AerLine(LINK.path[0], "nonfatal", "", False)], at(6.0), FABRIC_PERIODS_S.get, lost=2)
        snapshot = fabric(board, 6.0)
        assert snapshot.pcie_log_events == {("fatal", "0"): 1, ("nonfatal", "0"): 1}
        assert snapshot.pcie_log_events_before == {("fatal", "0"): 1}
        assert snapshot.kernel_log_lost == 2


SOCKETS = (SocketPcieLoad(0, 2e9, 1e9, 1.0), SocketPcieLoad(1, 0.0, None, 1.0))
BY_SOCKET = Failure(FailureKind.UNSUPPORTED, "PCIe load: nothing on this node tells devices apart")
LOAD_PERIODS_S = {**FABRIC_PERIODS_S, "pcie_load": 30.0}


def test_a_sockets_load_is_the_nodes_and_its_devices_are_not_blind() -> None:
    board = fabric_board(("pcie_load", NODE, SOCKETS), ("pcie_load", DeviceKey(0), BY_SOCKET))
    snapshot = board.snapshot(at(90.0), LOAD_PERIODS_S.get)
    assert (snapshot.pcie_sockets, "pcie_load" in snapshot.blind) == (SOCKETS, False)
    assert "pcie_load" not in snapshot.devices[DeviceKey(0)].blind
    late = board.snapshot(at(91.0), LOAD_PERIODS_S.get)
    assert (late.pcie_sockets, late.blind["pcie_load"].kind) == ((), FailureKind.STALE)


def test_a_pcm_that_fails_leaves_the_node_blind_and_takes_nothing_for_idle() -> None:
    board = fabric_board(("pcie_load", NODE, TIMEOUT), ("pcie_load", DeviceKey(0), BY_SOCKET))
    snapshot = board.snapshot(at(1.0), LOAD_PERIODS_S.get)
    assert (snapshot.pcie_sockets, snapshot.blind["pcie_load"]) == ((), TIMEOUT)
    assert [(state.device_id, state.up) for state in snapshot.probes if state.probe == "pcie_load"] == [(None, False)]


def test_where_devices_are_measured_the_node_is_not_blind_for_its_sockets() -> None:
    snapshot = fabric_board().snapshot(at(1.0), LOAD_PERIODS_S.get)
    assert (snapshot.pcie_sockets, "pcie_load" in snapshot.blind) == ((), False)
    switched = fabric_board(("pcie_load", NODE, ())).snapshot(at(1.0), LOAD_PERIODS_S.get)
    assert (switched.pcie_sockets, "pcie_load" in switched.blind) == ((), False)


def test_the_map_and_the_table_say_where_a_port_is_asked_about() -> None:
    board = new_board()
    board.put([info(table(row(2), row(6)))])
    before = board.edition()
    assert [card[4] for card in board.cards()] == [{}, {}]
    board.put([reading("npu_map", NODE, DeviceMap((map_row(2, 0, 0), map_row(6, 0, None))))])
    assert [card[4] for card in board.cards()] == [{0: 0}, {}]
    assert board.edition() > before


def test_a_hccn_tool_that_is_not_there_is_still_looked_for() -> None:
    board = new_board(probes=frozenset({"hccn_link"}))
    board.put([info(table(row(0))), said(0, MISSING, probe="hccn_link")])
    assert board.unsupported("hccn_link", DeviceKey(0)) is False
    board.put([said(0, UNSUPPORTED, probe="hccn_link")])
    assert board.unsupported("hccn_link", DeviceKey(0)) is True
