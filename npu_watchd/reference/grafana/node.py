"""deploy/grafana/node.json: one node, from its verdict down to the host it runs on."""

from __future__ import annotations

from npu_watchd.reference.grafana.dashboard import (
    CLUSTER,
    DATASOURCE,
    JOB_CHOICE,
    Dashboard,
    Link,
    Row,
    Variable,
)
from npu_watchd.reference.grafana.expressions import (
    ANSWERS,
    DEVICE_SCOPE,
    FLEET_SCOPE,
    HEALTHS,
    NAME_OF,
    NODE_SCOPE,
    VERDICTS,
    YES,
    by_device,
    coded,
    of_device,
    of_node,
)
from npu_watchd.reference.grafana.node_devices import HEAT, JOBS, MEMORY, MEMORY_ERRORS
from npu_watchd.reference.grafana.node_fabric import PCIE, PORTS
from npu_watchd.reference.grafana.node_host import DAEMON, HOST, PROBES
from npu_watchd.reference.grafana.panel import Kind, Panel, Query

_INSTANCE = Variable(
    "instance",
    "Node",
    f"query_result(max by (instance, node) (npu_node_info{{{FLEET_SCOPE}}} or {NAME_OF}{{{FLEET_SCOPE}}}))",
    regex='/instance="(?<value>[^"]+)|node="(?<text>[^"]+)/g',
)
"""Shown by the node's name; the recorded series has it also while the daemon does not answer."""
_DEVICE = Variable(
    "device_id",
    "Device",
    f"label_values(npu_watchd_device_verdict{{{NODE_SCOPE}}}, device_id)",
    several=True,
    all_value=".*",
    sort=3,
)
_FINDING = "rule, severity, device_id, rdma_device, port"
_PAGE = ("The node's page", "http://${instance}/")

_TOP = (
    Panel(
        "Verdict of the node",
        Kind.STAT,
        "The worst of the node's own verdict and its parts'. Why, in words, is on the node's page and in "
        "`npu-watchd explain verdict`.",
        (Query(coded("npu_watchd_node_verdict", NODE_SCOPE, VERDICTS, "instance")),),
        states=VERDICTS,
        width=5,
        height=4,
        link=_PAGE,
    ),
    Panel(
        "Daemon",
        Kind.STAT,
        "Whether Prometheus' newest scrape was answered. While it is not, the rest of this page is the past or empty.",
        (Query(f"max by (instance) (up{{{NODE_SCOPE}}})"),),
        states=ANSWERS,
        width=4,
        height=4,
    ),
    Panel(
        "Devices: present, expected",
        Kind.STAT,
        "Devices in the newest table of npu-smi, and those there should be; no data: there is no table.",
        (
            Query(f"max by (instance) ({of_node('npu_devices_present')})", "present"),
            Query(f"max by (instance) ({of_node('npu_devices_expected')})", "expected"),
        ),
        width=5,
        height=4,
        custom={"colorMode": "none", "textMode": "value_and_name"},
    ),
    Panel(
        "Versions",
        Kind.TABLE,
        "What runs on the node.",
        (Query(f"max by (node, driver, npu_smi, firmware) ({of_node('npu_node_info')})"),),
        width=10,
        height=4,
        columns={"node": "node", "driver": "driver", "npu_smi": "npu-smi", "firmware": "firmware"},
    ),
    Panel(
        "Findings: why",
        Kind.TABLE,
        "Every finding that stands, held ones included; empty where nothing is wrong, and where nobody "
        "answers. Value, limit and the command that checks it are on the node's page.",
        (
            Query(
                f"max by ({_FINDING}) ({of_node('npu_watchd_finding_active')}"
                f" or {of_node('npu_watchd:finding_active:node')})"
            ),
        ),
        width=14,
        height=8,
        columns={
            "rule": "rule",
            "severity": "severity",
            "device_id": "device",
            "rdma_device": "RDMA device",
            "port": "port",
        },
        link=_PAGE,
    ),
    Panel(
        "Verdicts since",
        Kind.TABLE,
        "Each device's verdict, and when it came to it.",
        (
            Query(
                f"1000 * max by (device_id, state) ({of_device('npu_watchd_verdict_since_timestamp_seconds')}"
                f" * on (instance, job, device_id) group_left (state) ({of_device('npu_watchd_device_verdict')} == 1))"
            ),
        ),
        "dateTimeAsIso",
        10,
        8,
        columns={"device_id": "device", "state": "verdict", "Value": "since"},
    ),
)
_DEVICES = (
    Panel(
        "Verdicts",
        Kind.STATES,
        "The verdict of each device. A gap: the daemon did not answer.",
        by_device(coded("npu_watchd_device_verdict", DEVICE_SCOPE, VERDICTS, "device_id")),
        states=VERDICTS,
        width=12,
        height=9,
    ),
    Panel(
        "Health, as npu-smi has it",
        Kind.STATES,
        "The worse of `npu-smi info` and `-t health`; ok only when both say so, unknown when one cannot be read.",
        by_device(coded("npu_device_health", DEVICE_SCOPE, HEALTHS, "device_id")),
        states=HEALTHS,
        width=12,
        height=9,
    ),
    Panel(
        "Who the devices are",
        Kind.TABLE,
        "From npu-smi; its own numbers of card and chip, which its options -i and -c take.",
        (
            Query(
                "max by (device_id, npu_id, chip_id, phy_id, name, pci_address, firmware)"
                f" ({of_device('npu_device_info')})"
            ),
        ),
        width=12,
        columns={
            "device_id": "device",
            "name": "chip",
            "npu_id": "NPU",
            "chip_id": "die",
            "phy_id": "phy",
            "pci_address": "PCI address",
            "firmware": "firmware",
        },
    ),
    Panel(
        "Error codes that are active",
        Kind.TABLE,
        "From `npu-smi info -t health`, with the vendor's tier; `npu-watchd explain CODE` has the text. "
        "Empty where there are none, and where nobody could ask.",
        (Query(f"max by (device_id, code, level) ({of_device('npu_device_error_code_active')})"),),
        width=7,
        columns={"device_id": "device", "code": "code", "level": "tier"},
    ),
    Panel(
        "In the newest table",
        Kind.STATES,
        "Whether `npu-smi info` shows the device; a gap: there was no table.",
        by_device(of_device("npu_device_present")),
        states=YES,
        width=5,
    ),
)

NODE = Dashboard(
    "npu-watchd-node",
    "Ascend NPU node",
    "One node: verdict and findings, devices, ports, host, and what the daemon could not see.",
    (DATASOURCE, CLUSTER, JOB_CHOICE, _INSTANCE, _DEVICE),
    (
        Link("Fleet", "/d/npu-watchd-fleet?${datasource:queryparam}&${cluster:queryparam}&${job:queryparam}"),
        Link("The node's page: reasons, values, commands", "http://${instance}/", elsewhere=True),
    ),
    (
        Row("", _TOP),
        Row("Devices", _DEVICES),
        Row("Memory errors", MEMORY_ERRORS),
        Row("Jobs", JOBS),
        Row("Ports", PORTS),
        Row("PCIe", PCIE),
        Row("Temperature, power, utilisation", HEAT),
        Row("Memory", MEMORY),
        Row("Host", HOST),
        Row("Probes", PROBES),
        Row("The daemon", DAEMON),
    ),
    "6h",
)
