"""Slurm's own words about a node, and what it answers when it will not do as told."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from npu_watchd.model.acting import Hold, Holder, Intention
from npu_watchd.model.reading import Failure, FailureKind, Output
from npu_watchd.sinks.actuators.slurm import Slurm, hold_of

SHOWN = """\
NodeName=node17 Arch=x86_64 CoresPerSocket=1
   CPUAlloc=0 CPUTot=64 CPULoad=0.66
   AvailableFeatures=(null)
   ActiveFeatures=(null)
   Gres=npu:8
   NodeAddr=127.0.0.1 NodeHostName=vm Version=22.05.8
   OS=Linux 6.1.0-37-amd64 #1 SMP Debian 6.1.0
   RealMemory=4000 AllocMem=0 FreeMem=3000 Sockets=64 Boards=1
   State={state} ThreadsPerCore=1 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A
   Partitions=main
   BootTime=2026-11-30T21:36:39 SlurmdStartTime=2026-11-30T22:18:18
   LastBusyTime=2026-11-30T22:18:18
   CfgTRES=cpu=64,mem=4000M,billing=64
   AllocTRES=
   CapWatts=n/a
   CurrentWatts=0 AveWatts=0
   ExtSensorsJoules=n/s ExtSensorsWatts=0 ExtSensorsTemp=n/s
{reason}
"""
"""Of Slurm 22.05."""
OURS = "npu-watchd: device 3: 2 errors [q20261130T221055Z-ab12cd34]"
MARK, OTHER_MARK = "q20261130T221055Z-ab12cd34", "q20261201T031500Z-00ff00ff"
WHO = " [root@2026-11-30T22:18:19]"


def shown(state: str, reason: str | None = None) -> Hold | Failure:
    return hold_of(SHOWN.format(state=state, reason="" if reason is None else f"   Reason={reason}"))


@pytest.mark.parametrize(
    ("state", "reason", "holder"),
    [
        ("IDLE", None, Holder.NOBODY),
        ("ALLOCATED", None, Holder.NOBODY),
        ("MIXED+PLANNED", None, Holder.NOBODY),
        ("IDLE*+MAINTENANCE", None, Holder.NOBODY),
        ("IDLE+DRAIN", OURS + WHO, Holder.OURS),
        ("MIXED*+DRAIN", OURS + WHO, Holder.OURS),
        ("DOWN+DRAIN+NOT_RESPONDING", OURS + WHO, Holder.OURS),
        ("IDLE+DRAIN", OURS, Holder.OURS),
        ("DRAINED", OURS + WHO, Holder.OURS),
        ("IDLE", OURS + WHO, Holder.NOBODY),
        ("DOWN*", OURS + WHO, Holder.OTHER),
        ("IDLE+DRAIN+FAIL", OURS + WHO, Holder.OTHER),
        ("IDLE+DRAIN", f"{OURS}; alice: keep it{WHO}", Holder.OTHER),
        ("IDLE+DRAIN", f"{OURS} alice: keep it{WHO}", Holder.OTHER),
        ("IDLE+DRAIN", f"alice: {OURS}{WHO}", Holder.OTHER),
        ("IDLE+DRAIN", f"npu-watchd: bad, alice{WHO}", Holder.OTHER),
        ("IDLE+DRAIN", f"{OURS} [x]{WHO}", Holder.OTHER),
        ("IDLE+DRAIN", f"Prolog error{WHO}", Holder.OTHER),
        ("IDLE+DRAIN", None, Holder.OTHER),
        ("DOWN", "Not responding [slurm@2026-11-30T22:18:19]", Holder.OTHER),
        ("IDLE+FAIL", f"f{WHO}", Holder.OTHER),
    ],
)
def test_who_holds_the_node(state: str, reason: str | None, holder: Holder) -> None:
    found = shown(state, reason)
    assert isinstance(found, Hold)
    assert found.holder is holder
    assert found.text == (state if reason is None else f"{state}, {reason}")


def test_our_mark_is_read_from_our_reason() -> None:
    found = shown("IDLE+DRAIN", OURS + WHO)
    assert found == Hold(Holder.OURS, f"IDLE+DRAIN, {OURS}{WHO}", "q20261130T221055Z-ab12cd34")


def test_a_state_that_nobody_knows_is_no_state() -> None:
    unknown = shown("UNKNOWN*")
    assert isinstance(unknown, Failure)
    assert unknown.kind is FailureKind.STALE
    nothing = hold_of("slurm_load_node: weird")
    assert isinstance(nothing, Failure)
    assert nothing.kind is FailureKind.UNPARSEABLE


@given(st.text(st.characters(blacklist_categories=["Cs", "Cc"], blacklist_characters="\u2028\u2029"), max_size=60))
def test_no_reason_of_somebody_else_is_taken_for_ours(reason: str) -> None:
    found = shown("IDLE+DRAIN", reason + WHO)
    assert isinstance(found, Hold)
    assert found.holder is Holder.OTHER


@given(st.text(max_size=200))
def test_what_we_write_is_read_as_ours_whatever_the_verdict_says(reason: str) -> None:
    cluster = Controller()
    cluster.slurm.hold(Intention(MARK, reason, b""))
    assert cluster.reason is not None
    found = cluster.slurm.look()
    assert isinstance(found, Hold)
    assert (found.holder, found.mark) == (Holder.OURS, MARK)
    assert len(cluster.reason.splitlines()) == 1


class Controller:
    """A node, behind scontrol."""

    def __init__(self) -> None:
        self.state = "IDLE"
        self.reason: str | None = None
        self.asked: list[tuple[str, ...]] = []
        self.slurm = Slurm(self.run, "/usr/bin/scontrol", "node17", 15.0)

    def run(self, argv: tuple[str, ...], timeout_s: float) -> Output | Failure:
        assert (argv[0], timeout_s) == ("/usr/bin/scontrol", 15.0)
        self.asked.append(argv[1:])
        if argv[1:] == ("show", "node", "node17"):
            reason = "" if self.reason is None else f"   Reason={self.reason}{WHO}"
            return Output(SHOWN.format(state=self.state, reason=reason))
        settings = dict(word.split("=", 1) for word in argv[2:])
        assert settings.pop("nodename") == "node17"
        if settings["state"] == "drain":
            self.state, self.reason = "IDLE+DRAIN", settings["reason"]
        else:
            assert settings == {"state": "undrain"}
            self.state, self.reason = "IDLE", None
        return Output("")


def test_each_change_is_made_once_and_only_to_what_is_ours() -> None:
    cluster = Controller()
    slurm = cluster.slurm
    assert slurm.hold(Intention(MARK, "device 3: 2 errors", b"")) is None
    assert slurm.hold(Intention(OTHER_MARK, "again", b"")) is None
    assert cluster.reason == OURS
    assert slurm.free(OTHER_MARK) is None
    assert cluster.state == "IDLE+DRAIN"
    assert slurm.free(MARK) is None
    assert cluster.state == "IDLE"
    assert slurm.free(MARK) is None
    cluster.state, cluster.reason = "IDLE+DRAIN", "alice"
    assert slurm.hold(Intention(OTHER_MARK, "x", b"")) is None
    assert slurm.free(OTHER_MARK) is None
    assert cluster.reason == "alice"
    assert [words for words in cluster.asked if words[0] == "update"] == [
        ("update", "nodename=node17", "state=drain", f"reason={OURS}"),
        ("update", "nodename=node17", "state=undrain"),
    ]


@pytest.mark.parametrize(
    ("stderr", "kind", "cure"),
    [
        ("slurm_load_node error: Unable to contact slurm controller (connect failure)", "timeout", "`scontrol ping`"),
        ("slurm_update error: Invalid user id", "denied", "AdminLevel"),
        ("slurm_update error: Access/permission denied", "denied", "AdminLevel"),
        ("slurm_update error: Invalid node name specified", "missing", "[slurm] node_name"),
        ("Node node17 not found", "missing", "[slurm] node_name"),
        ('scontrol: error: Munge encode failed: Failed to access "/run/munge"', "denied", "munge -n | unmunge"),
        ("slurm_load_node error: Protocol authentication error", "denied", "munge -n | unmunge"),
        ("scontrol: fatal: Unable to read slurm.conf", "missing", "SLURM_CONF"),
        ("slurm_update error: Requested node state is not possible", "exit", "by hand"),
    ],
)
def test_each_refusal_names_its_cure(stderr: str, kind: str, cure: str) -> None:
    slurm = Slurm(lambda _, __: Output("", f"{stderr}\n", 1), "scontrol", "node17", 15.0)
    for failure in (slurm.look(), slurm.hold(Intention(MARK, "x", b"")), slurm.free(MARK)):
        assert isinstance(failure, Failure)
        assert failure.kind.value == kind
        assert f"scontrol show, exit code 1: {stderr}; " in failure.detail
        assert cure in failure.detail


def test_what_the_runner_says_is_handed_on() -> None:
    missing = Failure(FailureKind.MISSING, "scontrol: not found on PATH")
    slurm = Slurm(lambda _, __: missing, "scontrol", "node17", 15.0)
    assert slurm.look() == slurm.hold(Intention(MARK, "x", b"")) == slurm.free(MARK) == missing
