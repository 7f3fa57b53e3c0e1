"""Incidents as the daemon takes them: a line in the journal, whatever it is that comes."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from npu_watchd.incidents import IncidentSocket
from npu_watchd.model.reading import Tick
from npu_watchd.resilient import Incident, Watchd


class Journal:
    def __init__(self) -> None:
        self.lines: list[tuple[str, str, dict[str, Any]]] = []
        self.came = threading.Event()

    def note(self, kind: str, text: str, wall_s: float, **facts: str | float | bool) -> None:
        assert wall_s >= 0
        self.lines.append((kind, text, facts))
        self.came.set()


def incidents(folder: Path, journal: Journal, now: Tick = Tick(5.0, 1_790_000_000.0)) -> IncidentSocket:  # noqa: B008
    return IncidentSocket(folder, journal.note, lambda: now, lambda *_, **__: None)


def test_what_a_job_reports_is_in_the_journal_with_the_uid_that_the_kernel_tells(tmp_path: Path) -> None:
    journal = Journal()
    heard = incidents(tmp_path, journal)
    heard.open()
    try:
        Watchd(tmp_path).report(Incident("link", "retry", 1, "3", "0", "EI0015\nlink\x1b[31m"))
        assert journal.came.wait(10)
    finally:
        heard.close()
    ((kind, text, facts),) = journal.lines
    assert kind == "job_incident"
    assert text.startswith(f"a job of uid {os.getuid()} on device 3 reports link (attempt 1, retry): EI0015")
    assert "\x1b" not in text
    assert facts == {"device": "3", "rank": "0", "error": "link", "action": "retry", "uid": float(os.getuid())}
    assert not (tmp_path / "incidents.sock").exists()


def test_what_was_spooled_is_read_once_and_links_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "spool").mkdir()
    (tmp_path / "secret").write_text('{"error": "stolen", "action": "retry", "attempt": 1}')
    (tmp_path / "spool/2.json").symlink_to(tmp_path / "secret")
    (tmp_path / "spool/3.json").write_text("[" * 100_000)
    os.mkfifo(tmp_path / "spool/4.json")
    Watchd(tmp_path)._spool(b'{"error": "link", "action": "stop", "attempt": 3}')
    journal = Journal()
    heard = incidents(tmp_path, journal)
    heard.open()
    heard.close()
    assert [facts["error"] for _, _, facts in journal.lines] == ["link"]
    assert not any((tmp_path / "spool").glob("*.json")) or not (tmp_path / "spool/3.json").exists()
    assert (tmp_path / "secret").exists()


def test_a_flood_is_cut_off_and_counted(tmp_path: Path) -> None:
    journal, now = Journal(), [Tick(0.0, 0.0)]
    heard = IncidentSocket(tmp_path, journal.note, lambda: now[0], lambda *_, **__: None)
    for _ in range(1000):
        heard.take(b'{"error": "link", "action": "retry", "attempt": 1}', 1000)
    assert len(journal.lines) == 20
    now[0] = Tick(10.0, 10.0)
    heard.take(b'{"error": "link", "action": "retry", "attempt": 1}', 1000)
    assert journal.lines[-1][1].endswith("(980 more reports were dropped)")


@given(st.binary(max_size=200))
def test_rubbish_is_dropped(raw: bytes) -> None:
    journal = Journal()
    incidents(Path("/nowhere"), journal).take(raw, 1000)
    assert len(journal.lines) <= 1


def test_a_report_as_deep_as_a_datagram_is_long_ends_nothing(tmp_path: Path) -> None:
    deep = b'{"error": "link", "action": "retry", "attempt": 1, "x": ' + b"[" * 4000
    journal = Journal()
    incidents(tmp_path, journal).take(deep, 1000)
    (tmp_path / "spool").mkdir()
    (tmp_path / "spool" / "1.json").write_bytes(deep)
    heard = incidents(tmp_path, journal)
    heard.open()
    heard.close()
    assert journal.lines == []


def test_who_is_not_known_is_not_given_a_number(tmp_path: Path) -> None:
    journal = Journal()
    incidents(tmp_path, journal).take(b'{"error": "link", "action": "retry", "attempt": 1}', None)
    assert journal.lines[0][1].startswith("a job of an unknown user on ")
    assert "uid" not in journal.lines[0][2]
