"""Which ports are missed: those that the config names and those that were up, and only where the answer was whole."""

from __future__ import annotations

from npu_watchd.memory.harbour import Harbour
from npu_watchd.model.fabric import PortCounters, PortKey, RdmaPort, RdmaPorts
from npu_watchd.model.snapshot import Port

A, B = PortKey("mlx5_0", 1), PortKey("mlx5_1", 1)
NONE: frozenset[PortKey] = frozenset()
GAVE_UP = "ibpanic: [12] main: stat of IB device 'mlx5_1' failed: Input/output error"


def port(key: PortKey, state: str = "Active", physical_state: str = "LinkUp") -> RdmaPort:
    return RdmaPort(key.rdma_device, key.port, state=state, physical_state=physical_state)


def shown(harbour: Harbour, configured: frozenset[PortKey] = NONE, *, fresh: bool = True) -> dict[PortKey, Port]:
    return harbour.ports(configured, fresh=fresh, counters={})


def seen(*answers: RdmaPorts) -> Harbour:
    harbour = Harbour()
    for answer in answers:
        harbour.see(answer)
    return harbour


def test_a_port_that_was_up_is_missed_when_it_is_gone() -> None:
    harbour = seen(RdmaPorts((port(A), port(B))), RdmaPorts((port(A),)))
    missed = shown(harbour)[B]
    assert (missed.present, missed.expected, missed.up, missed.facts) == (False, True, False, None)
    assert (shown(harbour)[A].present, shown(harbour)[A].up) == (True, True)


def test_a_port_that_never_was_up_is_not_missed() -> None:
    down = port(B, "Down", "Disabled")
    assert shown(seen(RdmaPorts((down,))))[B].expected is False
    assert shown(seen(RdmaPorts((down,)), RdmaPorts())) == {}


def test_a_virtual_function_that_is_down_with_its_link_up_never_was_up() -> None:
    assert shown(seen(RdmaPorts((port(B, "Down", "LinkUp"),))))[B].expected is False


def test_a_port_of_the_config_is_missed_without_having_been_seen() -> None:
    missed = shown(seen(RdmaPorts()), frozenset({A}))[A]
    assert (missed.present, missed.expected, missed.up) == (False, True, False)


def test_a_port_that_an_answer_with_errors_leaves_out_is_not_gone() -> None:
    harbour = seen(RdmaPorts((port(A), port(B))), RdmaPorts((port(A),), errors=(GAVE_UP,)))
    unread = shown(harbour)[B]
    assert (unread.present, unread.expected, unread.up) == (None, True, None)
    harbour.see(RdmaPorts((port(A),)))
    assert shown(harbour)[B].present is False


def test_without_a_fresh_answer_nobody_knows_what_is_there() -> None:
    harbour = seen(RdmaPorts((port(A),)))
    old = shown(harbour, fresh=False)[A]
    assert (old.present, old.up, old.facts) == (None, None, None)


def test_the_network_device_is_named_by_whichever_source_knows_it() -> None:
    harbour = seen(RdmaPorts((port(A),)))
    counters = {A: PortCounters(A, netdev="ens21np0")}
    assert harbour.ports(NONE, fresh=True, counters=counters)[A].netdev == "ens21np0"
    assert shown(harbour)[A].netdev is None


def test_counters_of_a_port_are_shown_while_nobody_can_tell_its_state() -> None:
    counters = {A: PortCounters(A, errors={"symbol_error": 4})}
    alone = Harbour().ports(NONE, fresh=False, counters=counters)[A]
    assert (alone.present, alone.expected, alone.up, alone.counters) == (None, False, None, counters[A])


def test_counters_of_a_port_that_is_gone_are_not_shown() -> None:
    harbour = seen(RdmaPorts((port(A),)), RdmaPorts())
    counters = {A: PortCounters(A), B: PortCounters(B)}
    shown_ports = harbour.ports(NONE, fresh=True, counters=counters)
    assert {key: found.counters for key, found in shown_ports.items()} == {A: None}
