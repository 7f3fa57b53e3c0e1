"""The labelled cases: the right cause first, and never a chip blamed that is not to blame."""

from __future__ import annotations

import pytest

from npu_watchd.diagnose.cause import Cause
from npu_watchd.diagnose.ranking import ranking
from tests.diagnose.__main__ import table
from tests.diagnose.cases import SHARED, Case, all_cases
from tests.parsers.log_texts import SHARED_FOLDER

CASES = all_cases()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_no_case_is_taken_for_hardware_that_is_not(case: Case) -> None:
    best = ranking(case.incident)[0]
    assert (best.cause is Cause.HARDWARE) == (case.cause is Cause.HARDWARE)
    assert best.device_ids == case.device_ids


def test_the_right_cause_comes_first_in_95_of_100() -> None:
    right = [case for case in CASES if ranking(case.incident)[0].cause is case.cause]
    assert len(CASES) >= 60
    assert len(right) / len(CASES) >= 0.95, "\n".join(table())


@pytest.mark.skipif(not SHARED_FOLDER.is_dir(), reason="NPU_WATCHD_CAPTURES names no folder of real logs")
def test_every_log_of_the_folder_has_a_label() -> None:
    assert {path.stem for path in SHARED_FOLDER.glob("*.log")} == set(SHARED)


@pytest.mark.parametrize("cause", list(Cause))
def test_every_cause_has_cases(cause: Cause) -> None:
    assert sum(case.cause is cause for case in CASES) >= 5
