"""What findings did over a play: when each opened, what it weighed, when it was held, when it was over."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from npu_watchd.decide.bench import Bench
from npu_watchd.decide.cycle import Judged
from npu_watchd.decide.memo import cases_of
from npu_watchd.model.finding import Finding
from npu_watchd.model.ids import DeviceKey, Subject
from npu_watchd.model.verdict import State
from npu_watchd.rules.quarantine import QUARANTINE


@dataclass
class Episode:
    """One finding from its opening to its end."""

    rule: str
    subject: Subject
    opened_s: float
    summary: str
    weights: list[tuple[str, bool]]
    held: list[float] = field(default_factory=list)
    """The cycles in which it was."""
    live: list[float] = field(default_factory=list)
    """Those in which it was not."""
    over_s: float | None = None
    """None: it stands."""

    def was_held(self, second: float) -> bool | None:
        """At the newest cycle up to that second; None: it did not stand then."""
        cycles = [(at, True) for at in self.held] + [(at, False) for at in self.live]
        seen = [one for one in cycles if one[0] <= second]
        gone = self.over_s is not None and self.over_s <= second
        return max(seen)[1] if seen and not gone else None


@dataclass
class Watch:
    """Told of every cycle."""

    episodes: list[Episode] = field(default_factory=list)
    findings: tuple[Finding, ...] = ()
    """Of the newest cycle."""
    quarantined: set[Subject] = field(default_factory=set)
    """Devices of which something was ever found that quarantines: nobody releases them here."""
    _open: dict[tuple[str, Subject], Episode] = field(default_factory=dict)

    def see(self, second: float, judged: Judged) -> None:
        """The verdicts follow from the findings, and are not told a second time as episodes."""
        self._see_verdicts(judged)
        self._see_findings(second, (finding for finding in judged.findings if finding.rule != QUARANTINE.id))

    def _see_verdicts(self, judged: Judged) -> None:
        self.quarantined |= {
            finding.subject
            for finding in judged.findings
            if finding.quarantines and isinstance(finding.subject, DeviceKey)
        }
        told = {one.subject for one in judged.verdicts if one.state is State.QUARANTINE}
        assert {subject for subject in told if isinstance(subject, DeviceKey)} == self.quarantined
        healthy = {one.subject for one in judged.verdicts if one.state is State.HEALTHY}
        assert not healthy & {finding.subject for finding in judged.findings}

    def _see_findings(self, second: float, findings: Iterable[Finding]) -> None:
        self.findings = tuple(findings)
        for key in self._open.keys() - {finding.key for finding in self.findings}:
            self._open.pop(key).over_s = second
        for finding in self.findings:
            weight = (finding.severity.value, finding.quarantines)
            episode = self._open.get(finding.key)
            if episode is None:
                episode = Episode(finding.rule, finding.subject, second, finding.summary, [weight])
                self._open[finding.key] = episode
                self.episodes.append(episode)
            elif episode.weights[-1] != weight:
                episode.weights.append(weight)
            (episode.held if finding.held else episode.live).append(second)


def after_a_restart(bench: Bench) -> Bench:
    """The cases as the next daemon finds them."""
    text = bench.text(0.0)
    assert text is not None
    return Bench(*cases_of(text), "any")
