"""Software that does not belong together, and software of which only nobody has heard."""

from __future__ import annotations

from npu_watchd.model.versions import Installed, Packages, VersionFile, VersionSpan
from tests.scenarios.label import NODE, WARNING, Case, Expected, Story
from tests.scenarios.site import Site


def _cann(version: str, **packages: str) -> Installed:
    named = {name.replace("_", "-"): number for name, number in packages.items()}
    return Installed(cann={"/a": VersionFile("version.cfg", version=version)}, packages=(Packages("/p", named),))


def framework_left_behind(site: Site) -> None:
    """CANN is upgraded at 60 s, MindSpore is not; the daemon is restarted; MindSpore follows at 300 s."""
    for until_s, cann, mindspore in ((45, "8.0.RC2", "2.3.1"), (285, "8.0.RC3", "2.3.1"), (400, "8.0.RC3", "2.4.1")):
        site.node = {"installed": _cann(cann, mindspore=mindspore)}
        site.run(until_s)
        if until_s == 285:
            site.restart(0)


def firmware_left_behind(site: Site) -> None:
    """The driver of 60 s takes firmware from 7.3 on; the firmware is older."""
    for until_s, first in ((45, "7.0.0"), (300, "7.3.0")):
        driver = VersionFile("version.info", version="24.1.rc3", compatible_firmware=(VersionSpan(first, "7.9.99"),))
        site.node = {"installed": Installed(driver, VersionFile("version.info", version="7.1.0.11.220"))}
        site.run(until_s)


def from_the_future(site: Site) -> None:
    """Builds of the site's own, a release that nobody has listed, a page that only prefers."""
    for installed in (
        _cann("8.0.T63", mindspore="2.3.1"),
        _cann("12.0.0", mindspore="2.3.1", torch="3.0", torch_npu="3.0"),
        _cann("8.1.RC1", mindspore="2.5.0"),
        _cann("8.0.RC3", torch="2.4.0", torch_npu="2.4.0.dev20241009"),
    ):
        site.node = {"installed": installed}
        site.run(site.now_s + 60)


VERSION_FAULTS: tuple[Case, ...] = (
    Case(
        "a framework left behind, 910B3",
        "CANN 8.0.RC3 comes to MindSpore 2.3.1 at 60 s; 2.4.1 is installed at 300 s",
        Story("910B3", framework_left_behind),
        (Expected("version_mismatch", NODE, (WARNING,), 60, 15, over=(300, 315)),),
    ),
    Case(
        "firmware left behind, 910A",
        "a driver that takes firmware from 7.3 on comes to firmware 7.1",
        Story("910A", firmware_left_behind),
        (Expected("version_mismatch", NODE, (WARNING,), 60, 15),),
    ),
)
VERSION_UGLY: tuple[Case, ...] = (
    Case(
        "versions of which nobody has heard, 910B3", "test builds, and a new release", Story("910B3", from_the_future)
    ),
)
