"""The gate of a prolog: one line and an exit code from the daemon's newest verdict, and never a calm one by mistake."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from npu_watchd import gate
from npu_watchd.gate import Now, answer

NOON_S = 1_790_000_000.0
NOW = Now(NOON_S + 5, 1005.0, "boot 1")


def verdict(state: str, subject: str = "node", reasons: tuple[str, ...] = (), **changes: Any) -> dict[str, Any]:
    device_id = None if subject == "node" else subject
    return {
        "subject": subject,
        "device_id": device_id,
        "rdma_device": None,
        "port": None,
        "state": state,
        "own_state": "healthy" if subject == "node" else None,
        "since": NOON_S,
        "action": None,
        "held": False,
        "blind": False,
        "revision": 7,
        "reasons": [{"text": text, "rule": None} for text in reasons],
        **changes,
    }


def written(folder: Path, *verdicts: Mapping[str, Any], **changes: Any) -> Path:
    document = {
        "at": NOON_S,
        "monotonic": 1000.0,
        "boot_id": "boot 1",
        "node": "node-17",
        "version": "0.1.0",
        "stale_after_seconds": 60.0,
        "verdicts": list(verdicts),
        **changes,
    }
    path = folder / gate.NAME
    path.write_text(json.dumps(document))
    return path


@pytest.mark.parametrize(
    ("state", "blind", "code", "passes"),
    [
        ("healthy", False, 0, 0),
        ("watch", False, 1, 0),
        ("probation", False, 1, 0),
        ("quarantine", False, 2, 2),
        ("unknown", False, 3, 3),
        ("watch", True, 3, 3),
        ("probation", True, 3, 3),
        ("quarantine", True, 2, 2),
        ("of a later version", False, 3, 3),
    ],
)
def test_every_state_has_its_exit_code(state: str, blind: bool, code: int, passes: int, tmp_path: Path) -> None:
    found = answer(written(tmp_path, verdict(state, blind=blind)), None, NOW)
    assert (found.exit_code("watch"), found.exit_code("quarantine")) == (code, passes)


def test_the_line_has_the_reason_and_fits_eighty_characters(tmp_path: Path) -> None:
    reasons = ("device 3: 2 uncorrectable HBM errors since its last reset", "device 5: gone")
    found = answer(written(tmp_path, verdict("quarantine", reasons=reasons)), None, NOW)
    assert found.line == "quarantine: device 3: 2 uncorrectable HBM errors since its last reset (+1 more)"
    assert len(found.line) == 79
    found = answer(written(tmp_path, verdict("quarantine", reasons=("x" * 200, "y"), held=True)), None, NOW)
    assert found.line == "quarantine (held): " + "x" * 48 + "... (+1 more)"
    assert len(found.line) == 80
    assert answer(written(tmp_path, verdict("healthy")), None, NOW).line == "healthy"


def test_nothing_in_a_reason_steers_a_terminal_or_ends_the_line(tmp_path: Path) -> None:
    found = answer(written(tmp_path, verdict("watch", reasons=("device 3:\n\x1b[2J gone",))), None, NOW)
    assert found.line == "watch: device 3:??[2J gone"


def test_a_device_is_told_for_itself_and_is_no_better_than_the_node_is(tmp_path: Path) -> None:
    node, three, five = verdict("quarantine"), verdict("quarantine", "3"), verdict("healthy", "5")
    path = written(tmp_path, node, three, five)
    assert [answer(path, device, NOW).code for device in ("3", "5", "9")] == [2, 0, 3]
    by_person = verdict("quarantine", reasons=("put into quarantine by alice: bad PSU",), own_state="quarantine")
    found = answer(written(tmp_path, by_person, five), "5", NOW)
    assert (found.code, found.line) == (2, "quarantine: put into quarantine by alice: bad PSU")


@pytest.mark.parametrize(
    ("now", "line"),
    [
        (Now(NOON_S + 61, 1061.0, "boot 1"), "unknown: the verdict is 61 s old; is the daemon up?"),
        (Now(NOON_S + 1, 5.0, "boot 2"), "unknown: the verdict is from before the node's last boot; is the daemon up?"),
        (Now(NOON_S - 3600, 990.0, "boot 1"), "unknown: the verdict is from the future: the clock was set back"),
    ],
)
def test_an_old_verdict_is_none(now: Now, line: str, tmp_path: Path) -> None:
    found = answer(written(tmp_path, verdict("healthy")), None, now)
    assert (found.code, found.line) == (3, line)


def test_a_clock_that_was_set_makes_a_fresh_verdict_neither_old_nor_new(tmp_path: Path) -> None:
    path = written(tmp_path, verdict("healthy"))
    assert answer(path, None, Now(NOON_S + 86_400, 1005.0, "boot 1")).code == 0
    assert answer(path, None, Now(NOON_S - 86_400, 1005.0, "boot 1")).code == 0


def test_without_a_boot_id_the_wall_clock_is_what_there_is(tmp_path: Path) -> None:
    path = written(tmp_path, verdict("healthy"), boot_id=None)
    assert answer(path, None, Now(NOON_S + 5, 9e9, "boot 1")).code == 0
    assert answer(path, None, Now(NOON_S + 3600, 1005.0, "boot 1")).code == 3


@pytest.mark.parametrize(
    "text",
    ["", "{", "null", "[]", '{"verdicts": 3}', '{"verdicts": [3]}', '{"verdicts": [], "at": "x"}', "\x00\xff" * 50],
)
def test_what_no_daemon_has_written_is_unknown(text: str, tmp_path: Path) -> None:
    path = tmp_path / gate.NAME
    path.write_text(text)
    found = answer(path, None, NOW)
    assert found.code == 3
    assert found.line.startswith("unknown: ")


def test_a_document_of_the_wrong_shape_inside_or_without_end_is_unknown_and_never_watch(tmp_path: Path) -> None:
    for broken in ({**verdict("healthy"), "reasons": 3}, {**verdict("healthy"), "state": ["healthy"]}):
        assert answer(written(tmp_path, broken), None, NOW).code == 3
    path = tmp_path / gate.NAME
    path.write_text('{"verdicts": ' + "[" * 100_000)
    assert answer(path, None, NOW).code == 3


def test_a_reader_that_is_gone_changes_no_exit_code(tmp_path: Path) -> None:
    config = _config(tmp_path)
    _as_of_now(tmp_path, "quarantine")
    reading, writing = os.pipe()
    os.close(reading)
    words = [sys.executable, "-m", "npu_watchd", "check", "--config", config]
    with os.fdopen(writing, "wb") as pipe:
        assert subprocess.run(words, stdout=pipe, check=False).returncode == 2


def test_no_file_is_no_daemon(tmp_path: Path) -> None:
    found = answer(tmp_path / gate.NAME, None, NOW)
    assert (found.code, found.line) == (3, "unknown: no daemon runs here; start it with: systemctl start npu-watchd")


def test_every_cut_of_the_file_is_unknown_or_the_same(tmp_path: Path) -> None:
    path = written(tmp_path, verdict("quarantine", reasons=("device 3: gone",)))
    text = path.read_bytes()
    for length in range(len(text)):
        path.write_bytes(text[:length])
        assert answer(path, None, NOW).code == 3


def _checked(*words: str) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "-m", "npu_watchd", "check", *words], capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout, done.stderr


def _config(folder: Path, more: str = "") -> str:
    file = folder / "config.toml"
    file.write_text(
        f'[paths]\nruntime_dir = "{folder}"\nstate_dir = "{folder.parent}/state"\nprocfs = "{folder}/none"\n{more}'
    )
    return str(file)


def _as_of_now(folder: Path, state: str) -> None:
    now = gate.present()
    written(folder, verdict(state), at=now.wall_s, monotonic=now.mono_s, boot_id=None)


def test_the_program_answers_in_one_line_or_one_document(tmp_path: Path) -> None:
    config = _config(tmp_path)
    _as_of_now(tmp_path, "watch")
    assert _checked("--config", config) == (1, "watch\n", "")
    assert _checked("--config", config, "--gate=quarantine") == (0, "watch\n", "")
    code, out, _ = _checked("--json", "--config", config)
    assert (code, json.loads(out)["state"], json.loads(out)["exit_code"]) == (1, "watch", 1)


def test_what_the_quick_way_does_not_know_the_commands_parser_does(tmp_path: Path) -> None:
    config = _config(tmp_path)
    _as_of_now(tmp_path, "quarantine")
    code, out, _ = _checked("--help")
    assert (code, "--live" in out) == (0, True)
    assert _checked("--config", config, "--gate", "never")[0] == 2
    assert _checked("--config", config, "--live")[:2] == (2, "quarantine\n")
    code, _, err = _checked("--config", _config(tmp_path, "[nonsense]\n"), "--live")
    assert (code, "nonsense" in err) == (3, True)


def test_the_quick_way_needs_nothing_but_the_standard_library(tmp_path: Path) -> None:
    config = _config(tmp_path)
    _as_of_now(tmp_path, "healthy")
    script = (
        "import sys; from npu_watchd import gate; code = gate.main(['--config', sys.argv[1]]); "
        "roots = {name.partition('.')[0] for name in sys.modules}; "
        "print(code, sorted(roots & {'click', 'msgspec', 'rich', 'yaml'}), "
        "sorted(name for name in sys.modules if name.startswith('npu_watchd')))"
    )
    words = (sys.executable, "-c", script, config)
    done = subprocess.run(words, capture_output=True, text=True, check=True, env={"PATH": os.environ["PATH"]})
    assert done.stdout == "healthy\n0 [] ['npu_watchd', 'npu_watchd.gate']\n"
