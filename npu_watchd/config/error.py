"""The one way in which a config is refused."""

from __future__ import annotations

from pathlib import Path


class ConfigError(Exception):
    """The start stops here: which file, which key, what is wrong with it, what to write instead."""

    def __init__(self, file: Path | None, key: str, problem: str, cure: str) -> None:
        super().__init__(file, key, problem, cure)
        self.file = file
        self.key = key
        """Dotted; empty where the file as a whole is wrong."""
        self.problem = problem
        self.cure = cure

    def __str__(self) -> str:
        where = ": ".join(part for part in (str(self.file or "built-in config"), self.key) if part)
        return f"{where}: {self.problem}; {self.cure}"
