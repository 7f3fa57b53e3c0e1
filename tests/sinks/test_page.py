"""The page, read as a browser reads it: what it says, how unknown looks, and that nothing on it can run."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

import pytest

from npu_watchd.model.ids import DeviceKey
from npu_watchd.model.reading import Failure, FailureKind, Tick
from npu_watchd.model.records import MemoryErrors
from npu_watchd.model.snapshot import Device, Identity, Memory, Outcome, ProbeState, ProbeTally
from npu_watchd.sinks.metrics import Exposition
from npu_watchd.sinks.web.advice import ADVICE
from npu_watchd.sinks.web.page import EDITION, SCRIPT_PATH, render_page
from npu_watchd.sinks.web.publication import Documents, Published
from tests.sinks.build import TIMEOUT, TOOL_MISSING, UNTRUSTED, device, outcome, process, tool_missing
from tests.sinks.serving import serving

VOID = {"meta", "link", "br"}
UNSEEN: dict[str, Any] = {
    "power_watts": None,
    "temperature_celsius": {},
    "utilization_ratio": {},
    "memory": {},
    "memory_errors": {},
    "error_codes": None,
    "processes": None,
}


class Page(HTMLParser):
    """Rows of the tables as texts, links, tags and the whole text; refuses a page whose tags do not close."""

    def __init__(self, outcome_: Outcome, stale_s: float | None = None) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.links: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._open: list[str] = []
        self.source = render_page(outcome_, stale_s=stale_s).decode()
        self.feed(self.source)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
        if tag == "a":
            self.links.append(dict(attrs)["href"] or "")

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" in self._open:
            return
        self.text += data
        if self.rows and {"td", "th"} & set(self._open):
            self.rows[-1][-1] += data

    def row(self, device_id: str) -> list[str]:
        return next(row for row in self.rows if row[0] == device_id)

    def scripts(self) -> list[str]:
        """Where they are from; "" for one that stands in the page."""
        return [attributes.get("src") or "" for tag, attributes in self.tags if tag == "script"]

    def states_of(self, device_id: str) -> list[str]:
        """The classes of the badges in the device's row."""
        row = self.source.split(f'data-title="Device">{device_id}</th>')[1].split("</tr>")[0]
        return [part.split('"')[0] for part in row.split('class="state state-')[1:]]


def test_a_quiet_device_is_told_in_one_row() -> None:
    page = Page(outcome([device(0, processes=(process("python3"), process("python3"), process(None)))]))
    assert page.rows[0] == [
        "Device",
        "Verdict",
        "NPU.chip",
        "Name",
        "Health",
        "Temperature",
        "Power",
        "AICore",
        "HBM used",
        "ECC double",
        "ECC single",
        "Processes",
        "Jobs",
        "Blind",
    ]
    assert page.row("0") == [
        "0",
        "–",
        "0.0",
        "910B3",
        "ok",
        "46 °C, hbm 51 °C",
        "93.5 W",
        "0 %",
        "3.0 / 64.0 GiB",
        "0",
        "0",
        "python3 × 2, (no name)",
        "–",
        "sees all",
    ]


def test_what_nobody_knows_is_a_dash_and_never_0() -> None:
    blind = device(3, health="unknown", identity=Identity(), blind={"npu_info": UNTRUSTED}, vital_blind=True, **UNSEEN)
    assert Page(outcome([blind])).row("3") == [
        "3",
        "–",
        "3.0",
        "–",
        "unknown",
        *["–"] * 8,
        "npu_info: unparseable",
    ]


@pytest.mark.parametrize("state", ["ok", "warning", "alarm", "critical", "unknown"])
def test_each_health_has_a_look_and_a_word_of_its_own(state: str) -> None:
    page = Page(outcome([device(0, health=state)]))
    assert page.states_of("0") == [state]
    assert page.row("0")[4] == state
    for rule in (f".state-{state} {{ color: var(--{state});", f".state-{state}.state::before {{ content: "):
        assert rule in page.source


def test_a_device_that_is_gone_is_missing_and_unknown() -> None:
    page = Page(outcome([device(0), device(1, present=False, health="unknown", **UNSEEN)]))
    assert page.states_of("1") == ["missing", "unknown"]
    assert "1 of 2 devices present, 0 blind, worst health: unknown" in page.text


def test_error_codes_and_counts_stand_out() -> None:
    sick = device(6, health="alarm", error_codes=("a4025021", "80e01801"))
    page = Page(outcome([sick, device(7, memory_errors={"hbm": MemoryErrors(single_bit=31, double_bit=2)})]))
    assert page.row("6")[4] == "alarm a4025021 80e01801"
    assert page.row("7")[9:11] == ["2", "31"]
    assert page.source.count("<strong>2</strong>") == 1


def test_a_chip_with_ddr_says_ddr() -> None:
    duo = device(0, memory={"ddr": Memory(1 << 30, 21 << 30)}, memory_errors={"ddr": MemoryErrors(double_bit=0)})
    assert Page(outcome([duo])).row("0")[8:11] == ["ddr 1.0 / 21.0 GiB", "ddr 0", "–"]


@pytest.mark.parametrize(
    ("healths", "line"),
    [
        (("ok", "ok"), "2 of 2 devices present, 0 blind, worst health: ok"),
        (("ok", "warning"), "2 of 2 devices present, 0 blind, worst health: warning"),
        (("warning", "unknown"), "2 of 2 devices present, 0 blind, worst health: unknown"),
        (("unknown", "alarm"), "2 of 2 devices present, 0 blind, worst health: alarm"),
        (("alarm", "critical"), "2 of 2 devices present, 0 blind, worst health: critical"),
    ],
)
def test_the_summary_names_the_worst(healths: tuple[str, ...], line: str) -> None:
    page = Page(outcome([device(n, health=health) for n, health in enumerate(healths)]))
    assert line in page.text
    assert f"<title>{line} · node-17 · npu-watchd</title>" in page.source


def test_when_no_table_could_be_read_nobody_knows_who_is_present() -> None:
    page = Page(outcome([device(0, present=None, health="unknown", blind={"npu_info": TIMEOUT})]))
    assert "Nobody knows how many of 1 devices are present, 1 blind, worst health: unknown" in page.text
    assert page.row("0")[4] == "unknown presence not known"


def test_without_the_tool_the_page_says_what_to_do() -> None:
    page = Page(tool_missing())
    assert "No devices seen" in page.text
    assert "npu-smi: not found on PATH" in page.text
    assert ADVICE[FailureKind.MISSING] in page.text
    assert 'id="devices"' not in page.source
    assert ["npu_info", "no", "never", "–", "missing 4", "0"] in page.rows


@pytest.mark.parametrize("kind", FailureKind)
def test_every_kind_of_failure_comes_with_the_tools_words_and_a_cure(kind: FailureKind) -> None:
    page = Page(outcome([device(0, blind={"npu_ecc": Failure(kind, "the tool's own\nwords")})]))
    assert "the tool's own\nwords" in page.text
    assert ADVICE[kind] in page.text


def test_devices_with_the_same_trouble_are_told_once() -> None:
    wedged = Failure(FailureKind.WEDGED, "npu-smi pid 99 is in state D")
    blind = [device(n, blind={"npu_info": wedged}) for n in range(64)]
    page = Page(outcome(blind, blind={"npu_health": TIMEOUT}))
    assert page.text.count("npu-smi pid 99 is in state D") == 1
    assert "devices 0, 1, 2, 3," in page.text
    assert "the whole node" in page.text


def test_a_nodes_trouble_is_not_repeated_for_each_device() -> None:
    page = Page(
        outcome([device(n, blind={"npu_info": TOOL_MISSING}) for n in range(8)], blind={"npu_info": TOOL_MISSING})
    )
    assert page.text.count("npu-smi: not found on PATH") == 1


def test_what_a_chip_does_not_support_is_no_trouble() -> None:
    page = Page(outcome([device(0, unsupported={"npu_hccs": "This device does not support querying hccs."})]))
    assert "Nothing: every probe of every device answers." in page.text
    assert "npu_hccs (device 0): This device does not support querying hccs." in page.text


def test_probes_are_told_with_their_age_and_failures() -> None:
    page = Page(
        outcome(
            [device(0), device(1)],
            probes=(ProbeState("npu_ecc", "0", up=True, failure=None), ProbeState("npu_ecc", "1", False, TIMEOUT)),
            tallies=(ProbeTally("npu_ecc", 0.9, 1_790_000_000.0 - 33, {"timeout": 2, "exit": 0}, unknown_keys=1),),
        )
    )
    assert page.rows[-1] == ["npu_ecc", "1 of 2", "33 s before", "0.90 s", "timeout 2", "1"]


def test_the_tools_warnings_are_shown() -> None:
    assert "[WARNING] a line" in Page(outcome([device(0)], warnings=("[WARNING] a line",))).text


def test_links_lead_to_our_own_paths_only() -> None:
    page = Page(outcome([device(0)]))
    assert page.links == [
        "#main",
        "/metrics",
        "/api/v1/snapshot",
        "/api/v1/verdicts",
        "/api/v1/findings",
        "/api/v1/events",
        "/-/ready",
        "/-/healthy",
    ]
    assert "http://" not in page.source
    assert "https://" not in page.source


HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>&\0\x1b[31m\ud800\u2028{node}%s"


def test_no_text_of_others_becomes_markup() -> None:
    evil = device(
        0,
        key=DeviceKey(0),
        identity=Identity(name=HOSTILE),
        error_codes=(HOSTILE,),
        processes=(process(HOSTILE), process("y" * 4096)),
        blind={"npu_ecc": Failure(FailureKind.EXIT, HOSTILE * 50)},
        unsupported={"npu_hccs": HOSTILE},
    )
    page = Page(
        outcome(
            [evil],
            node=HOSTILE,
            warnings=(HOSTILE,),
            blind={"npu_info": Failure(FailureKind.EXIT, HOSTILE)},
            tool_version=HOSTILE,
        )
    )
    assert page.scripts() == [f"{SCRIPT_PATH}?{EDITION}"]
    assert not [tag for tag, _ in page.tags if tag in ("img", "iframe", "svg")]
    assert not [name for _, attributes in page.tags for name in attributes if name.startswith("on")]
    assert "<script>alert(1)</script>" in page.text
    assert not {"\0", "\x1b", "\u2028"} & set(page.source)
    assert "y" * 100 not in page.source


def test_a_page_that_shows_the_past_says_so() -> None:
    shown = outcome([device(0)])
    documents = Documents(Published(shown, Exposition(shown, ())))
    fresh = documents.page(age_s=59.0)
    assert b"This is the past" not in fresh
    assert documents.page(age_s=0.0) is fresh
    assert b"This is the past: the last cycle ended 10 min ago" in documents.page(age_s=600.0)


def test_the_server_knows_the_age_of_what_it_shows() -> None:
    with serving(outcome([device(0)], at=Tick(mono_s=400.0, wall_s=1_790_000_000.0))) as run:
        assert b"This is the past: the last cycle ended 10 min ago" in run.get("/").body
    with serving() as run:
        assert b"This is the past" not in run.get("/").body


def test_a_page_of_64_devices_stays_small() -> None:
    devices: list[Device] = [device(n) for n in range(64)]
    page = Page(outcome(devices))
    assert len([row for row in page.rows if len(row) == 14]) == 65
    assert len(page.source) < 80_000
