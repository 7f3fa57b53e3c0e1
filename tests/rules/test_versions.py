"""Versions that do not belong together: only what the vendor's tables are certain of."""

from __future__ import annotations

from npu_watchd.model.finding import Action, Severity
from npu_watchd.model.reading import NOT_READ_YET, Failure, FailureKind
from npu_watchd.model.versions import Installed, Packages, VersionFile
from tests.rules.world import World

STUCK = Failure(FailureKind.WEDGED, "versions: the read of /home has not returned")


def node(mindspore: str, cann: str = "8.0.RC2", **more: object) -> dict[str, object]:
    installed = Installed(
        cann={"/usr/local/Ascend/ascend-toolkit/latest": VersionFile("version.cfg", version=cann)},
        packages=(Packages("/usr/lib/python3.9/site-packages", {"mindspore": mindspore}),),
    )
    return {"installed": installed, **more}


def test_a_framework_beside_another_cann_is_told_with_what_would_fit() -> None:
    world = World()
    world.node = node("2.4.1")
    found = world.cycle(0)["version_mismatch node"]
    assert (found.severity, found.quarantines, found.action) == (Severity.WARNING, False, Action.ALIGN_VERSIONS)
    assert found.summary == (
        "versions that do not belong together: mindspore 2.4.1 and CANN 8.0.RC2: "
        "no row of the table has both; it needs cann 8.0.RC3.beta1"
    )
    (evidence,) = found.evidence
    assert (evidence.metric, evidence.observed, evidence.limit) == (
        "mindspore 2.4.1",
        "CANN 8.0.RC2",
        "cann 8.0.RC3.beta1",
    )
    world.node = node("2.4.1", "8.0.RC3")
    assert world.cycle(15) == {}


def test_what_the_table_does_not_know_is_no_finding() -> None:
    world = World()
    for installed in (node("2.9.0"), node("2.4.1", "99.0.0"), {"installed": Installed()}, {}):
        world.node = installed
        assert world.cycle(0) == {}


def test_a_mismatch_is_held_while_the_files_cannot_be_read() -> None:
    world = World()
    world.node = node("2.4.1")
    world.cycle(0)
    for because in (STUCK, NOT_READ_YET):
        world.node = {"installed": None, "blind": {"versions": because}}
        assert world.cycle(15)["version_mismatch node"].held
    world.node = {"installed": Installed(failures={"/x": STUCK})}
    assert world.cycle(45)["version_mismatch node"].held
