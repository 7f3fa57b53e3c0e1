"""Values with units: what is taken, what is refused, and that text and value say the same."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from npu_watchd.config.values import Address, BadValue, Count, Seconds, Share, Size, Tool, Url, toml_text


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("15s", 15.0),
        ("250ms", 0.25),
        ("1h30m", 5400.0),
        ("1.5s", 1.5),
        ("2d", 172800.0),
        ("1m", 60.0),
        ("1m5ms", 60.005),
        ("1d2h3m4s5ms", 93784.005),
    ],
)
def test_a_duration_is_read_with_its_units(text: str, seconds: float) -> None:
    assert Seconds.parse(text) == seconds


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        (15, "is the number 15"),
        (1.5, "is the number 1.5"),
        (True, "is true"),
        ("15", '"15" is no duration'),
        ("-15s", '"-15s" is no duration'),
        ("15 s", '"15 s" is no duration'),
        ("5s1m", '"5s1m" is no duration'),
        ("5s5s", '"5s5s" is no duration'),
        ("15S", '"15S" is no duration'),
        ("1_000s", '"1_000s" is no duration'),
        ("0s", '"0s" is no time at all'),
        ("0.1ms", '"0.1ms" is no time at all'),
        ("", "is empty"),
        ("nan", '"nan" is no duration'),
        ("9999d", '"9999d" is longer than ten years'),
        (["15s"], "is a list"),
    ],
)
def test_what_is_no_duration_is_refused(raw: object, problem: str) -> None:
    with pytest.raises(BadValue) as refused:
        Seconds.parse(raw)
    assert refused.value.problem == problem


@given(st.integers(min_value=1, max_value=3650 * 86400 * 1000))
def test_a_duration_survives_being_written_and_read(milliseconds: int) -> None:
    seconds = Seconds(milliseconds / 1000)
    assert Seconds.parse(str(seconds)) == pytest.approx(seconds, abs=1e-6)


@pytest.mark.parametrize(
    ("text", "size"), [("200MiB", 209715200), ("1B", 1), ("4KiB", 4096), ("2GiB", 2147483648), ("1TiB", 1099511627776)]
)
def test_a_size_is_read_with_its_unit_and_written_the_same(text: str, size: int) -> None:
    assert Size.parse(text) == size
    assert str(Size(size)) == text


@pytest.mark.parametrize("raw", ["200", "200MB", "200 MiB", "1.5GiB", "-1KiB", "0B", "", 200, None, "MiB"])
def test_what_is_no_size_is_refused(raw: object) -> None:
    with pytest.raises(BadValue):
        Size.parse(raw)


@pytest.mark.parametrize("raw", [0, -0.1, 1.01, float("nan"), float("inf"), "0.2", True])
def test_a_share_is_above_0_and_at_most_1(raw: object) -> None:
    assert Share.parse(1) == 1.0
    with pytest.raises(BadValue):
        Share.parse(raw)


@pytest.mark.parametrize("raw", [-1, 1.0, True, "8"])
def test_a_count_is_whole_and_not_negative(raw: object) -> None:
    assert Count.parse(0) == 0
    with pytest.raises(BadValue):
        Count.parse(raw)


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("0.0.0.0:18910", "0.0.0.0", 18910),
        ("[::1]:80", "::1", 80),
        (":18910", "0.0.0.0", 18910),
        ("node17.example:9", "node17.example", 9),
        ("127.0.0.1:0", "127.0.0.1", 0),
    ],
)
def test_an_address_has_a_host_and_a_port(text: str, host: str, port: int) -> None:
    address = Address.parse(text)
    assert (address.host, address.port) == (host, port)


@pytest.mark.parametrize(
    "raw", ["18910", "0.0.0.0", "host:", "host:http", "host:65536", "::1:80", "a b:1", "http://h:1", "h:1\n", 18910]
)
def test_what_is_no_address_is_refused(raw: object) -> None:
    with pytest.raises(BadValue):
        Address.parse(raw)


@pytest.mark.parametrize("raw", ["am1:9093", "ftp://am1", "http://", "http://[::1", "http://a b", "http://h:99999", ""])
def test_what_is_no_http_address_is_refused(raw: str) -> None:
    assert Url.parse("https://am1:9093/prefix") == "https://am1:9093/prefix"
    with pytest.raises(BadValue):
        Url.parse(raw)


@pytest.mark.parametrize("raw", ["bin/npu-smi", "./npu-smi", "", "npu\x00smi", "npu\nsmi"])
def test_a_tool_is_a_name_or_an_absolute_path(raw: str) -> None:
    assert Tool.parse("/usr/local/sbin/npu-smi") == "/usr/local/sbin/npu-smi"
    with pytest.raises(BadValue):
        Tool.parse(raw)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Seconds(90), '"1m30s"'),
        (Size(2048), '"2KiB"'),
        (True, "true"),
        (0.2, "0.2"),
        (8, "8"),
        (("a", 'b"'), '["a", "b\\""]'),
        ("节点", '"节点"'),
    ],
)
def test_values_are_shown_as_a_person_would_write_them(value: object, text: str) -> None:
    assert toml_text(value) == text
