"""Our table: that it says what the vendor's does, and what holds for codes that nobody lists."""

from __future__ import annotations

import csv
import os
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from npu_watchd.codes.layout import decode
from npu_watchd.codes.overrides import Override, Overrides
from npu_watchd.codes.repeats import LastingRule
from npu_watchd.codes.table import lookup, table
from npu_watchd.codes.tiers import BY_NAME, TIERS, Tier
from npu_watchd.model.finding import Action, Severity

ROOT = Path(__file__).parents[2]
REFERENCE = Path(os.environ.get("NPU_WATCHD_CODES", ROOT.parent / "shared" / "reference" / "ascend_fault_codes.tsv"))
"""The facts that the table was made from, where they lie beside the checkout or are named."""

SITE = Path("codes.toml")
SEPARATING = {Tier.NO_NEW_JOBS, Tier.SEPARATE, Tier.SEPARATE_BY_HAND}


def reference() -> list[dict[str, str]]:
    if not REFERENCE.is_file():
        return []
    with REFERENCE.open(encoding="utf-8") as opened:
        return list(csv.DictReader(opened, delimiter="\t", quoting=csv.QUOTE_NONE))


FACTS = pytest.mark.skipif(not REFERENCE.is_file(), reason="NPU_WATCHD_CODES names no table of facts")


def test_the_table_has_every_code_once() -> None:
    assert len(table()) == 936
    assert table() is table()


@pytest.mark.parametrize(
    ("tier", "count"),
    [
        (Tier.HINT, 156),
        (Tier.SUB_HEALTH, 34),
        (Tier.RERUN_REQUEST, 34),
        (Tier.RERUN_JOB, 24),
        (Tier.RESET_WHEN_IDLE, 23),
        (Tier.RESET_NOW, 162),
        (Tier.NO_NEW_JOBS, 253),
        (Tier.SEPARATE, 240),
        (Tier.SEPARATE_BY_HAND, 0),
        (Tier.UNKNOWN, 10),
    ],
)
def test_the_tiers_are_as_many_as_the_vendors(tier: Tier, count: int) -> None:
    assert sum(row.tier is tier for row in table().values()) == count


@FACTS
def test_every_code_has_the_vendors_level_and_no_other_code_is_ours() -> None:
    rows = reference()
    vendors = {decode(row["code"]).text: BY_NAME.get(row["level"], Tier.UNKNOWN) for row in rows}
    assert {text: row.tier for text, row in table().items()} == vendors
    assert {row["level"] for row in rows} - BY_NAME.keys() == {"(no level in repo)"}
    for row in rows:
        if row["level"] in BY_NAME:
            assert lookup(row["code"]).vendor_level == row["level"], row["code"]


@FACTS
def test_every_rule_has_the_vendors_numbers() -> None:
    for row in reference():
        ours = table()[decode(row["code"]).text]
        numbers = [
            float(number) for number in re.findall(r"(\d+)x? in (\d+)s", row["frequency_rule"])[:1] for number in number
        ]
        release = re.search(r"after (\d+)s", row["frequency_rule"])
        rule = ours.repeats
        assert ([rule.times, rule.window_s] if rule else []) == numbers, row["code"]
        assert (rule.release_s if rule else None) == (float(release[1]) if release else None)
        lasting = re.search(r"(\d+) ?s", row["duration_rule"])
        assert (ours.lasting.lasting_s if ours.lasting else None) == (float(lasting[1]) if lasting else None)


@FACTS
def test_the_bits_of_every_chip_code_agree_with_the_facts() -> None:
    for row in reference():
        if row["node_type"]:
            bits = lookup(row["code"]).bits
            assert bits is not None
            told = [int(row[key].split()[0], 16) for key in ("node_type", "sensor_type", "event_state")]
            assert [bits.node_type, bits.sensor_type, bits.state] == told, row["code"]


@FACTS
def test_no_text_is_a_copy_of_the_vendors() -> None:
    theirs = {sentence.strip(" .").lower() for row in reference() for sentence in row["meaning"].split(". ")}
    long = {sentence for sentence in theirs if len(sentence.split()) > 5}
    copied = [row.text for row in table().values() if row.text and row.text.strip(" .").lower() in long]
    assert copied == []


def test_every_code_has_a_sentence_and_a_unit_or_says_why_not() -> None:
    for text in table():
        entry = lookup(text)
        assert entry.listed
        assert entry.text[0].isupper() or entry.text[0].isdigit(), text
        assert entry.text.endswith("."), text
        assert entry.unit is not None or "no public name" in entry.text, text
        assert entry.basis != "vendor" or "nobody" not in entry.text.lower(), text


def test_only_separate_tiers_quarantine_and_only_hints_make_no_finding() -> None:
    assert TIERS.keys() == set(Tier)
    assert {tier for tier, facts in TIERS.items() if facts.quarantines} == SEPARATING
    assert {tier for tier, facts in TIERS.items() if facts.severity is None} == {Tier.HINT}
    assert {tier for tier, facts in TIERS.items() if facts.severity is Severity.CRITICAL} == SEPARATING | {
        Tier.RESET_NOW
    }


def test_nothing_but_a_chips_code_quarantines_a_device() -> None:
    for row in table().values():
        entry = lookup(row.code.text)
        assert entry.quarantines == (row.scope == "chip" and row.tier in SEPARATING)
        assert (entry.repeats is None) or row.scope == "chip"


def test_an_unknown_code_is_a_warning_and_never_quarantines() -> None:
    entry = lookup("80ABCDEF")
    assert (entry.listed, entry.tier, entry.severity, entry.quarantines) == (
        False,
        Tier.UNKNOWN,
        Severity.WARNING,
        False,
    )
    assert (entry.unit, entry.basis) == (None, "none")
    assert entry.repeats is not None
    assert not entry.repeats.quarantines


def test_an_unknown_code_of_a_known_part_is_put_into_words() -> None:
    entry = lookup("80AD8008")
    assert (entry.listed, entry.unit, entry.basis) == (False, "GIC", "bits")
    assert entry.text == "Interrupt controller: multi-bit ECC error in its own memory."


@pytest.mark.parametrize("text", ["3", "0xfff", "what", ""])
def test_what_has_no_form_of_a_code_is_shown_all_the_same(text: str) -> None:
    entry = lookup(text)
    assert (entry.tier, entry.severity, entry.quarantines, entry.bits) == (Tier.UNKNOWN, Severity.WARNING, False, None)
    assert entry.code.text == text.removeprefix("0x")


@given(st.text(max_size=12) | st.integers(0, 0xFFFFFFFF).map("{:08X}".format))
def test_no_code_outside_the_table_ever_quarantines(text: str) -> None:
    entry = lookup(text)
    if not entry.listed:
        assert not entry.quarantines
        assert entry.repeats is None or not entry.repeats.quarantines


@pytest.mark.parametrize("text", ["94025021", "960250A1", "9607FFFF"])
def test_a_heartbeat_that_is_back_is_a_hint(text: str) -> None:
    entry = lookup(text)
    assert (entry.tier, entry.severity, entry.quarantines, entry.repeats) == (Tier.HINT, None, False, None)
    assert entry.text.startswith(f"Over: A{text[1:]} is no longer the case.")


@pytest.mark.parametrize(
    ("text", "times", "release_s", "quarantines"),
    [
        ("80E01801", 2, None, True),
        ("80E18005", 3, None, True),
        ("81078603", 5, 172800.0, True),
        ("80B98009", 3, 172800.0, False),
        ("80C98009", 3, 172800.0, True),
        ("80E18405", 3, 172800.0, False),
    ],
)
def test_a_code_repeats_by_the_vendors_number_or_by_that_for_all(
    text: str, times: int, release_s: float | None, quarantines: bool
) -> None:
    rule = lookup(text).repeats
    assert rule is not None
    assert (rule.times, rule.window_s, rule.release_s, rule.quarantines) == (times, 86400.0, release_s, quarantines)


def test_a_hint_without_a_number_may_come_as_often_as_it_likes() -> None:
    assert lookup("8C2FA009").repeats is None


def test_a_port_that_stays_down_is_more_than_a_hint() -> None:
    entry = lookup("81078603")
    assert (entry.severity, entry.lasting, entry.lasting_tier) == (None, LastingRule(20.0, 60.0), Tier.NO_NEW_JOBS)
    assert entry.action is Action.CHECK_CABLE


def site(**override: object) -> Overrides:
    return Overrides(SITE, {"80e01801": Override(**override)})  # type: ignore[arg-type]


def test_a_site_changes_the_tier_and_all_that_hangs_on_it() -> None:
    entry = lookup("80E01801", site(tier=Tier.SEPARATE))
    assert (entry.severity, entry.quarantines, entry.action) == (Severity.CRITICAL, True, Action.INSPECT)
    assert entry.repeats == lookup("80E01801").repeats
    assert entry.text == lookup("80E01801").text


def test_a_sites_hint_stays_one_however_often_it_comes() -> None:
    entry = lookup("80E01801", site(tier=Tier.HINT))
    assert (entry.severity, entry.quarantines, entry.repeats) == (None, False, None)
    lowered = Overrides(SITE, {"81078603": Override(tier=Tier.HINT)})
    assert lookup("81078603", lowered).lasting is None


def test_a_silent_code_keeps_its_tier_and_makes_no_finding() -> None:
    entry = lookup("80E18402", Overrides(SITE, {"80e18402": Override(silent=True)}))
    assert (entry.tier, entry.silent) == (Tier.SEPARATE, True)
    assert (entry.severity, entry.quarantines, entry.repeats, entry.lasting) == (None, False, None, None)


def test_a_site_adds_a_code_and_its_own_words() -> None:
    added = Override(Tier.SEPARATE, "Return the card.", "frame")
    entry = lookup("0x80ABCDEF", Overrides(SITE, {"80abcdef": added}))
    assert (entry.listed, entry.quarantines, entry.text, entry.unit, entry.basis) == (
        True,
        True,
        "Return the card.",
        "frame",
        "site",
    )


def test_the_document_has_every_tier_as_it_is() -> None:
    page = (ROOT / "docs" / "codes.md").read_text(encoding="utf-8")
    for tier, facts in TIERS.items():
        levels = ", ".join(facts.vendor_levels) or "none"
        severity = facts.severity.value if facts.severity else "none"
        assert f"| `{tier.value}` | {levels} | {severity} | {'yes' if facts.quarantines else 'no'} |" in page
