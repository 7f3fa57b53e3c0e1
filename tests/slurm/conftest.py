"""Fixtures of the tests with a real Slurm: each cluster is started once a module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.slurm.site import Site, site


@pytest.fixture(scope="module")
def cgroup() -> Iterator[Site]:
    """Slurm puts its jobs into cgroups."""
    with site("cgroup") as found:
        yield found


@pytest.fixture(scope="module")
def linuxproc() -> Iterator[Site]:
    """Slurm follows its jobs by who is whose child: only their environment says whose they are."""
    with site("linuxproc") as found:
        yield found


@pytest.fixture(params=["cgroup", "linuxproc"])
def either(request: pytest.FixtureRequest) -> Site:
    """Both in turn."""
    found: Site = request.getfixturevalue(request.param)
    return found
