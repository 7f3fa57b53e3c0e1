"""What is generated, where it lies in a checkout, and whether it is as it would be made now."""

from __future__ import annotations

from pathlib import Path

import click

from npu_watchd.catalogue import CATALOGUE
from npu_watchd.catalogue.npu_exporter import BORROWED
from npu_watchd.limits import LIMITS
from npu_watchd.reference.alerts_page import alerts_page
from npu_watchd.reference.alerts_page_zh import alerts_page_zh
from npu_watchd.reference.config_page import config_page, probe_defaults
from npu_watchd.reference.fleet_alerts import FLEET_ALERTS
from npu_watchd.reference.grafana import DASHBOARDS, dashboard_json
from npu_watchd.reference.limits_page import limits_page
from npu_watchd.reference.metrics_page import metrics_page
from npu_watchd.reference.migration_page import migration_page
from npu_watchd.reference.prometheus_rules import rules_file
from npu_watchd.reference.prometheus_tests import tests_file
from npu_watchd.rules import RULES

ROOT = Path(__file__).resolve().parents[2]
"""Of a checkout; an installed package has no docs/ there."""


def files() -> dict[str, str]:
    """Path below the checkout → its text."""
    return {
        "docs/alerts.md": alerts_page(RULES, FLEET_ALERTS),
        "docs/alerts.zh-CN.md": alerts_page_zh(RULES, FLEET_ALERTS),
        "docs/config.md": config_page(probe_defaults()),
        "docs/limits.md": limits_page(LIMITS, RULES),
        "docs/metrics.md": metrics_page(CATALOGUE),
        "docs/migrate-from-npu-exporter.md": migration_page(BORROWED),
        "deploy/prometheus/npu-watchd.rules.yml": rules_file(RULES, FLEET_ALERTS),
        "deploy/prometheus/npu-watchd.rules.test.yml": tests_file(RULES),
        **{f"deploy/grafana/{name}.json": dashboard_json(one) for name, one in DASHBOARDS.items()},
    }


def differing(root: Path) -> list[str]:
    """Paths of the files below `root` that are missing or not as they would be made now."""
    return [path for path, text in files().items() if not _says(root / path, text)]


def write(root: Path) -> list[str]:
    """Bring the files below `root` up to date; the paths of those that changed."""
    changed = differing(root)
    texts = files()
    for path in changed:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(texts[path], encoding="utf-8")
    return changed


def regenerate(*, check: bool) -> int:
    """Make the files anew, or say which differ; the exit code of `npu-watchd reference`."""
    if not (ROOT / "docs").is_dir():
        click.echo("npu-watchd: there is no docs/ beside the package; run this in a checkout of the sources", err=True)
        return 1
    paths = differing(ROOT) if check else write(ROOT)
    for path in paths:
        click.echo(f"{path}: {'differs: run `npu-watchd reference`' if check else 'made anew'}", err=True)
    return 1 if check and paths else 0


def _says(page: Path, text: str) -> bool:
    return page.is_file() and page.read_text(encoding="utf-8") == text
