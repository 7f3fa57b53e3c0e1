"""Alerts that only Prometheus can hold: of daemons that do not answer, and of the fleet as a whole."""

from __future__ import annotations

from dataclasses import dataclass

from npu_watchd.config.sections import Config
from npu_watchd.limits import ASSUMPTION, Limit

JOB = "npu-watchd"
"""The scrape job's name, which these alerts rest on; the scrape examples use it."""
UP = f'up{{job="{JOB}"}}'
_CYCLE = "npu_watchd_cycle_timestamp_seconds"
NAMED = "* on (instance, job) group_left (node)"

_DOWN = Limit("down_s", 300, "s", "A node that boots, or a daemon that is started anew, is back by then.", ASSUMPTION)
_ABSENT = Limit("absent_s", 300, "s", "Prometheus itself may just have been started.", ASSUMPTION)
_STALE = Limit("stale_s", 120, "s", "24 cycles of 5 s, and two scrapes a minute apart.", ASSUMPTION)
_SKEW = Limit("skew_s", 30, "s", "A page is at most a cycle old; more than that is the clock.", ASSUMPTION)
_SKEW_FOR = Limit("skew_for_s", 300, "s", "A clock that is set just after the start is no news.", ASSUMPTION)
_RELOAD_FOR = Limit("reload_for_s", 300, "s", "Who edits the file mends a slip within minutes.", ASSUMPTION)
_FAILURES = Limit("notification_failures", 3, "count", "Three in a row of those sent once a minute.", ASSUMPTION)
_FAILURES_IN = Limit("notification_window_s", 600, "s", "Over which failures are counted.", ASSUMPTION)
_SHARE = Limit("quarantine_share", Config().quarantine.max_share, "ratio", "As `[quarantine] max_share`.", "DESIGN 8")
_SHARE_NODES = Limit("quarantine_nodes", 2, "count", "In a small fleet one node is a large share.", ASSUMPTION)


@dataclass(frozen=True, slots=True)
class FleetAlert:
    """One alert of Prometheus' own."""

    alert: str
    severity: str
    expr: str
    lasts: Limit | None
    """It must hold this long; None: it fires at once."""
    limits: tuple[Limit, ...]
    """Beside `lasts`; they stand in `expr`."""
    subject: str
    action: str
    summary: str
    """One sentence: what is wrong when it fires."""
    title: str
    """Whom the alert names, as a template of Prometheus."""

    @property
    def title_zh(self) -> str:
        """The same for the summary in Chinese."""
        return _TITLES_ZH.get(self.title, self.title)

    @property
    def all_limits(self) -> tuple[Limit, ...]:
        return self.limits if self.lasts is None else (*self.limits, self.lasts)


_NODE_TITLE = "{{ or $labels.node $labels.instance }}"
_FLEET_TITLE = "the fleet"
_TARGET_TITLE = "{{ $value }} node(s), {{ $labels.target }}"
_TITLES_ZH = {_FLEET_TITLE: "整个集群", _TARGET_TITLE: "{{ $value }} 个节点，{{ $labels.target }}"}


def _of_node(condition: str) -> str:
    """The condition with its node's name, where the daemon itself still answers."""
    return f"max by (node, instance) (({condition}) {NAMED} npu_node_info)"


FLEET_ALERTS: tuple[FleetAlert, ...] = (
    FleetAlert(
        "NpuWatchdDown",
        "critical",
        f"max by (node, instance) (({UP} == 0) {NAMED} npu_watchd:node_info:last or on (instance, job) {UP} == 0)",
        _DOWN,
        (),
        "node",
        "check_daemon",
        "Prometheus gets no answer from the daemon, so nobody watches this node's devices.",
        _NODE_TITLE,
    ),
    FleetAlert(
        "NpuWatchdAbsent",
        "critical",
        f"absent({UP})",
        _ABSENT,
        (),
        "fleet",
        "check_scrape",
        f"Prometheus has no target of the job {JOB} at all, so no node is watched.",
        _FLEET_TITLE,
    ),
    FleetAlert(
        "NpuWatchdStale",
        "critical",
        _of_node(f"time() - {_CYCLE} > {_STALE.default:g} and changes({_CYCLE}[{_STALE.default:g}s]) == 0"),
        None,
        (_STALE,),
        "node",
        "check_daemon",
        "The daemon answers, but its cycles have stopped: what it shows is the past.",
        _NODE_TITLE,
    ),
    FleetAlert(
        "NpuWatchdClockSkew",
        "warning",
        _of_node(
            f"abs(timestamp({_CYCLE}) - {_CYCLE}) > {_SKEW.default:g} and changes({_CYCLE}[{_STALE.default:g}s]) > 0"
        ),
        _SKEW_FOR,
        (_SKEW, _STALE),
        "node",
        "check_clock",
        "The node's clock and Prometheus' differ, so times in alerts and journals cannot be compared.",
        _NODE_TITLE,
    ),
    FleetAlert(
        "NpuWatchdConfigReloadFailed",
        "warning",
        _of_node("npu_watchd_config_reload_success == 0"),
        _RELOAD_FOR,
        (),
        "node",
        "mend_config",
        "The daemon could not read its new config and goes on with the one before it.",
        _NODE_TITLE,
    ),
    FleetAlert(
        "NpuWatchdNotificationsFailing",
        "warning",
        "count by (target) (increase(npu_watchd_notification_failures_total"
        f"[{_FAILURES_IN.default:g}s]) >= {_FAILURES.default:g})",
        None,
        (_FAILURES, _FAILURES_IN),
        "fleet",
        "check_alertmanager",
        "Daemons cannot hand their alerts to this Alertmanager.",
        _TARGET_TITLE,
    ),
    FleetAlert(
        "NpuFleetQuarantineShare",
        "critical",
        f"npu_watchd:quarantine_candidates:share > {_SHARE.default:g}"
        f" and npu_watchd:quarantine_candidates:nodes >= {_SHARE_NODES.default:g}",
        None,
        (_SHARE, _SHARE_NODES),
        "fleet",
        "find_common_cause",
        "More of the fleet than planned is in quarantine, by the verdicts of its daemons.",
        _FLEET_TITLE,
    ),
)
"""In the order of docs/alerts.md."""
