"""Outputs of real tools, where NPU_WATCHD_CAPTURES names a folder of them: each gives the right record or a refusal."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from npu_watchd.model.reading import FailureKind
from npu_watchd.model.records import EccChip, MemoryErrors
from npu_watchd.parsers import ecc, info_table
from npu_watchd.parsers.lines import ParseError
from tests.parsers.test_cuts import cuts, excesses, without_a_line
from tests.parsers.texts import parser_of

ROOT = Path(os.environ.get("NPU_WATCHD_CAPTURES", "."))
pytestmark = pytest.mark.skipif(
    "NPU_WATCHD_CAPTURES" not in os.environ, reason="NPU_WATCHD_CAPTURES names no folder of real outputs"
)


@dataclass(frozen=True)
class Capture:
    path: Path
    kind: str
    """info, list, map, the `-t` type, or other for what no parser reads."""

    @property
    def name(self) -> str:
        return f"{self.path.parent.relative_to(ROOT)}/{self.path.stem}"

    @property
    def text(self) -> str:
        return self.path.read_bytes().decode("utf-8", "replace")


def captures() -> Iterator[Capture]:
    """What the manifests list and the folder holds: a folder may be a part of a larger one."""
    for manifest in sorted(ROOT.glob("npu-smi*/**/MANIFEST.tsv")) if "NPU_WATCHD_CAPTURES" in os.environ else ():
        with manifest.open(encoding="utf-8") as lines:
            for row in csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE):
                path = manifest.parent / row["file"]
                if path.exists():
                    yield Capture(path, kind_of(row["command"].strip()))


def kind_of(command: str) -> str:
    if command == "npu-smi info":
        return "info"
    match = re.match(r"npu-smi info (?:-t (?P<type>\S+)|-(?P<letter>[lm])\b)", command)
    if match is None:
        return "other"
    return match["type"] or {"l": "list", "m": "map"}[match["letter"]]


ALL = list(captures())
TABLES = [capture for capture in ALL if capture.kind == "info"]
READABLE = [
    capture for capture in ALL if capture.kind not in ("other", "topo", "info-vnpu", "template-info", "hccs-bw")
]


def one_each(found: list[Capture]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("capture", found, ids=lambda capture: capture.name)


def refusal_of(capture: Capture) -> ParseError | None:
    try:
        parser_of(capture.kind)(capture.text)
    except ParseError as error:
        return error
    return None


def named(name: str) -> Capture:
    found = next((capture for capture in ALL if capture.name == name), None)
    if found is None:
        pytest.skip(f"{name} is not in the folder")
    return found


@one_each(ALL)
def test_each_gives_a_record_or_a_refusal_that_names_its_line(capture: Capture) -> None:
    error = refusal_of(capture)
    if error is not None:
        assert 1 <= error.number <= max(1, len(capture.text.splitlines()))
        assert str(error).startswith(f"line {error.number}: ")


# What the tool says when it fails, and which failure that is. Everything else here must be read.
REFUSALS = {
    "Error parameter in querying chip info": FailureKind.UNSUPPORTED,
    "Error parameter of -t": FailureKind.UNSUPPORTED,
    "Failed to execute npu-smi info. ret is -8006.": FailureKind.EXIT,
    "Failed to get card number.": FailureKind.EXIT,
    "Failed to get device type.": FailureKind.EXIT,
    'Failed to query "': FailureKind.EXIT,
    "Failed to query npu chip: ": FailureKind.EXIT,
    "Invalid card id.": FailureKind.EXIT,
    "Invalid chip id.": FailureKind.EXIT,
    "Must input parameter of chip id.": FailureKind.EXIT,
    "This command must input card id.": FailureKind.EXIT,
    "This command cannot be executed on a VM.": FailureKind.UNSUPPORTED,
    "This device does not support querying ": FailureKind.UNSUPPORTED,
    "Usage: npu-smi ": FailureKind.EXIT,
    "dcmi model initialized failed, because the device is used. ret is -8020": FailureKind.EXIT,
    "dcmi module initialize failed. ret is -8005": FailureKind.EXIT,
    "dcmi module initialize failed. ret is -8255": FailureKind.UNSUPPORTED,
    "npu get board type failed. ret is -9005": FailureKind.EXIT,
    "npu_get_card_device_id failed. err is -9005": FailureKind.EXIT,
    "npu-smi printed a heading and no counts, as it does": FailureKind.DENIED,
    "npu-smi printed a heading and no counts": FailureKind.UNSUPPORTED,
    "npu-smi said nothing of any chip": FailureKind.UNPARSEABLE,
    "npu-smi printed nothing": FailureKind.UNPARSEABLE,
}


@one_each(READABLE)
def test_a_refusal_carries_the_tools_words_and_their_kind(capture: Capture) -> None:
    error = refusal_of(capture)
    if error is not None:
        words = next((words for words in REFUSALS if error.problem.startswith(words)), None)
        assert words is not None, str(error)
        assert error.kind is REFUSALS[words]
        assert words in capture.text or words.startswith("npu-smi ")


# Chips by file, counted by eye.
DEVICES = {
    "npu-smi/info_310B1_23.0.rc3_doc": 1,
    "npu-smi/info_310B4_23.0.0_alarm_busNA_power0": 1,
    "npu-smi/info_310B4_23.0.rc3_OK": 1,
    "npu-smi/info_310B_doc_masked": 1,
    "npu-smi/info_310P3_22.0.0_drv22.0.3_1card": 1,
    "npu-smi/info_310P3_22.0.4_host_header_misaligned": 1,
    "npu-smi/info_310P3_23.0.0_id24": 1,
    "npu-smi/info_310P3_24.1.0.1_300IDuo_procs_hugepages_edited": 2,
    "npu-smi/info_310P3_25.2.0_300IDuo_partial": 2,
    "npu-smi/info_310P3_25.5.1_2cards_host": 2,
    "npu-smi/info_310P3_noversionrow_2cards": 2,
    "npu-smi/info_310Pvir01_22.0.4_vnpu_container": 1,
    "npu-smi/info_310_20.2.2_5cards_20chips_id2048": 20,
    "npu-smi/info_910A_1.8.21_drv20.2.2.spc001_8cards": 8,
    "npu-smi/info_910A_21.0.3.2_2cards": 2,
    "npu-smi/info_910B2C_23.0.3_2cards_noprocs": 2,
    "npu-smi/info_910B2_25.2.0_warning_blank_name_edited": 2,
    "npu-smi/info_910B3_24.1.rc1.b030_8cards_no_proc_table": 8,
    "npu-smi/info_910B4-1_25.2.0_alarm_edited": 3,
    "npu-smi/info_910B4-1_25.2.0_partial_busid_masked": 2,
    "npu-smi/info_910B4_24.1.1_partial_hbm_no_blank": 2,
    "npu-smi/info_910ProB_24x_8cards_noprocs_noversionrow": 8,
    "npu-smi/info_910_23.0.5_warning_shifted": 1,
    "npu-smi/info_950DT_25.6.rc1.b169_procs_edited": 4,
    "npu-smi/info_950PR_25.7.rc1.6_container_excerpt": 1,
    "npu-smi/info_950PR_25.7.rc1_7npus_blank_names": 7,
    "npu-smi/info_950PR_alarm_no_version_row_edited": 2,
    "npu-smi/info_950_doc_masked": 1,
    "npu-smi/info_A3_24.1.rc3.7_partial_die0_2": 3,
    "npu-smi/info_A3_25.2.0_2npus_proc_on_die1": 4,
    "npu-smi/info_A3_26.0.rc1_procs_container_pid_NA": 4,
    "npu-smi/info_A3_26.0.rc2_partial_die0_1": 2,
}
# The nodes of the built and derived outputs: chips of the whole node, and of one with a chip lost at start.
WHOLE = {"310p": 4, "910b": 8, "a3": 16, "950": 8, "950ub": 8, "910b_user": 8, "910b_user_noperm": 8, "a3_ctr": 2}
LESS = {"310p": 3, "910b": 7, "a3": 14, "950": 7, "950ub": 7}
LOST = {
    "chip_gone_driver_refuses",
    "chip_health_absent",
    "chip_health_call_fails_at_init",
    "chip_missing_from_enum",
    "die_missing_from_enum",
    "card_missing_from_enum",
    "health_mixed",
}
# The queries fail of this chip (of its whole card where the chips share a bus).
SICK = {"310p": (32776, 1), "910b": (3, 0), "a3": (1, 1), "950": (3, None), "950ub": (3, None)}
NAMELESS = {"310p": (None, 1), "910b": (None, 0), "a3": (None, 1), "950": (None, None), "950ub": (None, None)}
SEEN = {
    "fail_all_queries_one_chip",
    "fail_chipinfo",
    "fail_hbm",
    "fail_heartbeat",
    "fail_pci",
    "fail_power",
    "fail_temp",
}
# What no mark in the table gives away: OK, 0 % and an empty process list are printed for these.
UNSEEN = {"fail_health", "fail_util", "fail_proc"}


def bus_rows(text: str) -> int:
    """Rows with a cell that holds a bus id, or NA in its place: one a chip."""
    cells = (line.strip().strip("|").split("|") for line in text.splitlines())
    bus = re.compile(r"[0-9A-Fa-fXx]{4}:[0-9A-Fa-fXx]{2}:[0-9A-Fa-fXx]{2}\.[0-9A-Fa-fXx]|NA")
    return sum(len(row) in (3, 4) and bus.fullmatch(row[-2].strip()) is not None for row in cells)


@one_each(TABLES)
def test_every_row_with_a_bus_id_is_a_device_and_nothing_else_is(capture: Capture) -> None:
    rows = bus_rows(capture.text)
    if rows:
        assert len(info_table.parse(capture.text).devices) == rows
    else:
        with pytest.raises(ParseError):
            info_table.parse(capture.text)


@pytest.mark.parametrize(("name", "count"), DEVICES.items(), ids=DEVICES.keys())
def test_pasted_tables_hold_as_many_devices_as_counted(name: str, count: int) -> None:
    assert len(info_table.parse(named(name).text).devices) == count


def built_tables() -> Iterator[Any]:
    for capture in TABLES:
        node, _, scenario = capture.path.stem.partition("__info__")
        if node in WHOLE and scenario and bus_rows(capture.text):
            yield pytest.param(capture, node, scenario, id=capture.name)


@pytest.mark.parametrize(("capture", "node", "scenario"), list(built_tables()))
def test_built_tables_hold_the_devices_and_the_distrust_of_their_scenario(
    capture: Capture, node: str, scenario: str
) -> None:
    table = info_table.parse(capture.text)
    if scenario in LOST and node in LESS:
        assert len(table.devices) == LESS[node]
    elif scenario != "fail_phyid":
        assert len(table.devices) == WHOLE[node]
    assert table.complete
    untrusted = [(row.npu, row.chip) for row in table.devices if not row.trusted]
    if scenario.startswith(("health_unknown", "health_value5", "health_value7")):
        assert untrusted == [NAMELESS[node]]
    elif (node, scenario) == ("310p", "fail_pci"):
        assert untrusted == [(32776, 0), (32776, 1)]
    elif (node, scenario) in (("950ub", "fail_pci"), ("310p", "fail_power"), ("a3", "fail_power")):
        # No bus id, no power, and the power of the card stands with the other die: nothing is missing that was there.
        assert untrusted == []
    elif scenario in SEEN or (node, scenario) == ("950", "fail_device_id_in_card"):
        assert untrusted == [SICK[node]]
    else:
        assert untrusted == []


def test_an_idle_word_of_a_failed_process_query_is_printed_like_any_other() -> None:
    table = info_table.parse(named("npu-smi-built/910b__info__fail_proc").text)
    assert table.idle_npus == (3,)
    assert table.devices[3].hbm_used_bytes is not None
    assert table.devices[3].hbm_used_bytes > 50_000 * 1024 * 1024


NINE = MemoryErrors(11, 22, 333, 444, 5, 6, 0, 3)
OLD = MemoryErrors(11, 22, 333, 444, 5, 6, None, None)
FAILS = "Failed to query npu chip: 1 info."
ECC: dict[str, tuple[EccChip, ...]] = {
    "910b__ecc__nonzero_chip0": (EccChip(None, NINE, None),),
    "a3__ecc__nonzero_chip1": (EccChip(None, MemoryErrors(1101, 0, 1301, 444, 7, 6, 0, 3), None),),
    "a3__ecc__fail_card": (EccChip(0, NINE, None), EccChip(1, None, None, FAILS)),
    "a3__ecc__fail_isolated_card": (EccChip(0, NINE, None), EccChip(1, None, None, FAILS)),
    "310p__ecc__nonzero_card": (EccChip(0, None, NINE), EccChip(1, None, NINE)),
    "310p__ecc__nonzero_chip0": (EccChip(None, None, NINE),),
    "310p__ecc__nonzero_chip1": (EccChip(None, None, NINE),),
    "310p__ecc__fail_card": (EccChip(0, None, NINE), EccChip(1, None, None, FAILS)),
    "310p__ecc__fail_isolated_card": (EccChip(0, None, NINE), EccChip(1, None, None, FAILS)),
    "310p__ecc__record_notperm": (EccChip(0, None, NINE),),
    "910a__ecc__nonzero_card": (EccChip(0, OLD, OLD),),
    "910a__ecc__nonzero_chip0": (EccChip(None, OLD, OLD),),
}


@pytest.mark.parametrize(("name", "chips"), ECC.items(), ids=ECC.keys())
def test_error_counts_above_zero(name: str, chips: tuple[EccChip, ...]) -> None:
    report = ecc.parse(named(f"npu-smi-built/{name}").text)
    assert report.chips == chips
    assert report.unknown_keys == ()


@one_each([capture for capture in READABLE if len(capture.text) <= 800])
def test_every_cut_of_a_small_output_is_an_error_or_a_subset(capture: Capture) -> None:
    assert excesses(parser_of(capture.kind), capture.text, cuts(capture.text)) == []


@one_each([capture for capture in READABLE if len(capture.text) > 800][::6])
def test_every_seventh_cut_of_every_sixth_large_output_is_an_error_or_a_subset(capture: Capture) -> None:
    assert excesses(parser_of(capture.kind), capture.text, cuts(capture.text, step=7)) == []


@one_each(TABLES)
def test_a_table_that_lost_one_line_is_an_error_or_a_subset(capture: Capture) -> None:
    assert excesses(info_table.parse, capture.text, without_a_line(capture.text)) == []
