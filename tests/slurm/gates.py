"""The scripts of deploy/slurm with a gate in their hands that says what a test wants."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

SHIPPED = Path(__file__).parents[2] / "deploy" / "slurm"
_GATE = """#!/bin/sh
[ "$*" = "check --gate quarantine" ] || exit 64
cat {folder}/line
exit "$(cat {folder}/code)"
"""


@dataclass(frozen=True)
class Gate:
    """In a folder that slurmd can reach."""

    folder: Path

    def says(self, code: int, line: str = "device 3: 2 uncorrectable errors") -> None:
        """From now on."""
        (self.folder / "line").write_text(f"{line}\n")
        (self.folder / "code").write_text(f"{code}\n")

    def becomes(self, program: str, *options: str) -> None:
        """From now on the real one: a line of sh, and what it is given besides what the scripts give it."""
        fresh = self.folder / "fresh"
        fresh.write_text(f'#!/bin/sh\nexec {program} "$@" {" ".join(options)}\n')
        fresh.chmod(0o755)
        fresh.replace(self.folder / "npu-watchd")

    def script(self, name: str, **settings: str) -> Path:
        """A copy, with the values at its head changed."""
        text = (SHIPPED / name).read_text()
        for key, value in {"PROGRAM": str(self.folder / "npu-watchd"), **settings}.items():
            before = next(line for line in text.splitlines() if line.startswith(f"{key}="))
            text = text.replace(f"\n{before}\n", f"\n{key}={value}\n")
        copy = self.folder / name
        copy.write_text(text)
        copy.chmod(0o755)
        return copy


def gate(folder: Path) -> Gate:
    folder.mkdir(exist_ok=True)
    folder.chmod(0o755)
    program = folder / "npu-watchd"
    program.write_text(_GATE.format(folder=folder))
    program.chmod(0o755)
    made = Gate(folder)
    made.says(0, "healthy")
    return made
