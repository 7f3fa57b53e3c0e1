"""`npu-watchd preflight`: facts from the daemon or from the tools themselves, the checks on them, and a table."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from npu_watchd.command import NO_DAEMON, complain, config_option, load

if TYPE_CHECKING:
    from rich.console import RenderableType

    from npu_watchd.config import Config
    from npu_watchd.diagnose.preflight import Check

_MOST_ID = 1023


@click.command(short_help="The checklist before a job.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document: result, exit_code, checks.")
@click.option("--devices", metavar="0-7", help="Only these device_ids, as 0-3,6. Without it: all of the node.")
@click.option("--exclusive", is_flag=True, help="A device that somebody uses fails; otherwise it is a warning.")
@click.option("--stress", is_flag=True, help="Also run [preflight] stress on idle devices, and compare error counts.")
@config_option
@click.pass_obj
def preflight(group_file: Path | None, /, as_json: bool, config_file: Path | None, **given: Any) -> None:
    """The checklist before a job: devices well and free, links up, versions that fit, room on the host.

    Run it as the job's user, where the job will run. Exit: 0 all passed, 1 a warning, 2 something failed, 3 something
    could not be seen.
    """
    import msgspec

    from npu_watchd.diagnose import preflight as checklist

    # 2 would say failed.
    settings = load(config_file or group_file, otherwise=NO_DAEMON)
    try:
        asked = device_ids(given["devices"])
        checks = tuple(_checks(settings, asked, exclusive=given["exclusive"], stress=given["stress"]))
    except ValueError as error:
        sys.exit(complain(str(error), NO_DAEMON))
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(checklist.document(checks)), indent=2).decode())
    else:
        from rich.console import Console

        Console(highlight=False, markup=False).print(_table(checks))
    sys.exit(checklist.exit_code(checks))


def device_ids(text: str | None) -> tuple[str, ...]:
    """`0-3,6` → 0, 1, 2, 3, 6. Raises ValueError naming what is wrong."""
    found: dict[str, None] = {}
    for part in text.split(",") if text is not None else ():
        first, dash, last = part.strip().partition("-")
        last = last if dash else first
        good = all(one.isascii() and one.isdigit() and len(one) <= 4 for one in (first, last))
        if not good or not int(first) <= int(last) <= _MOST_ID:
            raise ValueError(f"--devices {text!r}: {part!r} is no device; write device_ids as 0-3,6")
        found.update(dict.fromkeys(str(one) for one in range(int(first), int(last) + 1)))
    return tuple(found)


def _checks(settings: Config, asked: tuple[str, ...], *, exclusive: bool, stress: bool) -> Iterator[Check]:
    from npu_watchd.daemon import clock
    from npu_watchd.diagnose import preflight_devices, preflight_hccl, preflight_host
    from npu_watchd.diagnose.preflight import unknown
    from npu_watchd.diagnose.preflight_facts import gather, tls_switches
    from npu_watchd.model.reading import Failure
    from npu_watchd.sources.runner import ToolRunner

    paths = settings.paths
    document = _document(settings)
    wanted = preflight_devices.wanted_devices(document, asked)
    yield from preflight_devices.device_checks(document, wanted, exclusive=exclusive)
    ports = tuple(one["device_id"] for one in document["devices"] if one["device_id"] in wanted and one["roce"])
    runner = ToolRunner(clock=lambda: clock().mono_s)
    try:
        yield from preflight_host.tls_checks(tls_switches(runner.run, str(settings.tools.hccn_tool), ports))
    finally:
        runner.close()
    facts = gather(paths.procfs, paths.sysfs, paths.etc, paths.ascend, map(str, paths.python), lambda: clock().mono_s)
    if isinstance(facts, Failure):
        yield unknown("host", facts.detail)
        return
    yield from preflight_host.version_checks(facts.installed)
    yield from preflight_hccl.hccn_conf_checks(facts.hccn_conf, ports)
    yield from preflight_hccl.settings_checks(os.environ, wanted)
    yield from preflight_hccl.port_checks(os.environ, facts.reserved_ports, facts.ephemeral_ports)
    yield from preflight_host.host_checks(document, facts.limited, os.environ, len(wanted))
    yield preflight_host.clock_check(facts.clock, "the kernel did not say: adjtimex was refused")
    if stress:
        yield from _stressed(settings, wanted)


def _document(settings: Config) -> dict[str, Any]:
    """The daemon's snapshot where one runs and is not stale; else what the tools say now, which takes seconds."""
    from npu_watchd.daemon import clock
    from npu_watchd.sinks import snapshot_file
    from npu_watchd.sinks.published_file import stale_after_s

    try:
        _, document = snapshot_file.read(settings.paths.runtime_dir)
        if "host" in document and clock().wall_s - document["at"] <= stale_after_s(settings.engine.cycle_s):
            return document
    except (OSError, ValueError):
        pass
    return _look(settings)


def _look(settings: Config) -> dict[str, Any]:
    from npu_watchd.live import look_now
    from npu_watchd.sinks.web.api import snapshot_document

    said: set[str] = set()

    def once(text: str) -> None:
        if text not in said:
            said.add(text)
            _say(text)

    return snapshot_document(look_now(settings, once, whole=True))


def _stressed(settings: Config, wanted: tuple[str, ...]) -> Iterator[Check]:
    from npu_watchd.daemon import clock
    from npu_watchd.diagnose import preflight_stress
    from npu_watchd.diagnose.preflight import unknown
    from npu_watchd.sources.runner import ToolRunner

    command = tuple(settings.preflight.stress)
    if not command:
        yield unknown(
            "stress", "no command is configured", '[preflight] stress = ["ascend-dmi", "--dg", "-i", "{devices}"]'
        )
        return
    before = _look(settings)
    refused = preflight_stress.refusal(before, wanted)
    if refused is not None:
        yield refused
        return
    argv = tuple(word.replace("{devices}", ",".join(wanted)) for word in command)
    timeout_s = float(settings.preflight.stress_timeout_s)
    _say(f"running {' '.join(argv)}, at most {timeout_s:.0f} s")
    runner = ToolRunner(clock=lambda: clock().mono_s)
    try:
        answer = runner.run(argv, timeout_s)
    finally:
        runner.close()
    yield from preflight_stress.compared(before, _look(settings), wanted, answer)


def _say(text: str) -> None:
    click.echo(text, err=True)


def _table(checks: tuple[Check, ...]) -> RenderableType:
    from rich.table import Table
    from rich.text import Text

    from npu_watchd.diagnose.preflight import Result
    from npu_watchd.sinks.terminal import shown_safely

    styles = {
        Result.PASSED: "green",
        Result.WARNING: "yellow",
        Result.FAILED: "bold red",
        Result.UNKNOWN: "magenta",
        Result.SKIPPED: "dim",
    }
    table = Table("check", "of", "result", "found", "what to do", box=None, pad_edge=False)
    for one in checks:
        words = [shown_safely(text) for text in (one.name, one.device_id or "node")]
        result = Text(one.result.value, styles[one.result])
        table.add_row(*words, result, shown_safely(one.found), shown_safely(one.cure or ""))
    return table
