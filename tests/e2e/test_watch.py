"""`status --watch` on a terminal of its own, and beside what is none."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import signal
import struct
import subprocess
import termios
import threading
from collections.abc import Iterator
from pathlib import Path

from tests.e2e.fake_tool import FakeTool
from tests.e2e.harness import PROGRAM, command, running, until
from tests.e2e.small_node import HURRIED, SMALL, known, with_errors


class Terminal:
    """What a program has drawn on a pseudo terminal."""

    def __init__(self, config: Path, columns: int, **env: str) -> None:
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        self.process = subprocess.Popen(
            [*PROGRAM, "status", "--watch", "--config", config],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={**{key: value for key, value in os.environ.items() if key != "NO_COLOR"}, "TERM": "xterm", **env},
        )
        os.close(theirs)
        self.drawn = ""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        with contextlib.suppress(OSError):
            while part := os.read(self._ours, 65536):
                self.drawn += part.decode(errors="replace")

    @property
    def screens(self) -> list[str]:
        """Each as it was drawn, whole ones only."""
        return self.drawn.split("\x1b[H")[1:-1]

    def leave(self, how: signal.Signals) -> int:
        self.process.send_signal(how)
        code = self.process.wait(10)
        self._reader.join(5)
        return code


@contextlib.contextmanager
def watching(config: Path, columns: int = 80, **env: str) -> Iterator[Terminal]:
    terminal = Terminal(config, columns, **env)
    try:
        yield terminal
    finally:
        if terminal.process.poll() is None:
            terminal.process.kill()
        terminal.process.wait()
        terminal._reader.join(5)
        os.close(terminal._ours)


def test_it_shows_what_is_news_until_ctrl_c_and_ends_with_the_newest_state(tool: FakeTool) -> None:
    tool.write_config(HURRIED)
    tool.shows(SMALL)
    with contextlib.ExitStack() as screens:
        with running(tool.config) as daemon:
            known(daemon)
            narrow = screens.enter_context(watching(tool.config))
            wide = screens.enter_context(watching(tool.config, 200, NO_COLOR="1"))
            until(lambda: narrow.screens and wide.screens, "they have drawn")
            assert "3 of 3 devices present" in narrow.screens[0]
            assert "\x1b[3" in narrow.screens[0], "colours"
            assert "\x1b[3" not in wide.screens[0]
            tool.shows(with_errors(double_bit=2))
            until(lambda: "quarantine since" in (narrow.screens or [""])[-1], "the narrow one shows the quarantine")
            until(lambda: "quarantine since" in (wide.screens or [""])[-1], "and so does the wide one")
            assert wide.leave(signal.SIGINT) == 2
            assert wide.drawn.endswith("\x1b[?25h\x1b[?1049l")
        until(lambda: "no daemon runs here" in narrow.drawn.rpartition("\x1b[H")[2], "that the daemon is gone")
        assert narrow.leave(signal.SIGTERM) == 3
        assert narrow.drawn.endswith("\x1b[?25h\x1b[?1049l")
        assert "Traceback" not in narrow.drawn + wide.drawn


def test_what_is_no_terminal_is_refused_with_what_to_do_instead(tool: FakeTool) -> None:
    for arguments in (("--watch",), ("--watch", "--json")):
        said = command("status", *arguments, "--config", tool.config)
        assert (said.code, said.out) == (3, "")
        assert "--watch is for a terminal" in said.err
