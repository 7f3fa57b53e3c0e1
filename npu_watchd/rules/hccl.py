"""Jobs in each other's way by their HCCL settings, and ranks of one job that do not agree on theirs.

What is certain of ports, and what is not, is in docs/decisions/0024.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from npu_watchd.model.finding import Action, Evidence, Severity
from npu_watchd.model.hccl import ANY_ADDRESS, Choice, HostPorts, Listener
from npu_watchd.model.ids import DeviceKey
from npu_watchd.model.jobs import Attribution, JobKey
from npu_watchd.model.reading import NOT_READ_YET, Failure
from npu_watchd.model.snapshot import Device
from npu_watchd.rules.rule import Judgement, Polls, Rule, Unseen, Verified, View
from npu_watchd.rules.sight import blind

_NEEDS = ("npu_info", "processes")

# Ports


@dataclass(frozen=True, slots=True)
class _Held:
    """A port that a process on a chip listens on."""

    listener: Listener
    by: Attribution
    job: JobKey


def _ports(view: View) -> Iterable[Judgement]:
    held = [
        _Held(listener, one, one.job.key)
        for _, one in _processes(view)
        if one.job is not None and one.place is not None
        for listener in one.place.listening or ()
    ]
    dark = any(one.place is None for _, one in _processes(view) if one.process is not None)
    for key, device in view.devices():
        because = blind(device, *_NEEDS) or (NOT_READ_YET if dark else None)
        found = next(_blocked(view, key, device, held), None)
        if found is not None:
            yield found
        elif because is not None:
            yield Unseen(key, because)


def _blocked(view: View, key: DeviceKey, device: Device, held: list[_Held]) -> Iterator[Verified]:
    """Processes on this device that cannot listen while others do."""
    for one in device.jobs.attributions if device.jobs is not None else ():
        if one.job is None or one.variables is None or one.place is None or one.place.listening is None:
            continue
        plan = HostPorts.of(one.variables)
        wanted = _wanted(plan, device, len(held))
        if plan is None or not wanted:
            continue
        near = [each for each in held if _same_address(each, one)]
        own = {each.listener.port for each in near if each.job == one.job.key}
        others = {each.listener.port: each for each in near if each.job != one.job.key}
        if wanted <= others.keys() and not wanted & own:
            yield _conflict(view, key, device, one, plan, [others[port] for port in sorted(wanted)])


def _wanted(plan: HostPorts | None, device: Device, held: int) -> frozenset[int]:
    """Ports of which the process needs one; none where it finds another, or where nobody knows."""
    if plan is None or plan.choice in (Choice.AUTO, Choice.DEFAULT):
        return frozenset()
    if plan.choice is Choice.LISTED:
        if len(plan) > held:
            return frozenset()
        return frozenset(port for first, last in plan.ranges for port in range(first, last + 1))
    identity = device.identity
    # Outside of containers, where we run, the two numbers are the same (CANN: aclrtGetPhyDevIdByLogicDevId).
    phy_id = identity.phy_id if identity.phy_id is not None else identity.logic_id
    # What number HCCL sees of a virtual NPU is not known.
    if phy_id is None or "vir" in (identity.name or ""):
        return frozenset()
    return frozenset({plan.fixed(phy_id)})


def _same_address(held: _Held, one: Attribution) -> bool:
    """Whether the process would listen on the very address, as far as that is certain."""
    here, there = one.place, held.by.place
    if here is None or there is None or here.network is None or here.network != there.network:
        return False
    mine, others = one.variables or {}, held.by.variables
    address = mine.get("HCCL_IF_IP")
    if held.listener.address == ANY_ADDRESS:
        return address is None or ":" not in address
    if address is not None:
        return held.listener.address == address
    # Nobody tells the address, but in one network namespace HCCL chooses the same by the same settings.
    names = ("HCCL_IF_IP", "HCCL_SOCKET_IFNAME")
    loopback = held.listener.address == "::1" or held.listener.address.startswith("127.")
    return not loopback and others is not None and all(others.get(name) == mine.get(name) for name in names)


def _conflict(
    view: View, key: DeviceKey, device: Device, one: Attribution, plan: HostPorts, held: list[_Held]
) -> Verified:
    job = one.job.key if one.job else None
    name = "HCCL_HOST_SOCKET_PORT_RANGE" if plan.choice is Choice.LISTED else "HCCL_IF_BASE_PORT"
    value = (one.variables or {}).get(name, "")
    ports = f"host port {held[0].listener.port}" if len(held) == 1 else f"one of its {len(held)} host ports"
    holders = " and ".join(dict.fromkeys(str(each.job) for each in held))
    summary = f"device {device.device_id}: {job} there needs {ports} for HCCL, held by {holders}"
    mine = f"tr '\\0' '\\n' </proc/{_pid(one)}/environ | grep HCCL_"
    evidence = [Evidence(f"{name} of {job}, pid {_pid(one)}", value, None, "", None, mine)]
    for each in held[:4]:
        check = f"nsenter -t {_pid(each.by)} -n ss -ltnp 'sport = :{each.listener.port}'"
        evidence.append(
            Evidence(f"port held by {each.job}, pid {_pid(each.by)}", str(each.listener), None, "", None, check)
        )
    return Verified(key, summary, tuple(evidence), for_s=view.limits["hccl_ports_s"])


def _pid(one: Attribution) -> int:
    return one.process.pid if one.process is not None else one.pid


def _processes(view: View) -> Iterator[tuple[Device, Attribution]]:
    for _, device in view.devices():
        for one in device.jobs.attributions if device.jobs is not None else ():
            yield device, one


# Settings

_EQUAL: Mapping[str, str | None] = {
    # The rank with the least patience ends the job for all, whatever the others were told.
    "HCCL_CONNECT_TIMEOUT": "120",
    "HCCL_EXEC_TIMEOUT": None,
    "HCCL_RDMA_TIMEOUT": "20",
    "HCCL_RDMA_RETRY_CNT": "7",
    # Both ends of a link must take the same way.
    "HCCL_INTRA_PCIE_ENABLE": None,
    "HCCL_INTRA_ROCE_ENABLE": "0",
}
"""Settings that all ranks of a job need alike, and what holds where one is not set; None: that differs by chip and
version of CANN, or by another setting. Source: each variable's page."""
_RANK = ("RANK", "RANK_ID", "SLURM_PROCID")
_WORLD = (
    *("TORCHELASTIC_RUN_ID", "MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE"),
    *("RANK_TABLE_FILE", "RANK_SIZE", "MS_SCHED_HOST", "MS_SCHED_PORT", "MS_WORKER_NUM"),
)
"""What the ranks of one program have in common: a job may run several at a time."""


_Program = tuple[JobKey, str | None, str | None, tuple[str | None, ...]]
"""Job, step, container and world."""


@dataclass(frozen=True, slots=True)
class _Rank:
    number: int
    device: DeviceKey
    process: Attribution

    def value(self, name: str) -> str | None:
        """As a number without leading zeros where it is one; None: not known."""
        if self.process.variables is None or name in (self.process.note or ""):
            return None  # the note names variables whose values cannot be meant
        text = self.process.variables.get(name, _EQUAL[name])
        return str(int(text)) if text is not None and text.isascii() and text.isdigit() else text


def _settings(view: View) -> Iterable[Judgement]:
    odd: dict[DeviceKey, Verified] = {}
    polls = Polls("processes", int(view.limits["shared_polls"]))
    for job, ranks in _worlds(view):
        for rank, name, usual, others in _odd(ranks):
            odd.setdefault(rank.device, _differs(view, job, rank, name, usual, others, polls))
    for key, device in view.devices():
        because = blind(device, *_NEEDS)
        if because is not None:
            yield Unseen(key, because)
        elif key in odd:
            yield odd[key]
        elif _unreadable(device):
            yield Unseen(key, _NO_ENVIRON)


_NO_ENVIRON = Failure(NOT_READ_YET.kind, "the environment of a process on it could not be read")


def _unreadable(device: Device) -> bool:
    return device.jobs is not None and any(one.variables is None for one in device.jobs.attributions)


def _worlds(view: View) -> Iterator[tuple[JobKey, list[_Rank]]]:
    """The ranks on this node of each program that runs on several chips; each rank once."""
    found: dict[_Program, dict[int, _Rank]] = {}
    unsure: set[_Program] = set()
    for device, one in _processes(view):
        number = _number(one)
        if one.job is None or one.variables is None or number is None:
            continue
        world = tuple(one.variables.get(name) for name in _WORLD)
        if not any(world) and "SLURM_PROCID" not in one.variables:
            continue
        group = (one.job.key, one.job.step, one.job.container, world)
        was = found.setdefault(group, {}).setdefault(number, _Rank(number, device.key, one))
        # Two processes with one number: two programs that inherited it, or a helper. Then nobody knows who is the rank.
        if was.process.process != one.process and was.process.variables != one.variables:
            unsure.add(group)
    for whose, ranks in found.items():
        if whose not in unsure and len(ranks) > 1:
            yield whose[0], [ranks[number] for number in sorted(ranks)]


def _number(one: Attribution) -> int | None:
    texts = (one.variables.get(name) for name in _RANK) if one.variables is not None else ()
    text = next((text for text in texts if text), "")
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 7 else None


def _odd(ranks: list[_Rank]) -> Iterator[tuple[_Rank, str, str, int]]:
    """Ranks whose value is not that of most of them, with the setting, that value, and how many have it."""
    for name in _EQUAL:
        known = {rank.number: value for rank in ranks if (value := rank.value(name)) is not None}
        # Among equals the one of the lowest rank, since a Counter keeps the order.
        usual, times = Counter(known.values()).most_common(1)[0] if known else ("", 0)
        for rank in ranks:
            if known.get(rank.number, usual) != usual:
                yield rank, name, usual, times


def _differs(view: View, job: JobKey, rank: _Rank, name: str, usual: str, others: int, polls: Polls) -> Verified:
    device = view.snapshot.devices[rank.device]
    value = (rank.process.variables or {}).get(name)
    shown = value if value is not None else f"{_EQUAL[name]} (not set)"
    summary = (
        f"device {device.device_id}: rank {rank.number} of {job} runs with {name} {shown}, "
        f"{others} of its ranks here with {usual}"
    )
    check = f"tr '\\0' '\\n' </proc/{_pid(rank.process)}/environ | grep {name}"
    evidence = Evidence(f"{name} of {job}, pid {_pid(rank.process)}", shown, usual, "", None, check)
    return Verified(rank.device, summary, (evidence,), for_polls=polls)


HCCL: tuple[Rule, ...] = (
    Rule(
        "hccl_ports_conflict",
        "NpuHcclPortsConflict",
        Severity.WARNING,
        False,
        Action.ALIGN_SETTINGS,
        _NEEDS,
        ("hccl_ports_s",),
        "The host ports on which a job's HCCL must listen have been held by another job for a minute.",
        _ports,
    ),
    Rule(
        "hccl_settings_differ",
        "NpuHcclSettingsDiffer",
        Severity.WARNING,
        False,
        Action.ALIGN_SETTINGS,
        _NEEDS,
        ("shared_polls",),
        "Ranks of one job were started with HCCL settings that do not agree.",
        _settings,
    ),
)
