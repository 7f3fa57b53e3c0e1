"""Pictures of the dashboards over simulated nodes: Grafana's own components, a real Prometheus, Chromium.

    python tools/screenshots/draw.py FOLDER

FOLDER gets node_SCENARIO.png and fleet.png. `make screenshots` installs what package.json names and calls this.
"""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from npu_watchd.reference.fleet_alerts import JOB
from npu_watchd.reference.grafana import DASHBOARDS, dashboard_json
from tests.dashboards.shown import substituted
from tests.dashboards.stage import RULES
from tests.e2e.prometheus import Prometheus
from tests.golden.play import CYCLE_S, play

HERE = Path(__file__).parent
STEP_S = 15
SCENARIOS: Mapping[str, tuple[int, int]] = {
    "quiet": (1500, 1),
    "busy_node": (1500, 1),
    "double_bit_then_reset": (760, 1),
    "two_jobs_one_device": (540, 1),
    "roce_down": (1160, 1),
    "driver_gone": (300, 1),
    "hbm_storm": (7900, 10),
    "pcie_errors": (1290, 1),
}
"""Each scenario's last second, which is now, and its seconds in one of the daemon's."""
NODES = ("double_bit_then_reset", "roce_down", "hbm_storm", "two_jobs_one_device", "driver_gone")
"""Those whose own dashboard is drawn."""
SHOWN_S = 1500
RANKED = (("sim-double-bit-then-reset", "3", 4), ("sim-hbm-storm", "3", 2), ("sim-roce-down", "5", 1))

_PAGE = """<meta charset="utf-8"><link rel="stylesheet" href="{scratch}/bundle.css">
<style>body {{ background: #111217; color: #ccccdc; margin: 0; position: relative; font: 14px sans-serif }}</style>
<div id="root"></div><script>{script}</script><script src="{scratch}/bundle.js"></script>"""
_REST = """up 1
npu_watchd_cycle_timestamp_seconds {at:.3f}
npu_watchd_cycle_duration_seconds 0.03
npu_watchd_build_info{{version="0.1.0"}} 1
"""
"""What no page of the simulated node has."""


def stamped(page: str, instance: str, at_s: float) -> Iterator[tuple[str, str]]:
    """Family and line of every sample, as Prometheus would keep it."""
    for line in page.splitlines():
        if line.startswith("#"):
            continue
        name, labels, value = re.fullmatch(r"([\w:]+)(?:\{(.*)\})? (\S+)", line).groups()  # type: ignore[union-attr]
        labels = re.sub(r'\bjob="', 'exported_job="', labels or "")
        own = f'job="{JOB}",instance="{instance}",cluster="train-a"'
        yield name, f"{name}{{{own}{',' if labels else ''}{labels}}} {value} {at_s:.3f}\n"


def history(now_s: float, scratch: Path) -> Iterator[tuple[str, str]]:
    for scenario, (end, speed) in SCENARIOS.items():
        step = CYCLE_S * speed * 3
        (scratch / scenario).mkdir()
        seconds = range(step, end + 1, step)
        pages = play(scenario, seconds, scratch / scenario, speed).pages
        instance = f"{scenario.replace('_', '-')}:18910"
        for second, page in pages.items():
            # The last page is now; a scenario that runs faster is told at the daemon's own pace.
            at_s = now_s - (max(pages) - second) / speed
            rest = _REST.format(at=at_s - 2)
            yield from stamped(page + rest, instance, at_s)
    for node, device, days in RANKED:
        yield from stamped(f'npu_watchd:device_bad_days:28d{{node="{node}",device_id="{device}"}} {days}', "", now_s)


def openmetrics(samples: Iterable[tuple[str, str]]) -> str:
    """Lines in the order that promtool takes."""
    return "".join(line for _, line in sorted(samples, key=lambda sample: sample[0])) + "# EOF\n"


@contextlib.contextmanager
def serving(scratch: Path) -> Iterator[str]:
    """The address of a Prometheus over the backfilled blocks, in which a series ends where its samples do."""
    config = scratch / "prometheus.yml"
    config.write_text("{}")
    options = [f"--config.file={config}", f"--storage.tsdb.path={scratch / 'tsdb'}", "--web.listen-address=127.0.0.1:0"]
    argv = ["prometheus", *options, f"--query.lookback-delta={STEP_S - 1}s"]
    with Prometheus(subprocess.Popen(argv, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)) as server:
        yield f"http://127.0.0.1:{server.ready().port}"


def draw(folder: Path, prometheus: str, name: str, scenario: str, now_s: float, scratch: Path) -> None:
    document = json.loads(dashboard_json(DASHBOARDS[name]))
    for panel in document["panels"]:
        for target in panel.get("targets", ()):
            target["expr"] = substituted(target["expr"], f"{scenario.replace('_', '-')}:18910").replace("[10s]", "[1m]")
    bottom = max(panel["gridPos"]["y"] + panel["gridPos"]["h"] for panel in document["panels"])
    now = int(now_s)
    data = {
        "DASHBOARD": document,
        "PROMETHEUS": prometheus,
        "FROM": now - SHOWN_S,
        "TO": now,
        "STEP": STEP_S,
        "ABOUT": f": sim-{scenario.replace('_', '-')}" if name == "node" else "",
    }
    page = scratch / f"{name}_{scenario}.html"
    script = "".join(f"window.{key} = {json.dumps(value)};\n" for key, value in data.items())
    picture = folder / (f"node_{scenario}.png" if name == "node" else "fleet.png")
    page.write_text(_PAGE.format(scratch=scratch, script=script))
    subprocess.run(
        [
            *(
                "chromium",
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--hide-scrollbars",
                "--allow-file-access-from-files",
            ),
            *(
                "--virtual-time-budget=20000",
                f"--window-size=1500,{bottom * 34 + 60}",
                f"--screenshot={picture}",
                page.as_uri(),
            ),
        ],
        check=True,
        capture_output=True,
        timeout=120,
    )
    print(picture)


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    now_s = time.time() // STEP_S * STEP_S
    with tempfile.TemporaryDirectory() as directory:
        scratch = Path(directory)
        subprocess.run(
            [
                *(
                    HERE / "node_modules/.bin/esbuild",
                    HERE / "render.jsx",
                    "--bundle",
                    f"--outfile={scratch}/bundle.js",
                ),
                *('--define:process.env.NODE_ENV="production"', "--define:global=window", "--log-level=error"),
                *(f"--loader:.{kind}=dataurl" for kind in ("ttf", "woff2", "woff", "svg", "png", "gif")),
            ],
            check=True,
        )
        text, blocks = scratch / "history.txt", scratch / "tsdb"
        text.write_text(openmetrics(history(now_s, scratch)))
        promtool = ("promtool", "tsdb", "create-blocks-from")
        subprocess.run([*promtool, "openmetrics", text, blocks], check=True, stdout=subprocess.DEVNULL)
        with serving(scratch) as address:
            when = [f"--start={now_s - SHOWN_S:.0f}", f"--end={now_s:.0f}", f"--eval-interval={STEP_S}s"]
            subprocess.run([*promtool, "rules", *when, f"--url={address}", f"--output-dir={blocks}", RULES], check=True)
        with serving(scratch) as address:
            for scenario in NODES:
                draw(folder, address, "node", scenario, now_s, scratch)
            draw(folder, address, "fleet", "quiet", now_s, scratch)


if __name__ == "__main__":
    main()
