"""Files that say a version: version.info, version.cfg, ascend_*_install.info, METADATA of a Python package.

Source: files of the vendor's installers as its own tools ship them as test data, and the core metadata specification.
"""

from __future__ import annotations

import re

from npu_watchd.model.versions import ComponentVersion, VersionFile, VersionSpan
from npu_watchd.parsers.lines import Line, ParseError, lines_of

_ENTRY = re.compile(r"(?P<key>[A-Za-z][A-Za-z0-9_]{0,60})=(?P<value>.*)")
_RUNNING = re.compile(r"(?P<part>[A-Za-z][A-Za-z0-9_]{0,60})_running_version")
_PAIR = re.compile(r"\[(?P<inner>[A-Za-z0-9._-]{1,60}):(?P<version>[A-Za-z0-9._-]{1,60})\]")
_SPANS = re.compile(r"\[[^\[\]]{1,130}\](?:,\[[^\[\]]{1,130}\])*")
_SPAN = re.compile(r"\[(?P<first>[A-Za-z0-9._-]{1,60})(?:,(?P<last>[A-Za-z0-9._-]{1,60}))?\]")
_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,60}")
_HEADER = re.compile(r"(?P<key>Metadata-Version|Name|Version): *(?P<value>.*)")
_SEPARATORS = re.compile(r"[-_.]+")


def parse(text: str) -> VersionFile:
    """Whichever of the four it is. Raises ParseError. A last line that is cut is left out."""
    lines = [line for line in lines_of(text) if line.ended]
    if not lines:
        raise ParseError(1, "no whole line in the text")
    if lines[0].text.startswith("Metadata-Version:"):
        return _metadata(lines)
    entries = _entries(lines)
    if any(_RUNNING.fullmatch(key) for key in entries):
        return _cfg(entries)
    if "package_name" in entries:
        return _install(entries)
    if {"Version", "version"} & entries.keys():
        return _info(entries)
    raise lines[0].refuse("no version.info, version.cfg, install.info or METADATA")


_Entries = dict[str, tuple[str, Line]]


def _entries(lines: list[Line]) -> _Entries:
    found: _Entries = {}
    for line in lines:
        if line.text.startswith("#"):
            continue
        match = _ENTRY.fullmatch(line.text.strip())
        if match is None:
            raise line.refuse("no KEY=VALUE")
        if found.setdefault(match["key"], (match["value"].strip(), line))[0] != match["value"].strip():
            raise line.refuse("the key stands there twice, with two values")
    return found


def _info(entries: _Entries) -> VersionFile:
    return VersionFile(
        form="version.info",
        version=_version(entries, "Version", "version"),
        inner_version=_version(entries, "Innerversion", "innerversion"),
        package_version=_version(entries, "package_version"),
        compatible_firmware=_spans(entries, "compatible_version_fw"),
        compatible_driver=_spans(entries, "compatible_version_drv"),
        compatible=_spans(entries, "compatible_version"),
    )


def _install(entries: _Entries) -> VersionFile:
    return VersionFile(
        form="install.info",
        name=_word(entries, "package_name"),
        version=_version(entries, "version"),
        inner_version=_version(entries, "innerversion"),
        compatible=_spans(entries, "compatible_version"),
        arch=_word(entries, "arch"),
        path=_word(entries, "path"),
    )


def _cfg(entries: _Entries) -> VersionFile:
    components: dict[str, ComponentVersion] = {}
    for key, (value, line) in entries.items():
        part = _RUNNING.fullmatch(key)
        if part is None or value in ("", "[]"):
            continue
        pair = _PAIR.fullmatch(value)
        if pair is None:
            raise line.refuse("no [inner version:version]")
        components[part["part"]] = ComponentVersion(pair["inner"], pair["version"])
    versions = {one.version for one in components.values()}
    inner = {one.inner_version for one in components.values()}
    return VersionFile(
        form="version.cfg",
        version=versions.pop() if len(versions) == 1 else None,
        inner_version=inner.pop() if len(inner) == 1 else None,
        components=components,
    )


def _metadata(lines: list[Line]) -> VersionFile:
    """Only the headers that are asked for; what a package says of itself below them is prose."""
    found: dict[str, str] = {}
    for line in lines:
        match = _HEADER.fullmatch(line.text)
        if match is not None:
            found.setdefault(match["key"], match["value"].strip())
    name, version = found.get("Name", ""), found.get("Version", "")
    if not name or not _VERSION.fullmatch(version):
        raise ParseError(1, "METADATA without a Name and a Version")
    return VersionFile(form="metadata", name=normal(name), version=version)


def normal(name: str) -> str:
    """A Python package's name as two spellings of it are compared: torch_npu is torch-npu."""
    return _SEPARATORS.sub("-", name).lower()


def _version(entries: _Entries, *keys: str) -> str | None:
    for key in keys:
        if key in entries and entries[key][0]:
            value, line = entries[key]
            if _VERSION.fullmatch(value) is None:
                raise line.refuse("no version")
            return value
    return None


def _word(entries: _Entries, key: str) -> str | None:
    value = entries[key][0] if key in entries else ""
    return value if value and value.isprintable() and len(value) <= 300 else None


def _spans(entries: _Entries, key: str) -> tuple[VersionSpan, ...] | None:
    if key not in entries or not entries[key][0]:
        return None
    value, line = entries[key]
    bare = value.replace(" ", "")
    spans = tuple(VersionSpan(one["first"], one["last"] or one["first"]) for one in _SPAN.finditer(bare))
    if _SPANS.fullmatch(bare) is None or len(spans) != bare.count("["):
        raise line.refuse("no list of [first,last]")
    return spans
