"""What must not leave the site, literally; and what must stay readable."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from npu_watchd.diagnose.redaction import Redactor

HOME = "/home"


def redacted(text: str) -> str:
    return Redactor(hosts=["node17", "node17.example.org"], users=["alice"]).redact(text)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("address_0=192.0.2.24", "address_0=<ip-1>"),
        ("10.1.2.3:60000 and 10.1.2.4, 10.1.2.3", "<ip-1>:60000 and <ip-2>, <ip-1>"),
        ("listen on [fe80::1ff:fe23:4567:890a]:443", "listen on [<ip-1>]:443"),
        ("link 00:1b:44:11:3a:b7 up", "link <mac-1> up"),
        ("on node17.example.org (node17)", "on <host-1> (<host-2>)"),
        (f"{HOME}/bob/train.py of alice", f"{HOME}/<user-1>/train.py of <user-2>"),
        ('"user": "carol"', '"user": "<user-1>"'),
        ("Serial Number                  : 2106030ABC", "Serial Number                  : <serial-1>"),
        ('"serial_number":"0F4E"', '"serial_number":"<serial-1>"'),
        ("Node GUID: 0x506b4b03005d1234", "Node GUID: <serial-1>"),
        ("VDie ID : 42C711D4 20B03704 5C10", "VDie ID : <serial-1>"),
        ("HF_TOKEN=hf_abc", "HF_TOKEN=<secret>"),
        ('{"password": "x y"}', '{"password": "<secret>"}'),
        ("Authorization: Bearer abcdefghijklmnop", "Authorization: <secret>"),
        ("https://bob:pw@host/x", "https://<secret>@host/x"),
    ],
)
def test_what_must_not_leave_is_taken_out(text: str, left: str) -> None:
    assert redacted(text) == left


@pytest.mark.parametrize(
    "text",
    [
        "Version=7.1.0.11.220",
        "runtime_running_version=[7.5.0.1.129:8.0.RC3]",
        "0000:c1:00.0 at 12:34:56",
        "127.0.0.1:18910 and 0.0.0.0",
        "ge::Graph std::string",
        'serial_number": null',
        "user: root",
        "/root/ascend/log",
        "caused by: timeout",
    ],
)
def test_what_support_needs_stays(text: str) -> None:
    assert redacted(text) == text


def test_the_list_says_how_many_and_never_which() -> None:
    redactor = Redactor(hosts=["node17"])
    redactor.redact("node17 10.1.2.3 10.1.2.4 token=abc token=abc")
    assert redactor.counts == {"secret": 2, "mac": 0, "ip": 2, "serial": 0, "user": 0, "host": 1}


@given(st.text(max_size=80), st.text("abcxyz", min_size=6, max_size=12))
def test_a_known_name_is_nowhere_in_what_is_left(around: str, name: str) -> None:
    assert name not in Redactor(users=[name]).redact(f"{around} {name} {around}").split()


def test_a_line_without_end_costs_no_more_than_its_length() -> None:
    assert redacted("a" * 300_000) == "a" * 300_000
