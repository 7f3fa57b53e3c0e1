"""Pin what pyproject.toml asks for: requirements*.txt, with the hash of every wheel for each machine that we support.

    python tools/pin.py            resolve anew
    python tools/pin.py --keep     keep the versions that are pinned, resolve only what is new

Resolution is pip's own (`pip install --dry-run --report`), once for each Python and architecture; wheels only.
The files name no index: where packages come from is the business of the machine that installs them.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import tomllib
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PYTHONS = ("3.11", "3.12", "3.13")
MACHINES = ("x86_64", "aarch64")
# glibc 2.28 is the oldest that the vendor's own systems (openEuler 20.03, Kylin V10) come with.
GLIBCS = ("2_28", "2_17")
HEADER = "# Made by tools/pin.py from pyproject.toml: {what}. Install with: pip install --require-hashes -r {name}\n"

Pins = dict[str, tuple[str, set[str]]]


def asked() -> dict[str, tuple[str, list[str]]]:
    """File → what it is for, and the requirements that go into it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    runtime = project["project"]["dependencies"]
    build = project["build-system"]["requires"]
    return {
        "requirements.txt": ("what the daemon needs", runtime),
        "requirements-build.txt": ("what builds its wheel", build),
        "requirements-dev.txt": (
            "all of it, and what `make test` needs",
            [*runtime, *build, *project["project"]["optional-dependencies"]["dev"]],
        ),
    }


def resolve(requirements: list[str], python: str, machine: str, constraints: list[str]) -> Pins:
    """Name → version and sha256 hashes, as pip chooses for one kind of machine."""
    platforms = [f"--platform=manylinux_{glibc}_{machine}" for glibc in GLIBCS]
    with tempfile.TemporaryDirectory() as scratch:
        pinned = Path(scratch, "constraints.txt")
        pinned.write_text("\n".join(constraints))
        report = Path(scratch, "report.json")
        where = [f"--target={scratch}/target", f"--python-version={python}", f"--constraint={pinned}"]
        how = ["--quiet", "--dry-run", "--ignore-installed", "--only-binary=:all:", f"--report={report}"]
        pip = [sys.executable, "-m", "pip", "install"]
        subprocess.run([*pip, *how, *where, *platforms, *requirements], check=True)
        items = json.loads(report.read_text())["install"]
    return {
        _plain(item["metadata"]["name"]): (
            item["metadata"]["version"],
            {item["download_info"]["archive_info"]["hashes"]["sha256"]},
        )
        for item in items
    }


def union(requirements: list[str], constraints: list[str]) -> Pins:
    """One version a package over all machines; the hashes of the wheels of each."""
    hashes: defaultdict[str, set[str]] = defaultdict(set)
    versions: dict[str, str] = {}
    for python in PYTHONS:
        for machine in MACHINES:
            print(f"  Python {python} on {machine}", file=sys.stderr, flush=True)
            held = [*constraints, *(f"{name}=={version}" for name, version in versions.items())]
            for name, (version, found) in resolve(requirements, python, machine, held).items():
                if versions.setdefault(name, version) != version:
                    raise SystemExit(f"{name}: {versions[name]} and {version} for different machines")
                hashes[name] |= found
    return {name: (versions[name], hashes[name]) for name in sorted(versions)}


def pinned_text(pins: Pins) -> str:
    """The body of a requirements file."""
    lines = []
    for name, (version, hashes) in pins.items():
        lines.append(f"{name}=={version} \\\n" + " \\\n".join(f"    --hash=sha256:{each}" for each in sorted(hashes)))
    return "\n".join(lines) + "\n"


def kept(file: Path) -> list[str]:
    """The versions that a requirements file pins now, as constraints."""
    if not file.exists():
        return []
    return re.findall(r"^[\w.-]+==[^\s\\]+", file.read_text(), flags=re.MULTILINE)


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def main() -> None:
    # The largest set first: the others then take its versions, so that the files agree.
    constraints = kept(ROOT / "requirements-dev.txt") if "--keep" in sys.argv else []
    for name, (what, requirements) in reversed(asked().items()):
        print(name, file=sys.stderr)
        pins = union(requirements, constraints)
        (ROOT / name).write_text(HEADER.format(what=what, name=name) + pinned_text(pins))
        constraints = constraints or kept(ROOT / name)


if __name__ == "__main__":
    main()
