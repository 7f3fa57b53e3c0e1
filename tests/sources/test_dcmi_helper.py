"""The DCMI helper under the runner, on a stub of the driver's library: well, refusing, blocking, crashing, missing."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from npu_watchd.model.ids import DeviceKey
from npu_watchd.model.pcie import PcieLoad
from npu_watchd.model.reading import Failure, FailureKind, Output
from npu_watchd.sources.pcie_load import Loads, dcmi_argv, dcmi_loads
from npu_watchd.sources.runner import ToolRunner

FIRST, SECOND = DeviceKey(0), DeviceKey(8)
SOURCE = Path(__file__).parent / "stub_dcmi.c"

Ask = Callable[..., Output | Failure]


@pytest.fixture
def ask(tmp_path: Path) -> Iterator[Ask]:
    """Compile the stub with these macros, and ask it through the helper and the runner as the daemon does."""
    compiler = shutil.which("gcc")
    if compiler is None:
        pytest.skip("needs gcc to make a stub of the driver's library")
    environ = {"PATH": "/usr/bin:/bin", "HOME": "/", "LD_LIBRARY_PATH": str(tmp_path)}
    runner = ToolRunner(clock=time.monotonic, environ=environ)

    def asked(*macros: str, timeout_s: float = 10.0, window_ms: int = 20) -> Output | Failure:
        defines = [f"-D{macro}" for macro in macros]
        library = str(tmp_path / "libdcmi.so")
        subprocess.run(
            [compiler, "-shared", "-fPIC", "-Wall", "-Werror", *defines, "-o", library, str(SOURCE)], check=True
        )
        return runner.run(dcmi_argv(sys.executable, window_ms), timeout_s)

    yield asked
    runner.close()


def loads(answer: Output | Failure) -> Loads | Failure:
    assert isinstance(answer, Output), answer
    return dcmi_loads(answer, [FIRST, SECOND])


def whole(answer: Output | Failure) -> Failure:
    found = loads(answer)
    assert isinstance(found, Failure), found
    return found


def by_device(answer: Output | Failure) -> Loads:
    found = loads(answer)
    assert not isinstance(found, Failure), found
    return found


def test_each_device_has_what_it_sends_and_receives_and_what_the_driver_prints_is_no_part_of_it(ask: Ask) -> None:
    answer = ask()
    assert by_device(answer) == {
        FIRST: PcieLoad(23e9, 12e9, 0.02, "dcmi"),
        SECOND: PcieLoad(23e9, 20e9, 0.02, "dcmi"),
    }
    assert isinstance(answer, Output)
    assert answer.exit_code == 0
    assert "DrvMngGetConsoleLogLevel" in answer.stderr
    assert "DrvMngGetConsoleLogLevel" not in answer.text


@pytest.mark.parametrize(
    ("code", "failure"),
    [
        (
            -8020,
            Failure(
                FailureKind.EXIT,
                "dcmi_get_pcie_link_bandwidth_info failed: -8020 (occupied: another container holds the card, "
                "or another process samples it (npu-exporter, a profiler))",
            ),
        ),
        (
            -8255,
            Failure(
                FailureKind.UNSUPPORTED,
                "dcmi_get_pcie_link_bandwidth_info failed: -8255 "
                "(this chip or driver does not measure its PCIe bandwidth; 910B does)",
            ),
        ),
        (
            -8006,
            Failure(
                FailureKind.EXIT,
                "dcmi_get_pcie_link_bandwidth_info failed. ret is -8006 "
                "(the driver did not answer in its own time; the chip may be wedged)",
            ),
        ),
        (
            -8013,
            Failure(
                FailureKind.UNSUPPORTED,
                "dcmi_get_pcie_link_bandwidth_info failed. ret is -8013 (not available in a container)",
            ),
        ),
    ],
)
def test_a_device_that_the_driver_refuses_says_so_in_clear_words_and_the_other_is_read(
    ask: Ask, code: int, failure: Failure
) -> None:
    found = by_device(ask(f"CODE={code}"))
    said = found[SECOND]
    assert isinstance(said, Failure)
    assert Failure(said.kind, said.detail.removesuffix("; the helper did not run as root")) == failure
    assert found[FIRST] == PcieLoad(23e9, 12e9, 0.02, "dcmi")


def test_a_card_that_does_not_say_how_many_chips_it_has_fails_alone(ask: Ask) -> None:
    found = by_device(ask("CHIPS_CODE=-8008"))
    failure = found[SECOND]
    assert isinstance(failure, Failure)
    assert failure.detail.startswith("dcmi_get_device_id_in_card failed. ret is -8008 (no such device")
    assert isinstance(found[FIRST], PcieLoad)


def test_a_device_that_the_driver_does_not_list_is_a_failure_and_not_idle(ask: Ask) -> None:
    assert by_device(ask("CARDS=1"))[SECOND] == Failure(FailureKind.EXIT, "the driver does not list this device")


def test_a_driver_that_does_not_initialise_is_a_failure_of_all(ask: Ask) -> None:
    failure = whole(ask("INIT=-8005"))
    assert failure.kind is FailureKind.EXIT
    assert failure.detail.startswith("dcmi_init failed. ret is -8005 (the driver is not loaded")


def test_a_driver_that_wants_root_says_denied(ask: Ask) -> None:
    failure = whole(ask("INIT=-8002"))
    assert failure.kind is FailureKind.DENIED
    assert failure.detail.startswith("dcmi_init failed. ret is -8002 (not permitted; run as root, on the host)")


def test_a_driver_without_the_call_is_unsupported(ask: Ask) -> None:
    failure = whole(ask("WITHOUT_BANDWIDTH"))
    assert failure.kind is FailureKind.UNSUPPORTED
    assert failure.detail.endswith(
        "undefined symbol: dcmi_get_pcie_link_bandwidth_info (this driver does not have the call; 910B's does)"
    )


def test_values_that_are_no_minimum_maximum_and_average_are_not_believed(ask: Ask) -> None:
    found = by_device(ask("AVERAGE(card)=0xFFFFFFFF"))
    failure = found[FIRST]
    assert isinstance(failure, Failure)
    assert failure.kind is FailureKind.UNPARSEABLE
    assert failure.detail.startswith("the driver's tx_p is no minimum, maximum and average: [0, 4, 4294967295]")


def test_a_call_that_blocks_is_ended_with_the_helper_and_the_device_is_named(ask: Ask) -> None:
    began = time.monotonic()
    answer = ask("BLOCKS_AT=8", timeout_s=1.0)
    assert time.monotonic() - began < 5.0
    assert isinstance(answer, Failure)
    assert answer.kind is FailureKind.TIMEOUT
    assert "0/0 8/0 " in answer.detail


def test_a_library_that_crashes_takes_the_helper_only_and_the_device_is_named(ask: Ask) -> None:
    assert whole(ask("CRASHES_AT=8")) == Failure(
        FailureKind.EXIT,
        "the driver's library ended the DCMI helper by signal 11 while it asked card/chip 8/0; "
        "check `dmesg` and the driver's version",
    )


def test_a_node_without_the_library_is_missing_it() -> None:
    runner = ToolRunner(clock=time.monotonic, environ={"PATH": "/usr/bin:/bin"})
    failure = whole(runner.run(dcmi_argv(sys.executable), 10.0))
    runner.close()
    assert failure == Failure(
        FailureKind.MISSING,
        "libdcmi.so: cannot open shared object file: No such file or directory "
        "(install the driver, mount it into the container, or set LD_LIBRARY_PATH)",
    )


def test_a_library_that_cannot_be_loaded_says_why(tmp_path: Path) -> None:
    (tmp_path / "libdcmi.so").write_text("no library\n")
    environ = {"PATH": "/usr/bin:/bin", "LD_LIBRARY_PATH": str(tmp_path)}
    runner = ToolRunner(clock=time.monotonic, environ=environ)
    failure = whole(runner.run(dcmi_argv(sys.executable), 10.0))
    runner.close()
    assert failure.kind is FailureKind.EXIT
    assert failure.detail.startswith("the driver's library cannot be loaded: ")
    assert "libdcmi.so: " in failure.detail


@pytest.mark.parametrize("window_ms", [0, 201, -5])
def test_a_window_that_is_too_long_is_refused_before_the_driver_is_asked(ask: Ask, window_ms: int) -> None:
    failure = whole(ask(window_ms=window_ms))
    assert failure.kind is FailureKind.EXIT
    assert failure.detail.startswith("the DCMI helper: exit code 2")
