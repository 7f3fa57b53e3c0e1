"""`npu-watchd bundle`: what goes into the archive for the vendor's support, and whose names come out of it."""

from __future__ import annotations

import os
import re
import socket
import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from npu_watchd.command import FAILED, complain, config_option, load

if TYPE_CHECKING:
    from npu_watchd.config import Config
    from npu_watchd.diagnose.bundle import Item
    from npu_watchd.model.reading import Run

_MOST_LOGS = 40
"""Of each kind, the newest first; assumption: an incident is in these."""
_MOST_EVENTS = 20_000
_DAYS_S = 7 * 86_400.0
_CARD_TYPES = ("board", "health", "ecc", "memory", "usages", "common", "pcie-err", "proc-mem")
_PORT_QUESTIONS = ("-link", "-link_stat", "-stat", "-speed", "-net_health", "-optical")
_PLOGS = ("ascend/log/debug/plog/*.log", "ascend/log/run/plog/*.log")
_DRIVER_LOGS = "var/log/npu/slog/*/*.log"
_VARIABLE = re.compile(
    r"(?:ASCEND|HCCL|MS|TE|TBE|RANK|DEVICE|LD_LIBRARY_PATH|PYTHONPATH|MINDSPORE|TORCH|NPU)[A-Z0-9_]*"
)


@click.command(short_help="An archive for the vendor's support, redacted.")
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="Default: npu-watchd-TIME.tar.gz")
@config_option
@click.pass_obj
def bundle(group_file: Path | None, output: Path | None, config_file: Path | None) -> None:
    """A redacted archive for the vendor's support: tools, logs, versions, our journal. Exit: 0; 1 not written."""
    from npu_watchd.daemon import clock
    from npu_watchd.diagnose.bundle import Bundle
    from npu_watchd.diagnose.redaction import Redactor
    from npu_watchd.sources.runner import ToolRunner

    settings = load(config_file or group_file)
    began = clock()
    target = output or Path(f"npu-watchd-{datetime.fromtimestamp(began.wall_s, UTC):%Y%m%dT%H%M%SZ}.tar.gz")
    document = _snapshot(settings)
    redactor = Redactor(_hosts(settings, document), _users(settings, document))
    runner = ToolRunner(clock=lambda: clock().mono_s)

    def say(text: str) -> None:
        if clock().mono_s - began.mono_s > 2.0:
            click.echo(text, err=True)

    try:
        made = Bundle(runner.run, redactor, clock, _utc, say)
        manifest = made.write(target, _items(settings, document, runner.run))
    except OSError as error:
        sys.exit(complain(f"{error.filename or target}: {error.strerror or error}", FAILED))
    except KeyboardInterrupt:
        sys.exit(complain("stopped; nothing was written", FAILED))
    finally:
        runner.close()
    _tell(target, manifest)


def _tell(target: Path, manifest: Mapping[str, Any]) -> None:
    click.echo(str(target))
    out = ", ".join(f"{count} {kind}" for kind, count in manifest["redacted"].items() if count) or "nothing"
    missing = [str(one["name"]) for one in manifest["entries"] if "failure" in one]
    click.echo(f"redacted: {out}; look it over before you send it: no list of patterns is complete", err=True)
    if missing:
        click.echo(f"not in it ({len(missing)}; why: MANIFEST.json): {', '.join(missing[:12])}", err=True)


def _utc(wall_s: float) -> str:
    return f"{datetime.fromtimestamp(wall_s, UTC):%Y-%m-%dT%H:%M:%SZ}"


def _snapshot(settings: Config) -> dict[str, Any] | None:
    """The daemon's newest, however old; None where it never wrote one, or took it away as it ended."""
    from npu_watchd.sinks import snapshot_file

    try:
        return snapshot_file.read(settings.paths.runtime_dir)[1]
    except (OSError, ValueError):
        return None


def _hosts(settings: Config, document: Mapping[str, Any] | None) -> set[str]:
    """Names of this host and of those that its files and the environment name."""
    own = {socket.gethostname(), socket.gethostname().partition(".")[0], str(settings.node.name or "")}
    own |= {os.environ.get(name, "") for name in ("MASTER_ADDR", "MS_SCHED_HOST", "HOSTNAME")}
    if document is not None:
        own.add(str(document["node"]))
    for line in _lines(settings.paths.etc / "hosts"):
        own |= set(line.partition("#")[0].split()[1:])
    return {name for name in own if name and not name.replace(".", "").isdigit() and not name.startswith("ip6-")}


def _users(settings: Config, document: Any) -> set[str]:
    """Names of people: of /etc/passwd, not of the name service, which may hang; and whose jobs were seen."""
    rows = (line.split(":") for line in _lines(settings.paths.etc / "passwd"))
    people = {row[0] for row in rows if len(row) > 2 and row[2].isdigit() and 1000 <= int(row[2]) < 65000}
    return people | {os.environ.get("USER", ""), os.environ.get("LOGNAME", "")} | set(_named(document, "user"))


def _named(document: Any, key: str) -> Iterator[str]:
    if isinstance(document, dict):
        for name, value in document.items():
            if name == key and isinstance(value, str):
                yield value
            else:
                yield from _named(value, key)
    elif isinstance(document, list):
        for one in document:
            yield from _named(one, key)


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []


def _items(settings: Config, document: Mapping[str, Any] | None, run: Run) -> Iterator[Item]:
    from npu_watchd.diagnose.bundle import Take

    yield from _own(settings)
    yield from _tools(settings, document, run)
    yield from _installed(settings)
    for kind, logs in _logs(settings).items():
        for number, path in enumerate(logs):
            yield Take(f"logs/{kind}/{number:02d}-{path.name}", path)
    yield Take("logs/npu_tool_log.txt", settings.paths.npu_tool_log)


def _own(settings: Config) -> Iterator[Item]:
    """What we know ourselves; none of it needs the daemon to run."""
    import msgspec

    from npu_watchd import __version__
    from npu_watchd import config as configs
    from npu_watchd.command import probe_defaults
    from npu_watchd.daemon import clock
    from npu_watchd.diagnose.bundle import Take, Told
    from npu_watchd.memory import journal, store
    from npu_watchd.model.reading import Failure
    from npu_watchd.sinks.web.findings import event_document

    rows = configs.effective(settings, probe_defaults())
    shown = "".join(f"{key} = {value}  # {source}\n" for key, value, source in rows)
    yield Told("npu-watchd/config.txt", f"# npu-watchd {__version__}\n{shown}")
    for name in ("snapshot.json", "verdict.json"):
        yield Take(f"npu-watchd/{name}", settings.paths.runtime_dir / name)
    path = settings.paths.state_dir / store.NAME
    events = journal.read(path, clock().wall_s - _DAYS_S, None, _MOST_EVENTS)
    if isinstance(events, Failure):
        yield Told("npu-watchd/journal.txt", f"# not readable: {events.detail}\n")
    else:
        lines = (msgspec.json.encode(event_document(event)).decode() for event in events)
        yield Told("npu-watchd/journal.jsonl", "".join(f"{line}\n" for line in lines))
    level = os.environ.get("ASCEND_GLOBAL_LOG_LEVEL")
    found = level or "not set here: only errors are logged"
    note = f"ASCEND_GLOBAL_LOG_LEVEL is {found} (0 debug, 1 info, 2 warning, 3 error)"
    given = "".join(f"{name}={value}\n" for name, value in sorted(os.environ.items()) if _VARIABLE.fullmatch(name))
    yield Told("environment.txt", f"# of whoever made this archive\n# {note}\n{given}")


def _tools(settings: Config, document: Mapping[str, Any] | None, run: Run) -> Iterator[Item]:
    from npu_watchd.diagnose.bundle import Ask

    npu_smi, hccn_tool = str(settings.tools.npu_smi), str(settings.tools.hccn_tool)
    for name, words in (("info", ()), ("list", ("-l",)), ("map", ("-m",))):
        yield Ask(f"npu-smi/{name}.txt", (npu_smi, "info", *words))
    for npu in _cards(npu_smi, document, run):
        for kind in _CARD_TYPES:
            yield Ask(f"npu-smi/{kind}-{npu}.txt", (npu_smi, "info", "-t", kind, "-i", npu))
    for device_id in _ports(npu_smi, document, run):
        for question in _PORT_QUESTIONS:
            yield Ask(f"hccn_tool/{question[1:]}-{device_id}.txt", (hccn_tool, "-i", device_id, question, "-g"))
    yield Ask("ibstat.txt", (str(settings.tools.ibstat),))
    yield Ask("dmesg.txt", ("dmesg", "-T"))


def _cards(npu_smi: str, document: Mapping[str, Any] | None, run: Run) -> list[str]:
    """NPU ids, as `npu-smi info -t` takes them."""
    from npu_watchd.model.reading import Failure
    from npu_watchd.parsers import card_list
    from npu_watchd.parsers.lines import ParseError

    if document is not None:
        return sorted({str(one["npu"]) for one in document["devices"]}, key=int)
    answer = run((npu_smi, "info", "-l"), 20.0)
    try:
        cards = () if isinstance(answer, Failure) else card_list.parse(answer.text).cards
    except ParseError:
        return []
    return [str(card.npu) for card in cards if card.npu is not None]


def _ports(npu_smi: str, document: Mapping[str, Any] | None, run: Run) -> list[str]:
    """Logic ids, as hccn_tool takes them: of chips with a port, or of all where nobody knows which have one."""
    from npu_watchd.model.reading import Failure
    from npu_watchd.parsers import device_map
    from npu_watchd.parsers.lines import ParseError

    if document is not None:
        return [one["device_id"] for one in document["devices"] if one["roce"] is not None]
    answer = run((npu_smi, "info", "-m"), 20.0)
    try:
        chips = () if isinstance(answer, Failure) else device_map.parse(answer.text).devices
    except ParseError:
        return []
    return [str(chip.logic_id) for chip in chips if chip.logic_id is not None]


def _installed(settings: Config) -> Iterator[Item]:
    import msgspec

    from npu_watchd.daemon import clock
    from npu_watchd.diagnose import reproduction
    from npu_watchd.diagnose.bundle import Take, Told
    from npu_watchd.diagnose.preflight_facts import gather
    from npu_watchd.model.reading import Failure

    paths = settings.paths
    for name in ("driver/version.info", "firmware/version.info", "ascend-toolkit/latest/version.cfg"):
        yield Take(f"versions/{name.replace('/', '-')}", paths.ascend / name)
    for name in ("ascend_install.info", "hccn.conf"):
        yield Take(f"versions/{name}", paths.etc / name)
    facts = gather(paths.procfs, paths.sysfs, paths.etc, paths.ascend, map(str, paths.python), lambda: clock().mono_s)
    versions: tuple[str, ...] = ()
    if not isinstance(facts, Failure) and not isinstance(facts.installed, Failure):
        installed = facts.installed
        yield Told("versions/installed.json", msgspec.json.format(msgspec.json.encode(installed), indent=1).decode())
        versions = (*(f"CANN {one}" for one in installed.cann_versions), *installed.frameworks)
    document = _snapshot(settings) or {"devices": []}
    devices = tuple(one["device_id"] for one in document["devices"])
    names = tuple(sorted({str(one["name"]) for one in document["devices"] if one["name"]}))
    yield Told("reproduce.py", reproduction.script(devices, names, versions))


def _logs(settings: Config) -> dict[str, list[Path]]:
    """The newest of each kind."""
    home = Path(os.environ.get("HOME", "/root"))
    own = [(home, pattern) for pattern in _PLOGS] if not settings.logs.plog else []
    plog = [*own, *((Path("/"), str(one)[1:]) for one in settings.logs.plog)]
    training = [(Path("/"), str(one)[1:]) for one in settings.logs.training]
    driver = [(settings.paths.npu_tool_log.parents[-1], _DRIVER_LOGS)]
    return {"plog": _newest(plog), "training": _newest(training), "driver": _newest(driver)}


def _newest(patterns: list[tuple[Path, str]]) -> list[Path]:
    found: dict[Path, float] = {}
    for root, pattern in patterns:
        try:
            found.update({path: path.stat().st_mtime for path in root.glob(pattern)})
        except OSError:
            continue
    return sorted(found, key=lambda path: -found[path])[:_MOST_LOGS]
