from __future__ import annotations

from npu_watchd.memory.pcie_messages import PcieMessages
from npu_watchd.model.ids import DeviceKey
from npu_watchd.model.pcie import AerLine

PATHS = {
    DeviceKey(0): ("0000:80:00.0", "0000:81:00.0"),
    DeviceKey(1): ("0000:80:00.0", "0000:82:00.0"),
    DeviceKey(2): ("0000:c0:00.0", "0000:c1:00.0"),
}


def line(address: str, severity: str | None = "correctable", *, announces: bool = False) -> AerLine:
    return AerLine(address, severity, "Physical Layer", announces)


def counted(*lines: AerLine) -> dict[tuple[str, DeviceKey | None], int]:
    messages = PcieMessages()
    messages.take(lines, PATHS)
    return messages.counts


def test_an_error_of_the_npu_is_its_own() -> None:
    assert counted(line("0000:81:00.0"), line("0000:81:00.0"), line("0000:82:00.0", "fatal")) == {
        ("correctable", DeviceKey(0)): 2,
        ("fatal", DeviceKey(1)): 1,
    }


def test_an_error_of_the_port_above_one_npu_is_that_npus() -> None:
    assert counted(line("0000:c0:00.0", "nonfatal")) == {("nonfatal", DeviceKey(2)): 1}


def test_an_error_of_a_port_that_two_npus_share_is_nobodys_in_particular() -> None:
    assert counted(line("0000:80:00.0")) == {("correctable", None): 1}


def test_other_devices_and_notices_are_not_counted() -> None:
    assert counted(line("0000:01:00.0"), line("0000:81:00.0", announces=True)) == {}


def test_a_line_that_names_no_severity_is_unknown() -> None:
    assert counted(line("0000:81:00.0", None)) == {("unknown", DeviceKey(0)): 1}
