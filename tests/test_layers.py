"""Who may import whom: the table of the design, and four bans."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "npu_watchd"

MAY_IMPORT: dict[str, set[str]] = {
    "model": set(),
    "limits": {"model"},
    "chips": {"model"},
    "parsers": {"model"},
    "catalogue": {"model"},
    "codes": {"model"},
    "compatibility": {"model"},
    "sources": {"model", "parsers"},
    "memory": {"model", "catalogue"},
    "rules": {"model", "catalogue", "limits", "chips", "memory", "codes", "compatibility"},
    "decide": {"model", "limits", "codes", "memory", "rules"},
    "sinks": {"model", "catalogue", "chinese"},
    "diagnose": {"model", "parsers", "sources", "limits", "compatibility"},
    "resilient": set(),
    "simnode": {"model"},
    "config": {"limits", "chips", "codes"},
    "chinese": {"model"},
    "logbook": set(),
    "gate": set(),
}
"""Besides itself, and the package's own `__version__`."""

FREE = {
    "daemon",
    "lanes",
    "docket",
    "archive",
    "herald",
    "posts",
    "warden",
    "cli",
    "cli_diagnose",
    "cli_gate",
    "cli_journal",
    "cli_people",
    "cli_status",
    "cli_preflight",
    "cli_bundle",
    "control",
    "incidents",
    "lease",
    "live",
    "log_look",
    "command",
    "reference",
    "__main__",
    "__init__",
}
ONLY_HERE = {
    "subprocess": ("sources/runner.py", "simnode/"),
    "apscheduler": ("daemon.py",),
    "time": ("daemon.py", "gate.py", "resilient/"),
    "prometheus_client": ("sinks/",),
    "npu_watchd.simnode": ("simnode/", "cli.py"),
}

MODULES = sorted(path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py"))


def layer(module: str) -> str:
    return module.split("/", 1)[0].removesuffix(".py")


def imports(module: str) -> Iterator[str]:
    """Dotted names, `from a import b` as a.b, so that a module and a name in it look alike."""
    for node in ast.walk(ast.parse((PACKAGE / module).read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}:{node.lineno}: relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("module", [module for module in MODULES if layer(module) not in FREE])
def test_a_layer_imports_only_what_lies_below_it(module: str) -> None:
    own = layer(module)
    allowed = MAY_IMPORT[own] | {own, "__version__"}
    ours = {name.split(".", 2)[1] for name in imports(module) if name.startswith("npu_watchd.")}
    assert ours <= allowed, f"{module} may not import {sorted(ours - allowed)}"


@pytest.mark.parametrize("banned", ONLY_HERE)
def test_what_is_dangerous_is_imported_in_its_one_place(banned: str) -> None:
    places = ONLY_HERE[banned]
    users = {module for module in MODULES for name in imports(module) if f"{name}.".startswith(f"{banned}.")}
    assert not {user for user in users if not user.startswith(places)}


def test_the_table_names_every_layer_that_exists() -> None:
    assert {layer(module) for module in MODULES} <= MAY_IMPORT.keys() | FREE
