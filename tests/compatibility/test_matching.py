"""Which versions belong together: literal nodes, and that nothing is said of what the table does not know."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from npu_watchd.compatibility.matching import Standing, cann_line, misfits, pairings
from npu_watchd.compatibility.table import table
from npu_watchd.model.versions import ComponentVersion, Installed, Packages, VersionFile, VersionSpan

FITS, MISFIT, UNLISTED = Standing.FITS, Standing.MISFIT, Standing.UNLISTED


def node(cann: str | None = None, fw: str | None = None, takes: str = "7.0.0,7.1.99", **packages: str) -> Installed:
    """packages: with underscores for dashes."""
    first, _, last = takes.partition(",")
    driver = VersionFile("version.info", version="23.0.7", compatible_firmware=(VersionSpan(first, last),))
    named = {name.replace("_", "-"): version for name, version in packages.items()}
    return Installed(
        driver=driver if fw else None,
        firmware=VersionFile("version.info", version=fw) if fw else None,
        cann={"/a": VersionFile("version.cfg", version=cann)} if cann else {},
        packages=(Packages("/p", named),) if named else (),
    )


@pytest.mark.parametrize(
    ("installed", "standing"),
    [
        (node("8.0.RC3", mindspore="2.4.1"), FITS),
        (node("8.0.RC3.beta1", mindspore="2.4.1"), FITS),
        (node("8.0.RC2.10", mindspore="2.3.1"), FITS),
        (node("8.0.RC2", mindspore="2.4.1"), MISFIT),
        (node("8.0.RC3", mindspore="2.3.1"), MISFIT),
        (node("8.0.T63", mindspore="2.3.1"), UNLISTED),
        (node("11.0.0", mindspore="2.3.1"), UNLISTED),
        (node("8.0.RC3", mindspore="9.9.9"), UNLISTED),
        (node("8.0.RC3", mindspore="2.3.1.dev2"), UNLISTED),
        # The page prefers 8.0.0.beta1 and does not require it.
        (node("8.1.RC1", mindspore="2.5.0"), UNLISTED),
        # A branch's page does not say for which patch.
        (node("8.0.RC3", mindspore="2.2.10"), UNLISTED),
        (node("7.0.0", mindspore="2.2.10"), FITS),
        (node("8.0.RC3", torch_npu="2.4.0"), FITS),
        (node("8.0.0", torch_npu="2.4.0"), MISFIT),
        # Two pages of the vendor speak of it, and each is right.
        (node("8.5.0", torch_npu="2.9.0"), FITS),
        (node("8.5.1", torch_npu="2.9.0"), FITS),
        (node("8.0.0", torch_npu="2.5.1"), FITS),
        (node(torch="2.4.0+cpu", torch_npu="2.4.0"), FITS),
        (node(torch="2.1.0", torch_npu="2.4.0"), MISFIT),
        (node(torch="2.4.1", torch_npu="2.4.0"), UNLISTED),
        (node(fw="7.1.0.11.220"), FITS),
        (node(fw="7.1.99.3"), FITS),
        (node(fw="7.2.0.1"), MISFIT),
        (node(fw="6.4.12"), MISFIT),
        (node(fw="7.1.T5"), UNLISTED),
        (node(fw="7.1.0", takes="23.0.rc3,23.0.rc3."), UNLISTED),
    ],
)
def test_a_pair_stands_as_the_vendor_says(installed: Installed, standing: Standing) -> None:
    assert [pairing.standing for pairing in pairings(installed)] == [standing]


def test_a_misfit_says_what_would_fit_and_who_says_so() -> None:
    (found,) = misfits(node("8.0.RC2", mindspore="2.4.1"))
    assert (found.part, found.beside) == ("mindspore 2.4.1", "CANN 8.0.RC2")
    assert found.would == "cann 8.0.RC3.beta1"
    assert found.source == "mindspore-ai/docs branch r2.4.1 install/mindspore_ascend_install_pip.md"


def test_a_framework_alone_and_a_driver_alone_say_nothing() -> None:
    assert pairings(node(mindspore="2.4.1")) == ()
    assert pairings(node("8.0.RC3")) == ()
    assert pairings(Installed()) == ()


def test_one_of_two_installations_of_cann_is_enough() -> None:
    two = {"/a": VersionFile("version.cfg", version="8.0.RC2"), "/b": VersionFile("version.cfg", version="8.0.RC3")}
    installed = Installed(cann=two, packages=(Packages("/p", {"mindspore": "2.4.1"}),))
    assert [pairing.standing for pairing in pairings(installed)] == [FITS]


def test_parts_of_two_releases_in_one_installation_are_a_misfit_and_patches_are_not() -> None:
    def cfg(other: str) -> Installed:
        parts = {"runtime": ComponentVersion("7.5", "8.0.RC3"), "opp": ComponentVersion("7.6", other)}
        return Installed(cann={"/a": VersionFile("version.cfg", components=parts)})

    assert [one.part for one in misfits(cfg("8.0.0"))] == ["CANN opp 8.0"]
    assert misfits(cfg("8.0.RC3.10")) == ()
    assert misfits(cfg("8.0.T63")) == ()


def test_every_row_fits_itself() -> None:
    for row in table():
        if row.needs == "cann" and row.part in ("mindspore", "torch-npu", "vllm-ascend"):
            version = row.version.replace("*", "0")
            assert misfits(node(row.needs_version, **{row.part.replace("-", "_"): version})) == (), row


def test_every_row_has_a_source_and_a_known_line() -> None:
    assert all(row.source for row in table())
    lines = {cann_line(row.needs_version) for row in table() if row.needs == "cann" and row.part != "cann-inner"}
    assert None not in lines
    assert len(table()) > 250


WORDS = st.text("0123456789.RCTrcalphbet+-", max_size=12)


@given(WORDS, WORDS, st.sampled_from(["mindspore", "torch_npu", "vllm_ascend"]))
def test_a_misfit_is_only_said_of_two_versions_that_the_table_knows(cann: str, version: str, part: str) -> None:
    for found in misfits(node(cann, **{part: version})):
        assert any(row.version == version.partition("+")[0] for row in table()), found
        assert cann_line(cann) in {cann_line(row.needs_version) for row in table()}
