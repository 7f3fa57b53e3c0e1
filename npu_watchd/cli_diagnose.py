"""`npu-watchd diagnose`: why a training job died."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from npu_watchd.command import NO_DAEMON, config_option, load

if TYPE_CHECKING:
    from npu_watchd.config import Config
    from npu_watchd.diagnose.clue import Clue
    from npu_watchd.diagnose.incident import Incident

_PLACES = ("~/ascend/log/debug/plog/*.log", "~/ascend/log/run/plog/*.log", "/root/ascend/log/debug/plog/*.log")
"""Where CANN writes a process's log (ASCEND_PROCESS_LOG_PATH moves it); looked at besides `[logs]`."""
_MOST_EVENTS = 20_000
_NARROWEST, _WIDEST = 60, 160


@click.command(short_help="Why a training job died: causes by evidence.")
@click.argument("logs", metavar="[LOG ...]", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--since", default="6h", show_default=True, help="How far back to look for logs and in the journal; or a date."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON document: docs/diagnose.md.")
@config_option
@click.pass_obj
def diagnose(
    group_file: Path | None, logs: tuple[Path, ...], since: str, as_json: bool, config_file: Path | None
) -> None:
    """Why a training job died: causes ranked by evidence, from LOGs, or from the newest that can be found. Exit: 0."""
    import msgspec

    from npu_watchd.daemon import clock
    from npu_watchd.diagnose import report
    from npu_watchd.sinks.instants import instant
    from npu_watchd.sinks.terminal import shown_safely

    settings = load(config_file or group_file, otherwise=NO_DAEMON)
    try:
        since_s = instant(since, clock().wall_s)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    found = report.diagnosis(_incident(settings, logs, since_s))
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(report.document(found)), indent=2).decode())
        return
    width = min(max(shutil.get_terminal_size((100, 24)).columns, _NARROWEST), _WIDEST)
    click.echo("\n".join(shown_safely(line) if line else "" for line in report.lines(found, width)))


def _incident(settings: Config, logs: tuple[Path, ...], since_s: float) -> Incident:
    from npu_watchd.diagnose.clue import of_document
    from npu_watchd.diagnose.incident import incident_of
    from npu_watchd.diagnose.logs import node_offset_s, read_logs
    from npu_watchd.sources.log_files import newest

    notes: list[str] = []
    paths: Iterable[Path] = logs
    if not logs:
        paths = newest((*settings.logs.training, *settings.logs.plog, *_PLACES), since_s)
        if not paths:
            notes.append("no log was found in [logs] of the config and in ~/ascend/log; name the job's logs")
    read = read_logs(paths, node_offset_s(datetime.now().astimezone()))
    document = _document(settings, notes)
    ended_s = read.ended_s
    # A log that is named may be older than --since: then the journal of that time is wanted.
    journal = _journal(settings, since_s if ended_s is None else min(since_s, ended_s - 86_400.0), notes)
    kernel = _kernel(settings, ended_s)
    return incident_of(
        (*read.clues, *kernel),
        journal,
        document,
        ended_s,
        of_document(document) if document is not None else (),
        (*read.notes, *notes),
    )


def _document(settings: Config, notes: list[str]) -> dict[str, Any] | None:
    from npu_watchd.sinks import snapshot_file

    try:
        return snapshot_file.read(settings.paths.runtime_dir)[1]
    except FileNotFoundError:
        notes.append("no daemon runs here: nothing is known of devices, links and other jobs but what the journal has")
    except (OSError, ValueError) as error:
        notes.append(str(error))
    return None


def _journal(settings: Config, since_s: float, notes: list[str]) -> tuple[Clue, ...]:
    from npu_watchd.diagnose.clue import of_journal
    from npu_watchd.memory import journal, store
    from npu_watchd.model.reading import Failure

    found = journal.read(settings.paths.state_dir / store.NAME, since_s, None, _MOST_EVENTS)
    if isinstance(found, Failure):
        notes.append(f"no journal: {found.detail}")
        return ()
    return tuple(of_journal(found))


def _kernel(settings: Config, ended_s: float | None) -> tuple[Clue, ...]:
    """What the kernel says of that time; without the rights to read its log, nothing."""
    from npu_watchd.daemon import clock
    from npu_watchd.diagnose.logs import kernel_clues
    from npu_watchd.model.reading import Failure
    from npu_watchd.sources.kernel_log import KernelLog

    log = KernelLog(settings.paths.dev / "kmsg")
    found = log.poll()
    log.close()
    if isinstance(found, Failure) or ended_s is None:
        return ()
    now = clock()
    booted_s = now.wall_s - now.mono_s
    return tuple(replace(clue, where="dmesg") for clue in kernel_clues(found.messages, booted_s, ended_s))
