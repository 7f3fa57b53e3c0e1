"""`npu-watchd events` and `npu-watchd explain`: what happened, and what it means."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from npu_watchd.command import BAD_CONFIG, FAILED, NO_DAEMON, complain, config_option, load

if TYPE_CHECKING:
    from npu_watchd.config import Config
    from npu_watchd.model.finding import Event

_FOLLOW_S = 1.0
_MOST_LINES = 100_000


@click.command(short_help="The journal: what came, what went, and when.")
@click.option("--since", default="24h", show_default=True, help="How long ago, a Unix second, or a date.")
@click.option("--device", "device_id", help="Only lines about this device_id.")
@click.option("--follow", is_flag=True, help="Go on with what comes, until Ctrl-C.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document; with --follow, one a line.")
@config_option
@click.pass_obj
def events(
    group_file: Path | None, since: str, device_id: str | None, follow: bool, as_json: bool, config_file: Path | None
) -> None:
    """The journal: findings that came and went, devices that vanished, counters that began anew. Exit: 0."""
    from npu_watchd.daemon import clock
    from npu_watchd.memory import journal, store
    from npu_watchd.model.reading import Failure
    from npu_watchd.sinks.instants import instant

    settings = load(config_file or group_file, otherwise=NO_DAEMON)
    try:
        since_s = instant(since, clock().wall_s)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    path, last = settings.paths.state_dir / store.NAME, 0
    try:
        while True:
            found = journal.read(path, since_s, device_id, _MOST_LINES, last)
            if isinstance(found, Failure):
                sys.exit(complain(found.detail, FAILED))
            _print(found, as_json=as_json, by_line=follow)
            last = max((event.number for event in found), default=last)
            if not follow:
                return
            threading.Event().wait(_FOLLOW_S)
    except KeyboardInterrupt:
        return


def _print(found: Iterable[Event], *, as_json: bool, by_line: bool) -> None:
    import msgspec

    from npu_watchd.sinks.story import event_line
    from npu_watchd.sinks.web.findings import event_document

    if not as_json:
        for event in found:
            click.echo(event_line(event))
        return
    documents = [event_document(event) for event in found]
    if by_line:
        for document in documents:
            click.echo(msgspec.json.encode(document).decode())
    else:
        click.echo(msgspec.json.format(msgspec.json.encode({"events": documents}), indent=2).decode())


@click.command(short_help="What a code, an alert or the verdict means.")
@click.argument("words", metavar="CODE | ALERT | device N | verdict", nargs=-1, required=True)
@click.option("--json", "as_json", is_flag=True, help="One JSON document (error codes only).")
@config_option
@click.pass_obj
def explain(group_file: Path | None, words: tuple[str, ...], as_json: bool, config_file: Path | None) -> None:
    """What an error code, an alert or the verdict means, or what became of a device. Exit: 0; 1 not known."""
    settings = load(config_file or group_file)
    if words[0] == "device":
        _explain_device(settings, words[1:])
    elif words == ("verdict",):
        _explain_verdict(settings)
    else:
        _explain_word(settings, words, as_json=as_json)


def _explain_word(settings: Config, words: tuple[str, ...], *, as_json: bool) -> None:
    import msgspec

    from npu_watchd.codes import explain as explaining
    from npu_watchd.codes.overrides import OverridesError
    from npu_watchd.docket import overrides_of

    alert = _alert(settings, words[0]) if len(words) == 1 else None
    if alert is not None:
        click.echo("\n".join(alert))
        return
    try:
        answer = explaining.explain(words, overrides_of(settings))
    except OverridesError as error:
        sys.exit(complain(str(error), BAD_CONFIG))
    except explaining.NotKnownError as error:
        sys.exit(complain(f"{error}; or write an alert (NpuDeviceMissing), `device N` or `verdict`", FAILED))
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(answer.document()), indent=2).decode())
    else:
        click.echo(str(answer))


def _explain_device(settings: Config, rest: tuple[str, ...]) -> None:
    """What stands about it with evidence, and its part of the journal."""
    from npu_watchd.daemon import clock
    from npu_watchd.memory import journal, store
    from npu_watchd.model.reading import Failure
    from npu_watchd.sinks import snapshot_file
    from npu_watchd.sinks.published_file import stale_after_s
    from npu_watchd.sinks.story import device_story

    if len(rest) != 1:
        raise click.UsageError("write the device_id: npu-watchd explain device 3")
    try:
        _, document = snapshot_file.read(settings.paths.runtime_dir)
    except (OSError, ValueError):
        document = None
    found = journal.read(settings.paths.state_dir / store.NAME, 0.0, rest[0], _MOST_LINES)
    age_s = clock().wall_s - document["at"] if document is not None else 0.0
    stale_s = age_s if age_s > stale_after_s(settings.engine.cycle_s) else None
    lines = list(device_story(rest[0], document, () if isinstance(found, Failure) else found, stale_s))
    if not lines:
        why = f" ({found.detail})" if isinstance(found, Failure) else ""
        sys.exit(complain(f"device {rest[0]}: neither a daemon that runs nor the journal knows it{why}", FAILED))
    click.echo("\n".join(lines))


def _explain_verdict(settings: Config) -> None:
    """The node's as the daemon that runs has it, and what leads out of each state."""
    from npu_watchd.config import limits_of
    from npu_watchd.daemon import clock
    from npu_watchd.sinks import snapshot_file
    from npu_watchd.sinks.published_file import stale_after_s
    from npu_watchd.sinks.verdict_text import Terms, verdict_story

    document = None
    try:
        _, document = snapshot_file.read(settings.paths.runtime_dir)
    except FileNotFoundError:
        pass
    except (OSError, ValueError) as error:
        complain(str(error), FAILED)
    limits = limits_of(settings)
    terms = Terms(*(limits[name] for name in ("verdict_calm_s", "probation_clean_s", "probation_load_s")))
    age_s = clock().wall_s - document["at"] if document is not None else 0.0
    click.echo("\n".join(verdict_story(document, age_s, stale_after_s(settings.engine.cycle_s), terms)))


def _alert(settings: Config, word: str) -> list[str] | None:
    from npu_watchd.config import limits_of
    from npu_watchd.reference import alert_explanation

    return alert_explanation(word, limits_of(settings), frozenset(settings.rules.off))
