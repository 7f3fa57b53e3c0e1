"""The version files of a node, each on its own: what one cannot say costs its own value."""

from __future__ import annotations

from pathlib import Path

from npu_watchd.model.ids import NODE
from npu_watchd.model.reading import FailureKind
from npu_watchd.model.versions import Installed, Packages
from npu_watchd.sources.versions import VersionRound, VersionTree

HEAD = "Metadata-Version: 2.1\n"
FILES = {
    "ascend/driver/version.info": "Version=23.0.7\ncompatible_version_fw=[7.0.0,7.1.99]\n",
    "ascend/firmware/version.info": "Version=7.1.0.11.220",
    "ascend/ascend-toolkit/8.0.RC3/version.cfg": "runtime_running_version=[7.5.0.1.129:8.0.RC3]\n",
    "ascend/nnae/latest/ascend_nnae_install.info": "package_name=Ascend-cann-nnae\nversion=8.0.RC3\n",
    "py/3.9/site-packages/mindspore-2.4.1.dist-info/METADATA": f"{HEAD}Name: mindspore\nVersion: 2.4.1\n",
    "py/3.9/site-packages/te-0.4.0.dist-info/METADATA": f"{HEAD}Name: te\nVersion: 0.4.0\n",
    "py/3.9/site-packages/torchvision-1.0.dist-info/METADATA": f"{HEAD}Name: torchvision\nVersion: 1.0\n",
    "py/3.10/site-packages/six-1.0.dist-info/METADATA": f"{HEAD}Name: six\nVersion: 1.0\n",
}


def made(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def look(folder: Path) -> Installed:
    return VersionTree(folder / "ascend", folder / "etc", [f"{folder}/py/*/site-packages"]).look()


def test_everything_is_found_without_importing_anything(tmp_path: Path) -> None:
    made(tmp_path, FILES)
    (tmp_path / "ascend/ascend-toolkit/latest").symlink_to("8.0.RC3")
    found = look(tmp_path)
    assert found.driver is not None
    assert found.driver.version == "23.0.7"
    assert found.firmware is not None
    assert found.firmware.version == "7.1.0.11.220"
    assert found.cann_versions == ("8.0.RC3",)
    assert [Path(folder).parent.name for folder in found.cann] == ["ascend-toolkit", "nnae"]
    folder = str(tmp_path / "py/3.9/site-packages")
    assert found.packages == (Packages(folder, {"mindspore": "2.4.1", "te": "0.4.0"}),)
    assert found.frameworks == ("mindspore 2.4.1", "te 0.4.0")
    assert found.failures == {}


def test_what_lies_nowhere_is_not_installed_and_no_failure(tmp_path: Path) -> None:
    assert look(tmp_path) == Installed()


def test_the_driver_is_where_its_installer_says(tmp_path: Path) -> None:
    made(tmp_path, {"opt/driver/version.info": "Version=24.1.rc3\n"})
    made(tmp_path, {"etc/ascend_install.info": f"UserName=HwHiAiUser\nDriver_Install_Path_Param={tmp_path}/opt\n"})
    found = look(tmp_path)
    assert found.driver is not None
    assert found.driver.version == "24.1.rc3"


def test_a_file_that_says_rubbish_costs_its_own_value(tmp_path: Path) -> None:
    made(tmp_path, {**FILES, "ascend/driver/version.info": "<html>\n"})
    found = look(tmp_path)
    assert found.driver is None
    assert found.firmware is not None
    (failure,) = found.failures.values()
    assert failure.kind is FailureKind.UNPARSEABLE
    assert failure.detail == f"{tmp_path}/ascend/driver/version.info: line 1: no KEY=VALUE: '<html>'"


def test_a_round_is_the_nodes(tmp_path: Path) -> None:
    made(tmp_path, FILES)
    found = VersionRound(tmp_path / "ascend", tmp_path / "etc", [], lambda: 0.0).read(5.0)
    assert isinstance(found[NODE], Installed)
