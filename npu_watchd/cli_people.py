"""`npu-watchd release`, `quarantine`, `ack` and `maintenance`: people's decisions, handed to the daemon."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from npu_watchd.command import FAILED, complain, config_option, load

if TYPE_CHECKING:
    from npu_watchd.config import Config

_REASON = click.option("--reason", required=True, metavar="TEXT", help="Why: it is in the journal and in the verdict.")
_SEEN = click.option(
    "--seen",
    type=int,
    metavar="REVISION",
    help="Refuse if the verdict is no longer the one with this revision (status --json, check --json).",
)
_JSON = click.option("--json", "as_json", is_flag=True, help="The daemon's answer as one JSON document.")
_WHOM = click.argument("whom", metavar="device N | port NAME/N | node", nargs=-1, required=True)


@click.command(short_help="End a quarantine; probation follows.")
@_WHOM
@_REASON
@click.option("--force", is_flag=True, help="Also against a finding that stands; only more of it quarantines again.")
@_SEEN
@_JSON
@config_option
@click.pass_obj
def release(group_file: Path | None, /, whom: tuple[str, ...], config_file: Path | None, **given: Any) -> None:
    """End a quarantine: the device, or all of the node, is then on probation. Exit: 0; 1 refused, saying why."""
    request = {"order": "release", "subject": _subject(whom), "reason": given["reason"], "force": given["force"]}
    _decide(load(config_file or group_file), request, seen=given["seen"], as_json=given["as_json"])


@click.command(short_help="Take a device or the node out of use.")
@_WHOM
@_REASON
@_SEEN
@_JSON
@config_option
@click.pass_obj
def quarantine(group_file: Path | None, /, whom: tuple[str, ...], config_file: Path | None, **given: Any) -> None:
    """Put a device or the node into quarantine, until somebody releases it. Exit: 0; 1 refused, saying why."""
    request = {"order": "quarantine", "subject": _subject(whom), "reason": given["reason"]}
    _decide(load(config_file or group_file), request, seen=given["seen"], as_json=given["as_json"])


@click.command(short_help="Say that you have taken on a finding.")
@click.argument("finding", metavar="ALERT[/DEVICE]")
@click.option("--for", "lasts", required=True, metavar="TIME", help="How long, such as 4h.")
@_REASON
@_JSON
@config_option
@click.pass_obj
def ack(group_file: Path | None, /, finding: str, config_file: Path | None, **given: Any) -> None:
    """Say that you have taken on a finding, by its alert or rule. It stands until it is mended. Exit: 0; 1 refused."""
    name, _, whom = finding.partition("/")
    request = {"order": "ack", "finding": name, "subject": whom or None, "reason": given["reason"]}
    settings = load(config_file or group_file)
    answer = _decide(settings, request | _lasting(given["lasts"]), as_json=given["as_json"])
    if not given["as_json"]:
        _tell_how_to_silence(settings, answer, str(given["lasts"]), str(given["reason"]))


@click.command(short_help="While somebody works on it: nothing new quarantines.")
@_WHOM
@click.option("--for", "lasts", metavar="TIME", help="How long, such as 2h.")
@click.option("--over", is_flag=True, help="End it now.")
@click.option("--reason", default="", metavar="TEXT", help="Why; needed to begin one.")
@_JSON
@config_option
@click.pass_obj
def maintenance(group_file: Path | None, /, whom: tuple[str, ...], config_file: Path | None, **given: Any) -> None:
    """While somebody works on it nothing new quarantines it, and it is unknown to the gate. Exit: 0; 1 refused."""
    if bool(given["lasts"]) == given["over"]:
        raise click.UsageError("write --for TIME to begin a maintenance, or --over to end it")
    request = {"order": "maintenance_over" if given["over"] else "maintenance", "subject": _subject(whom)}
    lasting = {} if given["over"] else _lasting(given["lasts"])
    settings = load(config_file or group_file)
    _decide(settings, {**request, "reason": given["reason"], **lasting}, as_json=given["as_json"])


def _subject(words: tuple[str, ...]) -> str:
    if words == ("node",):
        return "node"
    if len(words) == 2 and words[0] in ("device", "port"):
        return words[1]
    raise click.UsageError(f"{' '.join(words)!r}: write `device 3`, `port mlx5_0/1` or `node`")


def _lasting(text: str) -> dict[str, float]:
    from npu_watchd.config.values import BadValue, Seconds

    try:
        return {"for_seconds": float(Seconds.parse(text))}
    except BadValue as error:
        raise click.UsageError(f"--for: {error}") from error


def _decide(
    settings: Config, request: Mapping[str, Any], *, seen: int | None = None, as_json: bool = False
) -> dict[str, Any]:
    """Ends the program with 1 where the daemon refuses or cannot be asked."""
    from npu_watchd.control import NAME, ask

    asked = {**request, "seen": seen, "on_behalf_of": os.environ.get("SUDO_USER")}
    path = settings.paths.runtime_dir / NAME
    try:
        answer = ask(settings.paths.runtime_dir, asked)
    except (FileNotFoundError, ConnectionRefusedError):
        cure = "start it with `systemctl start npu-watchd`, or name its config with --config"
        sys.exit(complain(f"no daemon listens at {path}; {cure}", FAILED))
    except PermissionError:
        cure = "root may decide, and who is in the group npu-watchd (usermod -aG npu-watchd NAME)"
        sys.exit(complain(f"{path}: you may not; {cure}", FAILED))
    except (OSError, ValueError) as error:
        sys.exit(complain(f"{path}: {error}", FAILED))
    if as_json:
        _print_json(answer)
    elif answer["accepted"]:
        click.echo(answer["text"])
        for text in answer["overridden"]:
            click.echo(f"  in spite of: {text}")
    if not answer["accepted"]:
        sys.exit(FAILED if as_json else complain(answer["text"], FAILED, prefix="refused: "))
    return answer


def _print_json(answer: Mapping[str, Any]) -> None:
    import msgspec

    click.echo(msgspec.json.format(msgspec.json.encode(answer), indent=2).decode())


def _tell_how_to_silence(settings: Config, answer: Mapping[str, Any], lasts: str, reason: str) -> None:
    """An alert that is acknowledged still fires: who is not to be paged by it is Alertmanager's to say."""
    from npu_watchd.lanes import node_name

    whom = f" device_id={answer['device_id']}" if answer.get("device_id") is not None else ""
    line = f"amtool silence add alertname={answer['alert']} node={shlex.quote(node_name(settings))}{whom}"
    click.echo(f"Nobody is paged by it meanwhile if you also run: {line} -d {lasts} -c {shlex.quote(reason)}", err=True)


COMMANDS = (release, quarantine, ack, maintenance)
