"""`ibstat`: literal ports of every driver, and what stands where a port cannot be seen or trusted."""

from __future__ import annotations

import pytest

from npu_watchd.model.fabric import PHYSICAL_STATE_LABELS, PORT_STATE_LABELS, PortKey, RdmaPort, RdmaPorts
from npu_watchd.model.reading import Failure, FailureKind, Output
from npu_watchd.parsers import ibstat
from tests.parsers.fabric_texts import written
from tests.parsers.texts import refused, said

PANIC = (
    "ibpanic: [4711] main: stat of IB device 'mlx5_an0' failed: No such file or directory"
    " (ibstat gives up at the first device that it cannot read; the devices after it are unknown)"
)
FIRST = RdmaPort(
    ca="mlx5_0",
    port=1,
    ca_type="MT4129",
    firmware="28.43.2026",
    hardware_version="0",
    node_guid="0x9c63c00300aa0010",
    system_image_guid="0x9c63c00300aa0010",
    state="Active",
    physical_state="LinkUp",
    rate_gbps=400.0,
    base_lid=0,
    lmc=0,
    sm_lid=0,
    capability_mask=0x00010000,
    port_guid="0x9e63c0fffeaa0010",
    link_layer="Ethernet",
)


def test_roce_ports_of_mlx5_and_a_bond() -> None:
    assert ibstat.parse(written("ibstat__mlx5_roce_and_a_bond")) == RdmaPorts(
        (
            FIRST,
            RdmaPort(
                ca="mlx5_1",
                port=1,
                ca_type="MT4129",
                firmware="28.43.2026",
                hardware_version="0",
                node_guid="0x9c63c00300aa0020",
                system_image_guid="0x9c63c00300aa0020",
                state="Down",
                physical_state="Disabled",
                rate_gbps=40.0,
                base_lid=0,
                lmc=0,
                sm_lid=0,
                capability_mask=0x00010000,
                port_guid="0x0000000000000000",
                link_layer="Ethernet",
            ),
            RdmaPort(
                ca="mlx5_bond_0",
                port=1,
                ca_type="MT4125",
                firmware="22.43.2026",
                hardware_version="0",
                node_guid="0x9c63c00300aa0030",
                system_image_guid="0x9c63c00300aa0030",
                state="Active",
                physical_state="LinkUp",
                rate_gbps=100.0,
                base_lid=0,
                lmc=0,
                sm_lid=0,
                capability_mask=0x00010000,
                port_guid="0x9e63c0fffeaa0030",
                link_layer="Ethernet",
            ),
        )
    )


def states(name: str) -> list[tuple[str, int, str | None, str | None, bool | None]]:
    ports = ibstat.parse(written(name)).ports
    return [(port.ca, port.port, port.state, port.physical_state, port.up) for port in ports]


def test_a_vf_can_be_down_with_its_link_up_and_a_port_without_a_subnet_manager_initializes() -> None:
    assert states("ibstat__mlx5_ib_vf_down_with_linkup") == [
        ("mlx5_2", 1, "Down", "LinkUp", False),
        ("mlx5_3", 1, "Initializing", "LinkUp", False),
    ]


def test_two_ports_of_one_ca_after_the_librarys_muttering() -> None:
    found = ibstat.parse(written("ibstat__mlx4_two_ports_after_ibwarn"))
    assert [(str(port.key), port.state, port.physical_state, port.rate_gbps) for port in found.ports] == [
        ("mlx4_0/1", "Down", "Polling", 10.0),
        ("mlx4_0/2", "Active", "LinkUp", 56.0),
    ]
    assert found.warnings == (
        "ibwarn: [31007] umad_init: umad_init",
        "ibwarn: [31007] umad_get_ca: opened mlx4_0",
    )
    assert found.errors == ()
    assert found.ports[1].key == PortKey("mlx4_0", 2)


def test_drivers_that_say_less_are_known_as_far_as_they_say() -> None:
    found = ibstat.parse(written("ibstat__bnxt_re_irdma_hns_hinic_rxe")).ports
    assert [(port.ca, port.ca_type, port.firmware, port.hardware_version, port.rate_gbps) for port in found] == [
        ("bnxt_re0", "BCM57508", "231.1.162.1", "0x1c", 200.0),
        ("irdma0", None, "1.71", "2", 100.0),
        ("hns_0", None, "1.0.0", "HIP09", 100.0),
        ("hrn0_0", "HI1822", "2.3.2.17", "0x45", 2.5),
        ("rxe0", None, None, None, 10.0),
    ]


def test_a_flat_and_redacted_paste_gives_what_is_left_of_it() -> None:
    assert ibstat.parse(written("ibstat__redacted_without_indentation")).ports == (
        RdmaPort(
            ca="mlx5_0",
            port=1,
            ca_type="MT4123",
            firmware="20.43.1014",
            hardware_version="0",
            state="Active",
            physical_state="LinkUp",
            rate_gbps=200.0,
            base_lid=None,
            lmc=0,
            sm_lid=None,
            capability_mask=0x2651E848,
            link_layer="InfiniBand",
        ),
    )


def test_ports_before_ibpanic_are_good_and_the_rest_is_an_error() -> None:
    found = ibstat.parse(written("ibstat__ports_then_ibpanic"))
    assert [port.ca for port in found.ports] == ["mlx5_0", "mlx5_1", "mlx5_bond_0"]
    assert found.errors == (PANIC,)


def test_ibpanic_alone_is_a_failure_and_not_an_absence_of_ports() -> None:
    kind, detail = said(ibstat.parse, written("ibstat__ibpanic_only"))
    assert kind is FailureKind.EXIT
    assert detail.startswith("ibpanic: [4712] main: stat of IB device 'mlx5_0' failed: Invalid argument (")


def test_a_node_without_an_hca_prints_nothing_and_that_is_no_failure_by_itself() -> None:
    assert ibstat.parse("") == RdmaPorts()
    assert ibstat.read(Output("", "", 0)) == RdmaPorts()


def test_what_ibstat_says_on_stderr_joins_the_errors() -> None:
    good, panic = written("ibstat__mlx5_roce_and_a_bond"), PANIC.partition(" (")[0]
    whole = ibstat.parse(good)
    assert ibstat.read(Output(good, panic + "\n", 255)) == RdmaPorts(whole.ports, (PANIC,))
    assert ibstat.read(Output(good, "ibwarn: [1] noise\nlibibverbs: noise\n", 0)) == RdmaPorts(
        whole.ports, warnings=("ibwarn: [1] noise", "libibverbs: noise")
    )


def test_an_exit_code_that_nobody_explains_is_an_error_and_without_ports_a_failure() -> None:
    unexplained = "ibstat ended with exit code -9 and did not say why"
    found = ibstat.read(Output(written("ibstat__mlx5_roce_and_a_bond"), "", -9))
    assert isinstance(found, RdmaPorts)
    assert found.errors == (unexplained,)
    assert ibstat.read(Output("", "", -9)) == Failure(FailureKind.EXIT, unexplained)


@pytest.mark.parametrize(
    ("text", "kind", "words"),
    [
        ("ibstat: error while loading shared libraries: libibumad.so.3: no\n", FailureKind.MISSING, "install"),
        ("-bash: ibstat: command not found\n", FailureKind.MISSING, "install infiniband-diags"),
        ("ibpanic: [7] main: stat of IB device 'a' failed: Permission denied\n", FailureKind.DENIED, "as root"),
        ("ibpanic: [7] main: 'mlx5_9' IB device can't be found: Success\n", FailureKind.EXIT, "no such device"),
        ("sminfo: iberror: failed: Failed to open '(null)' port '0'\n", FailureKind.EXIT, "iberror"),
        ("Fatal error:  No devices\n", FailureKind.UNPARSEABLE, "no line of ibstat"),
        ("Port 1:\nState: Active\n", FailureKind.UNPARSEABLE, "a port without its CA"),
        ("CA 'mlx5_0'\n", FailureKind.UNPARSEABLE, "a CA without its ports"),
        ("CA 'mlx5", FailureKind.UNPARSEABLE, "cut off"),
        ("State: Active\n", FailureKind.UNPARSEABLE, "a port's line without its port"),
    ],
)
def test_an_answer_without_a_port_says_why(text: str, kind: FailureKind, words: str) -> None:
    found, detail = said(ibstat.parse, text)
    assert found is kind
    assert words in detail


@pytest.mark.parametrize(
    ("good", "bad", "problem"),
    [
        ("State: Active", "State: Alive", "line 9: unknown state 'Alive': 'State: Alive'"),
        ("Rate: 400", "Rate: fast", "line 11: 'fast' is no rate: 'Rate: fast'"),
        ("Base lid: 0", "Base lid: -1", "line 12: '-1' is no count: 'Base lid: -1'"),
        ("0x9e63c0fffeaa0010", "0x9e63c0fffeaa0010f", "is no GUID"),
        ("28.43.2026", "28" * 40, "no name"),
    ],
)
def test_a_port_with_a_value_that_cannot_be_trusted_is_left_out_and_named(good: str, bad: str, problem: str) -> None:
    text = written("ibstat__mlx5_roce_and_a_bond").replace(good, bad, 1)
    found = ibstat.parse(text)
    assert [port.ca for port in found.ports] == ["mlx5_1", "mlx5_bond_0"]
    assert [problem in error for error in found.errors] == [True]


@pytest.mark.parametrize("header", ["CA 'mlx5_1'\n", "\tPort 1:\n"])
def test_ports_that_run_into_one_another_are_refused(header: str) -> None:
    text = written("ibstat__mlx5_roce_and_a_bond")
    before, after = text.split("CA 'mlx5_1'\n")
    after = "CA 'mlx5_1'\n" + after
    assert "without its" in refused(ibstat.parse, before + after.replace(header, "", 1)).problem


def test_a_port_that_is_announced_and_not_listed_is_an_error() -> None:
    text = written("ibstat__mlx4_two_ports_after_ibwarn").partition("\tPort 2:")[0]
    found = ibstat.parse(text)
    assert [port.port for port in found.ports] == [1]
    assert found.errors == ("""line 3: 2 ports announced, 1 listed: "CA 'mlx4_0'\"""",)


def test_a_rate_of_zero_is_a_failed_read_and_a_nameless_state_is_unknown() -> None:
    text = written("ibstat__mlx5_roce_and_a_bond").replace("Rate: 400", "Rate: 0").replace("Active", "???", 1)
    port = ibstat.parse(text).ports[0]
    assert (port.rate_gbps, port.state, port.physical_state, port.up) == (None, None, "LinkUp", None)


def test_a_new_key_is_reported_and_costs_nothing() -> None:
    text = written("ibstat__mlx5_roce_and_a_bond").replace("\t\tLMC: 0", "\t\tLane width: 4\n\t\tLMC: 0", 1)
    found = ibstat.parse(text)
    assert found.ports[0] == FIRST
    assert found.unknown_keys == ("Lane width",)


def test_the_last_line_of_a_paste_counts_where_its_word_is_whole() -> None:
    text = written("ibstat__mlx5_ib_vf_down_with_linkup").rstrip()
    assert ibstat.parse(text).ports[-1].link_layer == "InfiniBand"
    assert ibstat.parse(text[:-1]).ports[-1].link_layer is None


def test_every_state_word_has_a_label() -> None:
    text = written("ibstat__mlx5_roce_and_a_bond")
    for word in set(PORT_STATE_LABELS) - {"ActiveDefer"}:
        assert ibstat.parse(text.replace("State: Active", f"State: {word}", 1)).ports[0].state == word
    for word in PHYSICAL_STATE_LABELS:
        changed = text.replace("Physical state: LinkUp", f"Physical state: {word}", 1)
        assert ibstat.parse(changed).ports[0].physical_state == word
