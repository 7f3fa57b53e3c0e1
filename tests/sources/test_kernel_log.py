"""The kernel's log is read from where its ring begins, once, and then followed."""

from __future__ import annotations

import os
import secrets
from errno import EACCES, EAGAIN, EPERM, EPIPE
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from npu_watchd.model.reading import Failure, FailureKind
from npu_watchd.parsers.pcie import aer_line
from npu_watchd.sources.kernel_log import KernelLog, KernelMessage, NewMessages

BOOT = "6,0,5000,-;Booting Linux\n"
ERROR = "pcieport 0000:80:02.0: PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction Layer, (Receiver ID)"
OLD = f"3,1,6000123,-,caller=T7;{ERROR}\n SUBSYSTEM=pci\n DEVICE=+pci:0000:80:02.0\n"
NEW = f"3,2,90000000,-;{ERROR}\n"


def read(log: KernelLog) -> NewMessages:
    found = log.poll()
    assert isinstance(found, NewMessages)
    return found


def texts(log: KernelLog) -> list[str]:
    return [message.text for message in read(log).messages]


def test_what_the_ring_holds_of_this_boot_comes_first_and_is_marked_as_old(tmp_path: Path) -> None:
    file = tmp_path / "kmsg"
    file.write_text(BOOT + OLD)
    log = KernelLog(file)
    booting = KernelMessage(0, 0.005, by_kernel=True, text="Booting Linux")
    assert read(log) == NewMessages((booting, KernelMessage(1, 6.000123, by_kernel=True, text=ERROR)), old=True, lost=0)
    with file.open("a") as more:
        more.write(NEW)
    assert read(log) == NewMessages((KernelMessage(2, 90.0, by_kernel=True, text=ERROR),), old=False, lost=0)
    assert read(log) == NewMessages((), old=False, lost=0)
    log.close()


def test_a_daemon_that_starts_anew_reads_the_same_again(tmp_path: Path) -> None:
    file = tmp_path / "kmsg"
    file.write_text(BOOT + OLD)
    before, after = KernelLog(file), KernelLog(file)
    assert read(before) == read(after)
    before.close()
    after.close()


def test_a_log_that_is_opened_anew_says_nothing_twice(tmp_path: Path) -> None:
    file = tmp_path / "kmsg"
    file.write_text(BOOT + OLD)
    log = KernelLog(file)
    assert len(texts(log)) == 2
    log.close()
    assert texts(log) == []
    log.close()
    file.write_text(BOOT + OLD + NEW)
    found = read(log)
    assert ([message.sequence for message in found.messages], found.old) == ([2], False)
    log.close()


def test_a_log_that_cannot_be_read_is_a_failure_and_is_tried_again(tmp_path: Path) -> None:
    log = KernelLog(tmp_path / "kmsg")
    failed = log.poll()
    assert isinstance(failed, Failure)
    assert failed.kind is FailureKind.MISSING
    (tmp_path / "kmsg").write_text(BOOT)
    assert read(log).old
    log.close()


def test_records_that_were_overwritten_are_counted(tmp_path: Path) -> None:
    file = tmp_path / "kmsg"
    file.write_text("6,40,1,-;as far as the ring reaches back\n")
    log = KernelLog(file)
    assert read(log).lost == 0
    with file.open("a") as more:
        more.write("6,41,2,-;next\n6,52,3,-;after ten that are gone\n")
    assert read(log).lost == 10
    assert read(log).lost == 0
    log.close()


def test_a_read_that_meets_an_overwritten_record_goes_on_behind_it(tmp_path: Path) -> None:
    answers: list[bytes | OSError] = [
        b"6,7,1,-;before\n",
        OSError(EPIPE, "Broken pipe"),
        b"6,10,2,-;behind\n",
        BlockingIOError(EAGAIN, "Resource temporarily unavailable"),
    ]

    def ring(_fd: int, _size: int) -> bytes:
        answer = answers.pop(0)
        if isinstance(answer, OSError):
            raise answer
        return answer

    (tmp_path / "kmsg").touch()
    log = KernelLog(tmp_path / "kmsg", ring)
    found = read(log)
    assert ([message.text for message in found.messages], found.lost) == (["before", "behind"], 2)
    log.close()


def test_one_poll_takes_so_much_of_a_huge_ring_and_the_next_ones_the_rest(tmp_path: Path) -> None:
    file = tmp_path / "kmsg"
    file.write_text("".join(f"6,{number},1,-;line {number}\n" for number in range(10_000)))
    log = KernelLog(file)
    polls = [read(log) for _ in range(4)]
    log.close()
    assert all(len(poll.messages) < 4500 for poll in polls)
    numbers = [message.sequence for poll in polls for message in poll.messages]
    assert numbers == list(range(10_000))
    assert [poll.old for poll in polls] == [True, True, True, False]


def test_a_pipe_is_followed_and_a_line_that_comes_in_two_parts_is_one(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "kmsg")
    log = KernelLog(tmp_path / "kmsg")
    assert texts(log) == []
    writer = os.open(tmp_path / "kmsg", os.O_WRONLY | os.O_NONBLOCK)
    os.write(writer, b"6,1,1,-;in two ")
    assert texts(log) == []
    os.write(writer, b"parts\n6,2,")
    assert texts(log) == ["in two parts"]
    os.close(writer)
    log.close()


def test_bytes_that_are_no_text_harm_nothing(tmp_path: Path) -> None:
    file = tmp_path / "kmsg"
    file.write_bytes(b"3,1,1,-;\xff\xfe\x00 NUL\n\x00\n;\n3,,,;\n-1,2,3,-;x\n" + b"x" * 90_000 + b"\n6,2,1,-;after\n")
    log = KernelLog(file)
    assert texts(log) == ["\ufffd\ufffd\x00 NUL", "after"]
    log.close()


def test_what_the_kernel_escapes_is_undone_and_each_line_of_a_record_is_one(tmp_path: Path) -> None:
    file = tmp_path / "kmsg"
    file.write_text("6,1,1,-;caf\\xc3\\xa9 C:\\x5cx41 \\xff \\xzz\\x0asecond line\\x0a\n")
    log = KernelLog(file)
    assert texts(log) == ["café C:\\x41 \ufffd \\xzz", "second line"]
    log.close()


def test_a_line_that_a_program_wrote_is_not_the_kernels_word(tmp_path: Path) -> None:
    file = tmp_path / "kmsg"
    file.write_text(f"{8 + 3},1,1,-;{ERROR}\n7,2,1,-;{ERROR}\n")
    log = KernelLog(file)
    assert [message.by_kernel for message in read(log).messages] == [False, True]
    log.close()


@given(st.lists(st.binary(max_size=40), max_size=20))
def test_whatever_stands_there_is_read_once_and_in_order(
    tmp_path_factory: pytest.TempPathFactory, junk: list[bytes]
) -> None:
    file = tmp_path_factory.mktemp("log") / "kmsg"
    lines = [part for number, some in enumerate(junk) for part in (some, b"6,%d,1,-;mark" % (10**6 + number))]
    file.write_bytes(b"\n" + b"\n".join(lines) + b"\n")
    log = KernelLog(file)
    marks = [message.sequence for message in read(log).messages if message.text == "mark"]
    assert marks == sorted(set(marks))
    assert texts(log) == []
    log.close()


KMSG = Path("/dev/kmsg")


def test_the_real_kernel_log_is_read_from_its_beginning_and_a_line_of_ours_comes_back() -> None:
    log = KernelLog(KMSG)
    first = log.poll()
    if isinstance(first, Failure):
        pytest.skip(f"the kernel's log may not be read here: {first.detail}")
    drained(log)
    assert first.old
    assert first.messages
    numbers = [message.sequence for message in first.messages]
    assert numbers == sorted(numbers)
    mark = f"npu-watchd test {secrets.token_hex(8)}: é and \\ come back"
    try:
        with KMSG.open("w", encoding="utf-8") as kernel:
            kernel.write(f"<7>{mark}\n")
    except OSError as error:
        log.close()
        if error.errno in (EACCES, EPERM):
            pytest.skip(f"the kernel's log may not be written here: {error.strerror}")
        raise
    ours = [message for message in drained(log) if message.text == mark]
    assert [message.by_kernel for message in ours] == [False]
    assert aer_line(ours[0].text) is None
    log.close()
    assert mark not in [message.text for message in drained(log)]
    log.close()
    anew = KernelLog(KMSG)
    assert mark in [message.text for message in drained(anew)]
    anew.close()


def drained(log: KernelLog) -> list[KernelMessage]:
    found: list[KernelMessage] = []
    while more := read(log).messages:
        found += more
    return found
