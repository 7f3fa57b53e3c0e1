"""A YAML file read strictly: mappings whose every key must be known, of the type that its reader asks for."""

from __future__ import annotations

import re
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import yaml

_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


class WebConfigError(Exception):
    """The web configuration cannot be used; the message names file, key and cure."""

    def __init__(self, path: Path, key: str, problem: str) -> None:
        super().__init__(f"{path}: {key}: {problem}" if key else f"{path}: {problem}")


def read_document(path: Path) -> Section:
    """The file's uppermost mapping. Raises WebConfigError where it cannot be read, or is no YAML."""
    try:
        document = yaml.load(path.read_text(encoding="utf-8"), _StrictLoader)  # noqa: S506  # a SafeLoader
    except OSError as error:
        raise WebConfigError(
            path, "", f"cannot be read ({error.strerror}); check [web] config_file and the permissions"
        ) from error
    except UnicodeDecodeError:
        raise WebConfigError(path, "", "is not UTF-8 text") from None
    except yaml.YAMLError as error:
        raise WebConfigError(path, "", f"is not YAML: {' '.join(str(error).split())}") from error
    return Section(path, "", document)


class _StrictLoader(yaml.SafeLoader):
    """YAML's safe loader, which also refuses a key given twice: which of the two holds would be a guess."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in seen:
                    raise yaml.constructor.ConstructorError(
                        None, None, f"the key {key.value} is given twice", key.start_mark
                    )
                seen.add(key.value)
        return super().construct_mapping(node, deep)


class Section:
    """One mapping of the file; remembers which keys were asked for, so that the rest are unknown ones."""

    def __init__(self, path: Path, name: str, document: Any) -> None:
        self.path = path
        self.name = name
        self.values: dict[str, Any] = {}
        self._asked: list[str] = []
        if document is None:
            return
        if not isinstance(document, dict):
            raise WebConfigError(path, name, f"must be a mapping of keys to values, not {_kind(document)}")
        for key, value in document.items():
            if not isinstance(key, str):
                raise WebConfigError(path, name, f"the key {key!r} must be text; put it in quotes")
            self.values[key] = value

    def error(self, key: str, problem: str) -> WebConfigError:
        return WebConfigError(self.path, ".".join(part for part in (self.name, key) if part), problem)

    def section(self, key: str) -> Section:
        return Section(self.path, ".".join(part for part in (self.name, key) if part), self._take(key))

    def text(self, key: str) -> str | None:
        value = self._take(key)
        if value is not None and not isinstance(value, str):
            raise self.error(key, f"must be text, not {_kind(value)}; put it in quotes")
        if value and "\0" in value:
            raise self.error(key, "contains a NUL character")
        return value or None

    def file(self, key: str) -> Path | None:
        value = self.text(key)
        return None if value is None else self.path.parent / value

    def boolean(self, key: str, *, default: bool) -> bool:
        value = self._take(key)
        if value is not None and not isinstance(value, bool):
            raise self.error(key, f"must be true or false, not {value!r}")
        return default if value is None else value

    def texts(self, key: str) -> tuple[str, ...]:
        value = self._take(key)
        if value is None:
            return ()
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self.error(key, "must be a list of texts")
        return tuple(value)

    def integer(self, key: str) -> int:
        value = self._take(key)
        if isinstance(value, bool) or not isinstance(value, int | None) or (value or 0) < 0:
            raise self.error(key, f"must be a whole number of 0 or more, not {value!r}")
        return value or 0

    def duration(self, key: str) -> float:
        """Seconds of a duration in Go's form (`1s`, `100ms`, `1m30s`); 0 where the key is absent or 0."""
        value = self._take(key)
        if value in (None, 0, "0"):
            return 0.0
        parts = _DURATION.findall(value) if isinstance(value, str) else []
        if not parts or "".join(number + unit for number, unit in parts) != value:
            raise self.error(key, f"must be a duration such as 1s, 100ms or 1m30s, not {value!r}")
        return sum(float(number) * _SECONDS[unit] for number, unit in parts)

    def finish(self) -> None:
        for key in self.values:
            if key not in self._asked:
                raise self.error(key, f"is not a known key; known here: {', '.join(self._asked)}")

    def _take(self, key: str) -> Any:
        self._asked.append(key)
        return self.values.get(key)


def _kind(value: object) -> str:
    return {bool: "true/false", int: "a number", float: "a number", str: "text", list: "a list", dict: "a mapping"}.get(
        type(value), type(value).__name__
    )
