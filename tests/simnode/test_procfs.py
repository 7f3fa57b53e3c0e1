"""The simulated procfs: what the real job finder makes of it, and that it comes and goes with the processes."""

from __future__ import annotations

from pathlib import Path

import pytest

from npu_watchd.model.ids import DeviceKey
from npu_watchd.model.jobs import DeviceProcess
from npu_watchd.parsers import cgroup, environ, info_table, process_files
from npu_watchd.simnode import procfs
from npu_watchd.simnode.node import install, refresh, set_clock
from npu_watchd.simnode.npu_smi import answer
from npu_watchd.simnode.scenario import Scenario
from npu_watchd.simnode.scenario_file import ScenarioError, load, names, parse
from npu_watchd.simnode.timeline import state_at
from npu_watchd.simnode.tree_on_disk import TreeOnDisk
from npu_watchd.sources.jobs import JobFinder

POD = "3f1c52ce-8a11-4b0e-9d55-0c5be0a7f0d1"
NAMING = (
    *("two_jobs_one_device", "handover", "leftover", "container_pids", "hccl_ports"),
    *("oom_kill", "pcie_contention", "nine_processes"),
)
"""Scenarios that say whose their processes are."""
NAMELESS = ("busy_node", "ascend950")
"""Scenarios with a process that npu-smi cannot name."""
HEAD = 'title = "t"\ndescription = "d"\ngeneration = "910B3"\ntool_version = "25.5.1"\ncards = 2\n'


def scenario(start: str, more: str = "") -> Scenario:
    return parse(f"{HEAD}[[at]]\nt = 100\ndevice = 0\nstart = [{{ {start} }}]\n{more}", "x", "x.toml")


def files(start: str, t_s: float = 200.0) -> dict[str, str]:
    tree = procfs.tree(scenario(start), t_s, start_s=1_790_000_000.0)
    return {name: data.decode() for name, data in tree.files.items()}


def jobs(tmp_path: Path, story: Scenario, t_s: float, *, age_s: float = 0.0) -> dict[int, set[str]]:
    """Device → the jobs of what npu-smi lists at `t_s`, found in files that are `age_s` old."""
    (tmp_path / "proc").mkdir(parents=True, exist_ok=True)
    TreeOnDisk(tmp_path / "proc", tmp_path / "workshop").put(procfs.tree(story, t_s - age_s))
    table = info_table.parse(answer(state_at(story, t_s), ("info",)).text)
    listed = [DeviceProcess(DeviceKey(row.npu or 0, row.chip or 0), row.npu, row) for row in table.processes or ()]
    finder = JobFinder(tmp_path / "proc", None, lambda: 0.0, ticks_per_second=100)
    found: dict[int, set[str]] = {}
    for one in finder.find(listed, 0.5):
        found.setdefault(one.device.npu, set()).add(str(one.job.key) if one.job else "unknown")
    return found


def test_a_slurm_jobs_process_has_its_files() -> None:
    shown = files('pid = 4711, name = "python3", memory = 1, job = "slurm 12", user = 1007')
    assert {name for name in shown if name.startswith("4711/")} == {
        f"4711/{name}" for name in ("stat", "status", "cgroup", "environ", "net/tcp", "net/tcp6")
    }
    assert shown["4711/cgroup"] == "0::/system.slice/slurmstepd.scope/job_12/step_0/user/task_0\n"
    assert shown["4711/environ"] == "PATH=/usr/bin:/bin\0SLURM_JOB_ID=12\0SLURM_JOB_UID=1007\0SLURM_STEP_ID=0\0"
    assert process_files.status(shown["4711/status"]) == process_files.ProcessStatus(1007, (4711,))


def test_a_process_starts_before_its_chip_shows_it_and_after_the_boot() -> None:
    shown = files('pid = 4711, name = "python3", memory = 1')
    started = process_files.stat(shown["4711/stat"])
    assert (started.pid, started.name, started.started_ticks) == (4711, "python3", (86_400 + 100 - 15) * 100)
    assert process_files.uptime_s(shown["uptime"]) == 86_400 + 200
    assert process_files.boot_wall_s(shown["stat"]) == 1_790_000_000 - 86_400


def test_a_pod_and_a_session_lie_where_kubelet_and_logind_put_them() -> None:
    pod = files(f'pid = 1, name = "vllm", memory = 1, job = "kubernetes {POD}", container_pid = 7')
    placed = cgroup.parse(pod["1/cgroup"])
    assert (str(placed.scheduler), placed.job, str(placed.runtime)) == ("kubernetes", POD, "containerd")
    assert environ.parse(pod["1/environ"]).variables["POD_UID"] == POD
    assert process_files.status(pod["1/status"]).namespace_pids == (1, 7)
    session = files('pid = 1, name = "python3", memory = 1, job = "session 12", user = 1007')
    assert session["1/cgroup"] == "0::/user.slice/user-1007.slice/session-12.scope\n"


def test_a_user_is_known_by_the_same_number_wherever_he_is_named() -> None:
    def uid(user: str) -> int | None:
        shown = files(f'pid = 1, name = "a", memory = 1, user = "{user}"')
        return process_files.status(shown["1/status"]).uid

    assert (uid("alice"), uid("bob"), uid("alice")) == (21736, 21105, 21736)


def test_a_process_that_npu_smi_cannot_name_is_not_on_the_host() -> None:
    assert not [name for name in files("pid = 4711, memory = 1") if name.startswith("4711/")]


def test_a_name_is_cut_and_escaped_as_the_kernel_does() -> None:
    shown = files("pid = 1, name = 'a\\b', memory = 1")
    assert process_files.stat(shown["1/stat"]).name == "a\\\\b"
    shown = files('pid = 1, name = "a\\nbcdefghijklmnopqrs", memory = 1')
    assert process_files.stat(shown["1/stat"]).name == "a\\nbcdefghijklmn"


def test_a_folder_is_there_from_before_the_start_to_the_end() -> None:
    story = scenario('pid = 4711, name = "a", memory = 1', "[[at]]\nt = 300\ndevice = 0\nstop = [4711]\n")
    shown = [t_s for t_s in (0, 84, 85, 100, 299, 300) if "4711/stat" in procfs.tree(story, t_s).files]
    assert shown == [85, 100, 299]


def test_a_pid_that_comes_again_is_another_process() -> None:
    again = "[[at]]\nt = 300\ndevice = 0\nstop = [7]\n"
    again += '[[at]]\nt = 400\ndevice = 0\nstart = [{ pid = 7, name = "b", memory = 1 }]\n'
    story = scenario('pid = 7, name = "a", memory = 1', again)
    assert [procfs.processes_at(story, t_s)[0].since_s for t_s in (200.0, 390.0, 500.0)] == [85.0, 385.0, 385.0]


def test_a_process_on_many_chips_is_one_that_began_with_the_first() -> None:
    more = '[[at]]\nt = 200\ndevice = 1\nstart = [{ pid = 7, name = "a", memory = 1 }]\n'
    assert [one.since_s for one in procfs.processes_at(scenario('pid = 7, name = "a", memory = 1', more), 300)] == [85]


@pytest.mark.parametrize("job", ["slurm", "slurm 12.0", "lsf 3", "kubernetes 3f1c", "session 1/../2"])
def test_a_job_of_no_known_form_is_refused(job: str) -> None:
    with pytest.raises(ScenarioError, match=r"is no job like .* - at `\$.at\[0\].start`"):
        scenario(f'pid = 7, name = "a", memory = 1, job = "{job}"')


def test_the_finder_sees_two_jobs_on_device_3_and_one_on_its_neighbours(tmp_path: Path) -> None:
    story = load("two_jobs_one_device")
    a, b = "slurm 4711", "slurm 4712"
    assert jobs(tmp_path, story, 119) == {0: {a}, 1: {a}, 2: {a}, 3: {a}}
    assert jobs(tmp_path, story, 300) == {0: {a}, 1: {a}, 2: {a}, 3: {a, b}, 4: {b}, 5: {b}, 6: {b}}
    assert jobs(tmp_path, story, 481) == {0: {a}, 1: {a}, 2: {a}, 3: {a}}


def test_the_finder_sees_a_handover_and_what_a_dead_job_leaves(tmp_path: Path) -> None:
    handed = load("handover")
    seen = [jobs(tmp_path, handed, t_s) for t_s in (179, 185, 190)]
    assert seen == [
        dict.fromkeys(range(8), who) for who in ({"slurm 4711"}, {"slurm 4711", "slurm 4712"}, {"slurm 4712"})
    ]
    assert jobs(tmp_path, load("leftover"), 119) == {key: {"slurm 4711"} for key in range(4)}
    assert jobs(tmp_path, load("leftover"), 121) == {}
    idle, left, given_back = (state_at(load("leftover"), t_s).chips for t_s in (119, 121, 600))
    assert [chip.hbm.used_mb for chip in left[:3]] == [3393, 3393 + 30 * 1024, 3393]
    assert {chip.hbm.used_mb for chip in given_back} == {idle[7].hbm.used_mb} == {3393}


def test_the_finder_takes_no_number_of_a_container_for_another_process(tmp_path: Path) -> None:
    story = load("container_pids")
    a, b, c = (f"kubernetes {letter * 8}-8a11-4b0e-9d55-0c5be0a7f0d1" for letter in "abc")
    rest = {1: {b}, 3: {"unknown"}, 4: {"session 12"}, 5: {"unknown"}, 6: {b}}
    assert jobs(tmp_path, story, 300) == {0: {a}, 2: {"unknown"}, **rest}
    assert jobs(tmp_path, story, 361) == {2: {c}, **rest}


def test_a_process_with_a_number_on_the_host_is_there_and_nameless_in_the_table(tmp_path: Path) -> None:
    start = 'pid = 87, host_pid = 71001, name = "vllm", memory = 1'
    shown = files(start)
    assert process_files.stat(shown["71001/stat"]).name == "vllm"
    assert process_files.status(shown["71001/status"]).namespace_pids == (71001, 87)
    assert not [name for name in shown if name.startswith("87/")]
    [row] = info_table.parse(answer(state_at(scenario(start), 200), ("info",)).text).processes or ()
    assert (row.pid, row.name) == (87, None)


def test_files_that_are_ten_seconds_old_name_the_job_of_a_new_process(tmp_path: Path) -> None:
    assert jobs(tmp_path, load("two_jobs_one_device"), 120, age_s=10)[4] == {"slurm 4712"}


@pytest.mark.parametrize("name", [one for one in names() if one not in NAMING])
def test_where_a_scenario_says_nothing_all_belongs_to_one_session(name: str, tmp_path: Path) -> None:
    story = load(name)
    for number, t_s in enumerate(story.instants()):
        state = state_at(story, t_s)
        if state.driver == "ok" and state.tool.mood == "ok":
            found = jobs(tmp_path / str(number), story, t_s)
            assert set().union(*found.values()) <= {"session 3", "unknown"}
            assert name in NAMELESS or "unknown" not in set().union(*found.values())


KEEPER = "3658368"
"""Of job 4711."""


def test_a_jobs_process_descends_from_who_keeps_it_until_that_is_gone() -> None:
    story = scenario(
        'pid = 4711, name = "a", memory = 1, job = "slurm 12"', '[[at]]\nt = 300\nlost_jobs = ["slurm 12"]\n'
    )

    def parent(t_s: float) -> tuple[int, str | None]:
        shown = procfs.tree(story, t_s).files
        pid = process_files.stat(shown["4711/stat"].decode()).parent_pid
        return pid, shown[f"{pid}/cmdline"].decode()

    (kept, title), lost = parent(200), parent(300)
    assert title == "slurmstepd: [12.0]\0"
    assert lost == (1, "/sbin/init\0")
    assert f"{kept}/stat" not in procfs.tree(story, 300).files


def test_an_installed_node_keeps_it_beside_its_sysfs(tmp_path: Path) -> None:
    install("two_jobs_one_device", tmp_path, speed=0.0, at=60.0)
    proc = tmp_path / "proc"
    assert {"1", KEEPER, "61001", "cpuinfo", "self", "stat", "uptime", "pressure", "meminfo", "vmstat"} <= {
        path.name for path in proc.iterdir()
    }
    assert (proc / "uptime").read_text() == "86460.00 86460.00\n"
    set_clock(tmp_path, 300.0)
    assert (proc / "62001" / "cgroup").read_text().endswith("/job_4712/step_0/user/task_0\n")
    set_clock(tmp_path, 481.0)
    refresh(tmp_path)
    assert not (proc / "62001").exists()
