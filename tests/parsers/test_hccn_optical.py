"""`-optical`: light per lane in watts, the module's flags and its own limits, in the three forms."""

from __future__ import annotations

import pytest

from npu_watchd.model.fabric import Limits, OpticalLane, OpticalModule
from npu_watchd.parsers import hccn_optical
from tests.parsers.fabric_texts import written
from tests.parsers.texts import refused

TEXT = written("hccn-optical__receive_loss_on_lane_1")


def lane(number: int, transmit: float, receive: float, bias: float, snr: float) -> OpticalLane:
    return OpticalLane(
        lane=number,
        transmit_watts=transmit,
        receive_watts=receive,
        bias_amperes=bias,
        transmit_los=False,
        receive_los=number == 1,
        transmit_lol=False,
        receive_lol=False,
        media_snr_decibels=snr,
    )


def test_lines_of_910b_and_a3_with_a_dark_lane() -> None:
    assert hccn_optical.parse(TEXT) == OpticalModule(
        present=True,
        temperature_celsius=47.0,
        voltage_volts=3.3015,
        lanes=(
            lane(0, 0.001111, 0.000901, 0.007, 22.0),
            lane(1, 0.001112, 0.0, 0.00725, 22.25),
            lane(2, 0.001113, 0.000903, 0.0075, 22.5),
            lane(3, 0.001114, 0.000904, 0.00775, 22.75),
        ),
        temperature_limits=Limits(high_warning=72.0, low_warning=-5.0),
        voltage_limits=Limits(high_warning=3.465, low_warning=3.135),
        transmit_limits=Limits(high_warning=0.0031623, low_warning=0.0001585),
        receive_limits=Limits(),
        vendor_name="LumaWorks",
        part_number="LW-QSFP112",
        serial_number="LW000417",
        identifier="QSFP28 or later",
    )


def test_an_absent_module_has_no_values_and_not_the_name_of_the_last_one() -> None:
    assert hccn_optical.parse(written("hccn-optical__not_present")) == OpticalModule(
        present=False, identifier="QSFP28 or later"
    )
    assert hccn_optical.parse("Optical module is not present.\n") == OpticalModule(present=False)
    assert hccn_optical.parse(written("hccn-optical__950_absent_box")) == OpticalModule(present=False)


def test_tables_of_910b_and_a3() -> None:
    found = hccn_optical.parse(written("hccn-optical__v2_tables"))
    assert (found.present, found.temperature_celsius, found.voltage_volts) == (True, 51.0, 3.28)
    assert found.temperature_limits == Limits(75.0, 70.0, -5.0, -10.0)
    assert found.voltage_limits == Limits(high_warning=3.46, low_warning=3.13)
    assert found.bias_limits == Limits(0.014, 0.013, 0.002, 0.001)
    assert found.transmit_limits == Limits(0.003981072, 0.003162278, 0.000158489, 0.000125893)
    assert found.receive_limits == Limits(high_warning=0.003467369, low_warning=7.7625e-05)
    assert found.lanes[2] == OpticalLane(
        lane=2,
        transmit_watts=0.001122018,
        receive_watts=0.0,
        bias_amperes=0.0073,
        transmit_fault=False,
        transmit_los=False,
        receive_los=True,
        transmit_lol=False,
        receive_lol=False,
        host_snr_decibels=24.5,
        media_snr_decibels=21.5,
    )
    assert [one.receive_los for one in found.lanes] == [False, False, True, False]


def test_tables_without_values_do_not_say_whether_a_module_is_there() -> None:
    found = hccn_optical.parse(written("hccn-optical__v2_tables_without_values"))
    assert found == OpticalModule(present=None, lanes=tuple(OpticalLane(number) for number in range(4)))


def test_boxes_of_a_port_of_ascend_950() -> None:
    assert hccn_optical.parse(written("hccn-optical__950_port_boxes")) == OpticalModule(
        present=True,
        lanes=(
            OpticalLane(0, 0.001258925, 0.000794328, 0.00725, False, False, False, False, False, 25.0, 22.0),
            OpticalLane(1, 0.001584893, 0.0, 0.00825, False, False, True, False, False, 26.0, 23.0),
        ),
        transmit_limits=Limits(0.003981072, 0.003162278, 0.000158489, 0.000125893),
        receive_limits=Limits(0.003981072, 0.003162278, 0.0001, 6.3096e-05),
        bias_limits=Limits(0.014, 0.013, 0.002, 0.001),
    )


def test_a_flag_of_a_lane_without_values_makes_the_lane() -> None:
    lanes = hccn_optical.parse(TEXT.replace("Tx LoL Flag          : 0x0", "Tx LoL Flag          : 0x20")).lanes
    assert [one.lane for one in lanes] == [0, 1, 2, 3, 5]
    assert lanes[4] == OpticalLane(5, None, None, None, None, False, False, True, False)


@pytest.mark.parametrize("words", ["NA", "not supported", "get failed"])
def test_words_for_no_value_are_no_value(words: str) -> None:
    found = hccn_optical.parse(TEXT.replace("47 C", words).replace("0.9010 mW", words).replace("0x2", words))
    assert (found.temperature_celsius, found.lanes[0].receive_watts, found.lanes[1].receive_los) == (None, None, None)


@pytest.mark.parametrize(
    ("good", "bad", "problem"),
    [
        ("47 C", "47 F", "is not in C"),
        ("0.9010 mW", "0.9010 uW", "is not in mW"),
        ("0.9010 mW", "bright mW", "'bright' is no number"),
        ("Tx Power3", "Tx Power2", "the same value twice"),
        ("present              : present", "present              : perhaps", "neither present nor not present"),
        ("0x2", "2", "is no mask of lanes"),
    ],
)
def test_a_value_that_cannot_be_trusted_is_refused(good: str, bad: str, problem: str) -> None:
    assert good in TEXT
    assert problem in refused(hccn_optical.parse, TEXT.replace(good, bad, 1)).problem


@pytest.mark.parametrize(
    ("name", "good", "bad", "problem"),
    [
        ("v2_tables", "RxLos Flag       Normal  ", "RxLos Flag       Middling", "unknown flag 'Middling'"),
        ("v2_tables", "RxPower Lane1(dBm)", "RxPower Lane0(dBm)", "the same value twice"),
        ("v2_tables", "RxPower Lane1(dBm)", "RxPower Lane1(hp) ", "unknown unit 'hp'"),
        ("v2_tables", "-2.00 ", "99.00 ", "is no power of a lane"),
        ("950_port_boxes", "| 0    | 5    | Bias Lane1", "| 0    | 6    | Bias Lane1", "rows of several ports"),
    ],
)
def test_a_table_that_cannot_be_trusted_is_refused(name: str, good: str, bad: str, problem: str) -> None:
    text = written(f"hccn-optical__{name}")
    assert good in text
    assert problem in refused(hccn_optical.parse, text.replace(good, bad, 1)).problem


def test_a_new_key_is_reported() -> None:
    assert hccn_optical.parse(TEXT + "mood                 : fine\n").unknown_keys == ("mood",)


def test_a_text_that_is_no_optical_module_is_refused() -> None:
    assert "no optical module in the answer" in refused(hccn_optical.parse, "optical info:\n").problem
    assert "no line of an optical module" in refused(hccn_optical.parse, "hello\n").problem
