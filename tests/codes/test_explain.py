"""`npu-watchd explain`: the text for a person, the document, and the exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from npu_watchd.cli import main
from npu_watchd.codes.explain import NotKnownError, explain, explanation
from npu_watchd.codes.overrides import Override, Overrides
from npu_watchd.codes.tiers import Tier
from npu_watchd.model.ids import DeviceKey

LITERAL = {
    "80E01801": """
80E01801  HBM  rerun_job
A job touched HBM that has a multi-bit ECC error, and the address could not be isolated while in use: its data
are lost.

  tier      rerun_job (the vendor's RestartBusiness): run the job again
  finding   warning; does not quarantine by itself
  action    check_job
  bits      device side; node type 0x70 (HBM memory); sensor 0x0C (memory); state 0x001 (multi-bit ECC error)
  repeats   2 bursts within 24 h: quarantine (the vendor's own number for this code)
  check     npu-smi info -t health -i N -c M
  source    tier of the vendor's table; meaning from the vendor's open sources (MindCluster, driver), in our
            words
""",
    "80E18402": """
80E18402  HBM  separate
64 rows of HBM are isolated after multi-bit ECC errors: the limit. No further row can be isolated.

  tier      separate (the vendor's SeparateNPU): it will not recover by itself: keep it away from jobs
  finding   critical; quarantines the device
  action    replace
  bits      device side; node type 0x70 (HBM memory); sensor 0xC2 (memory error record); state 0x002 (isolated
            addresses reach the upper limit)
  repeats   3 bursts within 24 h: quarantine, until away for 48 h (the vendor's number for all codes but the
            mildest)
  check     npu-smi info -t health -i N -c M
  source    tier of the vendor's table; meaning from the vendor's open sources (MindCluster, driver), in our
            words
""",
    "40F84E00": """
40F84E00  base service  reset_now
The host no longer hears the device: the card has dropped off. Either its own system has stopped, or the PCIe
path to it is broken.

  tier      reset_now (the vendor's RestartNPU): stop the job and reset the chip now
  finding   critical; does not quarantine by itself
  action    reset_device
  bits      host side; node type 0x7C (system software of the device); sensor 0x27 (heartbeat); state 0x000
            (heartbeat lost)
  repeats   3 bursts within 24 h: quarantine, until away for 48 h (the vendor's number for all codes but the
            mildest)
  check     npu-smi info -t health -i N -c M
  source    tier of the vendor's table; meaning from the vendor's open sources (MindCluster, driver), in our
            words
""",
    "81078603": """
81078603  port  hint
The link of the NPU's network port went down, seen on this side or on the other. If it is back in time, the
job may not notice.

  tier      hint (the vendor's NotHandleFault): nothing needs to be done
  finding   none: it is only shown
  action    check_cable
  bits      device side; node type 0x83 (network port of the NPU); sensor 0xC3 (port state); state 0x003 (link
            went from up to down)
  repeats   5 bursts within 24 h: quarantine, until away for 48 h (the vendor's own number for this code)
  lasting   there for more than 20 s: tier no_new_jobs; over once away for 60 s
  check     npu-smi info -t health -i N -c M
  source    tier of the vendor's table; meaning from the vendor's open sources (MindCluster, driver), in our
            words
""",
    "80818C00": """
80818C00  SoC  separate
The AI CPU found results outside the expected precision: silent data errors, from bad silicon or from a faulty
operator.

  tier      separate (the vendor's SeparateNPU): it will not recover by itself: keep it away from jobs
  finding   critical; quarantines the device
  action    inspect
  bits      device side; node type 0x40 (chip as a whole); sensor 0xC6 (self-check); state 0x000 (precision
            anomaly in computed results)
  repeats   3 bursts within 24 h: quarantine, until away for 48 h (the vendor's number for all codes but the
            mildest)
  check     npu-smi info -t health -i N -c M
  source    tier of the vendor's table; meaning from the vendor's open sources (MindCluster, driver), in our
            words
""",
}


@pytest.mark.parametrize("code", LITERAL)
def test_a_well_known_code_is_explained(code: str) -> None:
    assert str(explanation(code)) == LITERAL[code].strip()


def test_the_command_prints_the_explanation() -> None:
    ran = CliRunner().invoke(main, ["explain", "0x80e18402"])
    assert (ran.exit_code, ran.stdout, ran.stderr) == (0, LITERAL["80E18402"].lstrip(), "")


def test_the_document_holds_the_same_facts() -> None:
    ran = CliRunner().invoke(main, ["explain", "80E01801", "--json"])
    assert (ran.exit_code, ran.stderr) == (0, "")
    assert json.loads(ran.stdout) == {
        "code": "80e01801",
        "form": "chip",
        "listed": True,
        "tier": "rerun_job",
        "vendor_level": "RestartBusiness",
        "severity": "warning",
        "quarantines": False,
        "silent": False,
        "action": "check_job",
        "scope": "chip",
        "unit": "HBM",
        "text": "A job touched HBM that has a multi-bit ECC error, and the address could not be isolated while in use: "
        "its data are lost.",
        "bits": {
            "side": "device",
            "black_box": False,
            "change": None,
            "node_type": 112,
            "node_type_words": "HBM memory",
            "sensor_type": 12,
            "sensor_words": "memory",
            "state": 1,
            "state_words": "multi-bit ECC error",
        },
        "repeats": {
            "times": 2,
            "window_s": 86400.0,
            "release_s": None,
            "quarantines": True,
            "source": "the vendor's own number for this code",
        },
        "lasting": None,
        "check": "npu-smi info -t health -i N -c M",
        "source": "tier of the vendor's table; "
        "meaning from the vendor's open sources (MindCluster, driver), in our words",
    }


@pytest.mark.parametrize("words", [["NpuDeviceMisssing"], ["80E0180"], ["devices", "3"], ["--", ""]])
def test_what_is_no_code_ends_with_one_and_says_what_would_be(words: list[str]) -> None:
    ran = CliRunner().invoke(main, ["explain", *words])
    assert (ran.exit_code, ran.stdout) == (1, "")
    assert "is no error code; write eight hex digits as npu-smi prints them (80E01801), " in ran.stderr


def test_a_switchs_code_may_come_in_pieces() -> None:
    ran = CliRunner().invoke(main, ["explain", "[0x08520003,", "na,", "L2,", "na]"])
    assert (ran.exit_code, ran.stdout.splitlines()[0]) == (0, "[0x08520003,na,L2,na]  L1 switch  hint")


def test_the_check_names_the_device_where_there_is_one() -> None:
    assert explanation("80E01801", device=DeviceKey(5, 1)).check == "npu-smi info -t health -i 5 -c 1"


def test_what_a_site_says_is_marked_as_the_sites() -> None:
    site = Overrides(
        Path("/etc/codes.toml"),
        {
            "80e01801": Override(Tier.SEPARATE),
            "80abcdef": Override(text="Return the card."),
            "80e18402": Override(silent=True),
        },
    )
    separated, added, silenced = (explanation(code, site) for code in ("80E01801", "80ABCDEF", "80E18402"))
    assert separated.source.startswith("tier from /etc/codes.toml; meaning from the vendor's open sources")
    assert added.source == "listed without a level; meaning from /etc/codes.toml"
    assert "  finding   none: silenced by the site; it is still shown" in silenced.lines()


def test_an_alarm_of_the_server_is_not_looked_for_in_npu_smi() -> None:
    told = explanation("00000003")
    assert told.check == "the alarms of the server's BMC, or of the NIC"
    assert "  finding   critical; it is not about a device, and quarantines none" in told.lines()


@given(st.integers(0, 0xFFFFFFFF))
def test_any_eight_digits_are_explained(word: int) -> None:
    told = explanation(f"{word:08X}")
    assert told.lines()[0].startswith(f"{word:08X}")
    assert json.loads(json.dumps(told.document()))["code"] == f"{word:08x}"


@given(st.lists(st.text(max_size=12), min_size=1, max_size=3))
def test_any_words_are_explained_or_refused(words: list[str]) -> None:
    try:
        told = explain(words)
    except NotKnownError:
        return
    assert told.lines()
