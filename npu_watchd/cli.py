"""The commands of `npu-watchd`: options, exit codes, and where messages go; no logic of its own."""

from __future__ import annotations

import os
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from npu_watchd import __version__
from npu_watchd.cli_bundle import bundle
from npu_watchd.cli_diagnose import diagnose
from npu_watchd.cli_gate import check
from npu_watchd.cli_journal import events, explain
from npu_watchd.cli_people import COMMANDS
from npu_watchd.cli_preflight import preflight
from npu_watchd.cli_status import completion, status
from npu_watchd.command import BAD_CONFIG, FAILED, OK, complain, config_option, load, probe_defaults

if TYPE_CHECKING:
    from npu_watchd import config as configs


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="npu-watchd")
@config_option
@click.pass_context
def main(context: click.Context, config_file: Path | None) -> None:
    """The health daemon of an Ascend NPU node: what each chip says, on /metrics, on a page, and without guessing."""
    context.obj = config_file


@main.command()
@click.option(
    "--host-mounts",
    is_flag=True,
    help="Start the tools in the mount namespace of the first process: for a unit that has one of its own, "
    "which the Ascend driver would take for a container.",
)
@config_option
@click.pass_obj
def run(group_file: Path | None, host_mounts: bool, config_file: Path | None) -> None:
    """The daemon, in the foreground, for systemd. Exit: 0 on SIGTERM, 2 bad config, 1 other."""
    settings = load(config_file or group_file)
    sys.exit(_serve(settings, announce=False, host_mounts=host_mounts))


@main.command()
@click.option("--scenario", default="quiet", show_default=True, help="A name of --list, or a scenario's TOML file.")
@click.option(
    "--speed", type=click.FloatRange(min=0), default=1.0, show_default=True, help="Scenario seconds a second."
)
@click.option("--port", type=click.IntRange(0, 65535), default=18910, show_default=True, help="0: any that is free.")
@click.option(
    "--alertmanager",
    "alertmanagers",
    metavar="URL",
    multiple=True,
    help="Send alerts there, as http://127.0.0.1:9093; may be given several times.",
)
@click.option("--list", "list_them", is_flag=True, help="The scenarios, and what each shows.")
def demo(scenario: str, speed: float, port: int, alertmanagers: tuple[str, ...], list_them: bool) -> None:
    """The same daemon on a simulated node; prints the address. No hardware needed."""
    from npu_watchd.simnode import node, scenario_file

    if list_them:
        for name in scenario_file.names():
            click.echo(f"{name:24} {scenario_file.load(name).title}")
        return
    with tempfile.TemporaryDirectory(prefix="npu-watchd-demo-") as directory:
        try:
            listen = (f"127.0.0.1:{port}",)
            file = node.install(scenario, Path(directory), speed=speed, listen=listen, alertmanagers=alertmanagers)
        except scenario_file.ScenarioError as error:
            raise SystemExit(complain(str(error), BAD_CONFIG)) from error
        over = threading.Event()
        kernel = threading.Thread(target=node.keep_fresh, args=(file.parent, over), name="simulated kernel")
        kernel.start()
        try:
            code = _serve(load(file), announce=True)
        finally:
            over.set()
            kernel.join()
    sys.exit(code)


def _serve(settings: configs.Config, *, announce: bool, host_mounts: bool = False) -> int:
    """Run the daemon until it is told to stop."""
    from npu_watchd.codes.overrides import OverridesError
    from npu_watchd.daemon import Daemon
    from npu_watchd.lease import OccupiedError
    from npu_watchd.logbook import open_logbook
    from npu_watchd.sinks.systemd import Notifier
    from npu_watchd.sinks.web.listen import ListenError
    from npu_watchd.sinks.web.yaml_section import WebConfigError
    from npu_watchd.sources.runner import HOST_MOUNTS

    try:
        through = HOST_MOUNTS if host_mounts else ()
        daemon = Daemon(settings, open_logbook(), Notifier(os.environ), tools_through=through)
        daemon.open()
    except (WebConfigError, OverridesError) as error:
        return complain(str(error), BAD_CONFIG)
    except (ListenError, OccupiedError) as error:
        return complain(str(error), FAILED)

    def say_where() -> None:
        for url in daemon.urls if announce else ():
            click.echo(f"npu-watchd serves a simulated node at {url}  (metrics: {url}metrics; stop with Ctrl-C)")
            click.echo(f"What is found wrong stands on that page, and at {url}api/v1/findings")
        for target in settings.alertmanager.urls if announce else ():
            click.echo(f"Alerts go to {target}")
        sys.stdout.flush()

    daemon.run(say_where)
    return OK


@main.command(short_help="What we understand of a tool's text, as JSON.")
@click.argument("kind", metavar="KIND")
@click.argument("file", metavar="[FILE]", required=False, type=click.Path(path_type=Path, allow_dash=True))
def parse(kind: str, file: Path | None) -> None:
    """What we understand of a tool's text (FILE or stdin), as JSON. Exit: 0, or 1 with `line N: ...` on stderr.

    \b
    KIND is one of:
      npu-smi-info npu-smi-map npu-smi-list npu-smi-ecc npu-smi-health
      npu-smi-block npu-smi-proc-mem
      hccn-link hccn-link-stat hccn-stat hccn-speed hccn-net-health hccn-optical
      ibstat rdma-link aer lspci perf-stat pcm-pcie cgroup
      ascend-log version-info
    """  # noqa: D301  # \b is a sign for click, not text
    import msgspec

    from npu_watchd.parsers.lines import ParseError

    kinds = _kinds()
    if kind not in kinds:
        raise click.UsageError(f"unknown KIND {kind!r}; one of: {' '.join(kinds)}")
    try:
        raw = sys.stdin.buffer.read() if file is None or str(file) == "-" else file.read_bytes()
    except OSError as error:
        sys.exit(complain(f"{file}: {error.strerror}", FAILED))
    try:
        record = kinds[kind](raw.decode("utf-8", errors="replace"))
    except ParseError as error:
        sys.exit(complain(str(error), FAILED, prefix=""))
    click.echo(msgspec.json.format(msgspec.json.encode(record), indent=2).decode())


def _kinds() -> Mapping[str, Callable[[str], object]]:
    from npu_watchd.parsers import (
        ascend_log,
        blocks,
        card_list,
        cgroup,
        device_map,
        ecc,
        hccn,
        hccn_optical,
        hccn_stat,
        health,
        ibstat,
        info_table,
        lspci,
        pcie,
        pcm,
        perf_stat,
        process_memory,
        rdma_link,
        versions,
    )

    return {
        "npu-smi-info": info_table.parse,
        "npu-smi-map": device_map.parse,
        "npu-smi-list": card_list.parse,
        "npu-smi-ecc": ecc.parse,
        "npu-smi-health": health.parse,
        "npu-smi-block": blocks.parse,
        "npu-smi-proc-mem": process_memory.parse,
        "hccn-link": hccn.link,
        "hccn-link-stat": hccn.link_history,
        "hccn-speed": hccn.speed,
        "hccn-net-health": hccn.net_health,
        "hccn-stat": hccn_stat.parse,
        "hccn-optical": hccn_optical.parse,
        "ibstat": ibstat.parse,
        "rdma-link": rdma_link.parse,
        "aer": pcie.aer,
        "lspci": lspci.parse,
        "perf-stat": perf_stat.parse,
        "pcm-pcie": pcm.parse,
        "cgroup": cgroup.parse,
        "ascend-log": ascend_log.parse,
        "version-info": versions.parse,
    }


@main.group("config")
@config_option
@click.pass_context
def config_group(context: click.Context, config_file: Path | None) -> None:
    """Check, show or write the config."""
    context.obj = config_file or context.obj


@config_group.command("check")
@click.argument("file", required=False, type=click.Path(path_type=Path))
@config_option
@click.pass_obj
def config_check(group_file: Path | None, file: Path | None, config_file: Path | None) -> None:
    """Validate the config. Exit: 0; 2 naming file, key and cure."""
    from npu_watchd import config as configs
    from npu_watchd.codes.overrides import OverridesError
    from npu_watchd.docket import overrides_of
    from npu_watchd.sinks.web.settings import load_settings
    from npu_watchd.sinks.web.yaml_section import WebConfigError

    settings = load(file or config_file or group_file)
    try:
        if settings.web.config_file is not None:
            load_settings(settings.web.config_file)
        overrides_of(settings)
    except (WebConfigError, OverridesError) as error:
        sys.exit(complain(str(error), BAD_CONFIG))
    for key in configs.unused(settings):
        click.echo(f"{key}: accepted, not used by this version", err=True)
    click.echo(f"{settings.file or 'built-in config'}: good")


@config_group.command("show", short_help="Every key, its value, and where that is from.")
@config_option
@click.pass_obj
def config_show(group_file: Path | None, config_file: Path | None) -> None:
    """The effective config: every key, its value, and where that is from."""
    from npu_watchd import config as configs

    for key, value, source in configs.effective(load(config_file or group_file), probe_defaults()):
        click.echo(f"{key} = {value}  # {source}")


@config_group.command("init", short_help="Write the commented default config.")
@click.argument("file", required=False, type=click.Path(path_type=Path))
@config_option
@click.pass_obj
def config_init(group_file: Path | None, file: Path | None, config_file: Path | None) -> None:
    """Write the commented default config to FILE, or to stdout where none is named. Exit: 0; 2 if FILE exists."""
    from npu_watchd import config as configs

    text = configs.template(probe_defaults())
    target = file or config_file or group_file
    if target is None:
        click.echo(text, nl=False)
        return
    try:
        with target.open("x", encoding="utf-8") as opened:
            opened.write(text)
    except FileExistsError:
        sys.exit(complain(f"{target}: exists already; remove it first, or name another file", BAD_CONFIG))
    except OSError as error:
        sys.exit(complain(f"{target}: {error.strerror}", BAD_CONFIG))
    click.echo(f"{target}: written", err=True)


@main.command()
@click.option("--check", is_flag=True, help="Change nothing; exit 1 where a page is not as it would be made now.")
def reference(check: bool) -> None:
    """Make the generated pages of docs/ anew (in a checkout). Exit: 0; 1 they differ, with --check."""
    from npu_watchd.reference import regenerate

    sys.exit(regenerate(check=check))


for command in (status, events, explain, check, diagnose, preflight, bundle, completion, *COMMANDS):
    main.add_command(command)
