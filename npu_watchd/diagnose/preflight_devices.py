"""Of the chips that a job wants: are they there, well, free, and are their links up and alike?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from npu_watchd.diagnose.preflight import Check, Document, Result, passed, unknown

_STATES = {
    "healthy": Result.PASSED,
    "watch": Result.WARNING,
    "probation": Result.WARNING,
    "quarantine": Result.FAILED,
}


def wanted_devices(document: Document, asked: tuple[str, ...]) -> tuple[str, ...]:
    """Those of `--devices`; all that the node should have where none is named."""
    return asked or tuple(one["device_id"] for one in document["devices"])


def device_checks(document: Document, wanted: tuple[str, ...], *, exclusive: bool) -> tuple[Check, ...]:
    """One check after another for each device, then those that hold devices against each other."""
    known = {one["device_id"]: one for one in document["devices"]}
    verdicts = {one["device_id"]: one for one in document["verdicts"] if one["device_id"] is not None}
    found: list[Check] = []
    if not wanted:
        why = "; ".join(one["detail"] for one in document["blind"].values()) or "the tools show no device"
        found.append(unknown("present", why, "npu-smi info; npu-watchd status"))
    for device_id in wanted:
        device = known.get(device_id)
        if device is None:
            shown = ", ".join(known) or "none"
            text = f"device {device_id} is not known here; there are {shown}"
            found.append(Check("present", Result.FAILED, text, "npu-smi info -l; lspci -d 19e5:", device_id))
            continue
        found.append(_present(device))
        if device["present"]:
            found.append(_healthy(device, verdicts.get(device_id)))
            found.append(_free(device, exclusive=exclusive))
            found += _link(device)
            found += _pcie(device)
    some = [known[one] for one in wanted if one in known]
    found += _speeds(some)
    found += _host_ports(document)
    return tuple(found)


def _present(device: Document) -> Check:
    name, device_id = "present", device["device_id"]
    if device["present"] is None:
        return unknown(name, _blind(device, "npu_info"), "npu-smi info", device_id)
    if not device["present"]:
        return Check(name, Result.FAILED, "it is not in the table", "npu-watchd explain NpuDeviceMissing", device_id)
    return passed(name, str(device["name"] or "a chip of unknown name"), device_id)


def _healthy(device: Document, verdict: Document | None) -> Check:
    """The verdict, which knows what climbs; and the health that the chip has at this moment, whichever is worse."""
    name, device_id = "healthy", device["device_id"]
    if verdict is None:
        return unknown(name, "nothing was judged yet", "npu-watchd status", device_id)
    result = _STATES.get(verdict["state"], Result.UNKNOWN)
    reasons = "; ".join(str(one["text"]) for one in verdict["reasons"])
    if verdict["blind"] and result is not Result.FAILED:
        result = Result.UNKNOWN
    if result is Result.PASSED and device["health"] != "ok":
        return unknown(name, f"its health is {device['health']}", f"npu-watchd explain device {device_id}", device_id)
    cure = None if result is Result.PASSED else f"npu-watchd explain device {device_id}"
    return Check(name, result, f"{verdict['state']}: {reasons}" if reasons else verdict["state"], cure, device_id)


def _free(device: Document, *, exclusive: bool) -> Check:
    name, device_id = "free", device["device_id"]
    processes = device["processes"]
    if processes is None:
        return unknown(name, f"who uses it cannot be seen: {_blind(device, 'npu_info')}", "npu-smi info", device_id)
    if not processes:
        return passed(name, "no process", device_id)
    who = ", ".join(f"{one['name'] or 'a process'} ({one['pid']})" for one in processes[:3])
    more = f" and {len(processes) - 3} more" if len(processes) > 3 else ""
    cure = "end what is left over (npu-watchd status says whose it is), or choose other devices"
    return Check(name, Result.FAILED if exclusive else Result.WARNING, f"in use by {who}{more}", cure, device_id)


def _link(device: Document) -> Iterator[Check]:
    """The NPU's own RoCE port; a chip without one has nothing to check."""
    roce, device_id = device["roce"], device["device_id"]
    up = None if roce is None else roce["link_up"]
    if up is None:
        failure = device["blind"].get("hccn_link")
        if failure is not None or roce is not None:
            why = failure["detail"] if failure else "its state was not read"
            yield unknown("link", why, f"hccn_tool -i {device_id} -link -g", device_id)
    elif not up:
        cure = f"hccn_tool -i {device_id} -link_stat -g; check cable, optics and switch port"
        yield Check("link", Result.FAILED, "the RoCE port is down", cure, device_id)
    elif roce["reachability"] not in (None, "success"):
        cure = f"hccn_tool -i {device_id} -net_health -g; check netdetect and gateway in /etc/hccn.conf"
        yield Check("link", Result.WARNING, f"up, but net health says {roce['reachability']}", cure, device_id)
    else:
        yield passed("link", "up", device_id)


def _pcie(device: Document) -> Iterator[Check]:
    link, device_id = device["pcie_link"], device["device_id"]
    if link is not None and link["narrow"]:
        cure = "npu-watchd explain NpuPcieLinkDegraded"
        found = f"{link['lanes']} of {link['path_max_lanes']} lanes"
        yield Check("pcie", Result.WARNING, found, cure, device_id)
    elif link is not None and link["lanes"] is not None:
        yield passed("pcie", f"{link['lanes']} lanes", device_id)


def _speeds(devices: list[Document]) -> Iterator[Check]:
    ports = {one["device_id"]: one["roce"] for one in devices if one["roce"] is not None and one["roce"]["link_up"]}
    if len(ports) < 2:
        return
    by_speed = _grouped({name: port["bits_per_second"] for name, port in ports.items()}, _gigabits)
    unread = by_speed.pop("?", ())
    if len(by_speed) > 1:
        told = "; ".join(f"{speed}: {', '.join(names)}" for speed, names in sorted(by_speed.items()))
        cure = "hccn_tool -i N -speed -g; set the switch's ports alike: the slowest one paces all"
        yield Check("equal speed", Result.FAILED, told, cure)
    elif unread:
        yield unknown("equal speed", f"not read of {', '.join(unread)}", "hccn_tool -i N -speed -g")
    else:
        yield passed("equal speed", next(iter(by_speed)))


def _gigabits(bits_per_second: int | None) -> str:
    return "?" if bits_per_second is None else f"{bits_per_second / 1e9:g} Gbit/s"


def _grouped(values: Mapping[str, int | None], word: Callable[[int | None], str]) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for name, value in values.items():
        found[word(value)] = (*found.get(word(value), ()), name)
    return found


def _host_ports(document: Document) -> Iterator[Check]:
    for port in document["ports"]:
        name = f"{port['rdma_device']}/{port['port']}"
        if port["up"] is False and port["expected"]:
            yield Check("host port", Result.FAILED, f"{name} is down", f"ibstat {port['rdma_device']}")
        elif port["up"] is None and port["expected"]:
            yield unknown("host port", f"{name} cannot be seen", f"ibstat {port['rdma_device']}")
        elif port["up"]:
            yield passed("host port", f"{name} is up")


def _blind(device: Document, probe: str) -> str:
    failure = device["blind"].get(probe)
    return str(failure["detail"]) if failure else f"{probe} does not tell"
