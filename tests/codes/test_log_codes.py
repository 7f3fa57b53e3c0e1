"""`npu-watchd explain` for codes of a job's log."""

from __future__ import annotations

import json
import re
import textwrap

import pytest
from click.testing import CliRunner

from npu_watchd.cli import main
from npu_watchd.codes.log_code import LogCode
from npu_watchd.codes.log_codes import TABLE, log_code
from npu_watchd.diagnose.cause import Cause
from npu_watchd.parsers.ascend_log import SIGNS


def known(code: str) -> LogCode:
    found = log_code(code)
    assert found is not None
    return found


def test_a_consequence_is_called_one() -> None:
    assert str(known("EI0002")) == textwrap.dedent(
        """\
        EI0002  A rank waited in vain
        This rank waited for another one, and heard nothing within HCCL_EXEC_TIMEOUT (1836 s by default). It is a
        consequence: the rank that failed, hung or was too slow is another one. Look for the rank whose log ends
        first.

          cause     -
          check     npu-watchd diagnose LOG LOG ...    # of all ranks
          source    CANN's error code references and public headers, in our words"""
    )


@pytest.mark.parametrize(
    ("code", "cause"),
    [
        ("507054", "hardware"),
        ("EE1015", "version_mismatch"),
        ("ei0019", "contention"),
        ("EI0016", "network"),
        ("507011", "-"),
    ],
)
def test_a_code_names_a_cause_only_where_it_does(code: str, cause: str) -> None:
    assert known(code).cause == cause


def test_a_code_of_a_known_family_says_that_and_no_more() -> None:
    assert known("EI0099").name == "HCCL"
    assert known("507777").name == "Runtime, internal"
    assert "in no table of ours" in known("ERR01007").text


@pytest.mark.parametrize("word", ["80E01801", "200001002", "12345", "EI02", "[0x08520003,na,L2,na]", "407011", ""])
def test_other_forms_are_left_to_others(word: str) -> None:
    assert log_code(word) is None


def test_causes_are_those_of_diagnose() -> None:
    assert {code.cause for code in TABLE.values()} <= {cause.value for cause in Cause} | {"-"}


def test_every_code_that_the_log_reader_knows_can_be_explained() -> None:
    codes = {code for sign in SIGNS for code in sign.codes}
    assert all(re.fullmatch(r"E[A-Z0-9]\d{4}|ERR\d{5}|[125]07\d{3}", code) and known(code) for code in codes)


def test_the_command_explains_it_and_has_a_document() -> None:
    assert CliRunner().invoke(main, ["explain", "207001"]).stdout.startswith("207001  ACL_ERROR_RT_MEMORY_ALLOCATION\n")
    document = json.loads(CliRunner().invoke(main, ["explain", "507011", "--json"]).stdout)
    assert (document["form"], document["cause"]) == ("log", None)
