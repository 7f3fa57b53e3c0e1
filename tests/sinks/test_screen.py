"""The screen of `status --watch`: drawn over what stands there, never scrolled, never cleared first."""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from rich.text import Text

from npu_watchd.sinks.screen import Screen, framed, hanging
from npu_watchd.sinks.terminal import rendered
from npu_watchd.sinks.web.api import snapshot_document
from tests.sinks.build import device, outcome


def test_lines_are_drawn_over_those_of_before() -> None:
    assert framed(["a", "b"], 24) == "\x1b[Ha\x1b[K\nb\x1b[K\x1b[J"


def test_what_does_not_fit_is_counted_in_the_last_line() -> None:
    assert framed(["1", "2", "3"], 3).count("\n") == 2
    drawn = framed(["1", "2", "3", "4", "5"], 3)
    assert drawn == "\x1b[H1\x1b[K\n2\x1b[K\n… 3 more lines: `npu-watchd status | less` has them\x1b[K\x1b[J"


@pytest.mark.parametrize(("width", "height"), [(80, 24), (200, 50)])
def test_64_devices_never_scroll_the_screen(width: int, height: int) -> None:
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=width, height=height, highlight=False, markup=False)
    with Screen(console) as screen:
        screen.draw(rendered(snapshot_document(outcome([device(n) for n in range(64)])), 1.0))
    drawn = out.getvalue()
    assert drawn.startswith("\x1b[?1049h\x1b[?25l\x1b[H")
    assert drawn.endswith("\x1b[J\x1b[?25h\x1b[?1049l")
    assert drawn.count("\n") == height - 1


def test_the_terminal_is_given_back_whatever_happens() -> None:
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=80, height=24)

    def interrupted() -> None:
        with Screen(console) as screen:
            screen.draw(Text("a"))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert out.getvalue().endswith("\x1b[?25h\x1b[?1049l")


def test_no_color_takes_the_colours_and_leaves_the_words(monkeypatch: pytest.MonkeyPatch) -> None:
    def drawn() -> str:
        out = io.StringIO()
        console = Console(
            file=out, force_terminal=True, color_system="standard", width=80, highlight=False, markup=False
        )
        console.print(rendered(snapshot_document(outcome([device(0)])), 1.0))
        return out.getvalue()

    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b[32mok" in drawn()
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[32m" not in drawn()
    assert "ok" in drawn()


def test_a_wrapped_line_stays_indented() -> None:
    out = io.StringIO()
    Console(file=out, width=20).print(hanging(Text("    one two three four five")), hanging(Text("none")), sep="\n")
    assert [line.rstrip() for line in out.getvalue().splitlines()] == ["    one two three", "    four five", "none"]
