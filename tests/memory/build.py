"""Readings as the probes would bring them, for a board with a clock of its own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from npu_watchd.memory.board import Board, Watch
from npu_watchd.model.ids import NODE, DeviceKey, Subject
from npu_watchd.model.reading import Failure, FailureKind, Reading, Tick
from npu_watchd.model.records import DeviceRow, EccChip, HealthChip, InfoTable, MapRow, MemoryErrors
from npu_watchd.model.snapshot import Device, Snapshot

GIB = 1 << 30
PERIODS_S: dict[str, float] = {
    "npu_info": 15.0,
    "npu_map": 3600.0,
    "npu_list": 3600.0,
    "npu_health": 60.0,
    "npu_ecc": 60.0,
    "npu_board": 3600.0,
}
TIMEOUT = Failure(FailureKind.TIMEOUT, "npu-smi: no answer within 10.0 s and was ended; it printed nothing")
UNSUPPORTED = Failure(FailureKind.UNSUPPORTED, "This device does not support querying health.")


def at(seconds: float) -> Tick:
    return Tick(mono_s=seconds, wall_s=1_790_000_000.0 + seconds)


def row(npu: int | None, chip: int | None = 0, **changes: Any) -> DeviceRow:
    """A quiet 910B3 whose bus id tells its number."""
    quiet = DeviceRow(
        npu=npu,
        chip=chip,
        logic_id=None,
        phy_id=None,
        name="910B3",
        health="OK",
        pci_address=f"0000:{0x80 + (npu or 0):02x}:{chip or 0:02x}.0",
        power_watts=91.5,
        temperature_celsius=46.0,
        aicore_utilization_ratio=0.25,
        memory_used_bytes=None,
        memory_total_bytes=None,
        hbm_used_bytes=3 * GIB,
        hbm_total_bytes=64 * GIB,
        hugepages_used=0,
        hugepages_total=0,
        trusted=True,
    )
    return replace(quiet, **changes)


def headless(row: DeviceRow) -> DeviceRow:
    """The row as npu-smi prints it when it cannot name the health: its first line is missing."""
    return replace(
        row,
        npu=None,
        name=None,
        health=None,
        power_watts=None,
        temperature_celsius=None,
        trusted=False,
        distrust=("the row with name and health is missing",),
    )


def table(*rows: DeviceRow, **changes: Any) -> InfoTable:
    return replace(InfoTable(tool_version="25.5.1", driver_version="25.5.1", devices=rows, processes=None), **changes)


def map_row(npu: int, chip: int, logic_id: int | None, phy_id: int | None = None) -> MapRow:
    return MapRow(npu, chip, logic_id, phy_id, None, "Ascend 910B3")


def health(word: str | None, *codes: str) -> HealthChip:
    return HealthChip(0, word, codes, ())


def ecc(double_bit: int) -> EccChip:
    return EccChip(0, MemoryErrors(single_bit=4, double_bit=double_bit), None)


def reading(probe: str, subject: Subject, result: Any, at_s: float = 0.0) -> Reading[Any]:
    return Reading(probe, subject, at(at_s), 0.25, result)


def info(result: InfoTable | Failure, at_s: float = 0.0) -> Reading[Any]:
    return reading("npu_info", NODE, result, at_s)


def said(npu: int, result: Any, at_s: float = 0.0, probe: str = "npu_health", chip: int = 0) -> Reading[Any]:
    return reading(probe, DeviceKey(npu, chip), result, at_s)


def well(npu: int, at_s: float = 0.0, chip: int = 0) -> list[Reading[Any]]:
    """Both vital per-device probes, with nothing to report."""
    return [said(npu, health("OK"), at_s, chip=chip), said(npu, ecc(0), at_s, "npu_ecc", chip)]


def new_board(
    expected: int | None = None,
    disabled: frozenset[str] = frozenset(),
    probes: frozenset[str] = frozenset({"npu_health", "npu_ecc"}),
) -> Board:
    vital = frozenset({"npu_info", "npu_health", "npu_ecc"})
    return Board("node-17", "0b1c", expected, lambda _name: Watch("910B", probes - disabled, vital, disabled))


def shown(board: Board, now_s: float = 1.0) -> Snapshot:
    return board.snapshot(at(now_s), PERIODS_S.get)


def device(board: Board, npu: int, now_s: float = 1.0, chip: int = 0) -> Device:
    return shown(board, now_s).devices[DeviceKey(npu, chip)]
