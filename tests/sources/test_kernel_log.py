from __future__ import annotations

from pathlib import Path

from npu_watchd.model.reading import Failure, FailureKind
from npu_watchd.sources.kernel_log import KernelLog

OLD = "6,100,5000,-;Booting Linux\n"
AER = (
    "3,101,6000,-;pcieport 0000:80:02.0: PCIe Bus Error: severity=Corrected, type=Physical Layer\n"
    " SUBSYSTEM=pci\n"
    " DEVICE=+pci:0000:80:02.0\n"
)


def test_what_was_said_before_we_looked_is_old(tmp_path: Path) -> None:
    log = tmp_path / "kmsg"
    log.write_text(OLD)
    kernel = KernelLog(log)
    assert kernel.poll() == ()
    with log.open("a") as more:
        more.write(AER)
    assert kernel.poll() == ("pcieport 0000:80:02.0: PCIe Bus Error: severity=Corrected, type=Physical Layer",)
    assert kernel.poll() == ()
    kernel.close()


def test_a_log_that_cannot_be_read_is_a_failure_and_is_tried_again(tmp_path: Path) -> None:
    kernel = KernelLog(tmp_path / "kmsg")
    failed = kernel.poll()
    assert isinstance(failed, Failure)
    assert failed.kind is FailureKind.MISSING
    (tmp_path / "kmsg").write_text(OLD)
    assert kernel.poll() == ()
    kernel.close()


def test_bytes_that_are_no_text_harm_nothing(tmp_path: Path) -> None:
    log = tmp_path / "kmsg"
    log.touch()
    kernel = KernelLog(log)
    assert kernel.poll() == ()
    log.write_bytes(b"3,1,1,-;\xff\xfe\x00 NUL\n\x00\n;\n" + b"x" * 9000 + b"\n")
    assert kernel.poll() == ("\ufffd\ufffd\x00 NUL",)
    kernel.close()
