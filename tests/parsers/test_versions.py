"""Files that say a version: the vendor's own, literally; and what is refused."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from npu_watchd.model.versions import ComponentVersion, VersionFile, VersionSpan
from npu_watchd.parsers import versions
from npu_watchd.parsers.lines import ParseError
from tests.parsers.subset import excess
from tests.parsers.texts import refused

FIRMWARE = """\
Version=7.1.0.11.220
firmware_version=1.0
package_version=23.0.7
compatible_version_drv=[23.0.rc3,23.0.rc3.],[23.0.0,23.0.0.]
"""
DRIVER = "Version=23.0.7\nInnerversion=V100R001C15SPC009B220\ncompatible_version_fw=[7.0.0,7.1.99]\n"
TOOLKIT = """\
package_name=Ascend-cann-toolkit
version=7.0.T10
innerversion=V100R001C13B222
compatible_version=[V100R001C29],[V100R001C30]
arch=aarch64
os=linux
path=/usr/local/Ascend/ascend-toolkit/7.0.T10/aarch64-linux
"""
CFG = """\
# version: 1.0
runtime_running_version=[7.5.0.1.129:8.0.RC3]
compiler_running_version=[7.5.0.1.129:8.0.RC3]
ncs_running_version=[]
"""
METADATA = "Metadata-Version: 2.1\nName: torch_npu\nVersion: 2.1.0.post8.dev20241009\nSummary: x\n\nVersion: 9\n"
RC3 = ComponentVersion("7.5.0.1.129", "8.0.RC3")
ALL = {
    "firmware": (
        FIRMWARE,
        VersionFile(
            "version.info",
            version="7.1.0.11.220",
            package_version="23.0.7",
            compatible_driver=(VersionSpan("23.0.rc3", "23.0.rc3."), VersionSpan("23.0.0", "23.0.0.")),
        ),
    ),
    "driver": (
        DRIVER,
        VersionFile(
            "version.info",
            version="23.0.7",
            inner_version="V100R001C15SPC009B220",
            compatible_firmware=(VersionSpan("7.0.0", "7.1.99"),),
        ),
    ),
    "toolkit": (
        TOOLKIT,
        VersionFile(
            "install.info",
            name="Ascend-cann-toolkit",
            version="7.0.T10",
            inner_version="V100R001C13B222",
            compatible=(VersionSpan("V100R001C29", "V100R001C29"), VersionSpan("V100R001C30", "V100R001C30")),
            arch="aarch64",
            path="/usr/local/Ascend/ascend-toolkit/7.0.T10/aarch64-linux",
        ),
    ),
    "version.cfg": (
        CFG,
        VersionFile(
            "version.cfg",
            version="8.0.RC3",
            inner_version="7.5.0.1.129",
            components={"runtime": RC3, "compiler": RC3},
        ),
    ),
    "metadata": (METADATA, VersionFile("metadata", name="torch-npu", version="2.1.0.post8.dev20241009")),
}


@pytest.mark.parametrize("name", ALL)
def test_each_form_is_read(name: str) -> None:
    text, record = ALL[name]
    assert versions.parse(text) == record


def test_parts_of_two_releases_have_no_release_in_common() -> None:
    found = versions.parse("runtime_running_version=[7.5:8.0.RC3]\nopp_running_version=[7.6:8.0.0]\n")
    assert (found.version, found.inner_version, len(found.components)) == (None, None, 2)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "line 1: no whole line in the text"),
        ("Version=7.1", "line 1: no whole line in the text"),
        ("hello\n", "line 1: no KEY=VALUE: 'hello'"),
        ("a=1\n", "line 1: no version.info, version.cfg, install.info or METADATA: 'a=1'"),
        ("Version=1\nVersion=2\n", "line 2: the key stands there twice, with two values: 'Version=2'"),
        ("Version=1 or 2\n", "line 1: no version: 'Version=1 or 2'"),
        ("Version=1\ncompatible_version_fw=7\n", "line 2: no list of [first,last]: 'compatible_version_fw=7'"),
        ("opp_running_version=8\n", "line 1: no [inner version:version]: 'opp_running_version=8'"),
        ("Metadata-Version: 2.1\nName: x\n", "line 1: METADATA without a Name and a Version"),
    ],
)
def test_what_cannot_be_trusted_is_refused(text: str, why: str) -> None:
    assert str(refused(versions.parse, text)) == why


@pytest.mark.parametrize("name", ["firmware", "driver", "toolkit", "metadata"])
def test_a_cut_text_says_less_and_nothing_else(name: str) -> None:
    text, record = ALL[name]
    for end in range(len(text)):
        with suppress(ParseError):
            assert not excess(versions.parse(text[:end]), record)


@settings(max_examples=200)
@given(st.text(st.sampled_from("Version=_running[]:,.18aRC\n"), max_size=60))
def test_rubbish_is_refused_or_read(text: str) -> None:
    with suppress(ParseError):
        versions.parse(text)
