"""The version files of driver, firmware, CANN and Python packages, found without importing or running anything."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from npu_watchd.model.ids import NODE, Subject
from npu_watchd.model.reading import Failure, FailureKind
from npu_watchd.model.versions import Installed, Packages, VersionFile
from npu_watchd.parsers import versions
from npu_watchd.parsers.lines import ParseError
from npu_watchd.sources.files import Root, failure_of
from npu_watchd.sources.sweep import Sweep

_SWEEP_S = 5.0
"""A look takes milliseconds; home folders on a network that is gone take for ever, and must cost one thread."""
_MOST_FOLDERS = 64
"""Python installations that are looked into; assumption: no node has more that matter."""
_INSTALL_INFO = "ascend_install.info"
_DRIVER_PATH = re.compile(r"^Driver_Install_Path_Param=(?P<path>/\S*)$", re.MULTILINE)
_CANN: tuple[tuple[str, str], ...] = (
    ("ascend-toolkit", "ascend_toolkit_install.info"),
    ("cann", "ascend_cann_install.info"),
    ("nnae", "ascend_nnae_install.info"),
    ("nnrt", "ascend_nnrt_install.info"),
)
"""Folder below /usr/local/Ascend, and the file of its installer where it has no version.cfg."""
_ARCHES = ("", "aarch64-linux/", "x86_64-linux/")
PACKAGES: Mapping[str, str] = {
    "mindspore": "mindspore",
    "mindspore-ascend": "mindspore",
    **dict.fromkeys(("mindformers", "te", "hccl", "torch", "torch-npu", "vllm-ascend"), ""),
}
"""Names of packages that are told; ""-valued ones under their own name."""


class VersionTree:
    """Blocks where the disk does: call it through VersionRound. For one thread at a time."""

    def __init__(self, ascend: Path, etc: Path, python: Iterable[str]) -> None:
        """python: patterns of site-packages folders."""
        self._ascend = ascend
        self._etc = etc
        self._python = tuple(python)
        self.reading = ""
        """The file that is read at the moment, for words about a hang."""
        self._failures: dict[str, Failure] = {}

    def look(self) -> Installed:
        """Everything, each file on its own. What lies nowhere is not installed here, as far as anybody can tell."""
        self._failures = {}
        base = self._driver_base()
        return Installed(
            driver=self._file(base, "driver/version.info"),
            firmware=self._file(base, "firmware/version.info"),
            cann=dict(self._cann()),
            packages=tuple(self._packages()),
            failures=self._failures,
        )

    def _driver_base(self) -> Path:
        """Where the driver's own installer says that it lies."""
        text = self._text(self._etc, _INSTALL_INFO)
        match = _DRIVER_PATH.search(text) if text is not None else None
        return Path(match["path"]) if match else self._ascend

    def _cann(self) -> Iterator[tuple[str, VersionFile]]:
        for folder, info in _CANN:
            found = self._file(self._ascend, f"{folder}/latest/version.cfg")
            if found is None or not found.components:
                named = (self._file(self._ascend, f"{folder}/latest/{arch}{info}") for arch in _ARCHES)
                found = next((one for one in named if one is not None), found)
            if found is not None:
                yield str(self._ascend / folder / "latest"), found

    def _packages(self) -> Iterator[Packages]:
        for folder in self._folders()[:_MOST_FOLDERS]:
            found = dict(self._of_folder(folder))
            if found:
                yield Packages(folder, dict(sorted(found.items())))

    def _folders(self) -> list[str]:
        found: dict[str, None] = {}
        for pattern in self._python:
            self.reading = pattern
            found.update(dict.fromkeys(os.path.realpath(one) for one in sorted(Path("/").glob(pattern[1:]))))
        return list(found)

    def _of_folder(self, folder: str) -> Iterator[tuple[str, str]]:
        self.reading = folder
        try:
            names = sorted(os.listdir(folder))
        except OSError as error:
            failure = failure_of(folder, error)
            if failure.kind is not FailureKind.MISSING:
                self._failures[folder] = failure
            return
        for name in names:
            package, _, _ = name.partition("-")
            known = PACKAGES.get(versions.normal(package))
            if known is None or not name.endswith((".dist-info", ".egg-info")):
                continue
            file = "METADATA" if name.endswith(".dist-info") else "PKG-INFO"
            said = self._file(Path(folder), f"{name}/{file}")
            if said is not None and said.version is not None:
                yield known or versions.normal(package), said.version

    def _file(self, base: Path, name: str) -> VersionFile | None:
        text = self._text(base, name)
        if text is None:
            return None
        try:
            # The last line of a file on disk is whole, whether or not its writer ended it.
            return versions.parse(text if text.endswith("\n") else text + "\n")
        except ParseError as error:
            self._failures[str(base / name)] = Failure(FailureKind.UNPARSEABLE, f"{base / name}: {error}")
            return None

    def _text(self, base: Path, name: str) -> str | None:
        self.reading = f"{base}/{name}"
        text = Root(base).read_text(name)
        if isinstance(text, Failure):
            if text.kind is not FailureKind.MISSING:
                self._failures[self.reading] = text
            return None
        return text


class VersionRound:
    """For the lane of files: a hang costs one thread and a Failure, never the lane that asks."""

    def __init__(self, ascend: Path, etc: Path, python: Iterable[str], monotonic: Callable[[], float]) -> None:
        tree = VersionTree(ascend, etc, python)
        self._sweep = Sweep("versions", tree.look, monotonic, _SWEEP_S, lambda: tree.reading)

    def read(self, _timeout_s: float) -> Mapping[Subject, Installed | Failure]:
        """The node → what is installed, or why nobody can tell."""
        return {NODE: self._sweep()}
