"""What systemd hears, on a real datagram socket."""

from __future__ import annotations

import os
import socket
from pathlib import Path

from npu_watchd.sinks.systemd import Notifier


def listening(address: str) -> socket.socket:
    channel = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    channel.bind(address)
    channel.settimeout(5)
    return channel


def test_lines_go_in_one_message_to_the_path(tmp_path: Path) -> None:
    address = str(tmp_path / "notify")
    with listening(address) as systemd:
        notifier = Notifier({"NOTIFY_SOCKET": address})
        assert notifier.send("READY=1", "WATCHDOG=1", "STATUS=8 of 8 devices present") is True
        assert systemd.recv(4096) == b"READY=1\nWATCHDOG=1\nSTATUS=8 of 8 devices present"


def test_an_abstract_socket_is_written_with_an_at_sign() -> None:
    name = f"npu-watchd-test-{os.getpid()}"
    with listening(f"\0{name}") as systemd:
        assert Notifier({"NOTIFY_SOCKET": f"@{name}"}).send("STOPPING=1") is True
        assert systemd.recv(4096) == b"STOPPING=1"


def test_without_the_variable_nothing_is_sent() -> None:
    assert Notifier({}).send("READY=1") is False
    assert Notifier({"NOTIFY_SOCKET": ""}).send("READY=1") is False


def test_nobody_listening_is_no_error(tmp_path: Path) -> None:
    assert Notifier({"NOTIFY_SOCKET": str(tmp_path / "gone")}).send("WATCHDOG=1") is False


def test_a_systemd_that_does_not_read_is_not_waited_for(tmp_path: Path) -> None:
    address = str(tmp_path / "notify")
    with listening(address):
        notifier = Notifier({"NOTIFY_SOCKET": address})
        # The queue of a datagram socket is short; a blocking send would hang here.
        assert [notifier.send("WATCHDOG=1") for _ in range(10_000)].count(False) > 0


def test_a_daemon_of_rare_cycles_asks_for_more_patience_than_the_unit_has() -> None:
    notifier = Notifier({"NOTIFY_SOCKET": "@x", "WATCHDOG_USEC": "60000000"})
    assert notifier.patience(5.0) == ("WATCHDOG_USEC=60000000",)
    assert notifier.patience(60.0) == ("WATCHDOG_USEC=240000000",)


def test_without_a_watchdog_nobody_is_asked_for_patience() -> None:
    assert Notifier({"NOTIFY_SOCKET": "@x"}).patience(60.0) == ()
    assert Notifier({"NOTIFY_SOCKET": "@x", "WATCHDOG_USEC": "soon"}).patience(60.0) == ()


def test_nothing_to_say_is_not_said(tmp_path: Path) -> None:
    address = str(tmp_path / "notify")
    with listening(address):
        assert Notifier({"NOTIFY_SOCKET": address}).send() is False
