"""The site's file of codes: what a good one gives, and how each bad one is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from npu_watchd.codes.overrides import NO_OVERRIDES, Override, Overrides, OverridesError, load_overrides
from npu_watchd.codes.tiers import Tier


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "codes.toml"


def refusal(file: Path, text: str | bytes) -> str:
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(OverridesError) as refused:
        load_overrides(file)
    return str(refused.value).removeprefix(f"{file}: ")


def test_a_good_file_is_read_whole(file: Path) -> None:
    file.write_text("""
[80E18405]
tier = "hint"

[0x8f180205]
tier = "SubHealthFault"
text = "Seen on every card of this batch; the vendor says it is harmless."
unit = "frame"

["[0x08520003,na,L2,na]"]
silent = true
""")
    assert load_overrides(file) == Overrides(
        file,
        {
            "80e18405": Override(Tier.HINT),
            "8f180205": Override(
                Tier.SUB_HEALTH, "Seen on every card of this batch; the vendor says it is harmless.", "frame"
            ),
            "[0x08520003,na,l2,na]": Override(silent=True),
        },
    )


def test_an_empty_file_says_nothing(file: Path) -> None:
    file.write_text("# nothing yet\n")
    assert load_overrides(file).by_code == NO_OVERRIDES.by_code == {}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[80E1840]\ntier = "hint"', "80E1840: '80E1840' is no error code; write eight hex digits as npu-smi prints"),
        ('80E18405 = "hint"', "80E18405: is no table; write a table a code, such as "),
        ('[80E18405]\ntir = "hint"', "80E18405.tir: unknown key; did you mean tier?"),
        ("[80E18405]\nzzz = 1", "80E18405.zzz: unknown key; known here: tier, text, unit, silent"),
        ('[80E18405]\ntier = "separated"', "80E18405.tier: is 'separated', which is no tier; did you mean separate?"),
        ("[80E18405]\ntier = 6", "80E18405.tier: is 6, which is no tier; write one of hint, sub_health, "),
        ("[80E18405]\ntext = 6", "80E18405.text: is 6; write text in quotes"),
        ('[80E18405]\ntext = " "', "80E18405.text: is no printable text of one line; write one plain sentence"),
        ('[80E18405]\ntext = "a\\nb"', "80E18405.text: is no printable text of one line; write one plain sentence"),
        ('[80E18405]\nunit = "\\u202E"', "80E18405.unit: is no printable text of one line; write one plain sentence"),
        ('[80E18405]\nsilent = "yes"', "80E18405.silent: is 'yes'; write true or false"),
        ("[80E18405]", "80E18405: changes nothing; set one of tier, text, unit, silent, or take the table out"),
        (
            "[80E18405]\nsilent = true\n[80e18405]\nsilent = true",
            "80e18405: says something about this code a second time; make one table of the two",
        ),
        ("[80E18405", "no TOML: expected ']' at the end of a table declaration (at "),
        (b"[80E18405]\ntext = '\xff'", "line 2: is not UTF-8; save the file as UTF-8"),
        ("#" * (1 << 20) + "#", "is larger than 1 MiB; name a file of error codes"),
        ("a = " + "[" * 5000, "is nested too deeply; write plain tables"),
    ],
)
def test_a_bad_file_is_refused_with_its_key_and_its_cure(file: Path, text: str | bytes, said: str) -> None:
    assert refusal(file, text).startswith(said)


def test_a_file_that_is_not_there_is_refused(file: Path) -> None:
    with pytest.raises(OverridesError) as refused:
        load_overrides(file)
    cure = "let the user that runs npu-watchd read it, or name another"
    assert str(refused.value) == f"{file}: cannot be read (No such file or directory); {cure}"
    assert (refused.value.file, refused.value.key) == (file, "")
