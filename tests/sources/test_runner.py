"""What the runner promises, shown with real executables that break the promise's every assumption."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from errno import EMFILE
from pathlib import Path

import pytest

from npu_watchd.model.reading import Failure, FailureKind, Output
from npu_watchd.sources import strays
from npu_watchd.sources.runner import HOST_MOUNTS, ToolRunner

HERE = Path(__file__).parent
PROJECT = HERE.parent.parent
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
SLACK_S = 2.0
"""The contract: back within deadline + 2 s."""

MakeTool = Callable[[str, str], str]


class AdjustableClock:
    """The real clock, and time that a test adds to it."""

    def __init__(self) -> None:
        self.added_s = 0.0

    def __call__(self) -> float:
        return time.monotonic() + self.added_s


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def zombies_of_ours() -> list[strays.Process]:
    return [p for p in strays.every_process() if p.state == "Z" and p.parent == os.getpid()]


def is_gone(pid: int) -> bool:
    process = strays.look_at(pid)
    return process is None or process.dead


def wait_until(true: Callable[[], bool], seconds: float = 5.0) -> bool:
    end = time.monotonic() + seconds
    while not true() and time.monotonic() < end:
        time.sleep(0.01)
    return true()


@contextmanager
def back_within(deadline_s: float) -> Iterator[None]:
    began = time.monotonic()
    yield
    assert time.monotonic() - began < deadline_s + SLACK_S


@pytest.fixture
def clock() -> AdjustableClock:
    return AdjustableClock()


@pytest.fixture(autouse=True)
def nothing_left_behind() -> Iterator[None]:
    """Around every test of this file: no zombie of ours and no more file descriptors than before."""
    before = open_descriptors()
    yield
    assert zombies_of_ours() == []
    assert open_descriptors() == before


@pytest.fixture
def runner(clock: AdjustableClock, nothing_left_behind: None) -> Iterator[ToolRunner]:
    made = ToolRunner(clock=clock, environ={"PATH": SYSTEM_PATH, "HOME": "/"})
    yield made
    made.close()


@pytest.fixture
def tool(tmp_path: Path) -> MakeTool:
    def make(name: str, body: str) -> str:
        path = tmp_path / name
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)
        return str(path)

    return make


@pytest.fixture
def hung_files(tmp_path: Path, nothing_left_behind: None) -> Iterator[tuple[Path, Callable[[], None]]]:
    """A folder whose files never answer a read, and how to make them answer with an error."""
    if os.geteuid() != 0 or not os.access("/dev/fuse", os.R_OK | os.W_OK):
        pytest.skip("needs root and /dev/fuse to make a file system that hangs")
    mountpoint = tmp_path / "mnt"
    mountpoint.mkdir()
    server = subprocess.Popen(
        [sys.executable, str(HERE / "hungfs.py"), str(mountpoint)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )

    def answer_at_last() -> None:
        server.kill()
        server.wait()

    assert server.stdout is not None
    try:
        if server.stdout.readline() != "mounted\n":
            pytest.skip(f"no FUSE mount here: {server.communicate()[1].strip()}")
        yield mountpoint, answer_at_last
    finally:
        answer_at_last()
        subprocess.run(["umount", "-l", str(mountpoint)], check=False, stderr=subprocess.DEVNULL)
        server.communicate()
        assert str(mountpoint) not in Path("/proc/mounts").read_text()


# Tools that another command starts


def test_a_tool_that_another_command_starts_is_the_process_that_is_watched(
    clock: AdjustableClock, tool: MakeTool
) -> None:
    runner = ToolRunner(clock=clock, environ={"PATH": SYSTEM_PATH}, through=("env", "STARTED=by env"))
    asks = tool("asks", 'echo "$STARTED, $#: $*"; ps -o sid= -p $$ | tr -d " "; echo $$')
    answer = runner.run((asks, "a b", "c"), 5.0)
    assert isinstance(answer, Output)
    said, session, pid = answer.text.splitlines()
    assert said == "by env, 2: a b c"
    assert session == pid, "it leads the session that the runner made, as it does when nothing stands between"
    runner.close()


def test_a_tool_that_is_not_there_is_missing_whoever_would_start_it(clock: AdjustableClock) -> None:
    runner = ToolRunner(clock=clock, environ={"PATH": SYSTEM_PATH}, through=HOST_MOUNTS)
    answer = runner.run(("no-such-tool",), 1.0)
    assert isinstance(answer, Failure)
    assert answer.kind is FailureKind.MISSING
    assert "no-such-tool: not found on PATH" in answer.detail
    runner.close()


def test_without_the_command_that_starts_tools_the_cure_is_named(clock: AdjustableClock, tool: MakeTool) -> None:
    runner = ToolRunner(clock=clock, environ={"PATH": "/nowhere"}, through=HOST_MOUNTS)
    assert runner.run((tool("npu-smi", "echo fine"),), 1.0) == Failure(
        FailureKind.MISSING, "nsenter: not usable; install util-linux, or run without --host-mounts"
    )
    runner.close()


# Tools that are not there, or cannot be run


def test_a_tool_that_is_not_on_path_is_missing_and_the_cure_is_named(clock: AdjustableClock) -> None:
    runner = ToolRunner(clock=clock, environ={"PATH": "/nowhere:/bin/no"})
    assert runner.run(("npu-smi", "info"), 1.0) == Failure(
        FailureKind.MISSING,
        "npu-smi: not found on PATH (/nowhere:/bin/no); install it, or set [tools] npu_smi in config.toml to its path",
    )
    runner.close()


def test_a_path_that_does_not_exist_is_missing(runner: ToolRunner) -> None:
    assert runner.run(("/opt/none/pcm-pcie",), 1.0) == Failure(
        FailureKind.MISSING, "/opt/none/pcm-pcie: no such file; install it, or set [tools] pcm_pcie in config.toml"
    )


def test_a_file_that_may_not_be_executed_is_denied(runner: ToolRunner, tool: MakeTool) -> None:
    path = tool("npu-smi", "echo never")
    Path(path).chmod(0o644)
    assert runner.run((path,), 1.0) == Failure(
        FailureKind.DENIED,
        f"{path}: may not be executed (mode 0644); let npu-watchd's user run it, or set [tools] npu_smi",
    )


def test_a_folder_or_a_fifo_of_that_name_is_denied_and_not_opened(runner: ToolRunner, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo", 0o755)
    for path in (tmp_path, tmp_path / "fifo"):
        answer = runner.run((str(path),), 1.0)
        assert isinstance(answer, Failure)
        assert answer.kind is FailureKind.DENIED
        assert answer.detail.startswith(f"{path}: is not a file;")


def test_an_executable_later_on_path_is_found_behind_one_that_is_not(clock: AdjustableClock, tmp_path: Path) -> None:
    for name, mode in (("first", 0o644), ("second", 0o755)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "ibstat").write_text(f"#!/bin/sh\necho {name}\n")
        (tmp_path / name / "ibstat").chmod(mode)
    runner = ToolRunner(clock=clock, environ={"PATH": f"{tmp_path}/first:{tmp_path}/second"})
    assert runner.run(("ibstat",), 1.0) == Output("second\n")
    runner.close()


def test_a_file_of_another_architecture_is_missing_since_this_node_has_no_such_program(
    runner: ToolRunner, tmp_path: Path
) -> None:
    path = tmp_path / "hccn_tool"
    path.write_bytes(b"\x7fELF of some other machine")
    path.chmod(0o755)
    answer = runner.run((str(path),), 1.0)
    assert answer == Failure(
        FailureKind.MISSING,
        f"{path}: is no program that this machine ({os.uname().machine}) can run; install the build for it, "
        "or set [tools] hccn_tool",
    )


def test_a_script_whose_interpreter_does_not_exist_is_missing(runner: ToolRunner, tmp_path: Path) -> None:
    path = tmp_path / "tool"
    path.write_text("#!/no/such/interpreter\n")
    path.chmod(0o755)
    answer = runner.run((str(path),), 1.0)
    assert isinstance(answer, Failure)
    assert answer.kind is FailureKind.MISSING
    assert "the interpreter or loader that it names does not exist" in answer.detail


@pytest.mark.parametrize("argv", [(), ("",), ("a\0b",), ("/bin/echo", "\ud800"), ("/bin/echo", "x" * 10_000_000)])
def test_a_command_that_cannot_be_one_is_a_failure_and_raises_nothing(
    runner: ToolRunner, argv: tuple[str, ...]
) -> None:
    assert isinstance(runner.run(argv, 1.0), Failure)


@pytest.mark.parametrize("timeout_s", [0.0, -1.0, float("nan")])
def test_without_time_nothing_is_started(runner: ToolRunner, tool: MakeTool, tmp_path: Path, timeout_s: float) -> None:
    answer = runner.run((tool("tool", f"touch {tmp_path}/started"),), timeout_s)
    assert isinstance(answer, Failure)
    assert answer.kind is FailureKind.TIMEOUT
    assert not (tmp_path / "started").exists()


def test_a_deadline_too_short_to_start_is_a_timeout_and_wedges_nothing(runner: ToolRunner) -> None:
    answer = runner.run(("sleep", "60"), 1e-6)
    assert isinstance(answer, Failure)
    assert answer.kind is FailureKind.TIMEOUT
    assert runner.run(("sleep", "0"), 5.0) == Output("")


def test_an_endless_deadline_is_bounded_and_harmless(runner: ToolRunner) -> None:
    assert runner.run(("echo", "ok"), float("inf")) == Output("ok\n")


# Answers


def test_a_nonzero_exit_is_an_answer_with_its_text(runner: ToolRunner, tool: MakeTool) -> None:
    path = tool("npu-smi", "echo 'Invalid card id.'; echo 'to stderr' >&2; exit 3")
    assert runner.run((path,), 1.0) == Output("Invalid card id.\n", "to stderr\n", 3)


def test_exit_0_with_an_error_text_is_an_answer_for_the_parser_to_judge(runner: ToolRunner, tool: MakeTool) -> None:
    path = tool("npu-smi", "echo 'dcmi module initialize failed. ret is -8005'")
    assert runner.run((path,), 1.0) == Output("dcmi module initialize failed. ret is -8005\n", "", 0)


def test_a_crash_is_an_answer_with_the_signal_as_negative_exit_code(runner: ToolRunner, tool: MakeTool) -> None:
    assert runner.run((tool("tool", "echo half; ulimit -c 0; kill -SEGV $$"),), 1.0) == Output("half\n", "", -11)


def test_arguments_arrive_untouched_by_any_shell(runner: ToolRunner) -> None:
    assert runner.run(("printf", "%s|", "a b", "$HOME", "*", "ü"), 1.0) == Output("a b|$HOME|*|ü|")


def test_binary_nul_and_invalid_utf8_become_text_with_replacement_characters(runner: ToolRunner) -> None:
    answer = runner.run(("printf", r"ok\000\377\033[1m\303(\n"), 1.0)
    assert answer == Output("ok\x00�\x1b[1m�(\n")


def test_a_tool_that_reads_stdin_is_at_its_end_at_once(runner: ToolRunner, tool: MakeTool) -> None:
    assert runner.run((tool("tool", "cat; echo end"),), 1.0) == Output("end\n")


def test_a_document_is_read_to_its_end_from_stdin_and_nobody_waits_for_a_tool_that_does_not(
    runner: ToolRunner, tool: MakeTool
) -> None:
    document = b"0123456789abcdef" * 65536
    assert runner.run((tool("tool", "wc -c; wc -c"),), 5.0, document) == Output("1048576\n0\n")
    assert runner.run((tool("deaf", "echo done"),), 5.0, document) == Output("done\n")


def test_a_document_passes_through_what_starts_the_tool(clock: AdjustableClock, tool: MakeTool) -> None:
    runner = ToolRunner(clock=clock, environ={"PATH": SYSTEM_PATH}, through=("env", "STARTED=by env"))
    assert runner.run((tool("tool", "cat"),), 5.0, b'{"mark": 1}') == Output('{"mark": 1}')
    runner.close()


def test_a_document_that_is_too_long_starts_nothing(runner: ToolRunner, tool: MakeTool, tmp_path: Path) -> None:
    answer = runner.run((tool("tool", f"touch {tmp_path}/started"),), 5.0, b"x" * 1048577)
    assert isinstance(answer, Failure)
    assert answer.kind is FailureKind.UNSUPPORTED
    assert "1048577 bytes are too many" in answer.detail
    assert not (tmp_path / "started").exists()


def test_the_environment_is_small_and_untranslated(clock: AdjustableClock) -> None:
    ours = {"PATH": SYSTEM_PATH, "HOME": "/root", "LANG": "zh_CN.UTF-8", "LANGUAGE": "zh", "LC_ALL": "zh_CN.UTF-8"}
    ours |= {"LD_LIBRARY_PATH": "/usr/local/Ascend/driver/lib64", "LD_PRELOAD": "", "SECRET_TOKEN": "x"}
    ours |= {"SLURM_CONF": "/opt/slurm/etc/slurm.conf"}
    runner = ToolRunner(clock=clock, environ=ours)
    answer = runner.run(("env",), 1.0)
    runner.close()
    assert isinstance(answer, Output)
    told = dict(line.split("=", 1) for line in answer.text.splitlines())
    assert told.pop("NPU_WATCHD_RUN")
    assert told == {
        "PATH": SYSTEM_PATH,
        "HOME": "/root",
        "LC_ALL": "C",
        "LD_LIBRARY_PATH": "/usr/local/Ascend/driver/lib64",
        "SLURM_CONF": "/opt/slurm/etc/slurm.conf",
    }


def test_a_tool_has_a_session_of_its_own_and_the_root_as_folder(runner: ToolRunner, tool: MakeTool) -> None:
    path = tool("tool", "read pid name state parent group session rest </proc/self/stat; echo $$ $group $session; pwd")
    answer = runner.run((path,), 1.0)
    assert isinstance(answer, Output)
    numbers, folder = answer.text.splitlines()
    pid, group, session = numbers.split()
    assert pid == group == session
    assert int(session) != os.getsid(0)
    assert folder == "/"


def test_a_tool_inherits_no_file_descriptor_of_ours(runner: ToolRunner, tmp_path: Path) -> None:
    with (tmp_path / "open").open("w") as file:
        os.set_inheritable(file.fileno(), True)
        answer = runner.run(("ls", "/proc/self/fd"), 1.0)
    assert answer == Output("0\n1\n2\n3\n")  # 3: the folder that ls itself reads


# Hangs


def test_a_tool_that_ends_on_sigterm_may_clean_up(runner: ToolRunner, tool: MakeTool, tmp_path: Path) -> None:
    path = tool("tool", f"trap 'touch {tmp_path}/cleaned; exit 0' TERM; while :; do sleep 0.02; done")
    with back_within(0.6):
        answer = runner.run((path,), 0.6)
    assert answer == Failure(
        FailureKind.TIMEOUT, f"{path}: no answer within 0.6 s and was ended; it had printed nothing"
    )
    assert (tmp_path / "cleaned").exists()


def test_a_hang_that_ignores_sigterm_is_killed_and_its_first_bytes_are_told(runner: ToolRunner, tool: MakeTool) -> None:
    path = tool("tool", "trap '' TERM; printf 'half\\033[1m'; while :; do sleep 0.02; done")
    with back_within(0.6):
        answer = runner.run((path, "-x"), 0.6)
    told = r"it had printed 8 bytes, first: 'half\x1b[1m'"
    assert answer == Failure(FailureKind.TIMEOUT, f"{path} -x: no answer within 0.6 s and was ended; {told}")
    assert runner.abandoned() == {}


def test_a_stopped_tool_is_killed(runner: ToolRunner, tool: MakeTool) -> None:
    with back_within(0.3):
        answer = runner.run((tool("tool", "kill -STOP $$"),), 0.3)
    assert isinstance(answer, Failure)
    assert answer.kind is FailureKind.TIMEOUT


def test_a_tool_that_closes_its_pipes_and_lives_on_is_still_bound_by_the_deadline(
    runner: ToolRunner, tool: MakeTool
) -> None:
    with back_within(0.3):
        answer = runner.run((tool("tool", "exec >&- 2>&-; sleep 60"),), 0.3)
    assert isinstance(answer, Failure)
    assert answer.kind is FailureKind.TIMEOUT


def test_a_grandchild_that_keeps_the_pipe_open_costs_neither_the_answer_nor_the_deadline(
    runner: ToolRunner, tool: MakeTool
) -> None:
    path = tool("tool", "sleep 60 & echo $!; exit 5")
    with back_within(0.0):
        answer = runner.run((path,), 30.0)
    assert isinstance(answer, Output)
    assert answer.exit_code == 5
    assert is_gone(int(answer.text))


@pytest.mark.parametrize("rest", ["exit 5", "exec sleep 60"], ids=["tool exits", "tool hangs"])
def test_a_child_that_left_the_process_group_is_gone_afterwards(
    runner: ToolRunner, tool: MakeTool, tmp_path: Path, rest: str
) -> None:
    pid_file = tmp_path / "pid"
    child = f"setsid sh -c 'echo $$ >{pid_file}; trap \"\" TERM; sleep 60; :' &"
    path = tool("tool", f"{child}\necho done; until [ -s {pid_file} ]; do sleep 0.01; done; {rest}")
    with back_within(1.0):
        answer = runner.run((path,), 1.0)
    if rest == "exit 5":
        assert answer == Output("done\n", "", 5)
    else:
        assert isinstance(answer, Failure)
        assert answer.kind is FailureKind.TIMEOUT
    assert is_gone(int(pid_file.read_text()))
    assert runner.abandoned() == {}


def test_a_child_that_shed_group_and_environment_is_gone_with_its_parent(
    runner: ToolRunner, tool: MakeTool, tmp_path: Path
) -> None:
    path = tool("tool", f"env -i PATH=$PATH setsid sh -c 'echo $$ >{tmp_path}/pid; sleep 60; :' & wait")
    with back_within(1.0):
        runner.run((path,), 1.0)
    assert is_gone(int((tmp_path / "pid").read_text()))


def test_a_helper_left_in_the_group_does_not_outlive_a_good_run(runner: ToolRunner, tool: MakeTool) -> None:
    answer = runner.run((tool("tool", "sleep 60 >/dev/null 2>&1 & echo $!"),), 5.0)
    assert isinstance(answer, Output)
    assert wait_until(lambda: is_gone(int(answer.text)))


def test_a_process_that_is_not_ours_is_left_alone(runner: ToolRunner, tool: MakeTool) -> None:
    bystander = subprocess.Popen(["sleep", "60"], start_new_session=True)
    try:
        runner.run((tool("tool", "setsid sleep 60 & sleep 60"),), 0.3)
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()


# Output without end


def test_endless_output_is_ended_at_the_cap_long_before_the_deadline(runner: ToolRunner) -> None:
    with back_within(1.0):
        answer = runner.run(("yes", "0123456"), 60.0)
    assert isinstance(answer, Failure)
    assert answer.kind is FailureKind.UNPARSEABLE
    assert answer.detail.startswith("yes 0123456: printed more than 4 MiB on stdout and was ended; it had printed 4")
    assert runner.abandoned() == {}


@pytest.mark.parametrize(("redirect", "pipe"), [("", "stdout"), (">&2", "stderr")])
def test_a_hundred_megabytes_are_refused_and_not_kept(
    runner: ToolRunner, tool: MakeTool, redirect: str, pipe: str
) -> None:
    with back_within(1.0):
        answer = runner.run((tool("tool", f"head -c 100000000 /dev/zero {redirect}"),), 60.0)
    assert isinstance(answer, Failure)
    assert answer.kind is FailureKind.UNPARSEABLE
    assert f"printed more than 4 MiB on {pipe}" in answer.detail
    assert len(answer.detail) < 2000


def test_exactly_the_cap_is_an_answer(runner: ToolRunner) -> None:
    answer = runner.run(("head", "-c", "4194304", "/dev/zero"), 5.0)
    assert isinstance(answer, Output)
    assert len(answer.text) == 4194304


def test_a_slow_trickle_does_not_move_the_deadline(runner: ToolRunner, tool: MakeTool) -> None:
    with back_within(0.3):
        answer = runner.run((tool("tool", "while :; do echo x; done"),), 0.3)
    assert isinstance(answer, Failure)
    assert answer.kind in (FailureKind.TIMEOUT, FailureKind.UNPARSEABLE)


# Processes that SIGKILL cannot end


@pytest.mark.parametrize(
    "script",
    ["exec cat {hung}", "cat {hung}; echo after", "setsid -w cat {hung}"],
    ids=["tool", "child", "own session"],
)
def test_a_tool_in_d_state_is_abandoned_refused_and_after_its_end_started_again(
    runner: ToolRunner,
    clock: AdjustableClock,
    tool: MakeTool,
    hung_files: tuple[Path, Callable[[], None]],
    script: str,
) -> None:
    mountpoint, answer_at_last = hung_files
    path = tool("npu-smi", f'[ "$1" = -v ] && exec echo fine\n{script.format(hung=mountpoint / "hung")}')
    with back_within(1.0):
        answer = runner.run((path, "info"), 1.0)
    assert isinstance(answer, Failure)
    assert answer.kind is FailureKind.WEDGED
    assert f"{path} info: no answer within 1.0 s" in answer.detail
    assert "state D" in answer.detail

    began = time.monotonic()
    second = runner.run((path, "-v"), 30.0)
    assert time.monotonic() - began < SLACK_S
    assert isinstance(second, Failure)
    assert second.kind is FailureKind.WEDGED
    (stuck,) = runner.abandoned()[path].processes
    assert f"not started. `{path} info` was killed " in second.detail
    assert f"pid {stuck.pid} (cat, state D" in second.detail
    assert f"check `cat /proc/{stuck.pid}/stack` and `dmesg`" in second.detail

    assert runner.run(("echo", "on time"), 2.0) == Output("on time\n")

    answer_at_last()
    assert wait_until(lambda: runner.abandoned() == {})
    assert is_gone(stuck.pid)
    resting = runner.run((path, "-v"), 1.0)
    assert isinstance(resting, Failure)
    assert resting.kind is FailureKind.WEDGED
    assert resting.detail.endswith("is gone now; the next start is in 15 s")
    clock.added_s += 16.0
    assert runner.run((path, "-v"), 1.0) == Output("fine\n")


def test_other_tools_run_on_time_while_one_hangs_in_d_state(
    runner: ToolRunner, hung_files: tuple[Path, Callable[[], None]]
) -> None:
    mountpoint, answer_at_last = hung_files
    hanging = threading.Thread(target=runner.run, args=(("cat", str(mountpoint / "hung")), 1.0))
    hanging.start()
    slowest = 0.0
    while hanging.is_alive():
        began = time.monotonic()
        assert runner.run(("echo", "on time"), 2.0) == Output("on time\n")
        slowest = max(slowest, time.monotonic() - began)
    assert slowest < 2.0
    answer_at_last()
    assert wait_until(lambda: runner.abandoned() == {})


def test_a_tool_on_a_file_system_that_does_not_answer_stops_nobody_else(
    runner: ToolRunner, hung_files: tuple[Path, Callable[[], None]]
) -> None:
    mountpoint, answer_at_last = hung_files
    path = str(mountpoint / "tool")
    with back_within(0.3):
        answer = runner.run((path,), 0.3)
    assert isinstance(answer, Failure)
    assert answer.kind is FailureKind.WEDGED
    assert f"the file system that holds {path} does not answer" in answer.detail
    assert runner.run(("echo", "on time"), 2.0) == Output("on time\n")
    assert runner.abandoned()[path].pid is None
    answer_at_last()
    assert wait_until(lambda: runner.abandoned() == {})


# Threads


def test_two_threads_never_run_the_same_tool_twice_at_once(runner: ToolRunner, tool: MakeTool, tmp_path: Path) -> None:
    path = tool("npu-smi", f"mkdir {tmp_path}/lock || exit 3; sleep 0.02; rmdir {tmp_path}/lock")
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: runner.run((path,), 20.0), range(20)))
    assert answers == [Output("")] * 20


def test_a_second_caller_waits_no_longer_than_its_own_deadline(
    runner: ToolRunner, tool: MakeTool, tmp_path: Path
) -> None:
    path = tool("npu-smi", f"touch {tmp_path}/started; sleep 60")
    first = threading.Thread(target=runner.run, args=((path, "info"), 1.0))
    first.start()
    assert wait_until((tmp_path / "started").exists)
    with back_within(0.2):
        answer = runner.run((path, "-l"), 0.2)
    first.join()
    assert isinstance(answer, Failure)
    assert answer.kind is FailureKind.TIMEOUT
    assert answer.detail.startswith(f"{path} -l: not started. `{path} info` still ran after 0.2")
    assert answer.detail.endswith(f"; one {path} runs at a time")


def test_different_tools_run_side_by_side(runner: ToolRunner, tool: MakeTool, tmp_path: Path) -> None:
    """Each waits for the other to have started, so that one after the other could never succeed."""
    body = "touch {0}/{1}; until [ -e {0}/{2} ]; do sleep 0.01; done; echo met"
    paths = [tool("a", body.format(tmp_path, "A", "B")), tool("b", body.format(tmp_path, "B", "A"))]
    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(lambda path: runner.run((path,), 5.0), paths))
    assert answers == [Output("met\n"), Output("met\n")]


def test_close_ends_what_runs_and_refuses_what_comes(runner: ToolRunner, tool: MakeTool, tmp_path: Path) -> None:
    path = tool("npu-smi", f"trap '' TERM; touch {tmp_path}/started; while :; do sleep 0.02; done")
    with ThreadPoolExecutor(2) as pool:
        running = pool.submit(runner.run, (path, "info"), 60.0)
        assert wait_until((tmp_path / "started").exists)
        waiting = pool.submit(runner.run, (path, "-l"), 60.0)
        with back_within(1.0):
            runner.close()
            stopped, refused = running.result(), waiting.result()
    stopping = "ended before its deadline, npu-watchd is stopping"
    assert stopped == Failure(FailureKind.TIMEOUT, f"{path} info: {stopping}")
    assert refused == Failure(FailureKind.TIMEOUT, f"{path} -l: not started. npu-watchd is stopping")
    assert runner.run(("echo",), 1.0) == Failure(FailureKind.TIMEOUT, "echo: not started. npu-watchd is stopping")
    runner.close()


# The machine at its limits


def no_pidfd(pid: int) -> int:
    raise OSError(EMFILE, os.strerror(EMFILE))


@pytest.mark.parametrize("pidfd_open", [None, no_pidfd], ids=["old kernel", "refused"])
def test_without_pidfd_every_bound_holds(
    clock: AdjustableClock, tool: MakeTool, pidfd_open: Callable[[int], int] | None
) -> None:
    runner = ToolRunner(clock=clock, environ={"PATH": SYSTEM_PATH}, pidfd_open=pidfd_open)
    assert runner.run(("echo", "ok"), 1.0) == Output("ok\n")
    with back_within(0.3):
        hang = runner.run((tool("hang", "trap '' TERM; setsid sleep 60 & sleep 60"),), 0.3)
    assert isinstance(hang, Failure)
    assert hang.kind is FailureKind.TIMEOUT
    with back_within(0.0):
        held = runner.run((tool("held", "setsid sleep 60 & echo $!"),), 30.0)
    assert isinstance(held, Output)
    assert is_gone(int(held.text))
    runner.close()


def test_a_thousand_runs_leak_no_file_descriptor_and_no_process(runner: ToolRunner) -> None:
    runner.run(("true",), 1.0)
    before = open_descriptors()
    for _ in range(1000):
        assert runner.run(("true",), 5.0) == Output("")
    assert open_descriptors() == before
    assert zombies_of_ours() == []
    assert not [thread for thread in threading.enumerate() if thread.name == "start true" and wait_until_over(thread)]


def wait_until_over(thread: threading.Thread) -> bool:
    thread.join(1.0)
    return thread.is_alive()


def in_a_python_of_its_own(code: str, *prefix: str) -> str:
    """stdout of a script that has the runner as `runner`."""
    prelude = (
        "import os, resource, subprocess, sys, time\nfrom npu_watchd.sources.runner import HOST_MOUNTS, ToolRunner\n"
    )
    prelude += "runner = ToolRunner(clock=time.monotonic)\n"
    done = subprocess.run(
        [*prefix, sys.executable, "-c", prelude + code],
        cwd=PROJECT,
        env={**os.environ, "PYTHONPATH": str(PROJECT)},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.stderr == ""
    return done.stdout


def test_out_of_file_descriptors_is_a_failure_with_the_reason_and_passes() -> None:
    out = in_a_python_of_its_own("""
limits = resource.getrlimit(resource.RLIMIT_NOFILE)
used = len(os.listdir("/proc/self/fd")) - 1
for spare in range(12):
    resource.setrlimit(resource.RLIMIT_NOFILE, (used + spare, limits[1]))
    print(runner.run(("/bin/echo", "ok"), 2.0))
    resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert len(os.listdir("/proc/self/fd")) - 1 == used
""")
    answers = out.splitlines()
    assert "DENIED" in answers[0]
    assert "the kernel refused to start it: Too many open files; check the limits" in answers[0]
    assert answers[-1] == r"Output(text='ok\n', stderr='', exit_code=0)"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become a user with a limit on processes")
def test_no_more_processes_allowed_is_a_failure_with_the_reason() -> None:
    out = in_a_python_of_its_own("""
resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
os.setresuid(65534, 65534, 65534)
print(runner.run(("/bin/echo", "ok"), 1.0))
""")
    assert "DENIED" in out
    assert "the kernel gave no thread for it" in out


def test_as_pid_1_of_a_container_orphans_are_reaped_and_no_exit_code_is_stolen() -> None:
    prefix = ("unshare", "--pid", "--fork", "--mount-proc")
    if subprocess.run([*prefix, "true"], check=False, capture_output=True).returncode:
        pytest.skip("needs the right to make a PID namespace")
    out = in_a_python_of_its_own(
        """
from npu_watchd.sources import strays
other = subprocess.Popen(["sh", "-c", "exit 7"])
print(os.getpid(), runner.run(("sh", "-c", "setsid true >/dev/null 2>&1 & sleep 0.2 & exit 4"), 5.0).exit_code)
end = time.monotonic() + 5
while [p for p in strays.every_process() if p.pid not in (1, other.pid)] and time.monotonic() < end:
    print(runner.run(("sh", "-c", "exit 4"), 5.0).exit_code, end=" ")
    time.sleep(0.02)
print([p.name for p in strays.every_process() if p.pid not in (1, other.pid)], other.wait())
""",
        *prefix,
    )
    first, last = out.splitlines()
    assert first == "1 4"
    codes, rest = last.rsplit("[", 1)
    assert set(codes.split()) <= {"4"}
    assert rest == "] 7"
