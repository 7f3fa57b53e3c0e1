"""`npu-watchd status` and `npu-watchd completion`: what a person at a terminal looks at, and types less for."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from npu_watchd.command import NO_DAEMON, complain, config_option, load

if TYPE_CHECKING:
    from rich.console import RenderableType

    from npu_watchd.config import Config

_WATCH_S = 2.0


@click.command(short_help="Verdict, findings, devices, ports and jobs as tables.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document: the snapshot of docs/api.md.")
@click.option("--watch", is_flag=True, help="Keep it on the screen, anew every 2 s, until Ctrl-C.")
@config_option
@click.pass_obj
def status(group_file: Path | None, as_json: bool, watch: bool, config_file: Path | None) -> None:
    """Verdict, findings, devices, ports and jobs, from the running daemon.

    Exit: 0 healthy, 1 watch or probation, 2 quarantine, 3 unknown (no daemon, stale, blind); with --watch, that of
    the newest look. Colours are for terminals only, and NO_COLOR takes them away.
    """
    # 2 would say quarantine.
    settings = load(config_file or group_file, otherwise=NO_DAEMON)
    if watch:
        sys.exit(_watch(settings, as_json=as_json))
    raw, shown, code = _look(settings)
    if shown is None:
        sys.exit(complain(raw, NO_DAEMON))
    if as_json:
        click.echo(raw)
    else:
        from rich.console import Console

        Console(highlight=False, markup=False).print(shown)
    sys.exit(code)


def _look(settings: Config) -> tuple[str, RenderableType | None, int]:
    """The document, how it looks, and the exit code; or what hinders, and None."""
    from npu_watchd.daemon import clock
    from npu_watchd.sinks import snapshot_file, terminal
    from npu_watchd.sinks.published_file import stale_after_s

    try:
        raw, document = snapshot_file.read(settings.paths.runtime_dir)
    except FileNotFoundError as error:
        cure = "start it with `systemctl start npu-watchd`, or name its config with --config"
        return f"no daemon runs here: {error.filename} does not exist; {cure}", None, NO_DAEMON
    except (OSError, ValueError) as error:
        return str(error), None, NO_DAEMON
    age_s, stale_s = clock().wall_s - document["at"], stale_after_s(settings.engine.cycle_s)
    shown = terminal.rendered(document, age_s, stale_s)
    return raw.decode(), shown, terminal.exit_code(document, age_s, stale_s)


def _watch(settings: Config, *, as_json: bool) -> int:
    """Until Ctrl-C; the exit code of the last look."""
    import threading

    from rich.console import Console
    from rich.text import Text

    from npu_watchd.sinks.screen import Screen

    console = Console(highlight=False, markup=False)
    if as_json or not console.is_terminal or console.is_dumb_terminal:
        return complain("--watch is for a terminal, and draws no JSON; a script asks `status --json` again", NO_DAEMON)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    code = NO_DAEMON
    try:
        with Screen(console) as screen:
            while True:
                words, shown, code = _look(settings)
                screen.draw(Text(words, style="magenta") if shown is None else shown)
                threading.Event().wait(_WATCH_S)
    except KeyboardInterrupt:
        return code


@click.command(short_help="Completion for bash, zsh or fish.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print what makes the shell complete commands and options of npu-watchd.

    \b
    bash: npu-watchd completion bash > /etc/bash_completion.d/npu-watchd
    zsh:  npu-watchd completion zsh > "${fpath[1]}/_npu-watchd"
    fish: npu-watchd completion fish > ~/.config/fish/completions/npu-watchd.fish
    """  # noqa: D301  # \b is a sign for click, not text
    from click.shell_completion import get_completion_class

    made = get_completion_class(shell)
    assert made is not None, "click has all three"
    click.echo(made(context.find_root().command, {}, "npu-watchd", "_NPU_WATCHD_COMPLETE").source())
