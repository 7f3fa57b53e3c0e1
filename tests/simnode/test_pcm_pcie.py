"""The simulated pcm-pcie is asked as the daemon asks it, and answers in the form of the real one."""

from __future__ import annotations

import pytest

from npu_watchd.model.reading import Failure, Output
from npu_watchd.parsers import pcm
from npu_watchd.simnode.pcm_pcie import answer
from npu_watchd.simnode.scenario_file import load
from npu_watchd.simnode.sysfs import tree
from npu_watchd.simnode.timeline import state_at
from npu_watchd.simnode.tools import installed_on
from npu_watchd.sources.socket_load import pcm_argv, pcm_loads
from tests.parsers.texts import CAPTURES

CAPTURE = (CAPTURES / "pcie/pcm-pcie__icelake__two_sockets.txt").read_text(encoding="utf-8")


def gigabytes(t_s: float) -> list[tuple[float | None, float | None]]:
    said = answer(state_at(load("pcie_sockets"), t_s), pcm_argv("pcm-pcie")[1:])
    assert said.delay_s == 1.5
    loads = pcm_loads(Output(said.text, said.stderr, said.exit_code))
    assert not isinstance(loads, Failure)
    assert [one.socket for one in loads] == [0, 1]
    rates = [(one.receive_bytes_per_second, one.transmit_bytes_per_second) for one in loads]
    return [tuple(None if rate is None else round(rate / 1e9) for rate in pair) for pair in rates]  # type: ignore[misc]


def test_what_goes_to_one_card_is_seen_at_its_socket_only() -> None:
    assert gigabytes(60.0) == [(2, 1), (0, 0)]
    assert gigabytes(200.0) == [(4, 1), (22, 0)]
    assert gigabytes(400.0)[1] == (0, 0)


def test_its_header_is_that_of_the_recorded_output() -> None:
    said = answer(state_at(load("pcie_sockets"), 0.0), pcm_argv("pcm-pcie")[1:])
    header = [line for line in CAPTURE.splitlines() if line.startswith("Skt,")]
    assert [line for line in said.text.splitlines() if line.startswith("Skt,")] == header


def test_a_form_that_nobody_simulates_is_refused() -> None:
    node = state_at(load("pcie_sockets"), 0.0)
    assert (answer(node, ("1",)).text[:8], answer(node, ()).exit_code) == ("\n Usage:", 1)
    without_bytes = pcm.parse(answer(node, ("1", "-csv", "-i=1")).text).sockets
    assert [row.read_bytes for row in without_bytes] == [None, None]


@pytest.mark.parametrize(("scenario", "has"), [("pcie_sockets", True), ("pcie_saturated", False)])
def test_an_intel_host_has_pcm_and_no_unit_of_a_kunpeng(scenario: str, has: bool) -> None:
    node = state_at(load(scenario), 0.0)
    assert ("pcm-pcie" in installed_on(node)) is has
    assert any("hisi_pcie" in name for name in tree(node).files) is not has
