"""The node's page in a real browser: what it says, that it stays current and honest, that nothing of others runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from npu_watchd.model.finding import Event
from npu_watchd.model.jobs import Attribution, DeviceJobs, Job, Scheduler
from npu_watchd.model.reading import Failure, FailureKind
from npu_watchd.model.snapshot import HEALTH_STATES, Identity, Outcome
from npu_watchd.model.verdict import Reason, State
from tests.browser.chromium import Chromium, Tab, until
from tests.browser.page import counters, grown, let_it_refresh, look, of_scenario, publish, row, settle, text
from tests.sinks.build import AT, device, outcome, process
from tests.sinks.judged import BROKEN, PROGRESS, judged, of_device, of_node, quarantined
from tests.sinks.serving import serving
from tests.sinks.test_findings import ECC, EVENTS
from tests.sinks.test_page import HOSTILE

QUIET = judged(outcome([device(0), device(3)]), of_node(), of_device(0), of_device(3))
ILL = replace(
    judged(outcome([device(0), device(3)]), of_node(State.QUARANTINE, BROKEN), of_device(0), quarantined()),
    findings=(ECC,),
    journal=EVENTS,
)
SCENARIOS = [
    ("quiet", 55, "healthy: 8 of 8 devices", {"Device": "3", "Health": "ok", "Verdict": "healthy", "Jobs": "none"}),
    ("double_bit_then_reset", 200, "quarantine: 8 of 8 devices", {"Device": "3", "ECC double": "2"}),
    (
        "wedged_driver",
        500,
        "unknown: ",
        {"Device": "0", "Health": "unknown presence not known", "Temperature": "–", "Jobs": "–"},
    ),
    ("two_jobs_one_device", 300, "watch: 8 of 8 devices", {"Device": "3", "Health": "ok"}),
    (
        "device_lost",
        370,
        "quarantine: 7 of 8 devices present",
        {"Device": "5", "Health": "missing unknown", "Temperature": "–"},
    ),
    ("a3_16_dies", 100, "healthy: 16 of 16 devices", {"Device": "15", "Health": "ok"}),
]


@pytest.fixture(params=[True, False], ids=["script", "no-script"])
def scripted(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


def _large() -> Outcome:
    """64 devices, each as wide as can be."""
    jobs = DeviceJobs(
        (Attribution(device(0).key, 10, "x" * 60, 4 << 30, job=Job(Scheduler.SLURM, "4" * 60, "u" * 60)),)
    )
    blind = {"npu_ecc": Failure(FailureKind.EXIT, "w" * 300)}
    devices = [
        device(n, error_codes=("a4025021",) * 6, processes=(process("p" * 300),), jobs=jobs, blind=blind)
        for n in range(64)
    ]
    verdicts = [of_device(n, list(State)[n % 5], Reason("r" * 300)) for n in range(64)]
    return judged(outcome(devices, node="n" * 200), of_node(State.QUARANTINE, Reason("r" * 300)), *verdicts)


@pytest.mark.parametrize(("scenario", "second", "title", "cells"), SCENARIOS, ids=[one[0] for one in SCENARIOS])
def test_each_scenarios_page_says_what_it_should_with_and_without_a_script(
    chromium: Chromium, scenario: str, second: int, title: str, cells: dict[str, str]
) -> None:
    shown = of_scenario(scenario, second)
    said = []
    with serving(shown, counters=counters()) as run:
        for script in (True, False):
            with chromium.tab(script=script) as tab:
                look(tab, run)
                assert tab.js("document.title").startswith(title)
                assert {name: row(tab, cells["Device"])[name] for name in cells} == cells
                for finding in shown.findings:
                    assert finding.summary in text(tab, "#findings")
                    assert all(evidence.source in text(tab, "#findings") for evidence in finding.evidence)
                if script:
                    let_it_refresh(tab)
                    # What the script alone can tell.
                    tab.js("document.querySelectorAll('.errors').forEach((cell) => cell.remove())")
                said.append(text(tab, "header") + text(tab, "main"))
                if script:
                    assert text(tab, "#lost") == ""
                assert tab.problems == []
                assert all(url.startswith(f"http://127.0.0.1:{run.port}/") or url == "data:," for url in tab.requests)
    assert said[0].split("\n") == said[1].split("\n")


def test_no_name_of_others_runs_or_becomes_markup(chromium: Chromium, scripted: bool) -> None:
    hostile = [
        HOSTILE,
        "<img src=x onerror=hit.push(1)>",
        "</script><script>hit.push(2)</script>",
        "</style><svg onload=hit.push(3)>",
        '"><a href="javascript:hit.push(4)">x</a>',
    ]
    jobs = DeviceJobs(
        tuple(
            Attribution(device(0).key, n, name, 1 << 30, job=Job(Scheduler.SLURM, name, name))
            for n, name in enumerate(hostile)
        )
    )
    evil = device(
        *(0,),
        identity=Identity(name=hostile[1]),
        error_codes=tuple(hostile),
        processes=tuple(process(name) for name in hostile[:3]),
        jobs=jobs,
        blind={"npu_ecc": Failure(FailureKind.EXIT, "\n".join(hostile))},
    )
    reasons = tuple(Reason(name) for name in hostile)
    shown = replace(
        judged(outcome([evil], node=hostile[2]), of_node(State.WATCH, *reasons), of_device(0, State.WATCH, *reasons)),
        findings=tuple(replace(ECC, summary=name, held=True, held_because=name) for name in hostile),
        journal=tuple(Event(n, AT.wall_s, "x", name) for n, name in enumerate(hostile)),
    )
    with serving(shown, counters=counters()) as run, chromium.tab(script=scripted) as tab:
        look(tab, run)
        if scripted:
            let_it_refresh(tab)
            assert tab.js("hit") == []
        assert tab.js("document.querySelectorAll('main :is(script, img, iframe), [href^=javascript]').length") == 0
        assert hostile[1] in text(tab, "#device-0")
        assert tab.problems == []


def test_news_come_without_loading_and_what_a_person_was_at_stays(chromium: Chromium) -> None:
    many = tuple(Event(n, AT.wall_s - 900 + n, "device_seen", f"line {n}") for n in range(40))
    with serving(replace(QUIET, journal=many), counters=counters()) as run, chromium.tab(height=300) as tab:
        look(tab, run)
        settle(tab)
        tab.js("document.querySelector('#events details').open = true")
        tab.js("document.querySelector('#events summary').focus()")
        tab.js("document.querySelector('#events').scrollIntoView(); window.before = scrollY; window.same = 'yes'")
        tab.js("window.kept = document.querySelector('#device-0')")
        tab.js("getSelection().selectAllChildren(document.querySelector('footer time'))")
        publish(run, replace(ILL, journal=(*many, *EVENTS)))
        let_it_refresh(tab)
        assert tab.js("document.title").startswith("quarantine: ")
        assert row(tab, "3")["Verdict"].split() == [
            *("quarantine", "2", "uncorrectable", "HBM", "errors", "since", "its", "last", "reset")
        ]
        assert "device 3: 2 uncorrectable HBM errors" in text(tab, "#findings")
        assert text(tab, "#events li").endswith(ECC.summary)
        assert tab.js("window.same") == "yes"
        assert tab.js("kept === document.querySelector('#device-0')")
        assert tab.js("document.querySelector('#events details').open")
        assert tab.js("document.activeElement === document.querySelector('#events summary')")
        assert tab.js("getSelection().toString()") == "2026-09-21 14:13:20 UTC"
        assert tab.js("Math.abs(document.querySelector('#events').getBoundingClientRect().top)") < 2
        publish(run, QUIET)
        let_it_refresh(tab)
        assert "Not healthy" not in text(tab)
        assert tab.problems == []


WATCHED = """
window.touched = [];
new MutationObserver((seen) => touched.push(...seen.map((one) => one.target.nodeName)))
  .observe(document, {subtree: true, childList: true, attributes: true, characterData: true});
"""


def test_where_nothing_is_new_nothing_is_touched(chromium: Chromium) -> None:
    with serving(ILL, counters=counters(grown(3, (1, 2)))) as run, chromium.tab() as tab:
        look(tab, run)
        let_it_refresh(tab)
        tab.js(WATCHED)
        asked = len(tab.requests)
        let_it_refresh(tab)
        assert len(tab.requests) == asked + 1
        assert tab.js("touched") == []


def test_a_daemon_that_does_not_answer_is_told_until_it_does(chromium: Chromium) -> None:
    with chromium.tab() as tab:
        with serving(QUIET, counters=counters()) as run:
            look(tab, run)
            let_it_refresh(tab)
            port = run.port
            assert not tab.js("document.body.classList.contains('past')")
        let_it_refresh(tab)
        assert "The daemon has not answered since 20" in text(tab, "#lost")
        assert "(no connection). What stands below is the past." in text(tab, "#lost")
        assert tab.js("document.title").startswith("no answer · healthy: ")
        assert tab.js("getComputedStyle(document.querySelector('main')).filter") == "grayscale(1)"
        since = text(tab, "#lost")
        let_it_refresh(tab)
        assert text(tab, "#lost") == since
        assert all("ERR_CONNECTION_REFUSED" in problem for problem in tab.problems)
        with serving(first_cycle=False, listen=(f"127.0.0.1:{port}",), counters=counters()) as run:
            let_it_refresh(tab)
            assert "(HTTP 503)" in text(tab, "#lost")
            publish(run, ILL)
            let_it_refresh(tab)
            assert text(tab, "#lost") == ""
            assert tab.js("document.title").startswith("quarantine: ")
            assert not tab.js("document.body.classList.contains('past')")


def test_a_page_that_nobody_looks_at_asks_for_nothing(chromium: Chromium) -> None:
    with serving(QUIET, counters=counters()) as run, chromium.tab() as tab:
        look(tab, run)
        settle(tab)
        asked = len(tab.requests)
        tab.js("Object.defineProperty(document, 'hidden', {value: true, configurable: true})")
        tab.js(
            "(() => { laterMs += 60000; for (const [which, timer] of due()) { held.delete(which); timer.call(); } })()"
        )
        assert tab.js("held.size") == 0
        publish(run, ILL)
        tab.js("delete document.hidden; document.dispatchEvent(new Event('visibilitychange'))")
        until(lambda: tab.js("document.title").startswith("quarantine: "), "it looks again")
        settle(tab)
        assert tab.requests[asked] == f"http://127.0.0.1:{run.port}/"


def test_errors_of_a_day_are_drawn_and_what_has_no_history_is_a_dash(chromium: Chromium) -> None:
    history = counters(grown(3, (2, 31), (9.5, 2), (40, 900)), grown(4, since_h=6))
    shown = outcome([device(3), device(4), device(5)])
    with serving(shown, counters=history) as run, chromium.tab() as tab:
        look(tab, run)
        settle(tab)
        assert [row(tab, one)["Errors, 24 h"].strip() for one in ("3", "4", "5")] == ["33", "0", "–"]
        drawn = "[...document.querySelectorAll('#device-{} svg rect')].map((bar) => bar.getAttribute('{}'))"
        assert tab.js(drawn.format(3, "x")) == ["0", "56", "84"]
        assert tab.js(drawn.format(4, "x")) == ["72"]
        assert tab.js("document.querySelector('#device-3 svg').getAttribute('aria-label')") == (
            "Of the last 24 h: 33 errors: memory single_bit 33; the last was seen 2026-09-21 12:13:20 UTC"
        )
        assert tab.js("document.querySelector('#device-4 svg').getAttribute('aria-label')") == (
            "Of 6 h, which is all that is known: no errors"
        )
        let_it_refresh(tab)
        assert row(tab, "3")["Errors, 24 h"].strip() == "33"
        tab.js("laterMs += 400000")
        run.server._application._counters = None
        let_it_refresh(tab)
        let_it_refresh(tab)
        assert row(tab, "3")["Errors, 24 h"] == "–"


@pytest.mark.parametrize("width", [360, 800, 1920])
def test_64_devices_fit_any_screen(chromium: Chromium, scripted: bool, width: int) -> None:
    with serving(_large(), counters=counters()) as run, chromium.tab(width=width, script=scripted) as tab:
        look(tab, run)
        assert tab.js("document.documentElement.scrollWidth") <= width
        assert tab.js("document.querySelectorAll('#map a').length") == 64
        assert tab.js("document.querySelectorAll('#devices tbody tr').length") == 64
        if width == 360:
            wide = (
                "[...document.querySelectorAll('#devices :is(td, th)')].filter((cell) => cell.getBoundingClientRect()"
            )
            assert tab.js(f"{wide}.right > 360).length") == 0
        assert tab.problems == []


CONTRAST = """(() => {
  const light = ([r, g, b]) => [r, g, b].map((c) => c / 255)
    .map((c) => c <= .03928 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4)
    .reduce((sum, c, at) => sum + c * [.2126, .7152, .0722][at], 0);
  const numbers = (color) => color.match(/[0-9.]+/g).map(Number);
  const paper = (node) => {
    for (; node; node = node.parentElement) {
      const found = numbers(getComputedStyle(node).backgroundColor);
      if (found.length === 3 || found[3] > 0) return found;
    }
    return [255, 255, 255];
  };
  const weak = [];
  for (const node of document.querySelectorAll("body *")) {
    const words = [...node.childNodes].some((one) => one.nodeType === 3 && one.nodeValue.trim());
    if (!words || node.closest(".unseen, .skip, script, noscript, svg, [hidden]")) continue;
    const [a, b] = [light(numbers(getComputedStyle(node).color)), light(paper(node))];
    const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
    if (ratio < 4.5) weak.push(`${node.className || node.nodeName} ${ratio.toFixed(2)}`);
  }
  return weak;
})()"""


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_all_words_can_be_read_in_light_and_in_the_dark(chromium: Chromium, dark: bool) -> None:
    devices = [device(n, health=state) for n, state in enumerate(HEALTH_STATES)]
    verdicts = [of_device(n, state, PROGRESS) for n, state in enumerate(State)]
    shown = replace(
        judged(outcome([*devices, *(device(n) for n in range(5, 12))]), of_node(State.PROBATION, PROGRESS), *verdicts),
        findings=(ECC,),
        journal=EVENTS,
    )
    with serving(shown, counters=counters(grown(1, (1, 5)))) as run, chromium.tab(dark=dark) as tab:
        look(tab, run)
        settle(tab)
        assert tab.js("getComputedStyle(document.body).backgroundColor") == (
            "rgb(17, 23, 29)" if dark else "rgb(255, 255, 255)"
        )
        assert tab.js(CONTRAST) == []


def _spoken(tab: Tab) -> Iterator[tuple[str, str]]:
    """Role and name of all that a screen reader is told."""
    nodes: list[dict[str, Any]] = tab.call("Accessibility.getFullAXTree")["nodes"]
    for node in nodes:
        if not node["ignored"]:
            yield node["role"]["value"], node.get("name", {}).get("value", "")


def test_a_screen_reader_finds_parts_tables_rows_and_news(chromium: Chromium) -> None:
    shown = replace(_large(), findings=(ECC,), journal=EVENTS)
    with serving(shown, counters=counters()) as run, chromium.tab() as tab:
        look(tab, run)
        settle(tab)
        said = set(_spoken(tab))
        live = tab.js("[...document.querySelectorAll('[role=status]')].map((one) => one.innerText)")
    assert {role for role, _ in said} >= {"banner", "main", "contentinfo", "status", "table", "rowheader"}
    assert said >= {
        ("navigation", "Devices by verdict"),
        ("navigation", "For programs"),
        ("table", "Devices"),
        ("region", "What is wrong"),
        ("heading", "What happened (UTC)"),
        ("columnheader", "Verdict"),
        ("rowheader", "63"),
        ("link", "device 5: quarantine"),
    }
    assert len(live) == 1
    assert live[0].startswith("64 of 64 devices present, 64 blind, worst health: ok, 1 finding")


def test_the_first_key_leads_past_the_head_and_shows_where_one_is(chromium: Chromium) -> None:
    with serving(QUIET, counters=counters()) as run, chromium.tab() as tab:
        look(tab, run)
        tab.press("Tab", 9)
        assert tab.js("document.activeElement.innerText") == "To what is wrong"
        assert tab.js("document.activeElement.getBoundingClientRect().left") >= 0
        assert tab.js("getComputedStyle(document.activeElement).outlineStyle") == "solid"
        tab.press("Tab", 9)
        assert tab.js("document.activeElement.getAttribute('aria-label')") == "Devices, table"
        assert tab.js("getComputedStyle(document.activeElement).outlineWidth") == "3px"


def test_nothing_moves_by_itself(chromium: Chromium) -> None:
    with serving(ILL, counters=counters()) as run, chromium.tab() as tab:
        look(tab, run)
        moving = "[...document.querySelectorAll('*')].map((one) => getComputedStyle(one))"
        assert (
            tab.js(f"{moving}.filter((one) => one.animationName !== 'none' || one.transitionDuration !== '0s').length")
            == 0
        )


def test_a_newer_daemons_page_is_loaded_whole(chromium: Chromium, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(QUIET, counters=counters()) as run, chromium.tab() as tab:
        look(tab, run)
        settle(tab)
        tab.js("window.same = 'yes'")
        monkeypatch.setattr("npu_watchd.sinks.web.page.EDITION", "another")
        publish(run, ILL)
        loaded = tab.loads
        tab.js("(() => { for (const [which, timer] of due()) { held.delete(which); timer.call(); } })()")
        until(lambda: tab.heard_of(loaded + 1), "it is loaded anew")
        assert tab.js("window.same") is None
        assert tab.js("document.title").startswith("quarantine: ")
        let_it_refresh(tab)
        assert tab.problems == []
