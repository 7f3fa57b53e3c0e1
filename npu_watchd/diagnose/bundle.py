"""The archive for the vendor's support: redacted, bounded, and whole or not there at all."""

from __future__ import annotations

import io
import json
import os
import tarfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from npu_watchd.diagnose.redaction import Redactor
from npu_watchd.model.reading import Failure, Run, Tick
from npu_watchd.sources.files import failure_of, open_regular
from npu_watchd.sources.sweep import Sweep

PART_BYTES = 4 * 1024 * 1024
"""Of one text: a tool's whole answer, or the end of a log. Assumption: what matters in a log is at its end."""
MOST_BYTES = 200 * 1024 * 1024
"""Of all texts before they are packed; assumption: the vendor's upload takes 100 MB, and text packs to a tenth."""
_TOOL_S, _FILE_S = 20.0, 5.0


@dataclass(frozen=True, slots=True)
class Ask:
    """A command whose answer belongs into the archive."""

    name: str
    """Of the file there."""
    argv: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Take:
    """A file that does."""

    name: str
    path: Path


@dataclass(frozen=True, slots=True)
class Told:
    """A text that somebody has made already."""

    name: str
    text: str


Item = Ask | Take | Told


@dataclass(slots=True)
class Contents:
    """What has gone in so far."""

    entries: list[dict[str, object]] = field(default_factory=list)
    used_bytes: int = 0


class Bundle:
    """Writes one archive."""

    def __init__(
        self,
        run: Run,
        redactor: Redactor,
        clock: Callable[[], Tick],
        utc: Callable[[float], str],
        say: Callable[[str], None],
        most_bytes: int = MOST_BYTES,
    ) -> None:
        """utc: Unix seconds → text. say: told of the progress."""
        self._run = run
        self._redactor = redactor
        self._clock = clock
        self._utc = utc
        self._say = say
        self._most_bytes = most_bytes

    def write(self, path: Path, items: Iterable[Item]) -> Mapping[str, object]:
        """The archive under its name, once it is whole; returns its manifest. Raises OSError, FileExistsError too."""
        if path.exists():
            raise FileExistsError(17, "exists already", str(path))
        beside = path.with_name(f".{path.name}.part{os.getpid()}")
        contents, known = Contents(), list(items)
        try:
            # Readable for its owner alone, until somebody decides otherwise: no redaction is perfect.
            fd = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with os.fdopen(fd, "wb") as file:
                with tarfile.open(fileobj=file, mode="w:gz", compresslevel=6) as archive:
                    for number, item in enumerate(known, start=1):
                        self._say(f"{number} of {len(known)}: {item.name}")
                        self._put(archive, contents, item)
                    manifest = self._manifest(contents)
                    self._add(archive, "MANIFEST.json", json.dumps(manifest, indent=1).encode())
                file.flush()
                os.fsync(file.fileno())
            os.link(beside, path)
        finally:
            beside.unlink(missing_ok=True)
        return manifest

    def _put(self, archive: tarfile.TarFile, contents: Contents, item: Item) -> None:
        began = self._clock()
        text = self._text(item)
        entry: dict[str, object] = {"name": item.name, "taken_at": self._utc(began.wall_s)}
        contents.entries.append(entry)
        if isinstance(text, Failure):
            entry["failure"] = {"kind": text.kind.value, "detail": self._redactor.redact(text.detail)}
            return
        data = self._redactor.redact(text).encode("utf-8", errors="replace")
        if contents.used_bytes + len(data) > self._most_bytes:
            entry["failure"] = {"kind": "left_out", "detail": f"the archive has its {self._most_bytes} bytes already"}
            return
        contents.used_bytes += len(data)
        entry["bytes"] = len(data)
        self._add(archive, item.name, data, began.wall_s)

    def _text(self, item: Item) -> str | Failure:
        if isinstance(item, Told):
            return item.text
        if isinstance(item, Take):
            return self._end_of(item.path)
        began = self._clock()
        answer = self._run(item.argv, _TOOL_S)
        if isinstance(answer, Failure):
            return answer
        took_s = self._clock().mono_s - began.mono_s
        head = f"# {' '.join(item.argv)}\n# {self._utc(began.wall_s)}, {took_s:.2f} s, exit code {answer.exit_code}\n"
        said = f"\n# stderr:\n{answer.stderr}" if answer.stderr.strip() else ""
        return f"{head}{answer.text}{said}"[:PART_BYTES]

    def _end_of(self, path: Path) -> str | Failure:
        """In a thread of its own: a file on a network that is gone must not stop the rest."""
        return Sweep("bundle", lambda: _tail(path), lambda: self._clock().mono_s, _FILE_S, lambda: str(path))()

    def _manifest(self, contents: Contents) -> dict[str, object]:
        return {
            "made_at": self._utc(self._clock().wall_s),
            "redacted": dict(self._redactor.counts),
            "redacted_how": "the same word has the same mark, <ip-1>, in all files; secrets are <secret>",
            "entries": contents.entries,
        }

    def _add(self, archive: tarfile.TarFile, name: str, data: bytes, at_s: float | None = None) -> None:
        info = tarfile.TarInfo(f"npu-watchd-bundle/{name}")
        info.size, info.mode = len(data), 0o644
        info.mtime = int(self._clock().wall_s if at_s is None else at_s)
        archive.addfile(info, io.BytesIO(data))


def _tail(path: Path) -> str | Failure:
    try:
        fd = open_regular(str(path))
    except (OSError, ValueError) as error:
        return failure_of(str(path), error)
    with os.fdopen(fd, "rb") as file:
        try:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - PART_BYTES))
            data = file.read(PART_BYTES)
        except OSError as error:
            return failure_of(str(path), error)
    if size <= PART_BYTES:
        return data.decode("utf-8", errors="replace")
    # Not from the middle of a line: half a secret is not recognised.
    _, _, whole = data.partition(b"\n")
    return f"# the last {len(whole)} of {size} bytes\n" + whole.decode("utf-8", errors="replace")
