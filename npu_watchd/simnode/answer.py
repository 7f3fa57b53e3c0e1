"""What a tool does when it is called: text, exit code, and how long it takes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Answer:
    text: str
    """stdout: npu-smi prints its own failures there too."""
    exit_code: int = 0
    stderr: str = ""
    delay_s: float = 0.0
    """Passes before anything is printed."""
    hangs: bool = False
    """Nothing is printed and the process never ends by itself."""
    ignores_sigterm: bool = False


class Refused(Exception):
    """The tool's driver call failed: `code` becomes the exit code where this is the last word."""

    def __init__(self, code: int) -> None:
        super().__init__(f"the query fails with exit code {code}")
        self.code = code


class Unsupported(Exception):
    """The chip has no such query; the tool says so and exits 0."""
