"""The seam `Run` over a scenario: hours in seconds, a hang that nobody waits for."""

from __future__ import annotations

from npu_watchd.model.reading import Failure, FailureKind, Output
from npu_watchd.simnode.run import simulated_run
from npu_watchd.simnode.scenario_file import load, parse

NPU_SMI = "/anywhere/bin/npu-smi"


def at(name: str, t_s: float, *argv: str, timeout_s: float = 10.0) -> Output | Failure:
    return simulated_run(load(name), lambda: t_s)((NPU_SMI, *argv), timeout_s)


def test_it_answers_as_the_executable_would() -> None:
    assert at("quiet", 0, "-v") == Output("npu-smi version: 25.5.1\n")


def test_it_follows_the_clock_that_it_is_given() -> None:
    now = [0.0]
    run = simulated_run(load("hbm_storm"), lambda: now[0])
    texts = []
    for now[0] in (0.0, 7300.0):
        said = run((NPU_SMI, "info", "-t", "ecc", "-i", "3"), 10.0)
        assert isinstance(said, Output)
        texts.append(said.text)
    assert "HBM Double Bit Error Count               : 0\n" in texts[0]
    assert "HBM Double Bit Error Count               : 1\n" in texts[1]


def test_a_hang_is_a_timeout_at_once() -> None:
    said = at("wedged_driver", 300, "info")
    assert said == Failure(FailureKind.TIMEOUT, f"`{NPU_SMI} info` did not answer within 10 s")


def test_a_slow_answer_comes_within_a_long_deadline_only() -> None:
    assert isinstance(at("wedged_driver", 130, "info", timeout_s=5.0), Output)
    assert isinstance(at("wedged_driver", 130, "info", timeout_s=3.0), Failure)


def test_the_exit_code_and_the_words_of_a_failure_come_through() -> None:
    said = at("driver_gone", 130, "info")
    assert isinstance(said, Output)
    assert (said.exit_code, said.text.splitlines()[-1]) == (187, "dcmi module initialize failed. ret is -8005")


def test_other_tools_and_a_missing_one_are_missing() -> None:
    text = 'title="t"\ndescription="d"\ngeneration="A3"\ntool_version="25.5.1"\n[[at]]\nt=5\nlasts=5\ntool="missing"'
    gone = parse(text, "gone", "gone.toml")
    assert simulated_run(gone, lambda: 6.0)((NPU_SMI, "info"), 1.0) == Failure(
        FailureKind.MISSING, f"{NPU_SMI}: not found"
    )
    assert isinstance(simulated_run(gone, lambda: 10.0)((NPU_SMI, "info"), 1.0), Output)
    said = simulated_run(gone, lambda: 10.0)(("rdma", "link"), 1.0)
    assert said == Failure(FailureKind.MISSING, "rdma: not found")


def test_the_fabrics_tools_answer_as_well() -> None:
    def asked(name: str, t_s: float, *argv: str, timeout_s: float = 10.0) -> Output | Failure:
        return simulated_run(load(name), lambda: t_s)(argv, timeout_s)

    assert asked("quiet", 0, "/x/hccn_tool", "-i", "3", "-link", "-g") == Output("link status: UP\n")
    assert asked("roce_down", 200, "hccn_tool", "-i", "5", "-speed", "-g") == Output(
        "", "Execute failed: Link status is down.\n", 22
    )
    assert asked("no_hca", 200, "ibstat") == Output("")
    sick = asked("hccn_busy", 300, "hccn_tool", "-i", "3", "-link", "-g")
    locked = asked("hccn_busy", 1510, "hccn_tool", "-i", "0", "-link", "-g")
    for said in (sick, locked):
        assert isinstance(said, Failure)
        assert said.kind is FailureKind.TIMEOUT
    counted = asked(
        "a3_16_dies",
        9,
        *("perf", "stat", "-a", "-x;", "--log-fd", "1", "-e"),
        *("hisi_pcie0_core1/event=0x1005,bdf=0x9d00/", "--", "sleep", "0.5"),
    )
    assert isinstance(counted, Output)
    assert counted.text.endswith(";;hisi_pcie0_core1/event=0x1005,bdf=0x9d00/;500012340;100.00;;\n")


def test_inference_cards_have_no_hccn_tool_and_no_ibstat() -> None:
    for tool in ("hccn_tool", "ibstat"):
        said = simulated_run(load("duo_310p"), lambda: 0.0)((tool,), 1.0)
        assert said == Failure(FailureKind.MISSING, f"{tool}: not found")
