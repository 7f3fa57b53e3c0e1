"""Debian's Slurm on one node, in a folder of its own: controller, node daemon and munge, on free ports, ours to end.

    with running(folder, "cgroup") as slurm:
        job = slurm.submit("exec sleep 60", user="nobody")
        slurm.wait(job, "RUNNING")

Every call is bounded. What Slurm starts, and what that loses, is the keeper's, which ends it however the test ends.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Literal, TypeVar

from tests.slurm import conf

T = TypeVar("T")

Proctrack = Literal["cgroup", "linuxproc"]
"""How Slurm knows which processes are a job's: by cgroups of its own, or by who is whose child."""

PACKAGES = "slurmctld slurmd slurm-client munge"
"""Debian's."""
_TOOLS = ("slurmctld", "slurmd", "sbatch", "scontrol", "squeue", "sinfo", "scancel", "munged")
_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
_CALL_S = 10.0
"""Of one client; where the controller is gone they give up by themselves after nine."""
_READY_S, _JOB_S = 20.0, 20.0
"""Until the node is idle, and until a job is as wanted. On two busy cores it takes about two seconds each."""
_END_S = 12.0
"""The keeper's three times three seconds, and some."""


@cache
def unavailable(proctrack: Proctrack = "cgroup") -> str | None:
    """Why Slurm cannot run here like that; None where it can."""
    missing = [tool for tool in _TOOLS if shutil.which(tool, path=_PATH) is None]
    if missing:
        return f"not installed: {' '.join(missing)} (Debian packages {PACKAGES})"
    if os.geteuid() != 0:
        return "slurmd starts jobs of other users, which needs root"
    try:
        socket.gethostbyname(socket.gethostname())
    except OSError as error:
        return f"Slurm wants to resolve this machine's own name, {socket.gethostname()}: {error}"
    if proctrack == "cgroup" and not os.access("/sys/fs/cgroup/freezer", os.W_OK):
        return "no freezer of cgroup v1 here that can be written; the plugin of v2 wants systemd"
    return None


@dataclass(frozen=True)
class Said:
    """By a client of Slurm."""

    code: int
    out: str
    err: str


@dataclass
class Slurm:
    """One node, which is also its own controller. Jobs have a CPU each, and there are 64."""

    folder: Path
    """For all users to enter; `jobs/N.out` has what a job wrote."""
    proctrack: Proctrack
    node: str
    host: str
    controller_port: int
    node_port: int
    settings: dict[str, str] = field(default_factory=dict)
    """More of slurm.conf, and what `configure` set: `Prolog` to a path."""
    _keeper: subprocess.Popen[bytes] | None = None

    @property
    def conf_file(self) -> Path:
        return self.folder / "slurm.conf"

    @property
    def env(self) -> Mapping[str, str]:
        """For a client of this cluster, and for a daemon that shall run one."""
        return {"PATH": _PATH, "LC_ALL": "C", "SLURM_CONF": str(self.conf_file)}

    # Jobs

    def submit(self, script: str, *options: str, user: str | None = None, name: str = "train") -> int:
        """Lines of sh as a batch job; its number. options: of sbatch, as `--gres=npu:2`. user: None is root."""
        account = () if user is None else (f"--uid={user}",)
        output = f"--output={self.folder}/jobs/%j.out"
        words = ("sbatch", "--parsable", "--chdir=/", output, f"--job-name={name}", *account, *options)
        done = self.call(*words, stdin=f"#!/bin/sh\n{script}\n")
        assert done.code == 0, done
        return int(done.out.split(";")[0])

    def cancel(self, job: int) -> None:
        done = self.call("scancel", str(job))
        assert done.code == 0, done

    def state(self, job: int) -> str:
        """`PENDING`, `RUNNING`, `COMPLETING`, `COMPLETED`, `CANCELLED`, `FAILED`, …"""
        return self._shown("job", str(job))["JobState"]

    def wait(self, job: int, *states: str, within_s: float = _JOB_S) -> str:
        """Until it is in one of these; which one. AssertionError with Slurm's logs when its time is over."""
        return self.until(
            lambda: state if (state := self.state(job)) in states else None, f"job {job} is {states}", within_s
        )

    def pids(self, job: int) -> set[int]:
        """Of its processes, as slurmd knows them; none where it is not on the node."""
        lines = [line.split() for line in self.call("scontrol", "listpids", str(job)).out.splitlines()]
        return {int(words[0]) for words in lines if words[0].isdigit() and words[1] == str(job)}

    def job_that_leaves_a_process(self, hold: str, *, user: str | None = None) -> int:
        """A job that has ended, one of whose processes has not: the one that ran `hold`, a line of sh, and sleeps.

        It lives until somebody kills it. Only with linuxproc: a cgroup loses nobody. hold: without single quotes.
        """
        done = f"{self.folder}/jobs/$SLURM_JOB_ID.left"
        behind = f"setsid sh -c '{hold}; : > {done}; exec sleep 600' > /dev/null 2>&1 < /dev/null &"
        job = self.submit(f"{behind}\nwhile [ ! -e {done} ]; do sleep 0.05; done", user=user)
        self.wait(job, "COMPLETED")
        return job

    # The node

    def sinfo(self, form: str = "%N %T") -> str:
        """As `sinfo --format` prints it: `%T` is the node's state with its suffixes, `%E` the reason of a drain."""
        done = self.call("sinfo", "--noheader", "--format", form)
        assert done.code == 0, done
        return done.out.strip()

    def node_state(self) -> frozenset[str]:
        """`{"IDLE", "DRAIN"}`: the words of `scontrol show node`."""
        return frozenset(self._shown("node", self.node)["State"].replace("*", "").split("+"))

    def reason(self) -> str | None:
        """Why it is drained, by whom and when, as `scontrol show node` says; None: no reason is set."""
        match = re.search(r"^ *Reason=(.*)$", self.call("scontrol", "show", "node", self.node).out, re.MULTILINE)
        return match[1] if match else None

    def scontrol(self, *words: str) -> Said:
        return self.call("scontrol", *words)

    def configure(self, **settings: str) -> None:
        """Write these into slurm.conf beside what is there, and have both daemons read it: `Prolog=str(path)`."""
        self.settings |= settings
        self.write_conf()
        done = self.scontrol("reconfigure")
        assert done.code == 0, done

    def order(self, order: Literal["start", "stop"], service: Literal["slurmctld", "slurmd", "munged"]) -> None:
        """Start or stop one of the daemons; it is done a moment later."""
        assert self._keeper is not None
        assert self._keeper.stdin is not None
        self._keeper.stdin.write(f"{order} {service}\n".encode())
        self._keeper.stdin.flush()

    def await_idle(self) -> None:
        """Until the node can take jobs."""
        self.until(lambda: self.call("sinfo", "--noheader", "--format", "%T").out.strip() == "idle", "the node is idle")

    def put_client(self, tool: str, directory: Path, name: str | None = None) -> Path:
        """An executable there that is this cluster's, whatever the environment of who calls it."""
        script = directory / (name or tool)
        script.write_text(f'#!/bin/sh\nSLURM_CONF={self.conf_file} exec {shutil.which(tool, path=_PATH)} "$@"\n')
        script.chmod(0o755)
        return script

    # How it is done

    def call(self, *words: str, stdin: str = "") -> Said:
        """A client of this cluster; a timeout is AssertionError."""
        try:
            done = subprocess.run(
                words, input=stdin, capture_output=True, text=True, timeout=_CALL_S, check=False, env=self.env
            )
        except subprocess.TimeoutExpired as error:
            raise AssertionError(f"{error}\n{self.logs()}") from error
        return Said(done.returncode, done.stdout, done.stderr)

    def until(self, claim: Callable[[], T | None], what: str, within_s: float = _READY_S) -> T:
        give_up_s = time.monotonic() + within_s
        while not (answer := claim()):
            assert time.monotonic() < give_up_s, f"not within {within_s:g} s: {what}\n{self.logs()}"
            time.sleep(0.1)
        return answer

    def logs(self) -> str:
        """The last lines of each."""
        files = sorted((self.folder / "log").glob("*.out"))
        return "\n".join(line for file in files for line in file.read_text(errors="replace").splitlines()[-15:])

    def _shown(self, what: str, name: str) -> dict[str, str]:
        done = self.call("scontrol", "show", "--oneliner", what, name)
        assert done.code == 0, done
        return dict(re.findall(r"(\w+)=(\S*)", done.out))

    def write_conf(self) -> None:
        more = "".join(f"{key}={value}\n" for key, value in self.settings.items())
        ports = (self.controller_port, self.node_port)
        for name, text in conf.files(self.folder, self.proctrack, self.node, self.host, ports, more).items():
            (self.folder / name).write_text(text)

    def services(self) -> dict[str, object]:
        """For the keeper."""
        run, log = self.folder / "run", self.folder / "log"
        munged = ["munged", "--foreground", "--force", "--num-threads=2", f"--key-file={run}/munge.key"]
        munged += [f"--socket={run}/munge", f"--pid-file={run}/munged.pid", f"--seed-file={run}/munge.seed"]
        munged += [f"--log-file={log}/munged.log"]
        commands = {
            "munged": munged,
            "slurmctld": ["slurmctld", "-D", "-f", str(self.conf_file)],
            "slurmd": ["slurmd", "-D", "-N", self.node, "-f", str(self.conf_file)],
        }
        return {
            name: {"argv": argv, "env": dict(self.env), "log": str(log / f"{name}.out")}
            for name, argv in commands.items()
        }

    @contextlib.contextmanager
    def kept(self) -> Iterator[None]:
        """The daemons run."""
        told = self.folder / "run" / "keeper.json"
        told.write_text(json.dumps({"services": self.services(), "cgroup": f"slurm_{self.node}"}))
        keeper = Path(__file__).with_name("keeper.py")
        self._keeper = subprocess.Popen([sys.executable, keeper, told], stdin=subprocess.PIPE)
        try:
            for service in ("munged", "slurmctld", "slurmd"):
                self.order("start", service)
            yield
        finally:
            assert self._keeper.stdin is not None
            self._keeper.stdin.close()
            try:
                self._keeper.wait(_END_S)
            except subprocess.TimeoutExpired:
                self._keeper.kill()
                self._keeper.wait()
                raise


@contextlib.contextmanager
def running(folder: Path, proctrack: Proctrack = "cgroup", **settings: str) -> Iterator[Slurm]:
    """The cluster, its node idle. folder: one that every user may enter, up to the root. settings: of slurm.conf."""
    for name in ("run", "log", "state", "spool", "jobs"):
        (folder / name).mkdir()
    (folder / "jobs").chmod(0o1777)
    key = folder / "run" / "munge.key"
    key.write_bytes(os.urandom(64))
    key.chmod(0o400)
    controller_port, node_port = _free_ports(2)
    # Its cgroups have this name, and two of the tests may run at once.
    node = f"node{os.getpid()}{proctrack[0]}"
    slurm = Slurm(folder, proctrack, node, socket.gethostname(), controller_port, node_port, dict(settings))
    slurm.write_conf()
    with slurm.kept():
        slurm.await_idle()
        yield slurm


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [int(one.getsockname()[1]) for one in sockets]
