"""Four simulated nodes under the real daemon, Debian's Prometheus and Alertmanager with our rules, and a story.

Everything is on loopback and below one temporary directory; Ctrl-C ends it all and removes it. See `make demo-stack`.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from http.client import HTTPConnection, HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import yaml
from demo_stack_story import BEATS, Beat

from npu_watchd.simnode import node

ROOT = Path(__file__).resolve().parents[1]
STORY = ROOT / "tools" / "demo-stack"
NODES = ("train-1", "train-2", "train-3", "train-4")
PROGRAMS = {"prometheus": "prometheus", "prometheus-alertmanager": "prometheus-alertmanager"}
"""Program → the Debian package that has it."""
SPEED = 4.0
READY_S = 60.0
END_S = 10.0
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
LINES = 8
"""Of what a command prints."""

# A day in minutes: the tools are asked more often than on a real node, and what must last may be shorter.
BRISK = """
[engine]
cycle = "1s"
tool_share = 1.0
[limits]
flap_down_s = "2s"
shared_polls = 2
{probes}"""
PERIODS = {
    "npu_info": "3s",
    "npu_health": "6s",
    "npu_ecc": "6s",
    "ibstat": "1s",
    "rdma_counters": "3s",
    "processes": "3s",
    **dict.fromkeys(("npu_usages", "npu_common", "npu_temp", "npu_hccs", "npu_board"), "20s"),
    **{f"hccn_{what}": "20s" for what in ("link", "link_stat", "stat", "net_health", "optical", "speed")},
}
BATCHES = (
    ("group_wait: 30s", "group_wait: 2s"),
    ("group_interval: 5m", "group_interval: 5s"),
    ("group_wait: 5s", "group_wait: 1s"),
    ("group_interval: 1m", "group_interval: 5s"),
)
"""Of deploy/alertmanager/alertmanager.yml, what would take longer than the story."""


def say(text: str) -> None:
    print(text, flush=True)


def free_port(wanted: int) -> int:
    """That one, or any that is free where somebody has it."""
    for port in (wanted, 0):
        with contextlib.suppress(OSError), socket.socket() as tried:
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            tried.bind(("127.0.0.1", port))
            return int(tried.getsockname()[1])
    raise SystemExit("demo-stack: no port is free on 127.0.0.1")


@contextlib.contextmanager
def child(name: str, command: list[str], directory: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A program of its own process group, whose output goes to a file; it is gone afterwards."""
    with (directory / f"{name}.log").open("wb") as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, process_group=0)
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def wait_ready(name: str, process: subprocess.Popen[bytes], port: int, directory: Path) -> None:
    until = time.monotonic() + READY_S
    while not _answers(port):
        if process.poll() is not None or time.monotonic() > until:
            lines = (directory / f"{name}.log").read_text(errors="replace").splitlines()[-5:]
            raise SystemExit("\n".join((f"demo-stack: {name} did not start; its last lines:", *lines)))
        time.sleep(0.1)


def _answers(port: int) -> bool:
    with (
        contextlib.suppress(OSError, HTTPException),
        contextlib.closing(HTTPConnection("127.0.0.1", port, timeout=2)) as c,
    ):
        c.request("GET", "/-/ready")
        return c.getresponse().status == 200
    return False


@contextlib.contextmanager
def simulated(name: str, directory: Path, port: int) -> Iterator[Path]:
    """The config of its daemon; the node stands at the story's beginning until it is played."""
    (directory / name).mkdir()
    config = node.install(STORY / f"{name}.toml", directory / name, speed=0, listen=(f"127.0.0.1:{port}",))
    probes = "".join(f'[probes.{probe}]\nevery = "{every}"\n' for probe, every in PERIODS.items())
    text = config.read_text(encoding="utf-8").replace(f'name = "sim-{name}"', f'name = "{name}"')
    config.write_text(text + BRISK.format(probes=probes), encoding="utf-8")
    over = threading.Event()
    kernel = threading.Thread(target=node.keep_fresh, args=(config.parent, over), name=f"kernel of {name}")
    kernel.start()
    try:
        yield config
    finally:
        over.set()
        kernel.join()


class Receiver(BaseHTTPRequestHandler):
    """What Alertmanager would send to a pager, a ticket system and the scheduler's people, on the terminal."""

    told: dict[str, str] = {}  # noqa: RUF012  # one a run
    """Alert → its state when it was last told, of all receivers."""

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(200)
        self.end_headers()
        for alert in message["alerts"]:
            self._tell(alert)

    def _tell(self, alert: Mapping[str, Any]) -> None:
        labels, who = alert["labels"], self.path.strip("/")
        if self.told.get(alert["fingerprint"]) == alert["status"]:
            return
        self.told[alert["fingerprint"]] = alert["status"]
        about = " ".join(f"{key}={labels[key]}" for key in ("node", "device_id", "rdma_device") if key in labels)
        say(f"           → {who}: {alert['status'].upper():8} {labels['severity']:8} {labels['alertname']} {about}")

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002  # the base class calls it so
        """Not a word."""


@contextlib.contextmanager
def receivers() -> Iterator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    thread = threading.Thread(target=server.serve_forever, name="receivers")
    thread.start()
    try:
        yield int(server.server_address[1])
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def alertmanager_command(directory: Path, port: int, receiver: int) -> list[str]:
    """With the shipped config, its three receivers led to us."""
    text = (ROOT / "deploy" / "alertmanager" / "alertmanager.yml").read_text(encoding="utf-8")
    text = re.sub(r"https://(\w+)\.example\.invalid/change-me", rf"http://127.0.0.1:{receiver}/\1", text)
    for slow, brisk in BATCHES:
        text = text.replace(slow, brisk)
    config = directory / "alertmanager.yml"
    config.write_text(text, encoding="utf-8")
    return [
        *("prometheus-alertmanager", f"--config.file={config}", f"--storage.path={directory / 'alertmanager'}"),
        *(f"--web.listen-address=127.0.0.1:{port}", "--cluster.listen-address="),
    ]


def prometheus_command(directory: Path, ports: Mapping[str, int]) -> list[str]:
    """With the shipped rules and the shipped scrape job, led to our nodes."""
    shipped = yaml.safe_load((ROOT / "deploy" / "prometheus" / "scrape-static.yml").read_text(encoding="utf-8"))
    job = shipped["scrape_configs"][0] | {"scrape_interval": "2s", "scrape_timeout": "2s"}
    job["static_configs"] = [{"targets": [f"127.0.0.1:{ports[name]}" for name in NODES]}]
    alertmanager = f"127.0.0.1:{ports['Alertmanager']}"
    document = {
        "global": {"evaluation_interval": "2s"},
        "rule_files": [str(ROOT / "deploy" / "prometheus" / "npu-watchd.rules.yml")],
        "alerting": {"alertmanagers": [{"static_configs": [{"targets": [alertmanager]}]}]},
        "scrape_configs": [job],
    }
    config = directory / "prometheus.yml"
    config.write_text(yaml.safe_dump(document), encoding="utf-8")
    return [
        *("prometheus", f"--config.file={config}", f"--storage.tsdb.path={directory / 'prometheus'}"),
        f"--web.listen-address=127.0.0.1:{ports['Prometheus']}",
    ]


def play(configs: Mapping[str, Path], addresses: Mapping[str, str], speed: float) -> None:
    """The story, as fast as the nodes' clocks go."""
    began = time.time()
    for config in configs.values():
        node.set_clock(config.parent, 0.0, speed=speed)
    for beat in BEATS:
        time.sleep(max(0.0, began + beat.at_s / speed - time.time()))
        say(f"[{int(beat.at_s) // 60:2}:{int(beat.at_s) % 60:02}] {beat.text}")
        say(f"        see {addresses[beat.see]}")
        if beat.order:
            _order(beat, configs[beat.see])


def _order(beat: Beat, config: Path) -> None:
    say(f"        {beat.see}$ npu-watchd {shlex.join(beat.order)}")
    command = [sys.executable, "-m", "npu_watchd", beat.order[0], "--config", str(config), *beat.order[1:]]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30, process_group=0)
    for line in (done.stdout + done.stderr).splitlines()[-LINES:]:
        say(f"        {line}")


def stand(speed: float, *, leave: bool) -> None:
    """Start everything, play, and wait to be told to stop."""
    with contextlib.ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="npu-watchd-demo-stack-")))
        ports = {name: free_port(18911 + at) for at, name in enumerate(NODES)}
        ports |= {"Prometheus": free_port(19090), "Alertmanager": free_port(19093)}
        receiver = stack.enter_context(receivers())
        configs = {name: stack.enter_context(simulated(name, directory, ports[name])) for name in NODES}
        daemon = (sys.executable, "-m", "npu_watchd", "run", "--config")
        commands = {
            "Alertmanager": alertmanager_command(directory, ports["Alertmanager"], receiver),
            "Prometheus": prometheus_command(directory, ports),
            **{name: [*daemon, str(configs[name])] for name in NODES},
        }
        say(f"demo-stack: starting {', '.join(commands)} …")
        children = {name: stack.enter_context(child(name, command, directory)) for name, command in commands.items()}
        for name, process in children.items():
            wait_ready(name, process, ports[name], directory)
        addresses = {name: f"http://127.0.0.1:{port}/" for name, port in ports.items()}
        for name, address in addresses.items():
            say(f"  {name:13} {address}")
        say(
            "→ is what a pager, tickets and the scheduler's people would get. "
            f"Ten minutes in {10 / speed:.2g}; Ctrl-C ends it all."
        )
        play(configs, addresses, speed)
        if not leave:
            signal.pause()


def _end(_number: int, _frame: object) -> None:
    """Once: a second Ctrl-C must not keep the first from clearing up."""
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def missing() -> list[str]:
    return [package for program, package in PROGRAMS.items() if shutil.which(program) is None]


def main() -> int:
    parser = argparse.ArgumentParser(prog="demo_stack.py", description=__doc__)
    parser.add_argument("--speed", type=float, default=SPEED, help="seconds of the story a second (default: 4)")
    parser.add_argument("--leave", action="store_true", help="end when the story does")
    options = parser.parse_args()
    if not 0 < options.speed <= 20:
        parser.error("--speed: more than 0, and at most 20: the tools are asked in real time")
    if lacking := missing():
        print(f"demo-stack needs Debian packages that are not installed: {' '.join(lacking)}", file=sys.stderr)
        print(f"As root: apt-get install --no-install-recommends {' '.join(lacking)}", file=sys.stderr)
        return 1
    for number in ENDING:
        signal.signal(number, _end)
    try:
        stand(options.speed, leave=options.leave)
    except KeyboardInterrupt:
        say("\ndemo-stack: ended; nothing is left behind")
    return 0


if __name__ == "__main__":
    sys.exit(main())
