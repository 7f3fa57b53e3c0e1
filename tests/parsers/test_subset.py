"""The yardstick of the cut tests is itself held to what it must and must not let pass."""

from __future__ import annotations

import dataclasses

from npu_watchd.model.records import InfoTable
from npu_watchd.parsers import info_table
from tests.parsers.subset import excess
from tests.parsers.texts import typed

WHOLE = info_table.parse(typed("info__A3__25.5.0__pid_on_two_dies"))


def _changed(**change: object) -> InfoTable:
    first = dataclasses.replace(WHOLE.devices[0], **change)  # type: ignore[arg-type]
    return dataclasses.replace(WHOLE, devices=(first, *WHOLE.devices[1:]))


def test_less_is_a_subset() -> None:
    assert excess(WHOLE, WHOLE) is None
    assert excess(_changed(power_watts=None), WHOLE) is None
    assert excess(_changed(trusted=False), WHOLE) is None
    assert excess(dataclasses.replace(WHOLE, devices=WHOLE.devices[1:], processes=()), WHOLE) is None
    assert excess(dataclasses.replace(WHOLE, processes=None), WHOLE) is None


def test_another_number_is_none() -> None:
    assert excess(_changed(power_watts=17.0), WHOLE) is not None
    assert excess(_changed(hugepages_used=1), WHOLE) is not None
    assert excess(WHOLE, _changed(trusted=False)) == (
        "record.devices: " + repr(WHOLE.devices[0]) + " is not in the whole: record.devices.trusted became True"
    )
    assert excess(WHOLE, _changed(power_watts=None)) is not None
    assert excess(dataclasses.replace(WHOLE, devices=WHOLE.devices * 2), WHOLE) is not None
    assert excess(dataclasses.replace(WHOLE, devices=WHOLE.devices[::-1]), WHOLE) is not None
    assert excess({"a": "1"}, {"a": "12"}) == "record['a']: '1' is not '12'"
    assert excess({"a": "1"}, {"a": "1\n2"}) is None
    assert excess({"b": 1}, {"a": 1}) == "record: 'b' is not in the whole"
