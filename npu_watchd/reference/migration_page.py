"""docs/migrate-from-npu-exporter.md."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from npu_watchd.catalogue.borrowed import Borrowed
from npu_watchd.catalogue.npu_exporter import NODE_NAMES
from npu_watchd.reference.markdown import made, table

_HEAD = """
# From npu-exporter to npu-watchd

Huawei's npu-exporter and npu-watchd may run side by side: one reads DCMI, the other the vendor's tools; ports 8082
and 18910. To move, install npu-watchd, switch its names on as well, point the dashboards at the new scrape job, and
change them panel by panel with the table below. Then take npu-exporter out, and the line too:

```toml
[metrics]
npu_exporter_names = true
```

SIGHUP takes it, a restart is not needed. It adds some sixty series a device to those of [metrics.md](metrics.md).

## What is the same, and what is not

* Names, units and types are theirs: all gauges, memory in MB (of 2^20 bytes), shares in per cent, light in mW.
  `promtool check metrics` complains about them, and is right.
* Labels: `id`, `model_name`, `pcie_bus_info` (`name` instead of `model_name` on `npu_chip_info_name`). `id` is the
  Phy-ID; where no tool prints it, as on many 910B, the logic id, which is the same on a bare node with all its chips.
  `model_name` is what `npu-smi` calls the chip, `910B3`; theirs goes on with type and version, `910B3-…-…`: match it
  with `=~"910B3.*"`.
* Not there: `vdie_id`, and `namespace`, `pod_name`, `container_name`. Who is on a chip is in `npu_device_job_info`,
  for Slurm and sessions as well; join it on `device_id`.
* **What we could not read has no sample.** Theirs keeps the value before until its cache ends, or shows -1; a key
  that hccn_tool does not print is 0 there. An alert such as `npu_chip_info_link_status == -1` never fires here: use
  `absent()`, or better `npu_watchd_probe_up == 0`.
* `npu_chip_info_health_status` is 1 or 0, never -1; 0 also for Warning, as theirs.
* No sample has a time of its own. `npu_chip_info_hbm_utilization` is computed from used and total,
  `npu_chip_info_power` of an A3 card is on its first die.

## Theirs, and ours

Ours have the label `device_id` in place of theirs, and counters in place of gauges: `increase()` and `rate()` are
right for them."""
_ABSENT_HEAD = """
## Theirs that are not exported
"""
_ABSENT = (
    ("`npu_exporter_version_info`", "`npu_watchd_build_info`: it is another program"),
    ("`npu_chip_info_voltage`, `npu_chip_info_product_type`", "we do not ask for them"),
    ("`npu_chip_info_hbm_ecc_enable_flag`", "we do not ask; where `-t ecc` answers there are counts"),
    ("`npu_container_info`, `container_npu_*`, `vnpu_pod_*`", "`npu_device_job_info`, `npu_device_job_memory_bytes`"),
    (
        "`npu_chip_info_hccs_statistic_info_*`, `npu_chip_info_hccs_bandwidth_info_*`",
        "`npu_device_hccs_errors_total`, `npu_device_hccs_retries_total`, by link in the order of `npu-smi`, "
        "whose numbers need not be theirs",
    ),
    ("`npu_chip_info_sio_*`", "no tool shows it"),
    (
        "`npu_chip_info_pcie_{tx,rx}_{p,np,cpl}_bw`",
        "`npu_device_pcie_throughput_bytes_per_second`, all kinds of packets together",
    ),
    (
        "`npu_chip_info_bandwidth_rx`, `npu_chip_info_bandwidth_tx`",
        "`rate(npu_device_roce_packets_total[5m])`, in frames",
    ),
    ("`npu_chip_link_up_num`", "`npu_device_roce_link_downs_total`: the other half of it"),
    (
        "`npu_chip_info_*` of UB and of ports by die (Ascend 950)",
        "its ports are not asked about ([decision 0016](decisions/0016-fabric-that-is-not-asked.md))",
    ),
)
_ALERTS = """
## Alerts

npu-exporter ships none. Those of npu-watchd need no threshold in PromQL: [alerts.md](alerts.md) has them, and
`deploy/prometheus/npu-watchd.rules.yml` or `[alertmanager] urls` brings them. What you have written yourselves on
theirs goes on working with the names above, but for the -1.
"""


def migration_page(borrowed: Iterable[Borrowed]) -> str:
    lines = [
        made("npu_watchd/catalogue/npu_exporter.py"),
        _HEAD,
        *table(("theirs", "unit", "ours"), _rows(borrowed)),
        _ABSENT_HEAD.rstrip(),
        *table(("theirs", "instead"), _ABSENT),
        _ALERTS.rstrip(),
    ]
    return "\n".join(lines) + "\n"


def _rows(borrowed: Iterable[Borrowed]) -> Iterator[tuple[str, ...]]:
    yield from ((f"`{name}`", "", _code(ours)) for name, ours, _, _ in NODE_NAMES)
    yield from ((f"`{one.name}`", one.unit, _code(one.ours)) for one in borrowed)


def _code(ours: str) -> str:
    """As code, unless it is words that have code in them."""
    return ours if "`" in ours else f"`{ours}`"
