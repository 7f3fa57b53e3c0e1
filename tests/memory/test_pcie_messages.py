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


def test_errors_that_stood_in_the_log_before_anybody_knew_a_path_are_counted_once_one_is_known() -> None:
    messages = PcieMessages()
    messages.take([line("0000:81:00.0", "fatal"), line("0000:80:00.0")], {}, old=True)
    assert messages.counts == {}
    messages.take((), PATHS)
    messages.take((), PATHS)
    expected: dict[tuple[str, DeviceKey | None], int] = {("fatal", DeviceKey(0)): 1, ("correctable", None): 1}
    assert (messages.counts, messages.before) == (expected, expected)


def test_old_errors_are_among_all_and_told_apart() -> None:
    messages = PcieMessages()
    messages.take([line("0000:81:00.0", "fatal")], PATHS, old=True)
    messages.take([line("0000:81:00.0", "fatal")], PATHS)
    assert (messages.counts, messages.before) == ({("fatal", DeviceKey(0)): 2}, {("fatal", DeviceKey(0)): 1})


def test_a_chip_that_fell_off_the_bus_keeps_its_errors_and_gets_those_that_follow() -> None:
    messages = PcieMessages()
    messages.take([line("0000:81:00.0", "fatal")], PATHS)
    messages.take([line("0000:81:00.0", "fatal")], {})
    assert messages.counts == {("fatal", DeviceKey(0)): 2}


def test_errors_of_a_thousand_other_devices_are_not_all_remembered() -> None:
    messages = PcieMessages()
    for number in range(3000):
        messages.take([line(f"{number:04x}:01:00.0")], PATHS)
    messages.take([line("0000:81:00.0")], PATHS)
    messages.take((), {DeviceKey(7): ("2999:01:00.0",), DeviceKey(8): ("0001:01:00.0",)})
    assert messages.counts == {("correctable", DeviceKey(0)): 1, ("correctable", DeviceKey(8)): 1}


def test_records_lost_are_added_up_and_none_are_known_of_before_the_first_look() -> None:
    messages = PcieMessages()
    found = [messages.lost]
    for lost in (0, 3, 4):
        messages.take((), PATHS, lost=lost)
        found.append(messages.lost)
    assert found == [None, 0, 3, 7]


def test_a_line_that_names_no_severity_is_unknown() -> None:
    assert counted(line("0000:81:00.0", None)) == {("unknown", DeviceKey(0)): 1}
