"""What is installed on the node, as the files of driver, firmware, CANN and Python packages say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from npu_watchd.model.reading import Failure


@dataclass(frozen=True, slots=True)
class VersionSpan:
    """`[7.0.0,7.1.99]`: both ends belong to it; one word in brackets is both."""

    first: str
    last: str


@dataclass(frozen=True, slots=True)
class ComponentVersion:
    """One part of CANN in version.cfg."""

    inner_version: str
    """The vendor's own count, 7.5.0.1.129; what MindSpore's check compares begins with its first two numbers."""
    version: str
    """The release that is published under it, 8.0.RC3."""


@dataclass(frozen=True, slots=True)
class VersionFile:
    """One file that says a version. None: it has no such line."""

    form: str
    """version.info, version.cfg, install.info or metadata."""
    name: str | None = None
    """The package: in lower case and with dashes where it is Python's."""
    version: str | None = None
    """Of version.cfg: the one release that all its parts have; None where they differ."""
    inner_version: str | None = None
    package_version: str | None = None
    """The release that a firmware or a driver came with, 23.0.7."""
    compatible_firmware: tuple[VersionSpan, ...] | None = None
    """Which firmware this driver declares itself fit for (compatible_version_fw)."""
    compatible_driver: tuple[VersionSpan, ...] | None = None
    """Which drivers this firmware declares itself fit for (compatible_version_drv)."""
    compatible: tuple[VersionSpan, ...] | None = None
    """compatible_version: in the vendor's inner names."""
    components: Mapping[str, ComponentVersion] = field(default_factory=dict)
    """Of version.cfg: runtime, compiler, hccl, opp, toolkit, …"""
    arch: str | None = None
    path: str | None = None


@dataclass(frozen=True, slots=True)
class Packages:
    """The packages of one Python installation that speak to an NPU."""

    folder: str
    """Its site-packages."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """Name, in lower case and with dashes → version."""


@dataclass(frozen=True, slots=True)
class Installed:
    """What is installed, as far as its files lie where the vendor's installers put them."""

    driver: VersionFile | None = None
    firmware: VersionFile | None = None
    cann: Mapping[str, VersionFile] = field(default_factory=dict)
    """Folder of an installation (`latest` of ascend-toolkit, nnae, nnrt) → what it says of itself."""
    packages: tuple[Packages, ...] = ()
    """Only installations with at least one package of ours to tell."""
    failures: Mapping[str, Failure] = field(default_factory=dict)
    """File → why it could not be read; one that is not there is no failure."""

    @property
    def cann_versions(self) -> tuple[str, ...]:
        """The distinct releases of CANN, in order."""
        return tuple(sorted({one.version for one in self.cann.values() if one.version is not None}))

    @property
    def frameworks(self) -> tuple[str, ...]:
        """`mindspore 2.4.1`, distinct, in order."""
        found = {f"{name} {version}" for one in self.packages for name, version in one.versions.items()}
        return tuple(sorted(found))
