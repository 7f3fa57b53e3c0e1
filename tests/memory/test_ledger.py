"""The growth of counters as the API's threads read it, while the daemon writes."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from npu_watchd.memory import ledger
from npu_watchd.memory.backlog import Batch
from npu_watchd.memory.history import History
from npu_watchd.memory.store import Store
from npu_watchd.model.ids import DeviceKey
from npu_watchd.model.ledger import Growth, Ledger
from npu_watchd.model.reading import Failure, FailureKind
from tests.memory.past import CHIP, DOUBLE, ERRORS, PORT, SINGLE, chip, hbm, node, port

OTHER = DeviceKey(4)
DOWNS = "npu_node_rdma_port_link_downs_total"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "state.db"


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    """It stays open, as beside a daemon that runs: device 3 has grown thrice, device 4 once, a port once."""
    opened = Store.open(path)
    assert not isinstance(opened, Failure), opened
    history = History()
    for minute, (single, double, others, downs) in enumerate([(0, 0, 7, 1), (2, 1, 7, 1), (2, 4, 8, 2), (3, 4, 8, 2)]):
        seen = node(
            chip(memory_errors=hbm(double, single=single)), chip(OTHER, memory_errors=hbm(others)), port=port(downs)
        )
        history.observe(seen, 1000.0 + 60 * minute)
        assert opened.write(Batch(history.changes())) is None
    yield opened
    opened.close()


def read(path: Path, *arguments: object, **more: int) -> Ledger:
    found = ledger.read(path, *arguments, **more)  # type: ignore[arg-type]
    assert isinstance(found, Ledger), found
    return found


def test_a_counter_is_told_with_its_newest_value_and_each_step_of_its_growth(store: Store, path: Path) -> None:
    accounts = {one.labels: one for one in read(path, ERRORS, CHIP).accounts}
    assert accounts[DOUBLE].subject == CHIP
    assert (accounts[DOUBLE].value, accounts[DOUBLE].since_s) == (4.0, 1000.0)
    assert accounts[DOUBLE].steps == (Growth(1000.0, 1060.0, 1060.0, 1.0), Growth(1060.0, 1120.0, 1120.0, 3.0))
    assert accounts[SINGLE].steps == (Growth(1000.0, 1060.0, 1060.0, 2.0), Growth(1120.0, 1180.0, 1180.0, 1.0))


def test_a_metric_is_told_of_one_device_or_of_all_that_have_it(store: Store, path: Path) -> None:
    assert {one.subject for one in read(path, ERRORS).accounts} == {CHIP, OTHER}
    assert {one.subject for one in read(path, ERRORS, OTHER).accounts} == {OTHER}
    assert [(one.subject, one.labels, one.value) for one in read(path, DOWNS).accounts] == [(PORT, (), 2.0)]
    assert read(path, DOWNS, CHIP) == Ledger(())
    assert read(path, "npu_device_hccs_errors_total") == Ledger(())


def test_a_counter_that_has_not_grown_since_then_is_still_told(store: Store, path: Path) -> None:
    since = {one.labels: one.steps for one in read(path, ERRORS, CHIP, 1180.0).accounts}
    assert since[DOUBLE] == ()
    assert since[SINGLE] == (Growth(1120.0, 1180.0, 1180.0, 1.0),)


def test_of_too_many_steps_the_newest_are_told_and_that_there_are_more(store: Store, path: Path) -> None:
    whole = read(path, ERRORS, CHIP, most=4)
    assert (whole.cut, sum(len(one.steps) for one in whole.accounts)) == (False, 4)
    cut = read(path, ERRORS, CHIP, most=2)
    steps = {one.labels: one.steps for one in cut.accounts}
    assert cut.cut is True
    assert steps[DOUBLE] == (Growth(1060.0, 1120.0, 1120.0, 3.0),)
    assert steps[SINGLE] == (Growth(1120.0, 1180.0, 1180.0, 1.0),)


def test_a_counter_that_cannot_be_read_costs_only_itself(store: Store, path: Path) -> None:
    db = sqlite3.connect(path)
    db.execute("UPDATE series SET labels = 'rubbish' WHERE subject = 'device:4:0'")
    db.commit()
    db.close()
    found = read(path, ERRORS)
    assert (found.unreadable, {one.subject for one in found.accounts}) == (1, {CHIP})


def test_reading_is_possible_once_no_daemon_runs_any_longer(store: Store, path: Path) -> None:
    store.close()
    assert len(read(path, ERRORS, CHIP).accounts) == 2


def test_reading_changes_nothing_and_keeps_no_writer_waiting(store: Store, path: Path) -> None:
    before = path.read_bytes()
    read(path, ERRORS)
    assert path.read_bytes() == before
    writer = sqlite3.connect(path, timeout=0.0)
    writer.execute("BEGIN IMMEDIATE")
    assert len(read(path, ERRORS, CHIP).accounts) == 2
    writer.rollback()
    writer.close()


def test_what_is_no_database_or_is_not_there_is_named(path: Path) -> None:
    missing = ledger.read(path, ERRORS)
    assert isinstance(missing, Failure)
    assert missing == Failure(FailureKind.MISSING, f"{path}: no such file; has the daemon run on this node?")
    path.parent.mkdir()
    path.write_bytes(b"rubbish " * 1000)
    assert ledger.read(path, ERRORS) == Failure(FailureKind.UNPARSEABLE, f"{path}: file is not a database")
