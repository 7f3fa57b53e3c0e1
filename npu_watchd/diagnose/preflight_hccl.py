"""What a job is told by its environment, and where its ranks will listen: HCCL_*, ports, device lists, hccn.conf."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from ipaddress import ip_address

from npu_watchd.diagnose.preflight import Check, Result, passed, unknown
from npu_watchd.model.hccl import Choice, HostPorts, device_list
from npu_watchd.model.reading import Failure, FailureKind

_RANGES: Mapping[str, tuple[int, int]] = {
    "HCCL_CONNECT_TIMEOUT": (120, 7200),
    "HCCL_EXEC_TIMEOUT": (0, 2147483647),
    "HCCL_RDMA_TIMEOUT": (5, 24),
    "HCCL_RDMA_RETRY_CNT": (1, 7),
    "HCCL_INTRA_PCIE_ENABLE": (0, 1),
    "HCCL_INTRA_ROCE_ENABLE": (0, 1),
    "MS_BUILD_PROCESS_NUM": (1, 24),
}
"""Variable → what its page allows; of the RDMA timeout the widest of all chips."""
_NUMBER = re.compile(r"[0-9]{1,10}", re.ASCII)
_SPAN = re.compile(r"(?P<first>[0-9]{1,5})(?:-(?P<last>[0-9]{1,5}))?", re.ASCII)
_SETTING = re.compile(r"(?P<key>[a-z_]+)_(?P<number>[0-9]{1,3})", re.ASCII)


def settings_checks(environ: Mapping[str, str], wanted: tuple[str, ...]) -> tuple[Check, ...]:
    """Of the environment in which preflight runs, which should be the job's."""
    wrong = [*_out_of_range(environ), *_contradicting(environ, wanted)]
    if wrong:
        return tuple(wrong)
    given = sorted(name for name in environ if name.startswith("HCCL_"))
    return (passed("HCCL settings", ", ".join(f"{name}={environ[name]}" for name in given) or "all at their defaults"),)


def _out_of_range(environ: Mapping[str, str]) -> Iterator[Check]:
    for name, (low, high) in _RANGES.items():
        value = environ.get(name)
        if value and not (_NUMBER.fullmatch(value) and low <= int(value) <= high):
            cure = f"set {name} to {low} to {high}, or leave it out"
            yield Check("HCCL settings", Result.FAILED, f"{name}={value[:40]}", cure)
    if HostPorts.of(environ) is None:
        ports = ", ".join(
            f"{name}={environ[name][:40]}"
            for name in ("HCCL_IF_BASE_PORT", "HCCL_HOST_SOCKET_PORT_RANGE")
            if name in environ
        )
        yield Check("HCCL settings", Result.FAILED, ports, "a base port is 1024 to 65520; a range 61000-61050 or auto")
    address = environ.get("HCCL_IF_IP")
    if address and not _is_address(address):
        yield Check("HCCL settings", Result.FAILED, f"HCCL_IF_IP={address[:40]}", "write an address of this host")


def _contradicting(environ: Mapping[str, str], wanted: tuple[str, ...]) -> Iterator[Check]:
    connect, run = environ.get("HCCL_CONNECT_TIMEOUT", "120"), environ.get("HCCL_EXEC_TIMEOUT", "")
    if _NUMBER.fullmatch(connect) and _NUMBER.fullmatch(run) and 0 < int(run) <= int(connect):
        found = f"HCCL_EXEC_TIMEOUT={run} is not above HCCL_CONNECT_TIMEOUT={connect}"
        cure = "set it above: else the first error in the log is not the cause"
        yield Check("HCCL settings", Result.WARNING, found, cure)
    visible = environ.get("ASCEND_RT_VISIBLE_DEVICES")
    if not visible:
        return
    listed = device_list(visible)
    if listed is None:
        found = f"ASCEND_RT_VISIBLE_DEVICES={visible[:60]}"
        yield Check("HCCL settings", Result.FAILED, found, "write device ids, rising: 0,1,2,3")
    elif missing := [one for one in wanted if one.isdigit() and int(one) not in listed]:
        found = f"ASCEND_RT_VISIBLE_DEVICES={visible[:60]} leaves out {', '.join(missing)}"
        yield Check("HCCL settings", Result.WARNING, found, "name the same devices in --devices")


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def port_checks(environ: Mapping[str, str], reserved: str | Failure, ephemeral: str | Failure) -> Iterator[Check]:
    """Whether another program may be handed a port on which HCCL will listen.

    reserved, ephemeral: net.ipv4.ip_local_reserved_ports and ip_local_port_range.
    """
    plan = HostPorts.of(environ)
    if plan is None or plan.choice is Choice.AUTO:
        return
    if isinstance(ephemeral, Failure) or isinstance(reserved, Failure):
        failure = ephemeral if isinstance(ephemeral, Failure) else reserved
        yield unknown("HCCL ports", failure.detail if isinstance(failure, Failure) else "")
        return
    low, high = (int(word) for word in ephemeral.split()[:2])
    kept = tuple(_spans(reserved))
    loose = [
        port
        for first, last in plan.ranges
        for port in range(first, last + 1)
        if low <= port <= high and not any(start <= port <= end for start, end in kept)
    ]
    if not loose:
        yield passed("HCCL ports", f"{plan} are reserved, or not given to others")
        return
    found = f"the kernel may give {loose[0]} to {loose[-1]} to any program"
    wants = ",".join(filter(None, (reserved.strip(), str(plan))))
    yield Check("HCCL ports", Result.WARNING, found, f"sysctl -w net.ipv4.ip_local_reserved_ports={wants}")


def _spans(text: str) -> Iterator[tuple[int, int]]:
    for part in text.strip().split(","):
        match = _SPAN.fullmatch(part)
        if match is not None:
            yield int(match["first"]), int(match["last"] or match["first"])


def hccn_conf_checks(text: str | Failure, with_port: tuple[str, ...]) -> Iterator[Check]:
    """/etc/hccn.conf: address and netmask of each device that has a port of its own, no address twice.

    with_port: device_ids. Without any there is nothing to check.
    """
    name = "hccn.conf"
    if not with_port:
        return
    if isinstance(text, Failure):
        missing = text.kind is FailureKind.MISSING
        cure = "hccn_tool -i N -ip -s address A netmask M writes it; in a container look on the host"
        yield Check(name, Result.FAILED if missing else Result.UNKNOWN, text.detail, cure)
        return
    found: dict[tuple[str, str], str] = {}
    for line in text.splitlines():
        key, equals, value = line.strip().partition("=")
        match = _SETTING.fullmatch(key.strip())
        if equals and match is not None:
            found[match["key"], match["number"]] = value.strip()
    wrong = [
        f"{key}_{number}"
        for number in with_port
        for key in ("address", "netmask")
        if not _is_address(found.get((key, number), ""))
    ]
    addresses = [found[key] for key in found if key[0] == "address" and key[1] in with_port]
    twice = sorted({address for address in addresses if address and addresses.count(address) > 1})
    if wrong:
        cure = "hccn_tool -i N -ip -s address A netmask M, for each"
        yield Check(name, Result.FAILED, f"without a good {', '.join(wrong)}", cure)
    if twice:
        yield Check(name, Result.FAILED, f"{', '.join(twice)} stands there twice", "give each device its own address")
    unguarded = [number for number in with_port if ("netdetect", number) not in found]
    if unguarded and not wrong:
        cure = "hccn_tool -i N -netdetect -s address GATEWAY: without it net health tells nothing"
        yield Check(name, Result.WARNING, f"no netdetect of {', '.join(unguarded)}", cure)
    elif not wrong and not twice:
        yield passed(name, f"{len(with_port)} addresses")
