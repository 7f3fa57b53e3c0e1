"""A code taken apart: its forms, the bits of a chip's code, and what is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from npu_watchd.codes.layout import Bits, Change, Form, Side, decode


def test_an_hbm_error_is_read_out_of_its_bits() -> None:
    code = decode("80E01801")
    assert (code.text, code.shown, code.form) == ("80e01801", "80E01801", Form.CHIP)
    assert code.bits == Bits(Side.DEVICE, False, 0x70, 0x0C, 0x001, None)
    assert (code.bits.unit, code.bits.sensor, code.bits.state_words) == ("HBM", "memory", "multi-bit ECC error")


def test_a_lost_card_is_seen_from_the_host() -> None:
    assert decode("40F84E00").bits == Bits(Side.HOST, False, 0x7C, 0x27, 0x000, None)


@pytest.mark.parametrize("text", ["80e01801", "0x80E01801", "0X80e01801", " 80E01801\n"])
def test_case_prefix_and_blanks_around_do_not_matter(text: str) -> None:
    assert decode(text) == decode("80E01801")


@pytest.mark.parametrize(
    ("text", "change"),
    [
        ("A4025021", Change.RAISED),
        ("94025021", Change.RECOVERED),
        ("A60250A1", Change.RAISED),
        ("960250A1", Change.RECOVERED),
        ("9419321B", None),
        ("B4060011", None),
    ],
)
def test_only_heartbeats_of_the_black_box_tell_beginning_from_end(text: str, change: Change | None) -> None:
    assert decode(text).bits == Bits(Side.DEVICE, True, None, None, None, change)


@pytest.mark.parametrize("text", ["8F180207", "8F180C01"])
def test_the_numbers_of_the_nameless_node_type_are_not_given_other_units_names(text: str) -> None:
    bits = decode(text).bits
    assert bits is not None
    assert (bits.node_type, bits.unit, bits.sensor, bits.state_words) == (0x78C, None, None, None)


@pytest.mark.parametrize(
    ("text", "form", "shown"),
    [
        ("0300000d", Form.ALARM, "0300000D"),
        ("21000022", Form.ALARM, "21000022"),
        ("200001002", Form.CLUSTER, "200001002"),
        ("[0x08520003,na,L2,na]", Form.SWITCH, "[0x08520003,na,L2,na]"),
        ("[0x00F1FEF5, 155913, cpu, na]", Form.SWITCH, "[0x00f1fef5,155913,cpu,na]"),
    ],
)
def test_codes_that_no_chip_makes_have_no_bits(text: str, form: Form, shown: str) -> None:
    code = decode(text)
    assert (code.form, code.shown, code.bits) == (form, shown, None)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "NA",
        "80E0180",
        "80E018011",
        "80E0180G",
        "0x",
        "80 E0 18 01",
        "2000010024",
        "٨٠٠٠٠٠٠٠",
        "[0x08520003,na,L2]",
        "[0x08520003,na,L3,na]",
    ],
)
def test_what_is_no_code_is_refused_by_name(text: str) -> None:
    with pytest.raises(ValueError, match="is no error code; write eight hex digits") as refused:
        decode(text)
    assert repr(text) in str(refused.value)


def test_a_long_text_is_not_repeated_whole() -> None:
    with pytest.raises(ValueError, match="is no error code") as refused:
        decode("x" * 10_000)
    assert len(str(refused.value)) < 300


@given(st.integers(0, 0x7FF), st.integers(0, 0xFF), st.integers(0, 0x1FF), st.sampled_from([(1, 0), (0, 1), (1, 1)]))
def test_the_fields_come_back_as_they_were_put_in(node: int, sensor: int, state: int, seen: tuple[int, int]) -> None:
    device, host = seen
    word = device << 31 | host << 30 | node << 17 | sensor << 9 | state
    side = {(1, 0): Side.DEVICE, (0, 1): Side.HOST, (1, 1): Side.BOTH}[seen]
    assert decode(f"{word:08X}").bits == Bits(side, False, node, sensor, state, None)


@given(st.integers(0, 0xFFFFFFFF))
def test_any_eight_digits_are_read_and_are_a_chips_only_with_a_side(word: int) -> None:
    code = decode(f"0x{word:08x}")
    assert (code.form is Form.CHIP) == (code.bits is not None) == bool(word >> 30)
    assert decode(code.shown) == code


@given(st.text(max_size=24))
def test_any_text_is_a_code_or_refused(text: str) -> None:
    try:
        code = decode(text)
    except ValueError:
        return
    assert decode(code.text) == decode(code.shown) == code
