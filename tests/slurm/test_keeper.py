"""The keeper of services: nothing that came of them outlives it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.e2e.harness import until

KEEPER = Path(__file__).with_name("keeper.py")
SCRIPT = """
echo $$ > {folder}/service
setsid sh -c 'trap "" TERM; echo $$ > {folder}/lost; while :; do sleep 1; done' &
(setsid sh -c 'echo $$ > {folder}/orphan; exec sleep 60' &)
exec sleep 60
"""


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] not in "ZX"
    except OSError:
        return False


def all_in(files: list[Path]) -> list[int]:
    """The pids that they hold; none until each holds one."""
    texts = [file.read_text() if file.exists() else "" for file in files]
    return [int(text) for text in texts] if all(text.endswith("\n") for text in texts) else []


def test_it_ends_what_its_services_have_lost(tmp_path: Path) -> None:
    argv = ["sh", "-c", SCRIPT.format(folder=tmp_path)]
    service = {"argv": argv, "env": {"PATH": "/usr/bin:/bin"}, "log": str(tmp_path / "log")}
    told = tmp_path / "keeper.json"
    told.write_text(json.dumps({"services": {"a": service}, "cgroup": "no_such_cgroup"}))
    with subprocess.Popen([sys.executable, KEEPER, told], stdin=subprocess.PIPE) as keeper:
        assert keeper.stdin is not None
        keeper.stdin.write(b"start a\n")
        keeper.stdin.flush()
        files = [tmp_path / name for name in ("service", "lost", "orphan")]
        pids = until(lambda: all_in(files), "all have started")
        assert all(map(alive, pids))
        keeper.stdin.write(b"stop a\n")
        keeper.stdin.flush()
        until(lambda: not alive(pids[0]), "the service is stopped")
        assert all(map(alive, pids[1:]))
        keeper.stdin.close()
        assert keeper.wait(10) == 0
    assert not any(map(alive, pids))
