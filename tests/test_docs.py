"""What cannot be generated is compared: the documents speak of all that exists, and of nothing that does not."""

from __future__ import annotations

import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from npu_watchd import cli, reference
from npu_watchd.config.keys import KEYS
from npu_watchd.sinks.web.app import PATHS

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
README_ZH = (ROOT / "README.zh-CN.md").read_text()
PAGES = "\n".join([README, README_ZH, *(path.read_text() for path in sorted((ROOT / "docs").glob("*.md")))])


def test_the_generated_pages_are_as_they_would_be_made_now() -> None:
    assert reference.differing(ROOT) == []


@pytest.mark.parametrize("key", [key.name for key in KEYS if not key.name.startswith("probes.")])
def test_every_config_key_is_in_its_sections_table(key: str) -> None:
    section, _, name = key.partition(".")
    text = (ROOT / "docs" / "config.md").read_text()
    part = text.partition(f"## [{section}]")[2].partition("\n## ")[0]
    assert f"| `{name}` |" in part if name else part


def commands(group: click.Command, prefix: str = "npu-watchd") -> Iterator[str]:
    if isinstance(group, click.Group):
        for name, command in group.commands.items():
            yield from commands(command, f"{prefix} {name}")
    else:
        yield prefix


@pytest.mark.parametrize("command", list(commands(cli.main)))
def test_every_command_is_documented(command: str) -> None:
    assert f"| `{command}` |" in README


def test_no_document_names_a_command_that_does_not_exist() -> None:
    exist = set(commands(cli.main))
    words = {word for command in exist for word in command.split()[1:2]}
    named = set(re.findall(r"`npu-watchd ([a-z]+)", PAGES)) | set(
        re.findall(r"^npu-watchd ([a-z]+)", PAGES, re.MULTILINE)
    )
    assert named <= words


@pytest.mark.parametrize("path", sorted(PATHS))
def test_every_http_path_is_documented(path: str) -> None:
    assert f"| `{path}` |" in README


@pytest.mark.parametrize(
    "page", ["README.md", "README.zh-CN.md", *(f"docs/{p.name}" for p in (ROOT / "docs").glob("*.md"))]
)
def test_every_link_to_a_file_leads_somewhere(page: str) -> None:
    text = (ROOT / page).read_text()
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text)
    assert [link for link in links if not ((ROOT / page).parent / link).exists()] == []


def test_the_chinese_readme_has_the_commands_of_the_english_one() -> None:
    commands = re.findall(r"```\n(.*?)```", README_ZH, re.DOTALL)
    assert len(commands) == 4
    assert [block for block in commands if block not in README and "language" not in block] == []


def test_the_readme_lists_the_dependencies_that_pyproject_declares() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    table = README.partition("## Dependencies")[2].partition("\n## ")[0]
    listed = re.findall(r"^\| ([a-z0-9-]+) \|", table.partition("|---|")[2], re.MULTILINE)
    assert sorted(listed) == sorted(re.split("[<>=]", text)[0] for text in declared)


def test_every_pinned_package_has_a_hash_and_every_dependency_a_pin() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    runtime, dev = (pinned(ROOT / name) for name in ("requirements.txt", "requirements-dev.txt"))
    names = [re.split("[<>=]", text)[0].lower() for text in project["project"]["dependencies"]]
    assert set(names) <= runtime.keys()
    assert runtime.items() <= dev.items()
    assert pinned(ROOT / "requirements-build.txt").items() <= dev.items()


def pinned(file: Path) -> dict[str, str]:
    blocks = re.findall(r"^([\w.-]+)==(\S+)((?: \\\n    --hash=sha256:[0-9a-f]{64})+)$", file.read_text(), re.MULTILINE)
    assert len(blocks) == file.read_text().count("==")
    return {name: version for name, version, _ in blocks}


def test_the_readmes_test_command_is_what_ci_runs() -> None:
    assert "\nmake test" in README
    assert "exec make test" in (ROOT / ".ci" / "run").read_text()


# One letter of each in brackets, so that this line does not find itself.
REGISTRY = re.compile(
    r"py[p]i\.org|[p]ythonhosted|npm[j]s\.|deb[.]debian|[r]egistry\.\w+\.\w|/[s]imple/", re.IGNORECASE
)
MACHINE = re.compile(r"/[w]ork/|/(?:root|home)/(?!ascend|\{)\w+|/opt/py[p]i")


def test_no_file_names_a_package_registry_or_a_path_of_one_machine() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    found = []
    for name in listed.stdout.splitlines():
        path = ROOT / name
        if not path.is_file() or b"\0" in path.read_bytes()[:8192]:
            continue
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
            if REGISTRY.search(line) or MACHINE.search(line):
                found.append(f"{name}:{number}: {line.strip()[:100]}")
    assert found == []
