"""`npu-watchd check`: the gate with the help, the complaints and the live poll that npu_watchd/gate.py leaves out."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from npu_watchd import gate as gates
from npu_watchd.command import NO_DAEMON, config_option, load


@click.command(short_help="The gate for a prolog: one line and an exit code.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document: state, exit_code, reason, verdict.")
@click.option(
    "--gate",
    type=click.Choice(["quarantine", "watch"]),
    default="watch",
    show_default=True,
    help="From what on to stop: with `quarantine`, watch and probation exit 0.",
)
@click.option("--device", "device_id", metavar="N", help="Only this device_id.")
@click.option("--live", is_flag=True, help="Where no daemon runs, ask the tools now; it takes seconds.")
@config_option
@click.pass_obj
def check(
    group_file: Path | None, as_json: bool, gate: str, device_id: str | None, live: bool, config_file: Path | None
) -> None:
    """The gate for a prolog, NHC and node-problem-detector: one line, from the daemon's newest verdict.

    Exit: 0 healthy, 1 watch or probation, 2 quarantine, 3 unknown (no daemon, stale, blind).
    """
    # 2 would say quarantine.
    settings = load(config_file or group_file, otherwise=NO_DAEMON)
    path = settings.paths.runtime_dir / gates.NAME
    found = gates.answer(path, device_id, gates.present(settings.paths.procfs))
    if live and found.verdict is None:
        from npu_watchd.live import answer_now

        found = answer_now(settings, device_id, lambda text: click.echo(text, err=True))
    click.echo(found.document(gate) if as_json else found.line)
    sys.exit(found.exit_code(gate))
