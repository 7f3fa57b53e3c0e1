"""The exposition: what prometheus_client's own parsers read is what the getters said."""

from __future__ import annotations

import gzip
import io
import shutil
import subprocess
import threading
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.openmetrics.parser import text_fd_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_fd_to_metric_families as parse_text

from npu_watchd.catalogue import DeviceFamily, Kind, NodeFamily, Sample
from npu_watchd.model.ids import DeviceKey
from npu_watchd.model.snapshot import Device, Outcome
from npu_watchd.sinks.metrics import Exposition, Format
from tests.sinks.build import device, outcome


def _power(one: Device) -> Iterable[Sample]:
    if one.power_watts is not None:
        yield {}, one.power_watts


def _errors(one: Device) -> Iterable[Sample]:
    for memory, errors in one.memory_errors.items():
        if errors.single_bit is not None:
            yield {"memory": memory, "kind": "single_bit"}, errors.single_bit


POWER = DeviceFamily("npu_device_power_watts", Kind.GAUGE, 'Source "npu-smi info": Power', (), _power)
ERRORS = DeviceFamily(
    "npu_device_memory_errors_total", Kind.COUNTER, "Source npu-smi info -t ecc", ("memory", "kind"), _errors
)
INFO = DeviceFamily(
    "npu_device_info",
    Kind.GAUGE,
    "Who the device is",
    ("name", "firmware"),
    lambda one: [({"name": one.identity.name or "", "firmware": ""}, 1)],
)
NODE = NodeFamily(
    "npu_node_info", Kind.GAUGE, "The node", ("node",), lambda all_of_it: [({"node": all_of_it.snapshot.node}, 1)]
)


def _labelled(value: str) -> Exposition:
    family = NodeFamily("npu_node_info", Kind.GAUGE, "The node", ("node",), lambda _: [({"node": value}, 1)])
    return Exposition(outcome(), (family,))


def _values(page: Exposition, form: Format) -> list[str]:
    parse = parse_openmetrics if form is Format.OPENMETRICS else parse_text
    families = parse(io.StringIO(page.body(form).decode()))
    return [sample.labels["node"] for family in families for sample in family.samples]


def test_the_text_page_is_this_text() -> None:
    page = Exposition(outcome([device(1, power_watts=None), device(0)]), (POWER, ERRORS, INFO, NODE))
    assert page.body(Format.TEXT).decode() == (
        '# HELP npu_device_power_watts Source "npu-smi info": Power\n'
        "# TYPE npu_device_power_watts gauge\n"
        'npu_device_power_watts{device_id="0"} 93.5\n'
        "# HELP npu_device_memory_errors_total Source npu-smi info -t ecc\n"
        "# TYPE npu_device_memory_errors_total counter\n"
        'npu_device_memory_errors_total{device_id="0",kind="single_bit",memory="hbm"} 0.0\n'
        'npu_device_memory_errors_total{device_id="1",kind="single_bit",memory="hbm"} 0.0\n'
        "# HELP npu_device_info Who the device is\n"
        "# TYPE npu_device_info gauge\n"
        'npu_device_info{device_id="0",name="910B3"} 1.0\n'
        'npu_device_info{device_id="1",name="910B3"} 1.0\n'
        "# HELP npu_node_info The node\n"
        "# TYPE npu_node_info gauge\n"
        'npu_node_info{node="node-17"} 1.0\n'
    )
    assert page.problems == ()


def test_openmetrics_strips_total_from_the_family_and_ends_with_eof() -> None:
    assert Exposition(outcome([device(0)]), (ERRORS,)).body(Format.OPENMETRICS).decode() == (
        "# HELP npu_device_memory_errors Source npu-smi info -t ecc\n"
        "# TYPE npu_device_memory_errors counter\n"
        'npu_device_memory_errors_total{device_id="0",kind="single_bit",memory="hbm"} 0.0\n'
        "# EOF\n"
    )


def test_devices_come_in_the_order_of_their_keys() -> None:
    devices = [device(key, key=DeviceKey(key)) for key in (11, 2, 0)]
    lines = Exposition(outcome(devices), (POWER,)).body(Format.TEXT).decode().splitlines()
    assert [line.split('"')[1] for line in lines[2:]] == ["0", "2", "11"]


def test_a_family_without_samples_is_left_out_whole() -> None:
    assert Exposition(outcome([device(0, power_watts=None)]), (POWER,)).body(Format.TEXT) == b""


def test_a_second_sample_with_the_same_labels_is_left_out_and_named() -> None:
    twice = NodeFamily("x", Kind.GAUGE, "h", ("a",), lambda _: [({"a": "1"}, 1), ({"a": "1"}, 2)])
    page = Exposition(outcome(), (twice,))
    assert page.body(Format.TEXT).decode().splitlines()[2:] == ['x{a="1"} 1.0']
    assert page.problems == ("x{'a': '1'}: a second sample with these labels; left out",)


def test_a_family_declared_twice_is_exported_once() -> None:
    page = Exposition(outcome([device(0)]), (POWER, POWER))
    assert page.body(Format.TEXT).count(b"# TYPE") == 1
    assert page.problems == ("npu_device_power_watts: declared twice; only the first is exported",)


def test_what_was_left_out_is_known_once_somebody_has_asked_for_the_page() -> None:
    page = Exposition(outcome([device(0)]), (POWER, POWER))
    assert page.problems_met is None
    page.body(Format.OPENMETRICS)
    assert page.problems_met == ("npu_device_power_watts: declared twice; only the first is exported",)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_what_is_no_number_is_no_sample(value: float) -> None:
    page = Exposition(outcome(), (NodeFamily("x", Kind.GAUGE, "h", (), lambda _: [({}, value)]),))
    assert page.body(Format.TEXT) == b""
    assert len(page.problems) == 1


def test_an_undeclared_label_is_no_sample() -> None:
    page = Exposition(outcome(), (NodeFamily("x", Kind.GAUGE, "h", (), lambda _: [({"pid": "1"}, 1)]),))
    assert page.body(Format.TEXT) == b""
    assert page.problems == ("x{'pid': '1'}: labels ['pid'] are not declared; left out",)


def test_a_getter_that_raises_costs_its_own_samples_only() -> None:
    def broken(one: Device) -> Iterable[Sample]:
        if one.device_id == "1":
            raise KeyError("hbm")
        return [({}, 1)]

    page = Exposition(
        outcome([device(0), device(1)]), (DeviceFamily("npu_device_x", Kind.GAUGE, "h", (), broken), POWER)
    )
    body = page.body(Format.TEXT).decode()
    assert 'npu_device_x{device_id="0"} 1.0' in body
    assert 'npu_device_power_watts{device_id="1"} 93.5' in body
    assert page.problems == ("npu_device_x of npu 1 chip 0: the getter raised KeyError: 'hbm'",)


HOSTILE = {
    'say "hi"': 'say "hi"',
    "back\\slash": "back\\slash",
    '{}, a="b"} 1\nfake_metric 2': '{}, a="b"} 1\ufffdfake_metric 2',
    "nul\0 bell\a escape\x1b[31m": "nul\ufffd bell\ufffd escape\ufffd[31m",
    "c1 \x85 \x9b": "c1 \ufffd \ufffd",
    "lone \ud800 surrogate": "lone \ufffd surrogate",
    "line\u2028separator": "line\ufffdseparator",
    "训练任务": "训练任务",
    "x" * 4096: "x" * 255 + "…",
    "x" * 256: "x" * 256,
}


@pytest.mark.parametrize("form", Format)
@pytest.mark.parametrize(("hostile", "shown"), HOSTILE.items(), ids=range(len(HOSTILE)))
def test_a_hostile_label_value_stays_in_its_quotes(hostile: str, shown: str, form: Format) -> None:
    assert _values(_labelled(hostile), form) == [shown]


@given(st.text(st.characters(exclude_categories=()), min_size=1, max_size=300))
def test_any_label_value_comes_back_as_one_sample_in_both_formats(value: str) -> None:
    page = _labelled(value)
    text, openmetrics = _values(page, Format.TEXT), _values(page, Format.OPENMETRICS)
    assert len(text) == 1
    assert text == openmetrics
    assert len(text[0]) == min(len(value), 256)
    assert all(a in (b, "\ufffd") for a, b in zip(text[0][:255], value, strict=False))


def test_each_form_is_rendered_once_however_many_scrape_at_once() -> None:
    asked = []

    def read(_: Outcome) -> list[Sample]:
        asked.append(1)
        return [({}, 1)]

    page = Exposition(outcome(), (NodeFamily("x", Kind.GAUGE, "h", (), read),))
    bodies: list[bytes] = []
    barrier = threading.Barrier(20)

    def scrape() -> None:
        barrier.wait()
        bodies.append(page.body(Format.TEXT, gzipped=True))

    threads = [threading.Thread(target=scrape) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(body) for body in bodies}) == 1
    assert asked == [1]
    assert gzip.decompress(bodies[0]) == page.body(Format.TEXT)


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed (Debian: prometheus)")
def test_promtool_finds_nothing_to_say() -> None:
    page = Exposition(outcome([device(n) for n in range(8)]), (POWER, ERRORS, INFO, NODE)).body(Format.TEXT)
    checked = subprocess.run(["promtool", "check", "metrics"], input=page, capture_output=True, timeout=30, check=False)
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, b"", b"")
