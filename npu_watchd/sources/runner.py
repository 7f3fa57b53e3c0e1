"""The one place that starts processes: each bounded in time, in output and in number."""

from __future__ import annotations

import os
import secrets
import subprocess
import threading
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from errno import ENOENT, ENOEXEC

from npu_watchd.model.reading import Failure, FailureKind, Output
from npu_watchd.sources import executable, strays
from npu_watchd.sources.child import Child, Clock, Ending
from npu_watchd.sources.strays import PidfdOpen, Process
from npu_watchd.sources.turns import Abandoned, Stuck, Turns

_LONGEST_RUN_S = 3600.0
_DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_QUOTED_CHARS = 200
_MOST_DOCUMENT_BYTES = 1 << 20
_START_S = 0.3
_TERM_GRACE_S = 0.5
_KILL_GRACE_S = 1.0
_PIDFD_OPEN: PidfdOpen | None = getattr(os, "pidfd_open", None)
HOST_MOUNTS = ("nsenter", "--mount=/proc/1/ns/mnt", "--")
"""Starts a tool in the mount namespace of the host's first process, and becomes it: the pid stays the same.

Needs CAP_SYS_ADMIN, CAP_SYS_CHROOT and CAP_SYS_PTRACE. Why: docs/decisions/0025."""


def environment(ours: Mapping[str, str]) -> dict[str, str]:
    """What a tool gets of our environment: little, so that it answers the same whoever started the daemon.

    LC_ALL=C, and no LANG or LANGUAGE beside it, since the parsers know the untranslated text. LD_LIBRARY_PATH, because
    npu-smi finds the driver's libraries by it. HOME, because the driver writes its process logs below it. SLURM_CONF,
    where a site keeps Slurm's configuration elsewhere than its scontrol looks.
    """
    kept = {"PATH": ours.get("PATH") or _DEFAULT_PATH, "HOME": ours.get("HOME") or "/", "LC_ALL": "C"}
    return kept | {name: ours[name] for name in ("LD_LIBRARY_PATH", "SLURM_CONF") if name in ours}


class _Launch:
    """A start under way, in a thread of its own since it may block."""

    def __init__(self, document: bytes) -> None:
        self.document = document
        """What it is to find on its stdin."""
        self.result: Child | Failure | None = None
        self.given_up = False
        """Nobody waits any more: what starts now is to be ended at once."""


class ToolRunner:
    """Runs tools; at most one process of each at a time, whichever thread asks. Safe to share between threads.

    `clock` is monotonic, in seconds. `environ` is what the tools' small environment is taken from (default: our own).
    `backoff_s` is how long a tool rests once its first abandoned run is gone; twice as long each further time, up to
    ten minutes. `pidfd_open` is None on kernels before 5.3. `through` is the command that a tool is started by, which
    must exec it: HOST_MOUNTS, or nothing.
    """

    def __init__(
        self,
        *,
        clock: Clock,
        max_output_bytes: int = 4 * 1024 * 1024,
        backoff_s: float = 15.0,
        environ: Mapping[str, str] | None = None,
        pidfd_open: PidfdOpen | None = _PIDFD_OPEN,
        through: tuple[str, ...] = (),
    ) -> None:
        self._clock = clock
        self._max_output_bytes = max_output_bytes
        self._environ = environment(os.environ if environ is None else environ)
        self._pidfd_open = pidfd_open
        self._through = through
        self._adopts_orphans = os.getpid() == 1
        self._turns = Turns(clock, backoff_s)
        self._changed = threading.Condition()
        self._pids: set[int] = set()
        """Every process whose exit code is ours to take. Guarded by _changed, as is _starting."""
        self._starting = 0
        # Readable once closed: each reader polls it beside its pipes, so that close() reaches all of them at once.
        self._stop_fd, self._stop_trigger_fd = os.pipe()
        self._closed = False

    def run(self, argv: tuple[str, ...], timeout_s: float, document: bytes = b"") -> Output | Failure:
        """The tool's answer, or why there is none, at the latest 2 s after the deadline. Never raises.

        `timeout_s` covers the wait for an earlier run of the same tool (argv[0]) too. Any exit code is an Output.
        `document` is what the tool may read on stdin, at most a MiB; empty: its stdin is at its end at once.
        """
        if not argv or not argv[0]:
            return Failure(FailureKind.MISSING, "no command was given")
        command = " ".join(argv)
        if len(document) > _MOST_DOCUMENT_BYTES:
            return Failure(
                FailureKind.UNSUPPORTED, f"{command}: not started. {len(document)} bytes are too many for it"
            )
        if not timeout_s > 0:
            return Failure(FailureKind.TIMEOUT, f"{command}: not started. No time was left for it")
        give_up_s = self._clock() + min(timeout_s, _LONGEST_RUN_S)
        refusal = self._turns.claim(argv[0], command, give_up_s)
        if refusal is not None:
            return refusal
        stuck: Stuck | None = None
        try:
            left_s = give_up_s - self._clock()
            launched = self._start(argv, command, give_up_s, _Launch(document))
            if isinstance(launched, Failure):
                return launched
            if isinstance(launched, Stuck):
                stuck = launched
                return Failure(FailureKind.WEDGED, stuck.report.describe(self._clock()))
            ending = launched.collect(self._clock, give_up_s, self._max_output_bytes, self._stop_fd)
            stuck = self._finish(launched, command, ending)
            answer = self._answer(launched, command, ending, left_s)
            if stuck is not None and isinstance(answer, Failure):
                return Failure(FailureKind.WEDGED, f"{answer.detail}. {stuck.report.describe(self._clock())}")
            return answer
        finally:
            self._turns.release(argv[0], stuck)
            self._reap_orphans()

    def abandoned(self) -> Mapping[str, Abandoned]:
        """By tool (argv[0]): the run that could not be ended and is still there."""
        return self._turns.abandoned()

    def close(self) -> None:
        """End what runs and refuse what comes; back within the two grace periods and a second."""
        with self._changed:
            if self._closed:
                return
            self._closed = True
            os.close(self._stop_trigger_fd)
        if self._turns.close(_TERM_GRACE_S + _KILL_GRACE_S + 1.0):
            os.close(self._stop_fd)

    def _start(self, argv: tuple[str, ...], command: str, give_up_s: float, launch: _Launch) -> Child | Failure | Stuck:
        try:
            threading.Thread(target=self._launch, args=(argv, launch), name=f"start {argv[0]}", daemon=True).start()
        except RuntimeError as error:
            return Failure(FailureKind.DENIED, f"{command}: not started, the kernel gave no thread for it: {error}")
        # A start takes a moment even when the deadline is almost over: that alone is no sign of a dead file system.
        until_s = max(give_up_s, self._clock() + _START_S)
        with self._changed:
            while launch.result is None:
                left_s = until_s - self._clock()
                if left_s <= 0:
                    launch.given_up = True
                    return Stuck(Abandoned(command, None, (), self._clock()), gone=lambda: self._over(launch))
                self._changed.wait(left_s)
            return launch.result

    def _launch(self, argv: tuple[str, ...], launch: _Launch) -> None:
        with self._changed:
            self._starting += 1
        result = self._spawn(argv, launch.document)
        with self._changed:
            self._starting -= 1
            if isinstance(result, Child):
                self._pids.add(result.pid)
                if launch.given_up:
                    result.kill_group()
                    result.close()
            launch.result = result
            self._changed.notify_all()

    def _spawn(self, argv: tuple[str, ...], document: bytes) -> Child | Failure:
        run_id = secrets.token_hex(8)
        try:
            path = executable.find(argv[0], self._environ["PATH"])
            if isinstance(path, Failure):
                return path
            if self._through:
                argv, path = (*self._through, path, *argv[1:]), executable.find(self._through[0], self._environ["PATH"])
                if isinstance(path, Failure):
                    return replace(
                        path, detail=f"{argv[0]}: not usable; install util-linux, or run without --host-mounts"
                    )
            # Our own pipes: those that Popen makes leak when it runs out of descriptors half way.
            with ExitStack() as ours, ExitStack() as theirs:
                stdin = _closed_by(theirs, _stdin(document))
                out_reader, out_writer = _pipe(ours, theirs)
                err_reader, err_writer = _pipe(ours, theirs)
                process = subprocess.Popen(
                    argv,
                    executable=path,
                    stdin=stdin,
                    stdout=out_writer,
                    stderr=err_writer,
                    cwd="/",
                    env={**self._environ, strays.MARKER: run_id},
                    start_new_session=True,
                )
                ours.pop_all()
            return Child(process.pid, process.poll, (out_reader, err_reader), run_id, self._pidfd_open)
        except (OSError, ValueError, TypeError, subprocess.SubprocessError) as error:
            return _not_started(argv, error)

    def _finish(self, child: Child, command: str, ending: Ending) -> Stuck | None:
        alive: tuple[Process, ...] = ()
        if ending is Ending.EXITED:
            child.kill_group()  # a helper must not outlive the run
        else:
            alive = child.end(self._clock, _TERM_GRACE_S, _KILL_GRACE_S)
        child.close()
        if self._reaped(child) and not alive:
            return None
        report = Abandoned(command, child.pid, alive, self._clock())
        return Stuck(report, gone=lambda: self._reaped(child) and not any(map(strays.still_alive, alive)))

    def _reaped(self, child: Child) -> bool:
        with self._changed:
            if child.poll() is None:
                return False
            self._pids.discard(child.pid)
            return True

    def _over(self, launch: _Launch) -> bool:
        with self._changed:
            return launch.result is not None and (isinstance(launch.result, Failure) or self._reaped(launch.result))

    def _reap_orphans(self) -> None:
        if not self._adopts_orphans:  # only PID 1 of a container inherits what the tools leave behind
            return
        with self._changed:
            if self._starting == 0:  # else a child may have been born and died before its pid is in our list
                strays.reap_orphans(ours=self._pids.__contains__)

    def _answer(self, child: Child, command: str, ending: Ending, left_s: float) -> Output | Failure:
        match ending:
            case Ending.EXITED | Ending.PIPE_HELD:
                return Output(_text(child.stdout), _text(child.stderr), child.poll() or 0)
            case Ending.OVERFLOW:
                pipe = "stdout" if len(child.stdout) > self._max_output_bytes else "stderr"
                limit = f"{self._max_output_bytes / 1024 / 1024:g} MiB"
                detail = f"printed more than {limit} on {pipe} and was ended; {_printed(child)}"
                return Failure(FailureKind.UNPARSEABLE, f"{command}: {detail}")
            case Ending.STOPPED:
                return Failure(FailureKind.TIMEOUT, f"{command}: ended before its deadline, npu-watchd is stopping")
            case Ending.TIMEOUT:
                detail = f"no answer within {left_s:.1f} s and was ended; {_printed(child)}"
                return Failure(FailureKind.TIMEOUT, f"{command}: {detail}")


def _closed_by(stack: ExitStack, fd: int) -> int:
    stack.callback(os.close, fd)
    return fd


def _pipe(ours: ExitStack, theirs: ExitStack) -> tuple[int, int]:
    reader, writer = os.pipe()
    return _closed_by(ours, reader), _closed_by(theirs, writer)


def _stdin(document: bytes) -> int:
    """A file in memory rather than a pipe: nobody waits for a tool that does not read."""
    if not document:
        return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    fd = os.memfd_create("npu-watchd", os.MFD_CLOEXEC)
    try:
        os.pwrite(fd, document, 0)
    except OSError:
        os.close(fd)
        raise
    return fd


def _text(data: bytearray) -> str:
    return data.decode("utf-8", errors="replace")


def _printed(child: Child) -> str:
    """What it said until then, on one line, with control characters shown and not sent to a terminal."""
    data = child.stdout or child.stderr
    if not data:
        return "it had printed nothing"
    return f"it had printed {len(data)} bytes, first: {_text(data[: 4 * _QUOTED_CHARS])[:_QUOTED_CHARS]!r}"


def _not_started(argv: tuple[str, ...], error: Exception) -> Failure:
    name = argv[0]
    if not isinstance(error, OSError):
        return Failure(FailureKind.MISSING, f"{name!r}: cannot be a command: {error}")
    if error.errno == ENOENT:
        reason = "the interpreter or loader that it names does not exist; install the build for this system"
        return Failure(FailureKind.MISSING, f"{name}: was found, but {reason}")
    if error.errno == ENOEXEC:
        reason = f"is no program that this machine ({os.uname().machine}) can run; install the build for it"
        return Failure(FailureKind.MISSING, f"{name}: {reason}, or set {executable.setting(name)}")
    if isinstance(error, PermissionError):
        return Failure(FailureKind.DENIED, f"{name}: may not be executed: {error.strerror}")
    limits = "check the limits on processes, memory and open files (`systemctl show npu-watchd`, `free`)"
    return Failure(FailureKind.DENIED, f"{name}: the kernel refused to start it: {error.strerror}; {limits}")
