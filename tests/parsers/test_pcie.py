"""PCIe in Linux's own words: the link files, the AER files, and the AER lines of the kernel's log."""

from __future__ import annotations

import pytest

from npu_watchd.model.pcie import AerCounts, AerLine, AerReport
from npu_watchd.model.reading import FailureKind
from npu_watchd.parsers import pcie
from tests.parsers.texts import CAPTURES, refused, said

PCIE = CAPTURES / "pcie"


@pytest.mark.parametrize(
    ("text", "speed"),
    [
        ("2.5 GT/s PCIe\n", 2.5e9),
        ("5.0 GT/s PCIe\n", 5e9),
        ("8.0 GT/s PCIe\n", 8e9),
        ("8 GT/s\n", 8e9),
        ("16.0 GT/s PCIe\n", 16e9),
        ("32.0 GT/s PCIe\n", 32e9),
        ("64.0 GT/s PCIe\n", 64e9),
        ("2.5 GT/s\n", 2.5e9),
        ("Unknown\n", None),
        ("Unknown speed\n", None),
    ],
)
def test_a_link_speed_is_transfers_a_second(text: str, speed: float | None) -> None:
    assert pcie.transfers_per_second(text) == speed


@pytest.mark.parametrize(
    "text", ["", "\n", "16.0 GT/s PCIe", "1", "17.0 GT/s PCIe\n", "16.0 GB/s\n", "-16.0 GT/s\n", "16.0 GT/s PCIe\n16\n"]
)
def test_what_is_no_link_speed_is_refused_and_not_guessed(text: str) -> None:
    assert refused(pcie.transfers_per_second, text).kind is FailureKind.UNPARSEABLE


@pytest.mark.parametrize(("text", "lanes"), [("1\n", 1), ("16\n", 16), ("0\n", None), ("255\n", None), ("63\n", None)])
def test_a_width_of_0_63_or_255_is_unknown(text: str, lanes: int | None) -> None:
    assert pcie.lanes(text) == lanes


@pytest.mark.parametrize("text", ["", "16", "3\n", "-1\n", "x16\n", "1.6\n", "16\n16\n", "NA\n"])
def test_what_is_no_width_is_refused_and_not_guessed(text: str) -> None:
    assert refused(pcie.lanes, text).kind is FailureKind.UNPARSEABLE


def test_an_aer_file_has_its_total_and_its_errors_by_name() -> None:
    assert pcie.aer((PCIE / "aer__correctable__some_errors.txt").read_text()) == AerReport(
        correctable=AerCounts(
            "correctable",
            46,
            {
                "RxErr": 3,
                "BadTLP": 41,
                "BadDLLP": 0,
                "Rollover": 0,
                "Timeout": 7,
                "NonFatalErr": 0,
                "CorrIntErr": 0,
                "HeaderOF": 0,
            },
        )
    )


def test_the_three_files_of_a_device_may_follow_one_another() -> None:
    report = pcie.aer((PCIE / "aer__all_three__unnamed_bit.txt").read_text())
    assert report.correctable is not None
    assert report.nonfatal is not None
    assert report.fatal is not None
    assert (report.correctable.total, report.correctable.counts["dev_cor_errs_bit[9]"]) == (14, 2)
    assert (report.nonfatal.total, report.nonfatal.counts["CmpltTO"], report.nonfatal.counts["UnsupReq"]) == (8, 5, 4)
    assert (report.fatal.total, report.fatal.counts["SDES"]) == (1, 1)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "line 1: empty"),
        ("RxErr 0\nBadTLP 4\n", "line 2: cut off before the total: 'BadTLP 4'"),
        ("RxErr 0\nTOTAL_ERR_COR 1", "line 2: cut off before the end of the line: 'TOTAL_ERR_COR 1'"),
        ("RxErr 0\nRxErr 0\n", "line 2: counted twice, so this is of more than one device: 'RxErr 0'"),
        (
            "TOTAL_ERR_COR 1\nTOTAL_ERR_COR 2\n",
            "line 2: a second total, so this is of more than one device: 'TOTAL_ERR_COR 2'",
        ),
        ("TOTAL_ERR_NEW 1\n", "line 1: a total that we do not know: 'TOTAL_ERR_NEW 1'"),
        ("RxErr -1\n", "line 1: '-1' is no count: 'RxErr -1'"),
        ("RxErr NA\n", "line 1: no AER counter: 'RxErr NA'"),
        ("cat: aer_dev_fatal: No such file or directory\n", "line 1: no AER counter"),
    ],
)
def test_an_aer_file_that_cannot_be_trusted_is_refused(text: str, words: str) -> None:
    kind, detail = said(pcie.aer, text)
    assert kind is FailureKind.UNPARSEABLE
    assert detail.startswith(words)


PORT, NPU = "0000:c0:01.0", "0000:c1:00.0"


def test_each_form_of_the_kernels_aer_lines_is_known_and_details_are_not_counted() -> None:
    lines = (PCIE / "kernel-log__aer.txt").read_text().splitlines()
    assert [pcie.aer_line(line) for line in lines] == [
        AerLine(PORT, "correctable", "Physical Layer, Receiver ID", announces=False),
        None,
        None,
        AerLine(NPU, "correctable", "several error messages", announces=True, port=PORT),
        AerLine(NPU, "nonfatal", "an error message", announces=True, port=PORT),
        AerLine(NPU, "nonfatal", "Transaction Layer, Requester ID", announces=False),
        None,
        None,
        AerLine(NPU, "fatal", "Inaccessible, Unregistered Agent ID", announces=False),
        AerLine(NPU, "correctable", "an error message", announces=True, port=PORT),
        None,
        None,
        AerLine(
            NPU,
            None,
            "reported by the firmware, status 0x00000040, mask 0x00002000",
            announces=False,
        ),
        None,
    ]


@pytest.mark.parametrize(
    "line",
    [
        "",
        "pcieport 0000:c0:01.0: AER: enabled with IRQ 31",
        "user 0000:c1:00.0: PCIe Bus Error: severity=Corrected",
        "xhci 0000:c1:00.0: USB error received: 0000:c1:00.0",
        "pcieport 10000:0000:c0:01.0: PCIe Bus Error: severity=Corrected, type=Physical Layer, (Receiver ID)",
        "x" * 100_000,
    ],
)
def test_other_lines_are_no_errors(line: str) -> None:
    assert pcie.aer_line(line) is None


def test_every_cut_of_a_log_line_says_the_same_or_nothing() -> None:
    for line in (PCIE / "kernel-log__aer.txt").read_text().splitlines():
        whole = pcie.aer_line(line)
        assert {pcie.aer_line(line[:end]) for end in range(len(line))} <= {None, whole}


def test_an_unknown_severity_is_none_and_the_error_is_kept() -> None:
    line = "drv 0000:c1:00.0: PCIe Bus Error: severity=Odd, type=Physical Layer, (Receiver ID)"
    assert pcie.aer_line(line) == AerLine(NPU, None, "Physical Layer, Receiver ID", announces=False)
