"""`npu-smi info -t health` in the card form, the chip form and that of Ascend 950."""

from __future__ import annotations

import pytest

from npu_watchd.model.reading import FailureKind
from npu_watchd.model.records import HealthChip, HealthReport
from npu_watchd.parsers import health
from tests.parsers.texts import refused, said, typed


def test_the_card_form_has_no_codes_and_the_mcu_is_no_chip() -> None:
    assert health.parse(typed("health__310P3__25.2.0__card_form_with_mcu")) == HealthReport(
        npu=8,
        chips=(HealthChip(0, "Alarm", None, ()), HealthChip(1, "OK", None, ())),
        mcu_health="Warning",
    )


def test_three_codes_and_texts_on_lines_with_a_blank_key() -> None:
    assert health.parse(typed("health__910A__23.0.5__three_codes_blank_keys")) == HealthReport(
        npu=None,
        chips=(
            HealthChip(
                None,
                "Critical",
                ("80e18402", "a6193206", "8c084e00"),
                ("first text of a fault: with a colon", "second text", "third text"),
            ),
        ),
    )


def test_the_tool_may_have_no_text_for_a_code() -> None:
    assert health.parse(typed("health__910B3__25.2.2__text_missing")) == HealthReport(
        npu=None,
        chips=(
            HealthChip(
                None,
                "Alarm",
                ("80aaaaab", "80e01802", "80c98001"),
                (
                    "Failed to get error information for error code : 0x80aaaaab",
                    "a link went down",
                    "Failed to get error information for error code : 0x80c98001",
                ),
            ),
        ),
    )


def test_a_code_in_decimal_is_a_text_and_no_code() -> None:
    chip = health.parse(typed("health__310P3__25.2.0__text_in_decimal")).chips[0]
    assert (chip.health, chip.error_codes, chip.information) == ("Warning", ("80e01802",), ("2162169858",))


def test_na_says_that_there_is_no_code() -> None:
    assert health.parse(typed("health__950PR__26.1.0__no_code")) == HealthReport(
        npu=6, chips=(HealthChip(None, "OK", (), ()),)
    )


def test_an_mcu_that_is_fine_does_not_hide_a_chip_that_fails() -> None:
    assert said(health.parse, typed("health__910B3__25.2.2__only_the_mcu_answers")) == (
        FailureKind.EXIT,
        "Failed to query npu chip: 0 info.",
    )


def test_codes_may_go_on_in_a_line_with_a_blank_key() -> None:
    text = "\tHealth Status : Alarm\n\tError Code : 80E01802 A4025021\n\t : 8C084E00\n"
    assert health.parse(text).chips[0].error_codes == ("80e01802", "a4025021", "8c084e00")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\tHealth Status : Fine\n", "line 1: unknown health word 'Fine'"),
        ("\tHealth Status : OK\n\tError Code : 80E0180G\n", "line 2: '80E0180G' is no error code"),
        ("\tHealth Status : OK\n\tError Code : 123456789\n", "line 2: '123456789' is no error code"),
        ("\tTemperature : 3\n", "line 1: no health in the answer"),
        ("\tHealth Status : OK\n\tHealth Status : Alarm\n", "line 2: the same key twice for one chip"),
    ],
)
def test_what_cannot_be_trusted_is_refused_by_its_line(text: str, message: str) -> None:
    assert str(refused(health.parse, text)).startswith(message)


def test_a_health_that_the_tool_does_not_know_is_unknown() -> None:
    report = health.parse(
        "\tNPU ID : 0\n\tChip Count : 2\n\n\tHealth : NA\n\tChip ID : 0\n\n\tHealth : OK\n\tChip ID : 1\n"
    )
    assert [chip.health for chip in report.chips] == [None, "OK"]
