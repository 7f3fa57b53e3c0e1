"""The generated pages say what the tables say."""

from __future__ import annotations

from npu_watchd import reference
from npu_watchd.catalogue import DeviceFamily, Family, Kind, NodeFamily


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
    assert "| `language` | Language of alert texts: English or Chinese. *Not used yet.* |" in page
    assert "What a verdict may do. *Not used yet.*" in page
    assert "*Not used yet*: accepted, not used by this version" in page
