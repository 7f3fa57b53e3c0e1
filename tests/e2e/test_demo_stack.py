"""`make demo-stack`: it starts all that it says, says what happens and where to look, and leaves nothing behind."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.e2e.harness import until

SCRIPT = Path(__file__).parents[2] / "tools" / "demo_stack.py"


@pytest.mark.skipif(
    not (shutil.which("prometheus") and shutil.which("prometheus-alertmanager")),
    reason="the Debian packages prometheus and prometheus-alertmanager are not installed",
)
def test_the_stack_starts_and_ctrl_c_leaves_nothing_behind(tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": str(SCRIPT.parents[1])}
    command = [sys.executable, str(SCRIPT)]
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        said: list[str] = []
        children: list[psutil.Process] = []
        try:
            for line in process.stdout:
                said.append(line)
                if line.startswith("        see "):
                    break
            children = psutil.Process(process.pid).children(recursive=True)
        finally:
            process.send_signal(signal.SIGINT)
        said += process.stdout
        assert process.wait(30) == 0, said
    addresses = dict(re.findall(r"^  ([\w-]+) +(http://127\.0\.0\.1:\d+/)$", "".join(said), re.MULTILINE))
    assert list(addresses) == ["train-1", "train-2", "train-3", "train-4", "Prometheus", "Alertmanager"]
    assert f"        see {addresses['train-1']}\n" in said
    assert said[-1] == "demo-stack: ended; nothing is left behind\n"
    assert len(children) >= len(addresses)
    until(lambda: not [one for one in children if one.is_running()] or None, "all of them are gone")
    assert list(tmp_path.iterdir()) == []


def test_a_missing_program_is_named_with_its_package(tmp_path: Path) -> None:
    environment = {"PATH": str(tmp_path), "PYTHONPATH": str(SCRIPT.parents[1])}
    done = subprocess.run(
        [sys.executable, str(SCRIPT)], capture_output=True, text=True, check=False, env=environment, timeout=30
    )
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "demo-stack needs Debian packages that are not installed: prometheus prometheus-alertmanager",
        "As root: apt-get install --no-install-recommends prometheus prometheus-alertmanager",
    ]
