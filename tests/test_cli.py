"""What the commands say of themselves, how a shell completes them, and the keys of their JSON."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator

import click
import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner

from npu_watchd import cli
from npu_watchd.sinks.web.api import snapshot_document
from npu_watchd.sinks.web.findings import event_document
from tests.sinks.test_findings import EVENTS, found
from tests.sinks.test_verdicts import sick


def _commands(command: click.Command, name: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield name
    if isinstance(command, click.Group):
        for word, inner in command.commands.items():
            yield from _commands(inner, (*name, word))


COMMANDS = list(_commands(cli.main))


def _help(name: tuple[str, ...], width: int) -> str:
    said = CliRunner().invoke(cli.main, [*name, "--help"], prog_name="npu-watchd", terminal_width=width)
    assert said.exit_code == 0
    return said.output


@pytest.mark.parametrize("width", [80, 200])
@pytest.mark.parametrize("name", COMMANDS, ids=" ".join)
def test_every_help_is_whole_sentences_in_80_columns_and_in_200(name: tuple[str, ...], width: int) -> None:
    said = _help(name, width)
    assert max(map(len, said.splitlines())) <= width
    assert "..." not in said.replace("line N: ...", "").replace("[LOG ...]", "").replace("[ARGS]...", "").replace(
        "NAME...", ""
    ), "a sentence is cut"
    assert "\\b" not in said


@pytest.mark.parametrize("name", COMMANDS, ids=" ".join)
def test_every_command_and_every_option_says_what_it_does(name: tuple[str, ...]) -> None:
    command: click.Command = cli.main
    for word in name:
        assert isinstance(command, click.Group)
        command = command.commands[word]
    assert command.help
    assert [option.name for option in command.params if isinstance(option, click.Option) and not option.help] == []


@pytest.mark.parametrize(
    ("given", "begun", "offered"),
    [
        ([], "st", ["status"]),
        (["status"], "--w", ["--watch"]),
        (["check", "--gate"], "", ["quarantine", "watch"]),
        (["config"], "", ["check", "init", "show"]),
        (["completion"], "z", ["zsh"]),
    ],
)
def test_a_shell_completes_commands_options_and_choices(given: list[str], begun: str, offered: list[str]) -> None:
    shell = ShellComplete(cli.main, {}, "npu-watchd", "_NPU_WATCHD_COMPLETE")
    assert [item.value for item in shell.get_completions(given, begun)] == offered


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_completion_of_a_shell_is_a_script_for_it(shell: str) -> None:
    said = CliRunner().invoke(cli.main, ["completion", shell])
    assert said.exit_code == 0
    assert f"_NPU_WATCHD_COMPLETE={shell}_complete" in said.output
    if shutil.which(shell):
        assert subprocess.run([shell, "-n"], input=said.output, text=True, check=False).returncode == 0


def test_a_shell_that_click_does_not_know_is_named_with_those_it_does() -> None:
    said = CliRunner().invoke(cli.main, ["completion", "tcsh"])
    assert said.exit_code == 2
    assert "'bash', 'zsh', 'fish'" in said.output


SNAPSHOT = """
    at node boot_id tool_version driver_version firmware_version devices_expected devices_present devices ports
    verdicts findings pcie_sockets host oom_kills warnings blind probes tallies tool_log_events pcie_log_events
    kernel_log_lost engine"""
DEVICE = """device_id device_id_source npu chip phy_id logic_id name profile pci_address firmware serial_number present
    health error_codes power_watts temperature_celsius utilization_ratio clock_hertz clock_max_hertz memory
    memory_bandwidth_utilization_ratio memory_errors processes processes_cut jobs roce pcie_link pcie_errors pcie_load
    hccs pcie_link_errors blind unsupported vital_blind"""
PORT = """rdma_device port present expected up state physical_state rate_gbps link_layer firmware netdev errors bytes
    link_downs failures"""
VERDICT = "subject device_id rdma_device port state own_state since action held blind revision reasons"
FINDING = """rule alert severity quarantines action subject device_id rdma_device port since summary evidence held
    held_because jobs acknowledged"""
EVIDENCE = "metric observed limit unit window_seconds source"
EVENT = "number at kind text device_id rule facts"


def test_no_key_that_a_script_relies_on_is_gone_from_status_and_events() -> None:
    document = snapshot_document(sick())
    finding = snapshot_document(found())["findings"][0]
    for held, told in (
        (SNAPSHOT, document),
        (DEVICE, document["devices"][0]),
        (PORT, document["ports"][0]),
        (VERDICT, document["verdicts"][0]),
        (FINDING, finding),
        (EVIDENCE, finding["evidence"][0]),
        (EVENT, event_document(EVENTS[0])),
    ):
        assert set(held.split()) <= told.keys()
