"""What one value of the config may be: a text with its unit in, a checked number or name out."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

_UNIT_S = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_DURATION = re.compile(r"".join(rf"(?:(?P<{unit}>\d+(?:\.\d+)?){unit}(?![a-z]))?" for unit in _UNIT_S))
_LONGEST_S = 3650 * 86400.0
_SIZE = re.compile(r"(\d+)(B|KiB|MiB|GiB|TiB)")
_SIZE_BYTES = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
_HOST_PORT = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]*):(?P<port>\d{1,5})")


class BadValue(ValueError):
    """A value that cannot be meant: what is wrong with it, and what to write instead."""

    def __init__(self, problem: str, cure: str) -> None:
        super().__init__(f"{problem}; {cure}")
        self.problem = problem
        self.cure = cure


def toml_text(value: object) -> str:
    """`value` as a person would write it in the file."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Seconds | Size):
        return f'"{value}"'
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, tuple | list):
        return f"[{', '.join(toml_text(item) for item in value)}]"
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{toml_text(name)} = {toml_text(item)}' for name, item in value.items())} }}"
    return json.dumps(str(value), ensure_ascii=False)


def _text(raw: object, cure: str) -> str:
    if not isinstance(raw, str):
        raise BadValue(f"is {described(raw)}", cure)
    if not raw or raw.isspace():
        raise BadValue("is empty", cure)
    if not raw.isprintable():
        raise BadValue(f"{json.dumps(raw)} has control characters in it", cure)
    return raw


def described(raw: object) -> str:
    """A TOML value in words, for messages."""
    match raw:
        case bool():
            return f"{str(raw).lower()}"
        case int() | float():
            return f"the number {raw}"
        case str():
            return f"the text {json.dumps(raw, ensure_ascii=False)}"
        case list():
            return "a list"
        case dict():
            return "a table"
    return f"the date or time {raw}"


class Seconds(float):
    """A duration, written with its units: `15s`, `250ms`, `1h30m`."""

    EXPECTED = 'a duration such as "15s", "250ms" or "1h30m"'

    @classmethod
    def parse(cls, raw: object) -> Self:
        text = _text(raw, f"write {cls.EXPECTED}")
        match = _DURATION.fullmatch(text)
        if match is None:
            raise BadValue(f"{json.dumps(text)} is no duration", f"write {cls.EXPECTED}")
        seconds = sum(float(number) * _UNIT_S[unit] for unit, number in match.groupdict().items() if number)
        if seconds < _UNIT_S["ms"]:
            raise BadValue(f"{json.dumps(text)} is no time at all", "write at least 1ms")
        if seconds > _LONGEST_S:
            raise BadValue(f"{json.dumps(text)} is longer than ten years", f"write {cls.EXPECTED}")
        return cls(round(seconds, 6))

    def __str__(self) -> str:
        left_ms = round(self * 1000)
        parts = []
        for unit, unit_s in _UNIT_S.items():
            count, left_ms = divmod(left_ms, round(unit_s * 1000))
            if count:
                parts.append(f"{count}{unit}")
        return "".join(parts)


class Size(int):
    """An amount of memory or disk in bytes, written with its unit: `200MiB`."""

    EXPECTED = 'a size such as "200MiB" (B, KiB, MiB, GiB, TiB)'

    @classmethod
    def parse(cls, raw: object) -> Self:
        text = _text(raw, f"write {cls.EXPECTED}")
        match = _SIZE.fullmatch(text)
        if match is None:
            raise BadValue(f"{json.dumps(text)} is no size", f"write {cls.EXPECTED}")
        size = int(match[1]) * _SIZE_BYTES[match[2]]
        if size == 0:
            raise BadValue(f"{json.dumps(text)} is no space at all", f"write {cls.EXPECTED}")
        return cls(size)

    def __str__(self) -> str:
        unit = next(unit for unit in reversed(_SIZE_BYTES) if self % _SIZE_BYTES[unit] == 0)
        return f"{self // _SIZE_BYTES[unit]}{unit}"


class Share(float):
    """A part of a whole, above 0 and at most 1."""

    EXPECTED = "a share above 0 and at most 1, such as 0.2"

    @classmethod
    def parse(cls, raw: object) -> Self:
        if isinstance(raw, bool) or not isinstance(raw, int | float):
            raise BadValue(f"is {described(raw)}", f"write {cls.EXPECTED}")
        if math.isnan(raw) or not 0 < raw <= 1:
            raise BadValue(f"{raw} is out of range", f"write {cls.EXPECTED}")
        return cls(raw)


class Count(int):
    """A number of things: 0 or more."""

    EXPECTED = "a whole number, 0 or more"

    @classmethod
    def parse(cls, raw: object) -> Self:
        if isinstance(raw, bool) or not isinstance(raw, int):
            raise BadValue(f"is {described(raw)}", f"write {cls.EXPECTED}")
        if raw < 0:
            raise BadValue(f"{raw} is negative", f"write {cls.EXPECTED}, or leave the key out")
        return cls(raw)


class Name(str):
    """A name for people: printable, at most 253 characters (the longest that DNS allows a host)."""

    EXPECTED = "a name of at most 253 printable characters"

    @classmethod
    def parse(cls, raw: object) -> Self:
        text = _text(raw, f"write {cls.EXPECTED}")
        if len(text) > 253:
            raise BadValue(f"has {len(text)} characters", f"write {cls.EXPECTED}")
        return cls(text)


class Tool(str):
    """A program: a name looked up on PATH, or an absolute path."""

    EXPECTED = 'a name on PATH, such as "npu-smi", or an absolute path'

    @classmethod
    def parse(cls, raw: object) -> Self:
        text = _text(raw, f"write {cls.EXPECTED}")
        if "/" in text and not text.startswith("/"):
            raise BadValue(f"{json.dumps(text)} is a relative path", f"write {cls.EXPECTED}")
        return cls(text)


class Glob(str):
    """An absolute path in which `*`, `?` and `[…]` stand for what a shell lets them stand for."""

    EXPECTED = 'an absolute path, with * where needed, such as "/var/log/npu/slog/*/*.log"'

    @classmethod
    def parse(cls, raw: object) -> Self:
        text = _text(raw, f"write {cls.EXPECTED}")
        if not text.startswith("/"):
            raise BadValue(f"{json.dumps(text)} is relative", f"write {cls.EXPECTED}")
        return cls(text)


class RdmaPortName(str):
    """One port of one RDMA device of the host."""

    EXPECTED = 'a device and its port, such as "mlx5_0/1"'

    @classmethod
    def parse(cls, raw: object) -> Self:
        text = _text(raw, f"write {cls.EXPECTED}")
        device, slash, port = text.rpartition("/")
        if not (slash and device and port.isascii() and port.isdigit()):
            raise BadValue(f"{json.dumps(text)} is no port", f"write {cls.EXPECTED}")
        return cls(text)


class Url(str):
    """An http or https address with a host."""

    EXPECTED = 'an address such as "http://prometheus:9090"'

    @classmethod
    def parse(cls, raw: object) -> Self:
        text = _text(raw, f"write {cls.EXPECTED}")
        try:
            parts = urlsplit(text)
            whole = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            whole = False
        if not whole or any(character.isspace() for character in text):
            raise BadValue(f"{json.dumps(text)} is no http or https address", f"write {cls.EXPECTED}")
        return cls(text)


class PlainUrl(Url):
    """An http or https address of a server: without credentials, which belong into a file, and without a query."""

    EXPECTED = 'an address such as "http://host:8080"'
    CREDENTIALS = "write the address alone; no credentials are sent there"

    @classmethod
    def parse(cls, raw: object) -> Self:
        text = _text(raw, f"write {cls.EXPECTED}")
        if "@" in text:
            # The text is not shown: a password may stand in it.
            raise BadValue("has a user or a password in it", cls.CREDENTIALS)
        parts = urlsplit(super().parse(text))
        if parts.query or parts.fragment:
            raise BadValue(f"{json.dumps(text)} has a query or a fragment in it", f"write {cls.EXPECTED}")
        return cls(text)


class AlertmanagerUrl(PlainUrl):
    """One Alertmanager: what stands before its `/api/v2/alerts`."""

    EXPECTED = 'an address such as "http://am1:9093"'
    CREDENTIALS = "write alertmanager.basic_auth_user and alertmanager.basic_auth_password_file instead"

    @classmethod
    def parse(cls, raw: object) -> Self:
        url = super().parse(raw)
        base, api, _ = url.partition("/api/v")
        if api:
            raise BadValue(f"{json.dumps(url)} goes on to the API", f"write {json.dumps(base)}")
        return url


class Address(str):
    """Where to listen: `host:port`; an IPv6 host in brackets; no host means every address."""

    EXPECTED = 'host:port, such as "0.0.0.0:18910" or "[::1]:18910"'

    @classmethod
    def parse(cls, raw: object) -> Self:
        text = _text(raw, f"write {cls.EXPECTED}")
        match = _HOST_PORT.fullmatch(text)
        if match is None:
            raise BadValue(f"{json.dumps(text)} is not host:port", f"write {cls.EXPECTED}")
        if int(match["port"]) > 65535:
            raise BadValue(f"{json.dumps(text)}: the port is above 65535", f"write {cls.EXPECTED}")
        return cls(text)

    @property
    def host(self) -> str:
        """Without brackets; `0.0.0.0` where none is written."""
        return self.rpartition(":")[0].strip("[]") or "0.0.0.0"  # noqa: S104 - what an absent host means

    @property
    def port(self) -> int:
        """0: the kernel chooses a free one."""
        return int(self.rpartition(":")[2])


def absolute_path(raw: object) -> Path:
    """A path that does not depend on the daemon's working directory. Raises BadValue."""
    text = _text(raw, f"write {PATH_EXPECTED}")
    if not text.startswith("/"):
        raise BadValue(f"{json.dumps(text)} is relative", f"write {PATH_EXPECTED}")
    return Path(text)


PATH_EXPECTED = "an absolute path"

CHECKED = (Seconds, Size, Share, Count, Name, Tool, Glob, RdmaPortName, Url, PlainUrl, AlertmanagerUrl, Address)
"""The types that parse their own text."""


def decoded(wanted: type, raw: object) -> object:
    """A raw TOML value as a `wanted`: msgspec's `dec_hook`. Raises BadValue."""
    if wanted is Path:
        return absolute_path(raw)
    return next(checked for checked in CHECKED if checked is wanted).parse(raw)
