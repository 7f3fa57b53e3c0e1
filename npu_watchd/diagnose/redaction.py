"""Takes out of a text what must not leave the site, the same word always by the same mark; and keeps count."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from ipaddress import ip_address

_IPV4 = re.compile(r"(?<![\w.])(?:[0-9]{1,3}\.){3}[0-9]{1,3}(?![0-9]|\.[0-9])")
"""Not a firmware's 7.1.0.11.220. A version of four numbers does look like an address, and goes."""
_IPV6 = re.compile(r"(?<![\w:.])(?:[0-9A-Fa-f]{0,4}:){2,7}[0-9A-Fa-f]{0,4}(?![\w:.])")
_MAC = re.compile(r"(?<![\w:])(?:[0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}(?![\w:])")
_SECRET = re.compile(
    r"(?P<key>(?<![\w.-])[\w.-]{0,60}?(?:passw(?:or)?d|passwd|secret|token|api[_-]?key|access[_-]?key|credential|authorization)[\w.-]{0,60}"
    r"[\"']?\s*[:=]\s*)(?P<value>(?:bearer\s+|basic\s+)?(?:\"[^\"\n]*\"|'[^'\n]*'|[^\s,;&\"'}]+))",
    re.IGNORECASE,
)
_BEARER = re.compile(r"(?i)(?P<key>\b(?:bearer|basic)\s+)(?P<value>[A-Za-z0-9+/=._-]{12,})")
_JWT = re.compile(r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*")
_URL_USER = re.compile(
    r"(?P<key>(?<![a-z0-9+.-])[a-z][a-z0-9+.-]{0,20}://)(?P<value>[^\s/@:]{1,200}(?::[^\s/@]{0,200})?)(?=@)"
)
_SERIAL = re.compile(
    r"(?P<key>(?:serial[ _]?(?:number|no\.?|num)|\bSN|(?:node|port|system image|sys_image)[ _]guid|"
    r"\bvdie[ _]?id|\bdie[ _]id)"
    r"[\"']?[ \t]*[:=][ \t]*[\"']?)(?P<value>[^\s\"',}|]+(?:[ ][0-9A-F]{4,})*)",
    re.IGNORECASE,
)
_HOME = re.compile(r"(?P<key>/(?:home|data/home|Users)/)(?P<value>[^/\s\"':;,]+)")
_USER = re.compile(
    r"(?P<key>\b(?:user(?:name)?|owner|login|logname|acknowledged_by|(?<=\")by(?=\"))[\"']?\s*[:=]\s*[\"']?)"
    r"(?P<value>[A-Za-z_][\w.@$-]*)",
    re.IGNORECASE,
)
_KEPT_USERS = frozenset({"root", "null", "none", "HwHiAiUser", "true", "false", "the"})
_KEPT_VALUES = frozenset({"null", "None", "NA", "N/A", "-", ""})
KINDS = ("secret", "mac", "ip", "serial", "user", "host")


class Redactor:
    """For all texts of one bundle, so that a mark means the same everywhere in it."""

    def __init__(self, hosts: Iterable[str] = (), users: Iterable[str] = ()) -> None:
        """hosts, users: names that are known; others are found by the words around them."""
        self._marks: dict[tuple[str, str], str] = {}
        self._counts = dict.fromkeys(KINDS, 0)
        self._known: list[tuple[str, re.Pattern[str]]] = []
        for kind, names in (("host", hosts), ("user", users)):
            found = {name for name in names if len(name) > 1 and name not in ("localhost", *_KEPT_USERS)}
            words = "|".join(re.escape(name) for name in sorted(found, key=len, reverse=True))
            if words:
                self._known.append((kind, re.compile(rf"(?<![A-Za-z0-9])(?:{words})(?![A-Za-z0-9])")))

    def redact(self, text: str) -> str:
        """The text with marks such as <ip-3>. Of a secret not even two equal ones can be told."""
        text = _JWT.sub(lambda _: self._secret(), text)
        text = _URL_USER.sub(lambda one: one["key"] + self._secret(), text)
        text = _SECRET.sub(self._valued, text)
        text = _BEARER.sub(lambda one: one["key"] + self._secret(), text)
        text = _SERIAL.sub(lambda one: self._keyed("serial", one), text)
        text = _MAC.sub(lambda one: self._mark("mac", one[0].lower()), text)
        text = _IPV4.sub(self._address, text)
        text = _IPV6.sub(self._address, text)
        text = _HOME.sub(lambda one: self._keyed("user", one), text)
        text = _USER.sub(lambda one: self._keyed("user", one), text)
        for kind, pattern in self._known:
            text = pattern.sub(lambda one, kind=kind: self._mark(kind, one[0]), text)  # type: ignore[misc]
        return text

    @property
    def counts(self) -> Mapping[str, int]:
        """Kind → how many different ones were taken out; of secrets how many in all. Never the words themselves."""
        return dict(self._counts)

    def _secret(self) -> str:
        self._counts["secret"] += 1
        return "<secret>"

    def _valued(self, one: re.Match[str]) -> str:
        bare = one["value"].strip("\"'")
        if bare in _KEPT_VALUES or bare.startswith("<"):
            return one[0]
        quote = one["value"][0] if one["value"][0] in "\"'" else ""
        return f"{one['key']}{quote}{self._secret()}{quote}"

    def _keyed(self, kind: str, one: re.Match[str]) -> str:
        value = one["value"]
        if value in _KEPT_VALUES or value in _KEPT_USERS or value.startswith("<"):
            return one[0]
        return one["key"] + self._mark(kind, value)

    def _address(self, one: re.Match[str]) -> str:
        try:
            address = ip_address(one[0])
        except ValueError:
            return one[0]
        kept = address.is_loopback or address.is_unspecified
        return one[0] if kept else self._mark("ip", str(address))

    def _mark(self, kind: str, word: str) -> str:
        if (kind, word) not in self._marks:
            self._counts[kind] += 1
            self._marks[kind, word] = f"<{kind}-{self._counts[kind]}>"
        return self._marks[kind, word]
