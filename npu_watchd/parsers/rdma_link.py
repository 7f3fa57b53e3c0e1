"""`rdma link show` and `rdma -j link show`: the ports that the kernel's RDMA netlink knows.

No rate, no firmware: `rdma` does not print them. `/1` after a device is its port.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from npu_watchd.model.fabric import RdmaPort, RdmaPorts
from npu_watchd.model.reading import FailureKind
from npu_watchd.parsers import port_fields, port_states
from npu_watchd.parsers.lines import Line, ParseError, lines_of

# `link mlx5_0/1 …`; before iproute2 5.1 `1/1: mlx5_0/1: …`.
_LINK = re.compile(r"(?:link |\d{1,5}/\d{1,5}: )(?P<ca>[^\s/:]{1,64})/(?P<port>\d{1,5}):?(?: (?P<rest>.*))?", re.ASCII)
_CAPABILITIES = re.compile(r"caps: <")
_NO_NETLINK = re.compile(r"Failed to open NETLINK_RDMA socket")
_FIELDS: dict[str, tuple[str, Callable[[Line, str], Any]]] = {
    "state": ("state", port_states.state),
    "physical_state": ("physical_state", port_states.physical_state),
    "lid": ("base_lid", port_fields.count),
    "sm_lid": ("sm_lid", port_fields.count),
    "lmc": ("lmc", port_fields.count),
    "netdev": ("netdev", port_fields.word),
}
_IGNORED = {"subnet_prefix", "netdev_index", "ifindex", "ifname", "port", "caps"}
# `link_layer` is not printed, but only InfiniBand ports have a subnet.
_OF_INFINIBAND = "subnet_prefix"


def parse(text: str) -> RdmaPorts:
    """All links, in the tool's order. No text: the kernel knows no RDMA device.

    A link with a value that cannot be trusted is left out, and its line is in `errors`. Raises ParseError where the
    answer has no link but an error.
    """
    lines = list(lines_of(text))
    if text.lstrip().startswith("["):
        return _collect((Line(1, _shown(link), ended=True), link) for link in _links(lines, text))
    return _collect(_rows(lines))


_Row = tuple[Line, dict[str, str] | ParseError]


def _rows(lines: list[Line]) -> Iterator[_Row]:
    for line in lines:
        words = line.text.strip()
        if _NO_NETLINK.match(words):
            cure = "the kernel has no RDMA: load ib_core and the driver of the card"
            yield line, ParseError(line.number, f"{words} ({cure})", FailureKind.EXIT)
        elif not _CAPABILITIES.match(words):
            yield line, _pairs(line, words)


def _pairs(line: Line, words: str) -> dict[str, str] | ParseError:
    link = _LINK.fullmatch(words)
    if link is None:
        return line.refuse("no line of rdma link")
    parts = (link["rest"] or "").split()
    if not line.ended:
        if not parts:
            return line.refuse("cut off")
        # The last word may be cut, and is a key or a value: what is before that pair is whole.
        parts = parts[: (len(parts) - 1) // 2 * 2]
    if len(parts) % 2:
        return line.refuse("a key without its value")
    return {"ifname": link["ca"], "port": link["port"], **dict(zip(parts[::2], parts[1::2], strict=True))}


def _links(lines: list[Line], text: str) -> Iterator[dict[str, str] | ParseError]:
    try:
        links = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ParseError(lines[-1].number, "JSON of rdma that does not end well") from error
    for link in links:
        if isinstance(link, dict):
            yield {key: str(value) for key, value in link.items() if not isinstance(value, (list, dict))}
        else:
            yield ParseError(1, "JSON of rdma that is no list of links")


def _shown(link: dict[str, str] | ParseError) -> str:
    return "" if isinstance(link, ParseError) else " ".join(f"{key} {value}" for key, value in link.items())


def _collect(rows: Iterator[_Row]) -> RdmaPorts:
    ports: dict[tuple[str, int], RdmaPort] = {}
    errors: list[ParseError] = []
    unknown: dict[str, None] = {}
    for line, values in rows:
        try:
            if isinstance(values, ParseError):
                raise values
            port = _port(line, values)
            if (port.ca, port.port) in ports:
                raise line.refuse("the same link twice")
        except ParseError as error:
            errors.append(error)
            continue
        ports[port.ca, port.port] = port
        known = _FIELDS.keys() | _IGNORED
        unknown.update(dict.fromkeys(key for key in values if key not in known and key.isprintable()))
    if errors and not ports:
        raise errors[0]
    said = (error.problem if error.kind is not FailureKind.UNPARSEABLE else str(error) for error in errors)
    return RdmaPorts(tuple(ports.values()), tuple(said), unknown_keys=tuple(unknown))


def _port(line: Line, values: dict[str, str]) -> RdmaPort:
    ca = port_fields.word(line, values.get("ifname", ""))
    number = port_fields.count(line, values.get("port", ""))
    if ca is None or number is None:
        raise line.refuse("a link without its device or its port")
    found = {name: read(line, values[key]) for key, (name, read) in _FIELDS.items() if key in values}
    if _OF_INFINIBAND in values:
        found["link_layer"] = "InfiniBand"
    return RdmaPort(ca=ca, port=number, **found)
