"""Stories of simulated nodes, and the alerts that two Alertmanagers are to have at each point of them.

One hears of everything from the daemons themselves, the other from a Prometheus that scrapes them and has our rules.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from npu_watchd.reference.fleet_alerts import JOB
from npu_watchd.simnode import scenario_file
from npu_watchd.simnode.node import keep_fresh
from tests.e2e.harness import Daemon, launch, until
from tests.e2e.prometheus import Prometheus, scraping
from tests.e2e.simulated import SimulatedNode, simulated
from tests.sinks.alertmanager.debian import Alertmanager, alertmanager

RULES = Path(__file__).parents[2] / "deploy" / "prometheus" / "npu-watchd.rules.yml"
PATIENCE_S = 45.0
"""A reading, a cycle, a scrape, an evaluation and a batch, of all stories at once on busy cores."""
_POLL_S = 0.25
VITAL = ("npu_health", "npu_ecc")
"""Without them no device counts as seen."""
Labels = frozenset[tuple[str, str]]


def alert(alertname: str, severity: str, **subject: str) -> Labels:
    """Of the story's node."""
    return frozenset({"alertname": alertname, "severity": severity, **subject}.items())


@dataclass(frozen=True)
class Step:
    """Go to this second of the scenario, and wait for what is then true."""

    second: float | None
    """None: nothing happens but time."""
    alerts: tuple[Labels, ...] | None = None
    """Exactly these come to fire, on both ways; None: whatever fires."""
    shows: Mapping[tuple[str, ...], float] = field(default_factory=dict)
    """Metric, then label and value by turns → the value on /metrics."""


@dataclass(frozen=True)
class Story:
    """One node."""

    steps: tuple[Step, ...]
    cards: int = 8
    probes: tuple[str, ...] = ()
    """Beside the table and what is vital."""
    limits: Mapping[str, str | float] = field(default_factory=dict)
    timeout: str | None = None
    """Of all probes; None: their own."""
    more: str = ""
    """What comes after the shipped scenario."""
    every: str = "1s"
    """Period of the probes."""
    speed: float = 0.0
    """Scenario seconds a second. Not 0: it runs by itself, each answer from a process of the simulator."""


@dataclass(frozen=True)
class Ways:
    """On which alerts come."""

    pushed: Alertmanager
    pulled: Alertmanager
    prometheus: Prometheus

    def fires(self, node: str) -> tuple[set[Labels], set[Labels]]:
        """What each Alertmanager has about this node, without its name."""
        name = ("node", node)
        pushed, pulled = (
            {labels - {name} for labels in _fires(server) if name in labels} for server in (self.pushed, self.pulled)
        )
        return pushed, pulled

    def began(self, node: str) -> list[float]:
        """When the alerts about this node began, as the daemon told it."""
        starts = [one["startsAt"] for one in self.pushed.alerts() if one["labels"].get("node") == node]
        return sorted(datetime.fromisoformat(start).timestamp() for start in starts)

    def about_no_node(self) -> set[Labels]:
        """What Prometheus alone can say."""
        return {labels for labels in _fires(self.pulled) if "node" not in dict(labels)}


def _fires(server: Alertmanager) -> set[Labels]:
    return {frozenset(labels.items()) for labels in server.labels()}


def _near(told: list[float], found: list[float]) -> bool:
    """To a millisecond, as the alerts are written."""
    return len(told) == len(found) and all(abs(one - other) < 0.002 for one, other in zip(told, found, strict=True))


@dataclass(frozen=True)
class Scene:
    """A story on its stage."""

    story: Story
    node: SimulatedNode
    daemon: Daemon

    @property
    def name(self) -> str:
        return f"sim-{Path(self.node.scenario).stem.replace('_', '-')}"

    def alerts_ever(self, ways: Ways) -> dict[str, object]:
        """What was found, sent or fired since the start; nothing of a node that is well."""
        fired = f'count_over_time(ALERTS{{node="{self.name}"}}[10m])'
        found = {
            "found": self.daemon.events("finding_opened"),
            "sent": [value for value in self.daemon.page().samples["npu_watchd_notifications_total"].values() if value],
            "fired": list(ways.prometheus.query(fired)),
        }
        return {name: some for name, some in found.items() if some}

    def play(self, ways: Ways) -> Exception | None:
        """All steps, one after another; why not, where one does not come true."""
        try:
            self._wake(ways)
            for step in self.story.steps:
                self._take(step, ways)
        except Exception as error:  # noqa: BLE001  # of another thread: the test of this story raises it
            return error
        return None

    def _wake(self, ways: Ways) -> None:
        """Everything has been read once, and Prometheus knows of it: from now on only news can tell more."""
        probes = (*VITAL, *self.story.probes)
        self.daemon.ready(PATIENCE_S)

        def read() -> bool:
            answered = {
                (state["probe"], state["device_id"]) for state in self.daemon.snapshot()["probes"] if state["up"]
            }
            return all(
                (probe, None) in answered or {(probe, str(device)) for device in range(self.story.cards)} <= answered
                for probe in probes
            )

        until(read, f"{probes} read; the log: {self.daemon.lines[-10:]}", PATIENCE_S, _POLL_S)
        scraped = f'npu_node_info{{node="{self.name}"}}'
        until(lambda: len(ways.prometheus.query(scraped)) == 1, f"{scraped} in Prometheus", PATIENCE_S, _POLL_S)

    def _take(self, step: Step, ways: Ways) -> None:
        if step.second is not None:
            self.node.stand_at(step.second)
        if step.shows:
            until(lambda: self._shown(step.shows), f"{step.second}: {step.shows}", PATIENCE_S, _POLL_S)
        if step.alerts is not None:
            self._agree(step, set(step.alerts), ways)

    def _found(self) -> list[float]:
        """When the findings were."""
        return sorted(finding["since"] for finding in self.daemon.findings())

    def _shown(self, wanted: Mapping[tuple[str, ...], float]) -> bool:
        page = self.daemon.page()
        return all(
            page.value(metric, **dict(zip(labels[::2], labels[1::2], strict=True))) == value
            for (metric, *labels), value in wanted.items()
        )

    def _agree(self, step: Step, wanted: set[Labels], ways: Ways) -> None:
        seen: list[tuple[set[Labels], set[Labels]]] = []

        def agreed() -> bool:
            seen[:] = [ways.fires(self.name)]
            return seen == [(wanted, wanted)] and _near(ways.began(self.name), self._found())

        try:
            until(agreed, f"at {step.second}: the same on both ways, since the findings began", PATIENCE_S, _POLL_S)
        except AssertionError as error:
            found = [
                f"{way} lacks {sorted(map(sorted, wanted - one))} and has beside {sorted(map(sorted, one - wanted))}"
                for way, one in zip(("pushed", "pulled"), seen[0], strict=True)
            ]
            raise AssertionError(f"{error}: {found}\nthe log: {self.daemon.lines[-30:]}") from error


@dataclass(frozen=True)
class Told:
    """What became of the stories."""

    outcomes: Mapping[str, Exception | None]
    about_no_node: frozenset[Labels]
    """Everything that fired in the meantime and names no node."""
    alerts_ever: Mapping[str, Mapping[str, object]]
    """Of each story's node, on all its ways."""

    def came_true(self, scenario: str) -> None:
        """Raises what kept the story from it."""
        outcome = self.outcomes[scenario]
        if outcome is not None:
            raise outcome


@contextlib.contextmanager
def stages(stories: Mapping[str, Story], directory: Path) -> Iterator[tuple[Mapping[str, Scene], Ways]]:
    """A daemon and a node for each story, and the ways for all."""
    with contextlib.ExitStack() as stack:
        pushed = stack.enter_context(alertmanager(directory / "pushed"))
        pulled = stack.enter_context(alertmanager(directory / "pulled"))
        nodes = {name: _node(name, story, directory, pushed.url) for name, story in stories.items()}
        for name, node in nodes.items():
            if stories[name].speed:
                stack.enter_context(_running(node))
        scenes = {
            name: Scene(stories[name], node, stack.enter_context(Daemon(launch("run", "--config", node.config))))
            for name, node in nodes.items()
        }
        jobs = {JOB: [scene.daemon.port for scene in scenes.values()]}
        prometheus = stack.enter_context(scraping(directory, jobs, rules=RULES, alertmanager=pulled.port))
        yield scenes, Ways(pushed, pulled, prometheus)


def tell(stories: Mapping[str, Story], directory: Path) -> Told:
    """All of them at once: each waits most of its time."""
    with stages(stories, directory) as (scenes, ways), ThreadPoolExecutor(len(scenes) + 1) as pool:
        playing = {name: pool.submit(scene.play, ways) for name, scene in scenes.items()}
        beside: set[Labels] = set()

        def over() -> bool:
            beside.update(ways.about_no_node())
            return all(play.done() for play in playing.values())

        until(over, "the stories end", 160.0, 0.5)
        return Told(
            {name: play.result() for name, play in playing.items()},
            frozenset(beside),
            {name: scene.alerts_ever(ways) for name, scene in scenes.items()},
        )


def _node(name: str, story: Story, directory: Path, url: str) -> SimulatedNode:
    scenario = _variant(name, story, directory)
    probes = ("npu_info", *VITAL, *story.probes)
    timeouts = dict.fromkeys(probes, story.timeout) if story.timeout else None
    node = simulated(scenario, directory / name, 0, dict.fromkeys(probes, story.every), timeouts, speed=story.speed)
    lines = ["[alertmanager]", f'urls = ["{url}"]', "[limits]"]
    lines += [f"{limit} = {json.dumps(value)}" for limit, value in story.limits.items()]
    node.config.write_text(node.config.read_text(encoding="utf-8") + "\n".join(lines) + "\n", encoding="utf-8")
    if not story.speed:
        node.replay(0)
    return node


@contextlib.contextmanager
def _running(node: SimulatedNode) -> Iterator[None]:
    """Its sysfs tree goes along with its clock."""
    over = threading.Event()
    thread = threading.Thread(target=keep_fresh, args=(node.directory, over), daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(10)


def _variant(name: str, story: Story, directory: Path) -> Path:
    """The shipped scenario with fewer cards, and what comes after it."""
    text = (scenario_file.FOLDER / f"{name}.toml").read_text(encoding="utf-8")
    assert "\ncards = 8\n" in text
    file = directory / f"{name}.toml"
    file.write_text(text.replace("\ncards = 8\n", f"\ncards = {story.cards}\n") + story.more, encoding="utf-8")
    return file
