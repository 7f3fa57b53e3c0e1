"""What alerts say in Chinese: a sentence a rule and an alert, and the next step; names and values stay as they are.

A text says what the English one in rules/ or reference/fleet_alerts.py says; why a table: docs/decisions/0032.
"""

from __future__ import annotations

from collections.abc import Mapping

from npu_watchd.model.fabric import PortKey
from npu_watchd.model.finding import Action, Finding

RULES: Mapping[str, str] = {
    "device_missing": "应有的或曾经出现过的设备，在 npu-smi 连续三次完整的列表中都不见了。",
    "device_unhealthy": "npu-smi 自己把该设备的健康状态报为 Warning、Alarm 或 Critical。",
    "error_code": "设备上有一个活动的错误码，厂商对它的定级高于提示，或者没有任何资料认识它。",
    "error_code_repeats": "同一错误码在该设备上反复出现，次数超过厂商的频次规则。",
    "hbm_double_bit": "自上次复位以来，设备内存出现过不可纠正的错误。",
    "hbm_single_bit": "可纠正的内存错误在攀升：一小时内的次数超过阈值，也超过该设备以往的水平和相邻设备的水平。",
    "isolated_pages": "设备内存已有许多页被隔离。",
    "overheating": "芯片或其内存过热已持续一分钟。",
    "pcie_link": "设备的 PCIe 链路宽度低于整条路径各段都能达到的宽度，或者在工作时速率偏低。",
    "pcie_errors": "设备链路上的 PCIe 错误在攀升，或者出现了不可纠正的错误。",
    "pcie_load": "设备的 PCIe 链路几乎占满，已持续一分钟。",
    "roce_down": "曾经连通的端口，或配置中应当连通的端口，已断开四分钟。",
    "roce_flap": "端口反复断开又恢复。",
    "roce_slow": "端口已连通，但速率低于它以往的速率。",
    "roce_errors": "端口上的错误或重传增长过快，正常链路不会如此。",
    "optics": "NPU 端口的光模块发光或收光过弱或过强，或者它自己报告丢失光信号。",
    "jobs_share_device": "两个或更多作业的进程同在一个设备上，而本站点不允许共享该设备。",
    "leftover": "五分钟以来，设备上有作业遗留的进程，或者有内存被占用却没有列出任何进程。",
    "hccl_ports_conflict": "作业的 HCCL 必须监听的主机端口，一分钟以来被另一个作业占用。",
    "hccl_settings_differ": "同一作业的各个 rank 启动时所用的 HCCL 设置互不一致。",
    "visible_devices_overlap": "两个或更多作业被指定使用同一个设备，而本站点不允许共享该设备。",
    "outside_visible_devices": "作业在使用某个设备，而它启动时的设备列表中没有这个设备。",
    "host_contention": "节点上有两个或更多作业，同时某条 PCIe 链路几乎占满，或者工作在等待 CPU 或内存。",
    "host_oom": "内核因内存不足杀死了某个作业的进程，或者可能属于某个作业的进程。",
    "job_died": "训练作业异常终止；最可能的原因见诊断结果。",
    "version_mismatch": "驱动、CANN 与框架的版本不在同一行配套表中。",
    "tool_wedged": "npu-smi 挂住，或者它的某个进程无法结束：驱动已卡死。",
    "probe_blind": "判定设备健康所必需的某项探测，已连续失败三个周期。",
    "quarantine": "结论为隔离：在修复并由人解除之前，该设备或节点不应再运行任何作业。",
}
"""Rule → when it fires."""

FLEET: Mapping[str, str] = {
    "NpuWatchdDown": "Prometheus 得不到守护进程的应答，因此没有任何程序在看护该节点的设备。",
    "NpuWatchdAbsent": "Prometheus 中没有任何 npu-watchd 作业的抓取目标，因此没有任何节点受到看护。",
    "NpuWatchdStale": "守护进程有应答，但它的周期已经停止：它显示的是过去的状态。",
    "NpuWatchdClockSkew": "节点的时钟与 Prometheus 的时钟不一致，因此告警与日志中的时间无法相互比对。",
    "NpuWatchdConfigReloadFailed": "守护进程读不了新的配置，仍在使用上一份配置。",
    "NpuWatchdNotificationsFailing": "守护进程无法把告警送达这个 Alertmanager。",
    "NpuFleetQuarantineShare": "按各守护进程的结论，处于隔离状态的节点比例超过了计划。",
}
"""Alert that only Prometheus can hold → when it fires."""

ACTIONS: Mapping[str, str] = {
    Action.RESET_DEVICE.value: "复位设备",
    Action.INSPECT.value: "检查设备",
    Action.REPLACE.value: "更换硬件",
    Action.OBSERVE.value: "继续观察",
    Action.INSPECT_COOLING.value: "检查散热",
    Action.RESEAT.value: "重新插拔",
    Action.MOVE_JOB.value: "迁移作业",
    Action.CHECK_CABLE.value: "检查线缆",
    Action.CHECK_OPTICS.value: "检查光模块",
    Action.CLEAN_UP.value: "清理残留",
    Action.CHECK_JOB.value: "检查作业",
    Action.CHECK_DRIVER.value: "检查驱动",
    Action.DIAGNOSE.value: "诊断作业",
    Action.ALIGN_VERSIONS.value: "统一版本",
    Action.ALIGN_SETTINGS.value: "统一设置",
    "check_daemon": "检查守护进程",
    "check_scrape": "检查抓取配置",
    "check_clock": "检查时钟",
    "mend_config": "改正配置",
    "check_alertmanager": "检查 Alertmanager",
    "find_common_cause": "查找共同原因",
}
"""Action → the next step in words."""


def summary(finding: Finding) -> str | None:
    """Whom it is about, the rule's sentence, and in brackets the English summary with its values.

    None for a rule that has no text here.
    """
    sentence = RULES.get(finding.rule)
    return None if sentence is None else f"{_whom(finding)}：{sentence}（{finding.summary}）"


def action(finding: Finding) -> str | None:
    """The next step; None where it has no text here."""
    return ACTIONS.get(finding.action.value)


def _whom(finding: Finding) -> str:
    if isinstance(finding.subject, PortKey):
        return f"端口 {finding.subject}"
    return "节点" if finding.device_id is None else f"设备 {finding.device_id}"
