"""Which job is on a chip, with Debian's Slurm, its real jobs of real users, and the real daemon over the real /proc.

A job holds a chip by making a file named after its pid; the fake npu-smi lists that pid.
"""

from __future__ import annotations

import os
import pwd
import signal
import subprocess
from pathlib import Path

import pytest

from npu_watchd.simnode.holders import folder_of
from npu_watchd.sources.process_tree import ProcessTree
from tests.e2e.harness import until
from tests.slurm.site import Site

INSIDE = 28411
"""A pid in a namespace of its own; high, because low ones are those of every container's programs."""


def pids_on(site: Site, npu: int) -> set[int]:
    """Whose file is there, alive or not."""
    return {int(name) for name in os.listdir(folder_of(site.directory, npu))}


def test_two_jobs_of_two_users_on_one_chip_are_named_until_one_leaves(either: Site) -> None:
    script = f"{either.hold(3)}\nexec sleep 60"
    first, second = either.slurm.submit(script, user="nobody"), either.slurm.submit(script, user="daemon", name="eval")
    jobs = either.sees(3, f"slurm {first}", f"slurm {second}")
    # Only the cgroup tells the step of a batch script.
    step = "batch" if either.slurm.proctrack == "cgroup" else None
    assert {key: (job["user"], job["name"], job["step"]) for key, job in jobs.items()} == {
        f"slurm {first}": ("nobody", "train", step),
        f"slurm {second}": ("daemon", "eval", step),
    }
    assert all(set(job["pids"]) <= either.slurm.pids(int(job["job"])) for job in jobs.values())
    finding = until(lambda: either.finding(3, "jobs_share_device"), "the finding")
    # By id, and ids are text.
    told = sorted([(str(first), "nobody"), (str(second), "daemon")])
    assert finding["summary"] == f"device 3: 2 jobs share it: slurm {told[0][0]}, slurm {told[1][0]}"
    assert (finding["severity"], finding["quarantines"]) == ("warning", False)
    assert [(evidence["metric"], evidence["observed"], evidence["unit"]) for evidence in finding["evidence"]] == [
        ("npu_device_jobs", 2, ""),
        *(
            (
                f'npu_device_job_memory_bytes{{scheduler="slurm",job="{job}"}} of {user}, '
                f"pids {jobs[f'slurm {job}']['pids'][0]}",
                1 << 30,
                "bytes",
            )
            for job, user in told
        ),
    ]
    either.slurm.cancel(second)
    either.sees(3, f"slurm {first}")
    until(lambda: either.finding(3, "jobs_share_device") is None, "the finding is over")


def test_a_job_of_many_processes_is_one(either: Site) -> None:
    worker = f"sh -c '{either.hold(4, '50')}; sleep 61 & exec sleep 60' &"
    script = f"{either.hold(4, '100')}\n{worker}\n{worker}\nsetsid {worker}\nwait"
    job = either.slurm.submit(script, user="nobody")

    def all_four() -> bool:
        found = either.jobs(4).get(f"slurm {job}")
        return found is not None and (len(found["pids"]), found["memory_bytes"]) == (4, 250 << 20)

    until(all_four, "four processes of the job on the chip, and their memory")
    found = either.jobs(4)
    assert set(found) == {f"slurm {job}"}
    assert set(found[f"slurm {job}"]["pids"]) == pids_on(either, 4)
    page = either.daemon.page()
    assert page.value("npu_device_jobs", device_id="4") == 1
    assert page.value("npu_device_job_info", device_id="4", scheduler="slurm", job=str(job), user="nobody") == 1
    assert either.finding(4, "jobs_share_device") is None


def test_a_process_that_claims_another_job_is_its_cgroups(cgroup: Site) -> None:
    # Its environment is read once, so it holds the chip only when it has the false one.
    forged = "exec env SLURM_JOB_ID=999 SLURM_JOBID=999 SLURM_JOB_NAME=theirs"
    job = cgroup.slurm.submit(f"{forged} sh -c '{cgroup.hold(5)}; exec sleep 60'", user="nobody")
    found = cgroup.sees(5, f"slurm {job}")[f"slurm {job}"]
    assert found["notes"] == [f"its environment says slurm 999, which it can write itself; the cgroup says slurm {job}"]
    assert (found["user"], found["name"]) == ("nobody", None)


def test_a_process_with_the_environment_of_another_users_job_is_not_that_jobs(linuxproc: Site) -> None:
    job = linuxproc.slurm.submit(f"{linuxproc.hold(5)}\nexec sleep 60", user="nobody")
    linuxproc.sees(5, f"slurm {job}")
    [pid] = pids_on(linuxproc, 5)
    entries = Path(f"/proc/{pid}/environ").read_text().split("\0")
    borrowed = dict(entry.split("=", 1) for entry in entries if entry)
    script = f"{linuxproc.hold(5)}; exec sleep 60"
    with subprocess.Popen(["sh", "-c", script], env=borrowed, user="daemon", group="daemon") as process:
        try:
            jobs = linuxproc.sees(5, f"slurm {job}", "user daemon")
            assert jobs["user daemon"]["pids"] == [process.pid]
            nobody, daemon = (pwd.getpwnam(name).pw_uid for name in ("nobody", "daemon"))
            assert jobs["user daemon"]["notes"] == [
                f"its environment says slurm {job} of uid {nobody}, but it is a process of uid {daemon}: not believed"
            ]
        finally:
            process.kill()


def test_in_cgroups_a_job_ends_with_all_that_it_started(cgroup: Site) -> None:
    seen = cgroup.slurm.folder / "jobs" / "seen"
    script = f"setsid sh -c '{cgroup.hold(6)}; exec sleep 60' &\nwhile [ ! -e {seen} ]; do sleep 0.1; done"
    job = cgroup.slurm.submit(script, user="nobody")
    cgroup.sees(6, f"slurm {job}")
    seen.touch()
    cgroup.slurm.wait(job, "COMPLETED")
    cgroup.sees(6)
    assert cgroup.daemon.device("6")["jobs"] == {"known": [], "unknown": []}


def test_what_a_job_leaves_behind_stays_its_own_and_never_the_next_ones(linuxproc: Site) -> None:
    gone = linuxproc.slurm.job_that_leaves_a_process(linuxproc.hold(6, "700"), user="nobody")
    [pid] = pids_on(linuxproc, 6)
    following = linuxproc.slurm.submit(f"{linuxproc.hold(6)}\nexec sleep 60", user="daemon")
    jobs = linuxproc.sees(6, f"slurm {gone}", f"slurm {following}")
    assert jobs[f"slurm {gone}"]["pids"] == [pid]
    assert (jobs[f"slurm {gone}"]["user"], jobs[f"slurm {gone}"]["memory_bytes"]) == ("nobody", 700 << 20)
    assert jobs[f"slurm {following}"]["user"] == "daemon"
    assert linuxproc.slurm.state(gone) == "COMPLETED"
    os.kill(pid, signal.SIGKILL)
    linuxproc.sees(6, f"slurm {following}")


def test_a_pid_of_a_namespace_within_a_job_is_that_jobs_and_nobody_elses(cgroup: Site) -> None:
    if not ProcessTree(Path("/proc")).sees_all():
        pytest.skip("this is not the first PID namespace, whose procfs alone tells the pids of others")
    within = (
        f"echo {INSIDE - 1} > /proc/sys/kernel/ns_last_pid\nsh -c '{cgroup.hold(7, '512 nameless')}; exec sleep 60'"
    )
    job = cgroup.slurm.submit(f"exec unshare --pid --fork --mount-proc --kill-child sh -s <<'END'\n{within}\nEND\n")
    until(lambda: pids_on(cgroup, 7), "somebody is on the chip")
    assert pids_on(cgroup, 7) == {INSIDE}
    found = cgroup.sees(7, f"slurm {job}")[f"slurm {job}"]
    [here] = cgroup.slurm.pids(job) & processes_numbered(INSIDE)
    assert found["notes"] == [f"pid {INSIDE} is of another PID namespace; here it is {here}"]
    assert (found["user"], found["memory_bytes"], found["pids"]) == ("root", 512 << 20, [INSIDE])


def processes_numbered(inside: int) -> set[int]:
    """Of this machine, by its own numbers, those that have that one in a namespace of theirs."""
    done = subprocess.run(
        ["grep", "-lE", rf"^NSpid:.*\s{inside}$", *map(str, Path("/proc").glob("[0-9]*/status"))],
        capture_output=True,
        text=True,
        check=False,
    )
    return {int(line.split("/")[2]) for line in done.stdout.splitlines()}
