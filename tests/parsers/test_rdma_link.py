"""`rdma link show`: the facts of ibstat as far as netlink has them, as text and as JSON."""

from __future__ import annotations

import pytest

from npu_watchd.model.fabric import RdmaPort, RdmaPorts
from npu_watchd.model.reading import FailureKind
from npu_watchd.parsers import rdma_link
from tests.parsers.fabric_texts import written
from tests.parsers.texts import said

MLX5 = RdmaPort(
    ca="mlx5_0",
    port=1,
    state="Active",
    physical_state="LinkUp",
    base_lid=17,
    lmc=0,
    sm_lid=3,
    link_layer="InfiniBand",
)


def test_infiniband_and_roce_links() -> None:
    assert rdma_link.parse(written("rdma-link__ib_hns_irdma")) == RdmaPorts(
        (
            MLX5,
            RdmaPort(
                ca="mlx5_1",
                port=1,
                state="Initializing",
                physical_state="Polling",
                base_lid=65535,
                lmc=0,
                sm_lid=0,
                link_layer="InfiniBand",
            ),
            RdmaPort(ca="hns_0", port=1, state="Active", physical_state="LinkUp", netdev="enp61s0f0"),
            RdmaPort(ca="irdma0", port=1, state="Down", physical_state="Disabled", netdev="enp62s0f1"),
        )
    )


def test_the_detailed_and_old_form_says_the_same() -> None:
    assert rdma_link.parse(written("rdma-link__detailed_old_form")) == RdmaPorts(
        (MLX5, RdmaPort(ca="rxe0", port=1, state="Active", physical_state="LinkUp", netdev="eth0"))
    )


def test_json_says_the_same() -> None:
    assert rdma_link.parse(written("rdma-link__json")) == RdmaPorts(
        (MLX5, RdmaPort(ca="hns_0", port=1, state="Down", physical_state="Disabled", netdev="enp61s0f0"))
    )


def test_a_kernel_without_rdma_is_a_failure_with_its_cure() -> None:
    kind, detail = said(rdma_link.parse, "Failed to open NETLINK_RDMA socket\n")
    assert (kind, detail) == (
        FailureKind.EXIT,
        "Failed to open NETLINK_RDMA socket (the kernel has no RDMA: load ib_core and the driver of the card)",
    )


def test_no_link_at_all_is_no_failure_by_itself() -> None:
    assert rdma_link.parse("") == RdmaPorts()
    assert rdma_link.parse("[]\n") == RdmaPorts()


def test_a_link_that_cannot_be_trusted_is_left_out_and_named() -> None:
    found = rdma_link.parse(written("rdma-link__ib_hns_irdma").replace("state INIT", "state READY"))
    assert [port.ca for port in found.ports] == ["mlx5_0", "hns_0", "irdma0"]
    assert found.errors[0].startswith("line 2: unknown state 'READY': 'link mlx5_1/1 ")
    twice = rdma_link.parse(written("rdma-link__json").replace('"hns_0"', '"mlx5_0"'))
    assert [port.ca for port in twice.ports] == ["mlx5_0"]
    assert "the same link twice" in twice.errors[0]


def test_a_last_line_without_its_end_gives_what_is_before_its_last_word() -> None:
    line = "link hns_0/1 state ACTIVE physical_state LINK_UP netdev enp61s0f0"
    assert rdma_link.parse(line).ports == (
        RdmaPort(ca="hns_0", port=1, state="Active", physical_state="LinkUp", netdev=None),
    )
    assert rdma_link.parse(line[: line.index(" netdev")]).ports == (RdmaPort(ca="hns_0", port=1, state="Active"),)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("link hns_0", "no line of rdma link"),
        ("link hns_0/1", "cut off"),
        ("link hns_0/1 state\n", "a key without its value"),
        ("link hns_0/1 lqpn 1 state RTS\n", "unknown state 'RTS'"),
        ("0: hns_0: node_type ca fw 1.0\n", "no line of rdma link"),
        ('[{"ifname":"hns_0","port":1', "JSON of rdma that does not end well"),
        ("[1]\n", "JSON of rdma that is no list of links"),
        ('[{"port":1,"state":"ACTIVE"}]\n', "a link without its device"),
    ],
)
def test_a_text_without_a_link_says_why(text: str, problem: str) -> None:
    kind, detail = said(rdma_link.parse, text)
    assert kind is FailureKind.UNPARSEABLE
    assert problem in detail


def test_a_new_key_is_reported() -> None:
    found = rdma_link.parse("link hns_0/1 state ACTIVE colour green physical_state LINK_UP \n")
    assert found.unknown_keys == ("colour",)
    assert found.ports[0].up is True
