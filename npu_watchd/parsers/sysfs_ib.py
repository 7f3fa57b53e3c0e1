"""Text of the files below /sys/class/infiniband: the facts of ibstat, in ibstat's words, without ibstat.

One file, one value: a file that cannot be read or trusted costs its own value and nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from npu_watchd.model.fabric import RdmaPort
from npu_watchd.parsers import port_fields, port_states
from npu_watchd.parsers.lines import Line, ParseError, integer, quoted

_NUMBERED = re.compile(r"(?P<number>\d{1,3})\s*:\s*(?P<word>.{0,60})", re.ASCII)
_RATE = re.compile(r"(?P<gbps>\d{1,6}(?:\.\d{1,3})?) Gb/sec(?: \([^)]{1,40}\))?", re.ASCII)
_GROUPS = re.compile(r"[0-9a-fA-F]{4}(?::[0-9a-fA-F]{4}){3}")
_GID = re.compile(rf"{_GROUPS.pattern}:(?P<interface>{_GROUPS.pattern})")

CA_FILES = ("hca_type", "fw_ver", "hw_rev", "node_guid", "sys_image_guid")
"""Below /sys/class/infiniband/<device>."""
PORT_FILES = ("state", "phys_state", "rate", "lid", "lid_mask_count", "sm_lid", "cap_mask", "link_layer")
"""Below /sys/class/infiniband/<device>/ports/<port>."""
GID_FILE = "gids/0"
NETDEV_FILE = "gid_attrs/ndevs/0"
"""Likewise; EINVAL where the port has no network device."""


def state(text: str) -> str | None:
    """`4: ACTIVE` as Active; None for a state without a name. Raises ParseError."""
    return port_states.state_of_number(_number(text))


def physical_state(text: str) -> str | None:
    """`5: LinkUp` as LinkUp; None for a state without a name. Raises ParseError."""
    return port_states.physical_state_of_number(_number(text))


def rate_gbps(text: str) -> float | None:
    """`200 Gb/sec (4X HDR)` in Gbit/s; None for 0, which a port without a module prints. Raises ParseError."""
    line = _line(text)
    match = _RATE.fullmatch(line.text)
    if match is None:
        raise line.refuse("no rate")
    return float(match["gbps"]) or None


def counter(text: str) -> int | None:
    """One file of counters/ or hw_counters/; None for `N/A (no PMA)`. Raises ParseError."""
    line = _line(text)
    return None if line.text.startswith("N/A") else integer(line, line.text)


def port(
    ca: str, number: int, ca_files: Mapping[str, str], port_files: Mapping[str, str]
) -> tuple[RdmaPort, tuple[str, ...]]:
    """The port that these files' texts make, and for each file that cannot be trusted what is wrong with it.

    A file that is not there (None of the names above must be) leaves its value None.
    """
    values: dict[str, Any] = {}
    errors: list[str] = []
    for files, known in ((ca_files, _CA_VALUES), (port_files, _PORT_VALUES)):
        for name, (key, read) in known.items():
            if name not in files:
                continue
            try:
                values[key] = read(files[name])
            except ParseError as error:
                errors.append(f"{ca}/{number} {name}: {error.problem}")
    return RdmaPort(ca=ca, port=number, **values), tuple(errors)


def _line(text: str) -> Line:
    return Line(1, text.strip(), ended=True)


def _number(text: str) -> int:
    line = _line(text)
    match = _NUMBERED.fullmatch(line.text)
    if match is None:
        raise line.refuse("no state")
    return int(match["number"])


def _word(text: str) -> str | None:
    line = _line(text)
    return port_fields.word(line, line.text)


def _hexadecimal(text: str) -> int | None:
    line = _line(text)
    return port_fields.mask(line, line.text)


def _guid(text: str) -> str | None:
    line = _line(text)
    if not _GROUPS.fullmatch(line.text):
        raise line.refuse(f"{quoted(line.text)} is no GUID")
    return "0x" + line.text.replace(":", "").lower()


def _gid(text: str) -> str | None:
    line = _line(text)
    match = _GID.fullmatch(line.text)
    if match is None:
        raise line.refuse("no GID")
    return _guid(match["interface"])


_Read = Callable[[str], Any]
_CA_VALUES: dict[str, tuple[str, _Read]] = {
    "hca_type": ("ca_type", _word),
    "fw_ver": ("firmware", _word),
    "hw_rev": ("hardware_version", _word),
    "node_guid": ("node_guid", _guid),
    "sys_image_guid": ("system_image_guid", _guid),
}
_PORT_VALUES: dict[str, tuple[str, _Read]] = {
    "state": ("state", state),
    "phys_state": ("physical_state", physical_state),
    "rate": ("rate_gbps", rate_gbps),
    "lid": ("base_lid", _hexadecimal),
    "lid_mask_count": ("lmc", counter),
    "sm_lid": ("sm_lid", _hexadecimal),
    "cap_mask": ("capability_mask", _hexadecimal),
    GID_FILE: ("port_guid", _gid),
    "link_layer": ("link_layer", _word),
    NETDEV_FILE: ("netdev", _word),
}
