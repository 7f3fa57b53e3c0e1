"""The generated pages say what the tables say."""

from __future__ import annotations

from pathlib import Path

import pytest

from npu_watchd import reference
from npu_watchd.catalogue import DeviceFamily, Family, Kind, NodeFamily
from npu_watchd.limits import LIMITS, Limit
from npu_watchd.reference.alerts_page import alerts_page
from npu_watchd.reference.fleet_alerts import FLEET_ALERTS
from npu_watchd.reference.limits_page import limits_page
from npu_watchd.rules import RULES


def test_a_metric_is_one_row_with_all_its_labels() -> None:
    families: tuple[Family, ...] = (
        NodeFamily("npu_watchd_x_total", Kind.COUNTER, "this | that", ("probe", "kind"), lambda _: ()),
        DeviceFamily("npu_device_y_watts", Kind.GAUGE, "`npu-smi info`: Power", (), lambda _: ()),
    )
    assert reference.metrics_page(families).splitlines()[-2:] == [
        "| `npu_device_y_watts` | gauge | `device_id` | `npu-smi info`: Power |",
        "| `npu_watchd_x_total` | counter | `probe`, `kind` | this \\| that |",
    ]


def test_the_config_page_shows_each_probes_own_period_and_deadline() -> None:
    page = reference.config_page(reference.probe_defaults())
    assert "| `npu_info` | `npu-smi info`: the table, and who uses which chip. | 15s | 10s |" in page
    assert "| `npu_map` | `npu-smi info -m`: chip to logic id. | 1h | 10s |" in page


def test_what_has_no_effect_yet_is_marked_on_the_config_page() -> None:
    page = reference.config_page({})
    assert "| `rdma` | The same facts from iproute2. *Not used yet.* |" in page
    assert "*Not used yet*: accepted, not used by this version" in page


def test_a_limit_is_one_row_with_its_chips_and_says_openly_that_it_is_an_assumption() -> None:
    limit = Limit("port_down_s", 240, "s", "A reboot passes.", "assumption, from x", {"910B": 300.0})
    assert limits_page((limit,), RULES).splitlines()[-1] == (
        '| `port_down_s` | `"4m"` | s | 910B: "5m" | A reboot passes. | **assumption**, from x '
        "| [RocePortDown](runbooks/RocePortDown.md) |"
    )


def test_the_limits_page_has_every_limit() -> None:
    page = limits_page(LIMITS, RULES)
    assert [limit.name for limit in LIMITS if f"| `{limit.name}` |" not in page] == []


def test_a_rule_is_one_row_with_all_that_its_table_says() -> None:
    assert (
        "| [NpuMemoryUncorrectableErrors](runbooks/NpuMemoryUncorrectableErrors.md) | `hbm_double_bit` | device "
        "| critical | yes | reset_device | `npu_ecc` | `double_bit_errors = 1` "
        "| The device's memory has had an error that could not be corrected since its last reset. |"
    ) in alerts_page(RULES, FLEET_ALERTS).splitlines()


def test_a_page_that_is_missing_or_old_is_found_and_made_anew(tmp_path: Path) -> None:
    assert reference.differing(tmp_path) == list(reference.files())
    assert reference.write(tmp_path) == list(reference.files())
    assert reference.differing(tmp_path) == []
    (tmp_path / "docs" / "limits.md").write_text("old")
    assert reference.differing(tmp_path) == ["docs/limits.md"]


@pytest.mark.parametrize(
    "name", ["hbm_single_bit", "NpuMemoryErrorsClimbing", " npumemoryerrorsclimbing", "HBM_Single_Bit"]
)
def test_an_alert_is_explained_by_either_name_in_any_case(name: str) -> None:
    assert reference.alert_explanation(name) == [
        "NpuMemoryErrorsClimbing  hbm_single_bit  warning",
        "Corrected memory errors climb: more in an hour than the limit, the device's own past and its neighbours.",
        "",
        "  about a     device",
        "  severity    warning",
        "  quarantines no",
        "  action      observe",
        "  needs       npu_ecc",
        "  limits      single_bit_errors_per_hour = 20  (count/h; assumption) "
        "Corrected errors come now and then; a cell that dies, often.",
        "              single_bit_factor = 4  (ratio; assumption) "
        "How far above its own week and its neighbours' median a device must be.",
        "  ends        once the condition is gone; held while what it needs cannot be read",
        "  runbook     docs/runbooks/NpuMemoryErrorsClimbing.md",
    ]


def test_prometheus_own_alerts_are_explained_too() -> None:
    assert reference.alert_explanation("npuwatchddown") == [
        "NpuWatchdDown  critical",
        "Prometheus gets no answer from the daemon, so nobody watches this node's devices.",
        "",
        "  about a     node",
        "  severity    critical",
        "  quarantines no",
        "  action      check_daemon",
        "  needs       Prometheus with deploy/prometheus/npu-watchd.rules.yml",
        '  limits      down_s = "5m"  (s; assumption) '
        "A node that boots, or a daemon that is started anew, is back by then.",
        "  runbook     docs/runbooks/NpuWatchdDown.md",
    ]


@pytest.mark.parametrize("name", [*(rule.id for rule in RULES), *(one.alert for one in FLEET_ALERTS)])
def test_every_alert_is_explained(name: str) -> None:
    assert reference.alert_explanation(name)


@pytest.mark.parametrize("name", ["", "80E01801", "NpuDevice", "device 3"])
def test_what_is_no_alert_is_not_explained(name: str) -> None:
    assert reference.alert_explanation(name) is None
