"""Anybody on the node can name a process: no name breaks the exposition, the JSON or the page."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser

import pytest

from npu_watchd.simnode.npu_smi import answer
from npu_watchd.simnode.state import ChipState, NodeState, Process
from npu_watchd.sinks.web.page import EDITION, SCRIPT_PATH
from tests.e2e.fake_tool import FakeTool, node_at
from tests.e2e.harness import command, running
from tests.e2e.page import parsed
from tests.e2e.prometheus import promtool_on

NAMES = {
    "quotes": "a\"b'c`d\\",
    "a series": 'x{le="1"} 2 # HELP',
    "script": "</script><script>alert(1)</script>",
    "image": "</style></td><img src=x onerror=alert(1)>",
    "template": "{summary}{0}%s%(x)s${x}",
    "markup of rich": "[bold red]a[/bold red][/]",
    "control bytes": "a\x01\x02\x07\x1b[2Jb\x7fc",
    "nul": "a\0b",
    "invalid UTF-8": "a\udcff\udcfeb",
    "line ends that are none": "a\rb\x0bc\x0cd\x85e\u2028f",
    "right to left": "a\u202eb\u2066c",
    "astral": "\U0001f525\U0001f525",
    "4 KiB": "n" * 4096,
    "a bar": "a|b",
    "a row": "| 0     910B3 | OK |",
    "a rule": "+====+====+",
}
"""What `surrogateescape` makes of bytes that are no UTF-8 stands for these bytes."""


def _table(*names: str) -> str:
    """One busy card, whose processes have these names, printed uncut (the real npu-smi cuts at 15 characters)."""
    card = node_at("quiet", 0).cards[0]
    rows = [answer(_one(replace(card.chips[0], processes=(Process(1, "NAME", 100),))), ("info",)).text]
    (row,) = (line for line in rows[0].splitlines() if "NAME" in line)
    return rows[0].replace(row, "\n".join(row.replace("NAME", name) for name in names))


def _one(chip: ChipState) -> NodeState:
    """A node of one card of one chip."""
    return NodeState("910B", "25.5.1", "25.5.1", (replace(node_at("quiet", 0).cards[0], chips=(chip,)),))


class _Document(HTMLParser):
    """What a browser would run or load."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.opened: list[str] = []
        self.closed: list[str] = []
        self.handlers: list[str] = []
        self.sources: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.opened.append(tag)
        if tag == "script":
            self.sources.append(dict(attrs).get("src") or "its own text")
        self.handlers += [name for name, _ in attrs if name.startswith("on")]

    def handle_endtag(self, tag: str) -> None:
        self.closed.append(tag)


def test_no_process_name_breaks_a_sink(tool: FakeTool) -> None:
    tool.shows(_one(node_at("quiet", 0).chips[0]))
    tool.says("info", _table(*NAMES.values()))
    with running(tool.config) as daemon:
        text = daemon.all_read().text
        assert parsed(text).value("npu_device_processes", device_id="0") == len(NAMES)
        assert promtool_on(text) == []
        told = [process["name"] for process in daemon.device("0")["processes"]]
        assert told == [name.encode(errors="surrogateescape").decode(errors="replace") for name in NAMES.values()]
        html = daemon.get("/").text
        status = command("status", "--config", tool.config)
    document = _Document(html)
    assert document.sources == [f"{SCRIPT_PATH}?{EDITION}"]
    assert not {"img", "iframe"} & set(document.opened)
    assert document.handlers == []
    assert html.endswith("</html>\n")
    assert not any(mark in html for mark in "\0\x01\x1b\u2028")
    assert len(html) < 100_000
    assert (status.code, "\x1b" in status.out, status.err) == (0, False, "")


@pytest.mark.parametrize("what", NAMES)
def test_the_page_shows_each_name_as_text(tool: FakeTool, what: str) -> None:
    tool.shows(_one(node_at("quiet", 0).chips[0]))
    tool.says("info", _table(NAMES[what]))
    with running(tool.config) as daemon:
        daemon.shows(lambda page: page.value("npu_device_processes", device_id="0") == 1, "the process is there")
        document = _Document(daemon.get("/").text)
    assert document.sources == [f"{SCRIPT_PATH}?{EDITION}"]
    assert not {"img", "iframe"} & set(document.opened)
    assert document.handlers == []
    # Devices and probes; and what is not healthy, while the device has not been read in full.
    assert document.opened.count("table") == document.closed.count("table") in (3, 4)


def test_a_hostile_chip_name_and_version_are_labels_and_nothing_else(tool: FakeTool) -> None:
    table = _table("python3").replace("910B3", 'x"}1\\').replace("npu-smi 25.5.1", 'npu-smi 25"\\{')
    tool.says("info", table)
    with running(tool.config) as daemon:
        page = daemon.shows(lambda page: "npu_device_info" in page.samples, "the device is there")
        assert promtool_on(page.text) == []
        (labels,) = page.samples["npu_device_info"]
        assert dict(labels)["name"] == 'x"}1\\'
        (labels,) = page.samples["npu_node_info"]
        assert dict(labels)["npu_smi"] == '25"\\{'


def test_a_line_break_in_a_name_makes_the_table_untrusted_and_invents_no_device(tool: FakeTool) -> None:
    """The kernel allows it in a thread's name."""
    row = "| 7     910B3               | OK            | 91.5        40                0    / 0             |"
    tool.says("info", _table(f"a\n{row}\n"))
    with running(tool.config) as daemon:
        page = daemon.shows(lambda page: page.value("npu_watchd_probe_up", probe="npu_info") == 0, "npu_info is down")
        assert page.about_devices() == set()
        assert daemon.snapshot()["blind"]["npu_info"]["kind"] == "unparseable"
