"""state.db on a real disk: killed, full, read-only, locked, damaged, from the future."""

from __future__ import annotations

import os
import resource
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from npu_watchd.memory import journal, schema
from npu_watchd.memory.backlog import Backlog, Batch
from npu_watchd.memory.history import Changes, History
from npu_watchd.memory.rows import PointRow
from npu_watchd.memory.store import Loaded, Store
from npu_watchd.memory.stored import subject_of_text, text_of_subject
from npu_watchd.memory.witnesses import Tenants
from npu_watchd.model.fabric import PortKey
from npu_watchd.model.finding import Action, Event, Evidence, Finding, Severity
from npu_watchd.model.ids import NODE, DeviceKey, Subject
from npu_watchd.model.reading import Failure, FailureKind
from npu_watchd.model.snapshot import Identity
from tests.memory import month
from tests.memory.past import CHIP, DOUBLE, ERRORS, PORT, SINGLE, chip, hbm, node, port

ROOT = Path(__file__).parents[2]
DAY = 86_400.0


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "state.db"


def opened(path: Path) -> Store:
    store = Store.open(path)
    assert not isinstance(store, Failure), store
    return store


def loaded(store: Store) -> Loaded:
    found = store.load()
    assert not isinstance(found, Failure), found
    return found


def reopened(store: Store, path: Path) -> Loaded:
    store.close()
    again = opened(path)
    try:
        return loaded(again)
    finally:
        again.close()


def event(number: int, at_s: float = 1000.0, device_id: str | None = "3", text: str = "Something happened.") -> Event:
    return Event(
        number, at_s, "finding_opened", text, device_id, "hbm_double_bit", {"count": 3, "share": 0.5, "new": True}
    )


def finding(subject: Subject, **changes: object) -> Finding:
    evidence = (
        Evidence(ERRORS, 3.0, 1.0, "", 3600.0, "npu-smi info -t ecc -i 3: HBM Double Bit Error Count"),
        Evidence("state", "Down", None, "", None, "ibstat mlx5_0 1: State"),
    )
    held = {"held": True, "held_because": "npu-smi: no answer", "jobs": ("slurm/4711",)}
    return Finding(
        *("hbm_double_bit", "NpuMemoryUncorrectableErrors", subject, "3", Severity.CRITICAL, True),
        *(Action.RESET_DEVICE, 1000.0, "3 errors, 1 is too many.", evidence),
        **held,  # type: ignore[arg-type]
    )


def climb(*counts: int) -> History:
    history = History()
    for step, count in enumerate(counts):
        history.observe(node(chip(memory_errors=hbm(count)), port=port(count, up=count % 2 == 0)), 1000.0 + 60.0 * step)
    return history


# -- what is kept


def test_a_new_database_holds_nothing(path: Path) -> None:
    assert loaded(opened(path)) == Loaded(Changes(), (), (), {}, 1)


def test_all_that_is_written_is_there_after_a_restart(path: Path) -> None:
    store, history = opened(path), climb(1, 3, 4)
    findings = (finding(CHIP), finding(PORT), finding(NODE))
    batch = Batch(history.changes(), (event(1), event(2, device_id=None)), findings, {"wall_s": "1790000000.5"})
    assert store.write(batch) is None
    found = reopened(store, path)
    assert found.history == history.everything()
    assert found.events == (event(1), event(2, device_id=None))
    assert set(found.findings) == set(findings)
    assert (found.meta, found.next_event, found.troubles) == ({"wall_s": "1790000000.5"}, 3, ())


def test_the_findings_are_replaced_as_a_whole_and_only_when_told(path: Path) -> None:
    store = opened(path)
    store.write(Batch(findings=(finding(CHIP), finding(PORT))))
    store.write(Batch(events=(event(1),)))
    assert len(loaded(store).findings) == 2
    store.write(Batch(findings=(finding(NODE),)))
    assert loaded(store).findings == (finding(NODE),)
    store.write(Batch(findings=()))
    assert loaded(store).findings == ()


def test_a_history_that_goes_on_over_many_writes_is_kept_whole(path: Path) -> None:
    store, history = opened(path), History()
    for step in range(2600):
        up = port(up=step % 2 == 0)
        history.observe(node(chip(memory_errors=hbm(step)), port=up), 60.0 * step)
        if step % 7 == 0:
            assert store.write(Batch(history.changes())) is None
    store.write(Batch(history.changes()))
    assert reopened(store, path).history == history.everything()


def test_a_replaced_chip_leaves_nothing_behind(path: Path) -> None:
    store, history = opened(path), climb(1, 3)
    store.write(Batch(history.changes()))
    new = chip(identity=Identity(serial_number="SN-2"), memory_errors=hbm(0))
    history.observe(node(new), 5000.0)
    store.write(Batch(history.changes()))
    assert loaded(store).history == history.everything()


def test_who_was_there_when_a_code_came_is_kept_and_goes(path: Path) -> None:
    store, history = opened(path), History()
    sick = node(chip(error_codes=("80e01801",)))
    there: Tenants = {CHIP: frozenset({"slurm 4711"})}
    history.observe(sick, 1000.1, there)
    store.write(Batch(history.changes()))
    history.observe(node(chip()), 1015.0, there)
    history.observe(sick, 2000.0, there)
    store.write(Batch(history.changes()))
    found = loaded(store)
    assert (found.history, found.meta, found.troubles) == (history.everything(), {}, ())
    assert History.restore(found.history).jobs("error_code:80e01801", CHIP, 1000.1) == ("slurm 4711",)
    history.observe(node(chip()), 2000.0 + 3 * DAY)
    store.write(Batch(history.changes()))
    assert History.restore(reopened(store, path).history).everything().witnesses == {}


def test_writing_the_same_batch_twice_is_as_good_as_once(path: Path) -> None:
    store, history = opened(path), climb(1, 3)
    batch = Batch(history.changes(), (event(1),), (finding(CHIP),))
    assert (store.write(batch), store.write(batch)) == (None, None)
    assert loaded(store).history == history.everything()
    assert loaded(store).events == (event(1),)


def test_an_events_number_is_not_used_again_when_the_journal_was_emptied(path: Path) -> None:
    store = opened(path)
    store.write(Batch(events=(event(41, at_s=1000.0),)))
    store.prune(40 * DAY)
    found = reopened(store, path)
    assert (found.events, found.next_event) == ((), 42)


def test_a_row_that_cannot_be_read_costs_itself_only(path: Path) -> None:
    store = opened(path)
    store.write(Batch(findings=(finding(CHIP), finding(PORT))))
    with sqlite3.connect(path) as other:
        other.execute("UPDATE findings SET body = '{\"severity\": \"grave\"}' WHERE subject = 'device:3:0'")
    other.close()
    found = loaded(store)
    assert found.findings == (finding(PORT),)
    assert len(found.troubles) == 1
    assert "device:3:0" in found.troubles[0]


@pytest.mark.parametrize("subject", [NODE, DeviceKey(6, 1), PortKey("mlx5_bond_0", 1), PortKey("rocep1s0:f0", 2)])
def test_a_subject_is_read_as_it_was_written(subject: Subject) -> None:
    assert subject_of_text(text_of_subject(subject)) == subject


# -- the journal


def test_the_journal_is_asked_by_time_device_and_number(path: Path) -> None:
    store = opened(path)
    lines = tuple(event(n, 1000.0 * n, device_id="3" if n % 2 else None) for n in range(1, 7))
    store.write(Batch(events=lines))
    assert store.events(3000.0) == lines[2:]
    assert store.events(0.0, "3") == (lines[0], lines[2], lines[4])
    assert store.events(0.0, limit=2) == lines[4:]
    assert journal.read(path, after=4) == lines[4:]


def test_others_read_the_journal_while_the_daemon_writes(path: Path) -> None:
    store = opened(path)
    store.write(Batch(events=(event(1),)))
    found: list[object] = []
    reader = threading.Thread(target=lambda: found.append(journal.read(path)))
    reader.start()
    reader.join()
    store.write(Batch(events=(event(2),)))
    assert [found[0], journal.read(path)] == [(event(1),), (event(1), event(2))]


def test_the_journal_can_be_read_when_no_daemon_runs(path: Path) -> None:
    store = opened(path)
    store.write(Batch(events=(event(1),)))
    store.close()
    before = sorted(path.parent.iterdir())
    assert journal.read(path) == (event(1),)
    assert sorted(path.parent.iterdir()) == before


def test_a_journal_that_is_not_there_says_so(path: Path) -> None:
    found = journal.read(path)
    assert found == Failure(FailureKind.MISSING, f"{path}: no such file; has the daemon run on this node?")


# -- killed


def killed_after(path: Path, writes: int) -> list[int]:
    """The counts that a process has said to be safe before it was killed; `writes` of them, or a few more."""
    command = [sys.executable, "-m", "tests.memory.writing", str(path)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        acknowledged = [int(child.stdout.readline()) for _ in range(writes)]
        child.send_signal(signal.SIGKILL)
        rest = child.stdout.read().splitlines(keepends=True)
    return [*acknowledged, *(int(line) for line in rest if line.endswith("\n"))]


def test_what_was_acknowledged_survives_a_kill_at_any_moment(path: Path) -> None:
    """Nine times over the same database, each after other many acknowledged writes."""
    total = 0
    for writes in (1, 2, 3, 8, 21, 34, 55, 89, 144):
        acknowledged = killed_after(path, writes)
        assert acknowledged == list(range(acknowledged[0], acknowledged[-1] + 1))
        store = opened(path)
        assert store.said is None
        found = loaded(store)
        history = History.restore(found.history)
        total = int(history.series(ERRORS, CHIP)[DOUBLE])
        # One more may be there, that was written and not yet said.
        assert acknowledged[-1] <= total <= acknowledged[-1] + 1
        increase = history.increase(ERRORS, CHIP, DOUBLE, 1e9)
        assert increase is not None
        assert increase.count == total - 1
        assert found.next_event == total + 1
        assert [line.number for line in found.events] == list(range(1, total + 1))[-1000:]
        store.close()
    assert total >= 357


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.999])
def test_a_log_that_was_cut_costs_the_newest_writes_and_nothing_else(path: Path, share: float) -> None:
    acknowledged = killed_after(path, 30)
    log = Path(f"{path}-wal")
    os.truncate(log, int(log.stat().st_size * share))
    store = opened(path)
    history = History.restore(loaded(store).history)
    count = history.series(ERRORS, CHIP).get(DOUBLE, 0.0)
    increase = history.increase(ERRORS, CHIP, DOUBLE, 1e9)
    assert count <= acknowledged[-1] + 1
    assert (increase.count if increase else 0.0) == max(0.0, count - 1)
    assert store.write(Batch(events=(event(99),))) is None


# -- damaged


def aside(path: Path) -> list[str]:
    return sorted(found.name for found in path.parent.glob("*.corrupt-*"))


def test_what_is_no_database_is_moved_aside_said_and_begun_anew(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b"not a database at all, just text\n" * 500)
    store = opened(path)
    assert store.said is not None
    assert "file is not a database; it was moved to state.db.corrupt-1" in store.said
    assert (path.parent / "state.db.corrupt-1").read_bytes().startswith(b"not a database")
    assert store.write(Batch(events=(event(1),))) is None
    assert reopened(store, path).events == (event(1),)


def test_a_database_whose_pages_were_overwritten_is_moved_aside(path: Path) -> None:
    store = opened(path)
    store.write(Batch(climb(*range(1, 300)).changes(), tuple(event(n) for n in range(1, 500))))
    store.close()
    size = path.stat().st_size
    with path.open("r+b") as file:
        for page in range(2, size // 4096):
            file.seek(page * 4096)
            file.write(b"\xa5" * 512)
    store = opened(path)
    assert store.said is not None
    assert aside(path) == ["state.db.corrupt-1"]
    assert loaded(store).next_event == 1


def test_a_database_of_a_later_version_is_left_as_it_is(path: Path) -> None:
    opened(path).close()
    with sqlite3.connect(path) as other:
        other.execute("PRAGMA user_version = 99")
    other.close()
    refused = Store.open(path)
    assert isinstance(refused, Failure)
    assert refused.detail.endswith(
        "a later npu-watchd wrote it (schema 99, this one knows 1); it is left as it is and nothing is written: "
        "start the later version again, or move the file away"
    )
    assert aside(path) == []
    with sqlite3.connect(path) as other:
        assert other.execute("PRAGMA user_version").fetchone() == (99,)
    other.close()


def test_a_database_of_somebody_else_is_moved_aside(path: Path) -> None:
    path.parent.mkdir()
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE songs (title TEXT)")
    other.close()
    store = opened(path)
    assert store.said is not None
    assert "it is not a database of npu-watchd" in store.said


def test_only_the_newest_three_damaged_databases_are_kept(path: Path) -> None:
    path.parent.mkdir()
    for _ in range(5):
        path.write_bytes(b"rubbish " * 200)
        opened(path).close()
    assert aside(path) == ["state.db.corrupt-3", "state.db.corrupt-4", "state.db.corrupt-5"]


def test_an_empty_file_is_a_new_database(path: Path) -> None:
    path.parent.mkdir()
    path.touch()
    assert opened(path).said is None


def test_an_older_schema_is_brought_up_to_date_with_all_that_is_in_it(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = opened(path)
    store.write(Batch(events=(event(1),)))
    store.close()
    later = "CREATE TABLE notes (text TEXT);\nINSERT INTO notes VALUES ('moved');\n"
    monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, later))
    store = opened(path)
    assert (store.said, loaded(store).events) == (None, (event(1),))
    store.close()
    with sqlite3.connect(path) as other:
        assert other.execute("SELECT text FROM notes").fetchall() == [("moved",)]
        assert other.execute("PRAGMA user_version").fetchone() == (2,)
    other.close()


def test_a_migration_that_fails_leaves_the_database_as_it_was(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = opened(path)
    store.write(Batch(events=(event(1),)))
    store.close()
    monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, "CREATE TABLE a (b TEXT);\nDROP TABLE nowhere;\n"))
    found = Store.open(path)
    assert isinstance(found, Failure)
    monkeypatch.undo()
    assert loaded(opened(path)).events == (event(1),)


# -- a disk that does not want


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """As a full disk: the kernel refuses what would make a file larger."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_disk_that_is_full_refuses_a_write_whole_and_takes_it_later(path: Path) -> None:
    store, backlog, history = opened(path), Backlog(), climb(1, 2)
    assert store.write(backlog.put(Batch(history.changes(), (event(1),)))) is None
    backlog.written()
    with largest_file(Path(f"{path}-wal").stat().st_size + 8192):
        for number in range(2, 5):
            history.observe(node(chip(memory_errors=hbm(number + 1))), 5000.0 + 60.0 * number)
            failure = store.write(backlog.put(Batch(history.changes(), (event(number, text="long " * 9000),))))
            assert failure is not None
            assert failure.kind is FailureKind.EXIT
            assert str(path) in failure.detail
    assert [line.number for line in loaded(store).events] == [1]
    waiting = backlog.waiting
    assert waiting is not None
    assert store.write(waiting) is None
    found = reopened(store, path)
    assert [line.number for line in found.events] == [1, 2, 3, 4]
    assert found.history == history.everything()


@contextmanager
def small_disk(kilobytes: int) -> Iterator[Path]:
    """A real disk that is soon full; skips where nobody may mount one."""
    folder = Path(tempfile.mkdtemp())
    options = ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(options, capture_output=True, check=False).returncode != 0:
        folder.rmdir()
        pytest.skip("a small disk can only be mounted by root, and not everywhere")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)
        folder.rmdir()


def test_a_small_disk_that_fills_up_and_is_cleared_loses_nothing() -> None:
    with small_disk(900) as folder:
        ballast = folder / "somebody_elses_file"
        ballast.write_bytes(bytes(400_000))
        store = opened(folder / "state.db")
        taken, failure = 0, None
        while failure is None:
            taken += 1
            failure = store.write(Batch(events=(event(taken, text="long " * 1000),)))
        seen = [line.number for line in loaded(store).events]
        ballast.unlink()
        again = store.write(Batch(events=(event(taken, text="long " * 1000),)))
        found = reopened(store, folder / "state.db")
    assert failure == Failure(FailureKind.EXIT, f"{folder}/state.db: database or disk is full")
    assert seen == list(range(1, taken))
    assert again is None
    assert [line.number for line in found.events] == list(range(1, taken + 1))


@contextmanager
def as_nobody() -> Iterator[None]:
    """File rights mean something to everybody but root."""
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)


@pytest.fixture
def public() -> Iterator[Path]:
    """A folder that everybody can reach."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


def test_a_folder_that_may_not_be_written_is_a_failure_and_moves_nothing(public: Path) -> None:
    path = public / "state.db"
    public.chmod(0o555)
    with as_nobody():
        found = Store.open(path)
    assert isinstance(found, Failure)
    assert "unable to open database file" in found.detail
    assert list(public.iterdir()) == []


def test_a_file_that_may_not_be_written_is_denied_and_not_moved(public: Path) -> None:
    path = public / "state.db"
    store = opened(path)
    store.write(Batch(events=(event(1),)))
    store.close()
    path.chmod(0o444)
    public.chmod(0o555)
    with as_nobody():
        found = Store.open(path)
        lines = journal.read(path)
    assert isinstance(found, Failure)
    assert found.kind in (FailureKind.DENIED, FailureKind.EXIT)
    assert lines == (event(1),)
    assert [name.name for name in public.iterdir()] == ["state.db"]


def test_a_state_folder_that_is_a_file_says_so(tmp_path: Path) -> None:
    (tmp_path / "state").touch()
    found = Store.open(tmp_path / "state" / "state.db")
    assert isinstance(found, Failure)
    assert str(tmp_path / "state") in found.detail


def test_a_database_that_another_process_holds_is_locked_and_free_again_later(path: Path) -> None:
    store = opened(path)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    failure = store.write(Batch(events=(event(1),)))
    assert failure == Failure(FailureKind.TIMEOUT, f"{path}: database is locked")
    other.execute("ROLLBACK")
    other.close()
    assert store.write(Batch(events=(event(1),))) is None


# -- the backlog


def test_batches_that_wait_become_one_that_says_the_same(path: Path) -> None:
    store, backlog, history = opened(path), Backlog(), History()
    for step in range(60):
        history.observe(node(chip(memory_errors=hbm(step)), port=port(up=step % 3 == 0)), 60.0 * step)
        backlog.put(
            Batch(history.changes(), (event(step + 1),), (finding(CHIP),) if step == 7 else None, {"last": str(step)})
        )
    waiting = backlog.waiting
    assert waiting is not None
    assert store.write(waiting) is None
    found = loaded(store)
    assert found.history == history.everything()
    assert (len(found.events), found.findings, found.meta) == (60, (finding(CHIP),), {"last": "59"})


def test_a_backlog_is_bounded_keeps_the_newest_lines_and_every_error() -> None:
    backlog = Backlog(most_events=3, most_points=10)
    for step in range(40):
        point = PointRow(1, 60.0 * step, 60.0 * (step + 1), 60.0 * (step + 1), 2.0)
        backlog.put(Batch(Changes(points=(point,)), (event(step + 1),)))
    waiting = backlog.waiting
    assert waiting is not None
    assert [line.number for line in waiting.events] == [38, 39, 40]
    assert backlog.lost_events == 37
    assert len(waiting.changes.points) <= 10
    assert sum(point.grown for point in waiting.changes.points) == 80.0
    backlog.written()
    assert backlog.waiting is None


def test_a_batch_without_news_is_empty() -> None:
    history = climb(1)
    assert Batch(history.changes()).empty is False
    history.observe(node(chip(memory_errors=hbm(1)), port=port(1, up=False)), 5000.0)
    assert Batch(history.changes()).empty is True
    assert Batch(findings=()).empty is False


# -- retention and size


def test_after_thirty_days_lines_and_points_go_and_what_still_holds_stays(path: Path) -> None:
    store, history = opened(path), climb(2, 4, 5)
    store.write(Batch(history.changes(), (event(1, 1000.0), event(2, 1000.0 + 20 * DAY))))
    assert store.prune(1000.0 + 31 * DAY) is None
    found = loaded(store)
    assert [line.number for line in found.events] == [2]
    assert found.history.points == ()
    assert len(found.history.transitions) == len({row.state for row in found.history.transitions})
    again = History.restore(found.history)
    assert again.series(ERRORS, CHIP) == {DOUBLE: 5.0}
    assert again.since("port_up", PORT) == 1120.0


def test_beyond_its_size_the_oldest_goes_and_the_file_shrinks(path: Path) -> None:
    store = opened(path)
    for start in range(1, 4001, 500):
        store.write(Batch(events=tuple(event(n, 1000.0 + n, text="long " * 100) for n in range(start, start + 500))))
    assert store.used_bytes() > 2 << 20
    assert store.prune(6000.0, most_bytes=1 << 20) is None
    assert store.used_bytes() <= 1 << 20
    assert path.stat().st_size <= (1 << 20) + 65536
    numbers = [line.number for line in loaded(store).events]
    assert (numbers[-1], len(numbers)) == (4000, 1000)


def test_thirty_days_of_a_noisy_node_take_less_than_twenty_megabytes(path: Path) -> None:
    store = opened(path)
    history = month.live(store, days=30)
    files = [found.stat().st_size for found in path.parent.iterdir()]
    assert sum(files) < 20 << 20
    climbed = history.increase(ERRORS, DeviceKey(7), SINGLE, 1e9)
    assert climbed is not None
    assert climbed.count == 4319.0
    assert reopened(store, path).history.points == history.everything().points


def test_text_that_is_no_utf_8_costs_its_own_letters_only(path: Path) -> None:
    store = opened(path)
    port = PortKey("mlx5\udcff", 1)
    batch = Batch(
        events=(event(1, text="port mlx5\udcff is down"),), findings=(replace(finding(port), summary="\ud800"),)
    )
    assert store.write(batch) is None
    kept = loaded(store)
    assert kept.events[0].text == "port mlx5? is down"
    assert [(one.subject, one.summary) for one in kept.findings] == [(PortKey("mlx5?", 1), "?")]


def test_a_fault_in_the_middle_of_a_write_leaves_the_next_one_free(path: Path) -> None:
    store = opened(path)
    broken = Event(1, 1.0, "x", "text", facts={"a": object()})  # type: ignore[dict-item]  # what no caller may hand in
    with pytest.raises(TypeError):
        store.write(Batch(events=(event(2), broken)))
    assert store.write(Batch(events=(event(3),))) is None
    assert [one.number for one in loaded(store).events] == [3]
