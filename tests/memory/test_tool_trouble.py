from __future__ import annotations

from npu_watchd.memory.tool_trouble import ToolTrouble
from npu_watchd.model.reading import Tick

HEALTH = ("dcmi_get_device_health", -8006)
ECC = ("dcmi_get_device_ecc_info", -8002)


def at(seconds: float) -> Tick:
    return Tick(seconds, 1_790_000_000.0 + seconds)


def test_failures_are_counted_by_code() -> None:
    trouble = ToolTrouble()
    trouble.take([ECC, HEALTH, ECC], at(10))
    trouble.take([ECC], at(20))
    assert trouble.counts == {"-8002": 3, "-8006": 1}


def test_a_failed_health_query_is_held_up_because_the_table_prints_ok_for_it() -> None:
    trouble = ToolTrouble()
    trouble.take([HEALTH], at(10))
    (warning,) = trouble.warnings(at(190))
    assert warning.startswith("npu-smi logged that dcmi_get_device_health failed (-8006): an OK in its table may be")


def test_an_old_failure_is_no_warning_any_more() -> None:
    trouble = ToolTrouble()
    trouble.take([HEALTH], at(10))
    assert trouble.warnings(at(190.1)) == []


def test_what_the_table_marks_by_itself_is_counted_and_not_held_up() -> None:
    trouble = ToolTrouble()
    trouble.take([ECC], at(10))
    assert trouble.warnings(at(11)) == []
