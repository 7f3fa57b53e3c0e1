"""Which readings hurry a cycle."""

from __future__ import annotations

from dataclasses import replace

import pytest

from npu_watchd.memory.news import is_news
from npu_watchd.model.fabric import NpuLink, NpuLinkHistory, RdmaPort, RdmaPorts
from npu_watchd.model.pcie import PcieErrors
from npu_watchd.model.reading import Failure, FailureKind
from npu_watchd.model.records import EccChip, HealthChip, MemoryErrors, MemoryTemperature
from tests.memory.build import row, table

ECC = EccChip(0, MemoryErrors(single_bit=3, double_bit=0), None)
HEALTH = HealthChip(0, "OK", (), ())
UP = RdmaPorts((RdmaPort("mlx5_0", 1, state="Active", physical_state="LinkUp", rate_gbps=200),))
DOWN = RdmaPorts((RdmaPort("mlx5_0", 1, state="Down", physical_state="Polling", rate_gbps=200),))
AER = PcieErrors("0000:83:00.0", 5, 0, 0)


@pytest.mark.parametrize(
    ("before", "now"),
    [
        (ECC, replace(ECC, hbm=MemoryErrors(single_bit=4, double_bit=0))),
        (HEALTH, replace(HEALTH, health="Alarm")),
        (HEALTH, replace(HEALTH, error_codes=("80e01801",))),
        (table(row(0), row(1)), table(row(0))),
        (table(row(0)), table(row(0, health="Warning"))),
        (NpuLink(True), NpuLink(False)),
        (NpuLinkHistory(0, None, 1, 0, True, ()), NpuLinkHistory(0, None, 2, 1, True, ())),
        (UP, DOWN),
        (AER, replace(AER, fatal=1)),
    ],
)
def test_what_may_page_somebody_does_not_wait(before: object, now: object) -> None:
    assert is_news(before, now)
    assert not is_news(now, now)


@pytest.mark.parametrize(
    ("before", "now"),
    [
        (table(row(0)), table(row(0, temperature_celsius=80.0, hbm_used_bytes=1))),
        (MemoryTemperature(50.0), MemoryTemperature(51.0)),
        (AER, replace(AER, correctable=9)),
        (ECC, Failure(FailureKind.TIMEOUT, "no answer")),
        (Failure(FailureKind.TIMEOUT, "no answer"), ECC),
    ],
)
def test_what_always_moves_or_cannot_be_seen_waits_for_the_cycle(before: object, now: object) -> None:
    assert not is_news(before, now)
