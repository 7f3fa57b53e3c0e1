"""What pcm-pcie is asked, and what its answer means for each CPU socket."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from npu_watchd.model.pcie import SocketPcieLoad
from npu_watchd.model.reading import Failure, FailureKind, Output
from npu_watchd.sources import socket_load
from npu_watchd.sources.runner import ToolRunner
from tests.parsers.texts import CAPTURES


def test_pcm_is_asked_for_one_interval_of_a_second_and_read_by_socket() -> None:
    assert socket_load.pcm_argv("pcm-pcie") == ("pcm-pcie", "1", "-csv", "-B", "-i=1")
    loads = socket_load.pcm_loads(Output((CAPTURES / "pcie/pcm-pcie__icelake__two_sockets.txt").read_text()))
    assert loads == (
        SocketPcieLoad(0, 12_009_876_544.0, 1_501_313_472.0, 1.0),
        SocketPcieLoad(1, 26880.0, 5376.0, 1.0),
    )


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (Output("", "Can not open MSR device /dev/cpu/0/msr\n", 1), FailureKind.DENIED),
        (
            Output("", "Sapphirerapids Server CPU is required for this tool! Program aborted\n", 1),
            FailureKind.UNSUPPORTED,
        ),
        (Output("", "bad things\n", 1), FailureKind.EXIT),
        (Output("", "", 0), FailureKind.UNPARSEABLE),
    ],
)
def test_pcm_that_cannot_count_is_a_failure_and_not_an_idle_socket(answer: Output, kind: FailureKind) -> None:
    failure = socket_load.pcm_loads(answer)
    assert isinstance(failure, Failure)
    assert failure.kind is kind


def fake(tool: Path, script: str) -> str:
    tool.write_text(f"#!/bin/sh\n{script}\n")
    tool.chmod(0o755)
    return str(tool)


def test_a_pcm_that_never_ends_its_interval_is_ended_with_what_it_said(tmp_path: Path) -> None:
    pcm = fake(tmp_path / "pcm-pcie", "echo Skt,PCIRdCur\nexec sleep 60")
    runner = ToolRunner(clock=time.monotonic)
    began = time.monotonic()
    answer = runner.run(socket_load.pcm_argv(pcm), 0.5)
    runner.close()
    assert time.monotonic() - began < 5.0
    assert isinstance(answer, Failure)
    assert answer.kind is FailureKind.TIMEOUT
    assert "Skt,PCIRdCur" in answer.detail


def test_of_several_intervals_the_newest_counts() -> None:
    header = "Skt,PCIRdCur,PCIe Rd (B),PCIe Wr (B)\n"
    assert socket_load.pcm_loads(Output(f"{header}0,1,64,128\n{header}0,2,640,1280\n")) == (
        SocketPcieLoad(0, 640.0, 1280.0, 1.0),
    )


def test_a_table_that_has_one_direction_only_shows_that_one() -> None:
    assert socket_load.pcm_loads(Output("Skt,PCIRdCur,PCIe Rd (B)\n0,1,64\n")) == (SocketPcieLoad(0, 64.0, None, 1.0),)


def test_a_table_without_bytes_is_no_answer() -> None:
    text = (CAPTURES / "pcie/pcm-pcie__skylake__two_intervals_no_bytes.txt").read_text()
    assert socket_load.pcm_loads(Output(text)) == Failure(
        FailureKind.UNPARSEABLE, "pcm-pcie: a table without bytes, although it was asked for them (-B)"
    )


def test_more_sockets_than_any_machine_has_are_not_believed() -> None:
    rows = "".join(f"{socket},1,64,64\n" for socket in range(33))
    failure = socket_load.pcm_loads(Output(f"Skt,PCIRdCur,PCIe Rd (B),PCIe Wr (B)\n{rows}"))
    assert isinstance(failure, Failure)
    assert failure.kind is FailureKind.UNPARSEABLE
