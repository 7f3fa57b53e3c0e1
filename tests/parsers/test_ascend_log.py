"""Lines of logs: what they say, what they are not taken for, and that nothing can hang or mislead the reader."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from npu_watchd.model.log_event import LogEvent, Role
from npu_watchd.parsers import ascend_log
from npu_watchd.parsers.ascend_log import SIGNS, LogReader
from tests.parsers.log_texts import OWN

QUIET = settings(max_examples=150, deadline=None, derandomize=True)
TEXTS = [path.read_text(encoding="utf-8") for path in OWN]
WORDS = sorted({word for sign in SIGNS for words in sign.words for word in words})
CODES = sorted({code for sign in SIGNS for code in sign.codes})


def events(text: str) -> tuple[LogEvent, ...]:
    return ascend_log.parse(text).events


def one(text: str) -> LogEvent:
    (event,) = events(text)
    return event


def test_a_line_of_plog_tells_when_who_and_about_what() -> None:
    event = one(
        "[ERROR] RUNTIME(1365,python3.8):2025-08-06-23:09:35.772.604 [stars_engine.cc:1551]6219 ProcLogicCqReport:"
        "[FINAL]Task run failed, device_id=3, stream_id=2, task_id=8885, sqe_type=3\n"
    )
    assert (event.kind, event.role, event.level, event.component) == (
        "task_failed",
        Role.CONSEQUENCE,
        "ERROR",
        "RUNTIME",
    )
    assert (event.time, event.local_s) == ("2025-08-06-23:09:35.772.604", 1754521775.772604)
    assert (event.pid, event.process, event.file) == (1365, "python3.8", "stars_engine.cc:1551")
    assert (event.device_id, event.stream_id, event.task_id, event.rank) == (3, 2, 8885, None)


def test_a_plog_does_not_say_its_zone_and_none_is_guessed() -> None:
    event = one("[ERROR] HCCL(1,python):2025-08-06-23:09:35.772.604 [a.cc:1]type:NOTIFY WAIT\n")
    assert event.utc_offset_s is None
    assert event.at_s is None


def test_a_zone_that_is_written_is_kept() -> None:
    event = one('time="2024-07-19T10:29:54+08:00" level=info msg="[sidecar] SIGTERM signal is received" \n')
    assert event.utc_offset_s == 28800.0
    assert event.at_s == 1721356194.0


def test_a_message_over_several_lines_has_the_time_of_its_first() -> None:
    text = (
        "[ERROR] SESSION(118114,ffff,python):2021-09-11-16:48:31.524.162 [a.cc:1857] Report] Ascend error occurred:\n"
        "EZ9999: Inner Error!\n"
        "        Aicore kernel execute failed, device_id=0, stream_id=14, task_id=13"
        "[FUNC:GetError][FILE:stream.cc][LINE:701]\n"
    )
    inner, core = events(text)
    assert (inner.kind, inner.code, inner.time_inherited) == ("inner_error", "EZ9999", True)
    assert (core.kind, core.pid, core.time, core.file) == (
        "core_exception",
        118114,
        "2021-09-11-16:48:31.524.162",
        "stream.cc:701",
    )


def test_response_is_empty_counts_only_where_mindspore_says_it() -> None:
    assert events("[CoordinatorBackupHandler] Response is empty, response failed.\n") == ()
    assert events("RuntimeError: Response is empty\n") == ()
    assert (
        one("mindspore/ccsrc/backend/common/session/kernel_build_client.h:100 Response\n").kind
        == "compile_child_silent"
    )
    assert one("import mindspore\nRuntimeError: Response is empty\n").kind == "compile_child_silent"
    older = "RuntimeError: mindspore/ccsrc/backend/session/kernel_build_client.h:107 Response] Response is empty\n"
    assert one(older).file == "kernel_build_client.h:107"


def test_the_vendors_advice_is_not_an_event() -> None:
    assert events("        Solution: check whether an error CQE occurred, or 507011 was returned: ret: 507011\n") == ()
    assert events("Possible Cause: the device is occupied\n") == ()


@pytest.mark.parametrize(
    ("line", "kind", "code"),
    [
        ("EI0002: The wait execution of the Notify register times out.", "notify_wait", "EI0002"),
        ("EI0006: Getting socket times out. Reason: x", "link_not_established", "EI0006"),
        ("RuntimeError: ... NPU error, error code is 507033", "device_not_started", "507033"),
        ("retCode is 507899", "driver_internal_error", "507899"),
        ("retcode: 507054", "device_memory_uncorrectable", "507054"),
        ("Create stream failed, ret:207000", "feature_unsupported", "207000"),
        ("[ERROR] 2024-03-07-01:31:48 (PID:11, Device:0) ERR00002 PTA invalid type", "framework_misused", "ERR00002"),
        ("EE1234: something of next year", "other_code", "EE1234"),
        ("system exception code [0xB4060007]: ModuleName [TS]", "device_exception", "b4060007"),
        ("Killed", "killed", None),
        ("E       ValueError: shapes", "python_error", None),
        ("[rank7]: torch.nn.modules.module.AttributeError: x", "python_error", None),
        ("OSError: [Errno 98] Address already in use", "address_in_use", None),
        ("train.sh: line 12: 4711 Killed                  python train.py", "killed", None),
        ("RuntimeError: NPU out of memory. Tried to allocate 2.00 GiB (NPU 0)", "device_memory_short", None),
        ("[rank3]: RuntimeError: HCCL watchdog caught collective operation timeout", "collective_timeout", None),
        ("(EngineCore pid=99) ERROR 11-30 10:22:33 [core.py:1] EngineCore died unexpectedly", "worker_died", None),
    ],
)  # fmt: skip
def test_codes_and_words_make_kinds(line: str, kind: str, code: str | None) -> None:
    event = one(line + "\n")
    assert (event.kind, event.code) == (kind, code)


@pytest.mark.parametrize(
    "line",
    [
        "step 507011 loss 2.1",
        "model EE99991 loaded",
        "loss=0.207001",
        "the user Killed the process view",
        "WARNING: caught ValueError: x, trying again",
        "the conversion does not match, cannot go on",
        "The device is occupied. Please try again later.",
        "see docs of kernel_build_client.h for more",
        'grep -r "topo exchange server get socket timeout"',
    ],
)
def test_what_only_looks_alike_is_nothing(line: str) -> None:
    assert events(line + "\n") == ()


def test_a_peer_that_is_blamed_is_not_the_writer() -> None:
    text = "serverId[10.0.0.7], deviceId[0], Heartbeat Lost Occurred, Possible Reason: 1. Process has exited\n"
    assert (one(text).device_id, one(text).blames) == (None, "device 0 of 10.0.0.7")
    remote = one("cqe error status[12] remoteIP{deviceId[6],deviceIp[192.0.2.26]}\n")
    assert (remote.device_id, remote.blames) == (None, "device 6")
    rank = one("[ERROR] HCCL(1,p):2024-01-01-00:00:00.000.000 [a.cc:1]Execution_Error_SDMA. Remote rank: [4800]. \n")
    assert (rank.rank, rank.blames) == (None, "rank 4800")


def test_an_oom_kill_names_its_victim() -> None:
    event = one("Nov 30 10:00:00 n1 kernel: [ 1.2] Out of memory: Killed process 6033 (ccec) total-vm:1kB\n")
    assert (event.kind, event.pid, event.process) == ("oom_kill", 6033, "ccec")
    newer = one("oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),task_memcg=/a,task=python3,pid=77,uid=0\n")
    assert (newer.pid, newer.process) == (77, "python3")


def test_two_devices_in_one_line_are_none() -> None:
    assert one("Task run failed, device_id=3, deviceId=4 \n").device_id is None


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_that_is_cut_says_less_but_never_something_else(text: str) -> None:
    whole = {(event.line, event.kind): event for event in events(text)}
    for end in range(len(text)):
        for event in events(text[:end]):
            full = whole[event.line, event.kind]
            assert full.text.startswith(event.text)
            for name in ("code", "time", "local_s", "utc_offset_s", "pid", "stream_id", "task_id", "rank", "device_id"):
                assert getattr(event, name) in (None, getattr(full, name)), (name, text[:end][-80:])


@given(raw=st.binary(max_size=2000))
@QUIET
def test_any_bytes_are_a_log(raw: bytes) -> None:
    text = raw.decode("utf-8", "replace")
    assert ascend_log.parse(text).lines >= text.count("\n")


@given(parts=st.lists(st.one_of(st.sampled_from(WORDS), st.sampled_from(CODES), st.text(max_size=5)), max_size=40))
@QUIET
def test_all_words_in_any_order_give_events_of_known_kinds(parts: list[str]) -> None:
    kinds = {sign.kind for sign in SIGNS} | {"other_code"}
    assert {event.kind for event in events("import mindspore\n" + " ".join(parts) + "\n")} <= kinds


@pytest.mark.parametrize(
    "bite",
    ["[", "a/", "rank[", "device ", "0", " ", "| x(1) ", "pid:", "error code ", "[ERROR] A(", "\t", "2024-01-01-"],
)
def test_no_line_holds_the_reader_up_however_it_is_made(bite: str) -> None:
    """A pattern that repeats without bound would take hours here."""
    reader = LogReader()
    for _ in range(20):
        reader.read("Task run failed " + bite * 40_000)
    assert reader.long_lines == 20
