"""Debian's Chromium, driven over a pipe by its own DevTools protocol: nothing to install beside the browser."""

from __future__ import annotations

import base64
import contextlib
import fcntl
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")
Message = dict[str, Any]

PROGRAM = shutil.which("chromium") or shutil.which("chromium-browser")
WHY_SKIPPED = "chromium is not installed: it comes with the Debian package of that name"
PATIENCE_S = 20.0

_ARGUMENTS = (
    *("--headless", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage"),
    *("--disable-extensions", "--hide-scrollbars"),
)
_ON_A_PIPE = 'exec "$@" 3<&"$TO" 4>&"$FROM"'
"""Chromium reads commands from file descriptor 3 and answers on 4. (A plain sh knows no numbers above 9.)"""


class Chromium:
    """The browser; `tab` opens a page of it."""

    def __init__(self, profile: Path) -> None:
        assert PROGRAM is not None
        commands, self._to = os.pipe()
        self._from, answers = os.pipe()
        # Away from 3 and 4, which the shell is about to write over.
        handed = [fcntl.fcntl(end, fcntl.F_DUPFD, 20) for end in (commands, answers)]
        self._process = subprocess.Popen(
            ["/bin/bash", "-c", _ON_A_PIPE, "bash", PROGRAM, *_ARGUMENTS, f"--user-data-dir={profile}", "about:blank"],
            env={**os.environ, "TO": str(handed[0]), "FROM": str(handed[1])},
            pass_fds=handed,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for end in (commands, answers, *handed):
            os.close(end)
        self._read = b""
        self._asked = 0
        self._listeners: dict[str, Callable[[Message], None]] = {}

    def close(self) -> None:
        with contextlib.suppress(OSError, AssertionError):
            self.call("Browser.close", {})
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(5)
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        os.close(self._to)
        os.close(self._from)

    def call(self, method: str, parameters: Message, session: str | None = None) -> Message:
        """The result of one command; what happens meanwhile is told to the tabs that it concerns."""
        number = self._send(method, parameters, session)
        while True:
            message = self._next(method)
            if message.get("id") == number:
                assert "error" not in message, f"{method}: {message['error']}"
                result: Message = message["result"]
                return result
            self._tell(message)

    def note(self, method: str, parameters: Message, session: str) -> None:
        """A command whose answer nobody waits for."""
        self._send(method, parameters, session)

    def _send(self, method: str, parameters: Message, session: str | None) -> int:
        self._asked += 1
        message = {"id": self._asked, "method": method, "params": parameters}
        os.write(self._to, json.dumps(message | ({"sessionId": session} if session else {})).encode() + b"\0")
        return self._asked

    def _next(self, what: str) -> Message:
        give_up_s = time.monotonic() + PATIENCE_S
        while b"\0" not in self._read:
            left_s = give_up_s - time.monotonic()
            assert left_s > 0, f"chromium does not answer {what}"
            if select.select([self._from], [], [], left_s)[0]:
                part = os.read(self._from, 1 << 20)
                assert part, "chromium has ended"
                self._read += part
        first, _, self._read = self._read.partition(b"\0")
        message: Message = json.loads(first)
        return message

    def _tell(self, message: Message) -> None:
        listener = self._listeners.get(message.get("sessionId", ""))
        if listener is not None:
            listener(message)

    @contextlib.contextmanager
    def tab(self, *, width: int = 1280, height: int = 900, dark: bool = False, script: bool = True) -> Iterator[Tab]:
        """An empty tab, with cookies and cache of its own."""
        context = self.call("Target.createBrowserContext", {})["browserContextId"]
        target = self.call("Target.createTarget", {"url": "about:blank", "browserContextId": context})["targetId"]
        session = self.call("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]
        tab = Tab(self, session)
        self._listeners[session] = tab.hear
        try:
            for domain in ("Page", "Runtime", "Log", "Network"):
                tab.call(f"{domain}.enable")
            tab.call(
                "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False
            )
            scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
            tab.call("Emulation.setEmulatedMedia", features=[scheme])
            tab.call("Emulation.setScriptExecutionDisabled", value=not script)
            yield tab
        finally:
            del self._listeners[session]
            self._send("Target.disposeBrowserContext", {"browserContextId": context}, None)


@dataclass
class Tab:
    """One page, and all that went wrong on it."""

    browser: Chromium
    session: str
    problems: list[str] = field(default_factory=list)
    """Errors of scripts, of the console and of the content security policy; dialogs that a script has opened."""
    requests: list[str] = field(default_factory=list)
    """What it has asked for."""
    loads: int = 0
    """How often a page has been loaded whole."""

    def call(self, method: str, **parameters: Any) -> Message:
        return self.browser.call(method, parameters, self.session)

    def hear(self, message: Message) -> None:
        method, told = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.problems.append(str(told["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled":
            self.problems.append(str(told["args"]))
        elif method == "Log.entryAdded" and told["entry"]["level"] in ("warning", "error"):
            self.problems.append(f"{told['entry']['text']} {told['entry'].get('url', '')}".rstrip())
        elif method == "Page.javascriptDialogOpening":
            self.problems.append(f"a dialog: {told['message']}")
            self.browser.note("Page.handleJavaScriptDialog", {"accept": False}, self.session)
        elif method == "Page.loadEventFired":
            self.loads += 1
        elif method == "Network.requestWillBeSent":
            self.requests.append(told["request"]["url"])

    def open(self, url: str) -> None:
        """Until all of it is there."""
        failed = self.call("Page.navigate", url=url).get("errorText")
        assert failed is None, failed
        until(lambda: self.js("document.readyState") == "complete" and self.js("location.href") == url, url)

    def heard_of(self, loads: int) -> bool:
        """Whether so many pages have been loaded; asks none of them anything, as one may be about to go."""
        self.browser.call("Browser.getVersion", {})
        return self.loads >= loads

    def js(self, expression: str) -> Any:
        """Its value as JSON would have it; a promise is waited for."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def press(self, key: str, code: int) -> None:
        for kind in ("rawKeyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code)

    def screenshot(self, file: Path) -> None:
        file.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))


def until(claim: Callable[[], T], what: str, within_s: float = PATIENCE_S) -> T:
    """The first true answer."""
    give_up_s = time.monotonic() + within_s
    while True:
        answer = claim()
        if answer:
            return answer
        assert time.monotonic() < give_up_s, f"not within {within_s:g} s: {what}"
        time.sleep(0.02)
