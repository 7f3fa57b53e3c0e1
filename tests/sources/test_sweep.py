"""A read that the kernel never ends costs one thread, and the daemon not a moment more than the deadline."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from npu_watchd.model.pcie import PcieLink
from npu_watchd.model.reading import Failure, FailureKind
from npu_watchd.simnode.sysfs_pci import PciDevice, port, write
from npu_watchd.sources.attributes import Attributes
from npu_watchd.sources.pci import PciTree
from npu_watchd.sources.sweep import Sweep

HERE = Path(__file__).parent
NPU = "0000:c1:00.0"


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


@contextmanager
def back_within(seconds: float) -> Iterator[None]:
    began = time.monotonic()
    yield
    assert time.monotonic() - began < seconds


def wait_until(true: Callable[[], bool], seconds: float = 5.0) -> bool:
    end = time.monotonic() + seconds
    while not true() and time.monotonic() < end:
        time.sleep(0.01)
    return true()


def test_a_sweep_that_comes_back_is_its_result() -> None:
    sweep = Sweep("pcie", lambda: {"a": 1}, Clock(), 5.0)
    assert [sweep(), sweep()] == [{"a": 1}, {"a": 1}]


def test_a_result_of_none_is_a_result() -> None:
    assert Sweep[None]("pcie", lambda: None, Clock(), 5.0)() is None


def test_what_a_sweep_raises_is_raised_and_the_next_one_runs() -> None:
    divisors = [0, 1]
    sweep = Sweep("pcie", lambda: 7 // divisors.pop(0), Clock(), 5.0)
    with pytest.raises(ZeroDivisionError):
        sweep()
    assert sweep() == 7


def test_a_stuck_sweep_is_wedged_at_once_until_it_has_come_back_and_its_late_result_is_thrown_away() -> None:
    clock = Clock()
    go_on = threading.Event()
    rounds: list[int] = []

    def read() -> int:
        rounds.append(len(rounds))
        number = rounds[-1]
        if number == 0:
            go_on.wait(30)
        return number

    sweep = Sweep("pcie_link", read, clock, 0.5, working_on=lambda: "/sys/devices/x")
    with back_within(5.0):
        assert sweep() == Failure(
            FailureKind.WEDGED,
            "pcie_link: the read of /sys/devices/x has not returned for 0 s; no second one is started until it has; "
            "check `dmesg` for the driver behind it",
        )
    clock.now_s += 3600.0
    with back_within(5.0):  # waiting for each would take 50 s
        answers = [sweep() for _ in range(100)]
    assert {str(answer) for answer in answers} == {
        str(
            Failure(
                FailureKind.WEDGED,
                "pcie_link: the read of /sys/devices/x has not returned for 3600 s; no second one is started until it "
                "has; check `dmesg` for the driver behind it",
            )
        )
    }
    assert rounds == [0]
    go_on.set()
    assert wait_until(lambda: sweep() == 1 or len(rounds) > 1)
    assert sweep() == len(rounds) - 1


def test_two_threads_that_ask_at_once_get_one_round_each_and_never_two_at_a_time() -> None:
    inside: list[int] = []
    most: list[int] = []

    def read() -> str:
        inside.append(1)
        most.append(len(inside))
        threading.Event().wait(0.01)
        inside.pop()
        return "read"

    sweep = Sweep("pcie", read, Clock(), 5.0)
    answers: list[object] = []
    threads = [threading.Thread(target=lambda: answers.append(sweep())) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == ["read"] * 5
    assert set(most) == {1}


@pytest.fixture
def hung_files(tmp_path: Path) -> Iterator[tuple[Path, Callable[[], None]]]:
    """A folder whose files never answer a read, and how to make them answer with an error."""
    if os.geteuid() != 0 or not os.access("/dev/fuse", os.R_OK | os.W_OK):
        pytest.skip("needs root and /dev/fuse to make a file system that hangs")
    mountpoint = tmp_path / "mnt"
    mountpoint.mkdir()
    server = subprocess.Popen(
        [sys.executable, str(HERE / "hungfs.py"), str(mountpoint)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )

    def answer_at_last() -> None:
        server.kill()
        server.wait()

    assert server.stdout is not None
    try:
        if server.stdout.readline() != b"mounted\n":
            pytest.skip(f"no FUSE mount here: {server.communicate()[1]!r}")
        yield mountpoint, answer_at_last
    finally:
        answer_at_last()
        subprocess.run(["umount", "-l", str(mountpoint)], check=False, stderr=subprocess.DEVNULL)
        server.communicate()


def test_a_file_whose_read_the_kernel_never_ends_does_not_hold_the_caller(
    hung_files: tuple[Path, Callable[[], None]],
) -> None:
    folder, answer_at_last = hung_files

    def read() -> str | Failure:
        with Attributes(str(folder)) as attributes:
            return attributes.read("hung")

    sweep = Sweep("pcie_aer", read, time.monotonic, 0.2)
    with back_within(5.0):  # waiting for each would take 20 s
        answers = [sweep() for _ in range(100)]
    assert {answer.kind for answer in answers if isinstance(answer, Failure)} == {FailureKind.WEDGED}
    assert not any(isinstance(answer, str) for answer in answers)
    assert sum(thread.name == "pcie_aer" for thread in threading.enumerate()) == 1
    answer_at_last()
    assert wait_until(lambda: all(thread.name != "pcie_aer" for thread in threading.enumerate()))
    with pytest.raises(OSError, match="not connected"):  # a round of its own: the file system is gone, and says so
        sweep()


def test_a_sysfs_file_that_hangs_blinds_the_links_by_name_until_it_answers(
    hung_files: tuple[Path, Callable[[], None]], tmp_path: Path
) -> None:
    folder, answer_at_last = hung_files
    write((port("0000:c0:01.0", PciDevice(NPU, 0xD802)),), tmp_path / "sys")
    file = tmp_path / f"sys/devices/pci0000:c0/0000:c0:01.0/{NPU}/max_link_width"
    subprocess.run(["mount", "--bind", str(folder / "hung"), str(file)], check=True)
    tree = PciTree(tmp_path / "sys")
    sweep = Sweep("pcie_link", lambda: tree.links([NPU])[NPU], time.monotonic, 0.2, lambda: tree.reading)
    try:
        answer = sweep()
        assert isinstance(answer, Failure)
        assert answer.kind is FailureKind.WEDGED
        assert f"the read of {file.parent} has not returned" in answer.detail
    finally:
        answer_at_last()
        subprocess.run(["umount", "-l", str(file)], check=True)
    assert wait_until(lambda: isinstance(sweep(), PcieLink))
