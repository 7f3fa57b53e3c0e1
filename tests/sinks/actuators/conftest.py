"""The clusters that the tests of this folder act on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.sinks.actuators.clusters import BINARY, Cluster, real_cluster, stub_cluster


@pytest.fixture(scope="session")
def stub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with stub_cluster(tmp_path_factory.mktemp("stub")) as cluster:
        yield cluster


@pytest.fixture(scope="session", params=["stub", *(["real"] if BINARY else [])])
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """The stub, and the real API server where there is one: what holds for one must hold for the other."""
    if request.param == "stub":
        yield request.getfixturevalue("stub")
        return
    assert BINARY is not None
    with real_cluster(Path(BINARY).resolve(), tmp_path_factory.mktemp("real")) as real:
        yield real
