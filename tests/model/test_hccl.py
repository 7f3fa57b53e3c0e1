"""What HCCL's variables mean: on which ports it may listen, and which devices a process may use."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from npu_watchd.model.hccl import Choice, HostPorts, Listener, device_list, values

RANGE, BASE = "HCCL_HOST_SOCKET_PORT_RANGE", "HCCL_IF_BASE_PORT"


@pytest.mark.parametrize(
    ("variables", "choice", "text"),
    [
        ({}, Choice.DEFAULT, "60000-60031"),
        ({BASE: "50000"}, Choice.FIXED, "50000-50031"),
        ({BASE: "65520"}, Choice.FIXED, "65520-65535"),
        ({RANGE: "auto"}, Choice.AUTO, "auto"),
        ({RANGE: "60000-60050"}, Choice.LISTED, "60000-60050"),
        ({RANGE: "60000, 60050-60100,60150"}, Choice.LISTED, "60000,60050-60100,60150"),
        ({RANGE: "61000", BASE: "50000"}, Choice.LISTED, "61000"),
    ],
)
def test_the_ports_that_hccl_may_listen_on(variables: dict[str, str], choice: Choice, text: str) -> None:
    ports = HostPorts.of(variables)
    assert ports is not None
    assert (ports.choice, str(ports)) == (choice, text)


@pytest.mark.parametrize(
    "variables",
    [{BASE: "80"}, {BASE: "65521"}, {BASE: "x"}, {RANGE: "2-1"}, {RANGE: "0"}, {RANGE: "70000"}, {RANGE: "1,,2"}],
)
def test_a_value_that_hccl_refuses_says_nothing(variables: dict[str, str]) -> None:
    assert HostPorts.of(variables) is None


def test_a_base_port_gives_each_chip_its_own() -> None:
    ports = HostPorts.of({BASE: "50000"})
    assert ports is not None
    assert ports.fixed(7) == 50007
    assert 50031 in ports
    assert 50032 not in ports
    assert len(ports) == 32


@pytest.mark.parametrize(
    ("text", "ids"),
    [("0", (0,)), ("0,1, 3", (0, 1, 3)), ("3,1", None), ("1,1", None), ("", None), ("0-3", None), ("a", None)],
)
def test_only_an_ascending_list_of_ids_is_certain(text: str, ids: tuple[int, ...] | None) -> None:
    assert device_list(text) == ids


@given(st.text(max_size=30))
def test_no_value_is_an_error_of_ours(text: str) -> None:
    for ports in (HostPorts.of({RANGE: text}), HostPorts.of({BASE: text})):
        assert ports is None or all(1 <= first <= last <= 65535 for first, last in ports.ranges)
    ids = device_list(text)
    assert ids is None or list(ids) == sorted(set(ids))


def test_values_are_told_once_and_unread_environments_not_at_all() -> None:
    some = [{"A": "2", "C": "x"}, {"A": "1"}, None, {"A": "2"}]
    assert values(some, ("A", "B")) == {"A": ("1", "2")}


def test_an_address_of_ipv6_is_written_in_brackets() -> None:
    assert str(Listener("::", 60000)) == "[::]:60000"
    assert str(Listener("10.0.0.7", 60000)) == "10.0.0.7:60000"
