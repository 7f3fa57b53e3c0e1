"""/proc/net/tcp: who listens, and nothing of a text that is cut."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from npu_watchd.model.hccl import Listener
from npu_watchd.parsers.lines import ParseError
from npu_watchd.parsers.sockets import ListeningSocket, listening

HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode          \n"
TCP = HEAD + (
    "   0: 0700000A:EA60 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 31337 1 "
    "0000000000000000 100 0 0 10 0\n"
    "   1: 00000000:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1 "
    "0000000000000000 100 0 0 10 0\n"
    "   2: 0100007F:EA61 0100007F:D431 01 00000000:00000000 02:000001F4 00000000  1000        0 999 2 "
    "0000000000000000 20 4 30 10 -1\n"
)
TCP6 = (
    "  sl  local_address                         remote_address                        st tx_queue rx_queue tr\n"
    "   0: 00000000000000000000000000000000:EA60 00000000000000000000000000000000:0000 0A 00000000:00000000 "
    "00:00000000 00000000     0        0 12 1 0000000000000000 100 0 0 10 0\n"
    "   1: 0000000000000000FFFF00000700000A:EA61 00000000000000000000000000000000:0000 0A 00000000:00000000 "
    "00:00000000 00000000     0        0 13 1 0000000000000000 100 0 0 10 0\n"
    "   2: B80D0120000000000000000001000000:EA62 00000000000000000000000000000000:0000 0A 00000000:00000000 "
    "00:00000000 00000000     0        0 14 1 0000000000000000 100 0 0 10 0\n"
)


def test_sockets_that_listen_are_told_from_connections() -> None:
    assert listening(TCP) == (
        ListeningSocket(Listener("10.0.0.7", 60000), 31337),
        ListeningSocket(Listener("0.0.0.0", 22), 4711),
    )


def test_addresses_of_ipv6_and_of_ipv4_within_it() -> None:
    assert [(one.listener.address, one.listener.port) for one in listening(TCP6)] == [
        ("::", 60000),
        ("10.0.0.7", 60001),
        ("2001:db8::1", 60002),
    ]


def test_a_namespace_in_which_nobody_listens() -> None:
    assert listening(HEAD) == ()


@pytest.mark.parametrize("text", ["", "no such thing\n", "Inter-|   Receive\n"])
def test_another_file_is_refused(text: str) -> None:
    with pytest.raises(ParseError):
        listening(text)


@given(st.integers(0, len(TCP)))
def test_a_text_that_is_cut_brings_fewer_sockets_or_none(length: int) -> None:
    try:
        found = listening(TCP[:length])
    except ParseError:
        return
    assert set(found) <= set(listening(TCP))


@given(st.text(max_size=300))
def test_no_text_is_an_error_of_ours(text: str) -> None:
    assert listening(HEAD + text) is not None
