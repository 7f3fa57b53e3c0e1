"""The config file's sections and keys, each with what it does: the table that docs and template are made from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import msgspec

from npu_watchd.config.alertmanager import AlertmanagerSection
from npu_watchd.config.kubernetes import KubernetesSection
from npu_watchd.config.preflight import PreflightSection
from npu_watchd.config.quarantine import QuarantineSection, SlurmSection
from npu_watchd.config.section import Section, about
from npu_watchd.config.values import Address, Count, Glob, Name, RdmaPortName, Seconds, Share, Tool

DEFAULT_FILE = Path("/etc/npu-watchd/config.toml")


class NodeSection(Section, frozen=True):
    name: Annotated[
        Name | None,
        about(
            "This node's name in `npu_node_info`, on the page and in alerts.", unset="the host name", example="node17"
        ),
    ] = None
    expected_devices: Annotated[
        Count | None,
        about("How many chips this node should show.", unset="what the tools report", example=8),
    ] = None
    language: Annotated[
        Literal["en", "zh"],
        about("Language of the alerts that the daemon pushes; Chinese has the English summary in it."),
    ] = "en"


class ToolsSection(Section, frozen=True):
    npu_smi: Annotated[Tool, about("The vendor's device tool.")] = Tool("npu-smi")
    hccn_tool: Annotated[Tool, about("The vendor's tool for the NPUs' own RoCE ports.")] = Tool("hccn_tool")
    ibstat: Annotated[Tool, about("State of the host's RoCE and InfiniBand ports.")] = Tool("ibstat")
    rdma: Annotated[Tool, about("The same facts from iproute2.", used=False)] = Tool("rdma")
    perf: Annotated[Tool, about("PCIe load on Kunpeng.")] = Tool("perf")
    pcm_pcie: Annotated[Tool, about("PCIe load on Intel, by CPU socket.")] = Tool("pcm-pcie")
    scontrol: Annotated[Tool, about("Slurm's control tool.")] = Tool("scontrol")


class PathsSection(Section, frozen=True):
    sysfs: Annotated[Path, about("Where /sys is.")] = Path("/sys")
    procfs: Annotated[Path, about("Where /proc is.")] = Path("/proc")
    dev: Annotated[Path, about("Where /dev is.")] = Path("/dev")
    state_dir: Annotated[Path, about("What must survive a restart: history, findings, journal (`state.db`).")] = Path(
        "/var/lib/npu-watchd"
    )
    runtime_dir: Annotated[Path, about("What need not: the daemon's own files for other programs on the node.")] = Path(
        "/run/npu-watchd"
    )
    npu_tool_log: Annotated[
        Path, about("npu-smi's own error log: it names the sub-queries whose failure the table hides.")
    ] = Path("/var/log/nputools_LOG_ERR.log")
    etc: Annotated[Path, about("Where `ascend_install.info` and `hccn.conf` are.")] = Path("/etc")
    ascend: Annotated[Path, about("Where driver, firmware and CANN are installed: their version files are read.")] = (
        Path("/usr/local/Ascend")
    )
    python: Annotated[
        tuple[Glob, ...], about("Folders of Python packages in which frameworks are looked for; nothing is imported.")
    ] = (
        Glob("/usr/local/lib/python3*/site-packages"),
        Glob("/usr/local/lib/python3*/dist-packages"),
        Glob("/usr/local/python3*/lib/python3*/site-packages"),
        Glob("/usr/lib/python3*/site-packages"),
        Glob("/usr/lib/python3/dist-packages"),
        Glob("/usr/local/Ascend/*/latest/python/site-packages"),
    )


class EngineSection(Section, frozen=True):
    cycle_s: Annotated[Seconds, about("How often the readings are put together and `/metrics` is rendered anew.")] = (
        msgspec.field(default=Seconds(5), name="cycle")
    )
    tool_share: Annotated[
        Share,
        about(
            "Most of the time that a vendor tool may be running; above it every period stretches, and metrics say so."
        ),
    ] = Share(0.20)


class ProbeSettings(Section, frozen=True):
    """What one probe may be told. `None`: the probe's own default."""

    enabled: Annotated[
        bool | None, about("Whether to ask at all.", unset="as the probe's own default", example=True)
    ] = None
    every_s: Annotated[
        Seconds | None,
        about(
            "Period; it stretches while the tools exceed `engine.tool_share`.",
            unset="the probe's own",
            example=Seconds(60),
        ),
    ] = msgspec.field(default=None, name="every")
    timeout_s: Annotated[
        Seconds | None,
        about("Deadline of one call; the tool is ended when it passes.", unset="the probe's own", example=Seconds(10)),
    ] = msgspec.field(default=None, name="timeout")


_OWN = ProbeSettings()


class ProbesSection(Section, frozen=True):
    npu_info: Annotated[ProbeSettings, about("`npu-smi info`: the table, and who uses which chip.")] = _OWN
    npu_map: Annotated[ProbeSettings, about("`npu-smi info -m`: chip to logic id.")] = _OWN
    npu_list: Annotated[ProbeSettings, about("`npu-smi info -l`: the cards, and those that are lost.")] = _OWN
    npu_ecc: Annotated[ProbeSettings, about("`-t ecc`: memory errors and isolated pages.")] = _OWN
    npu_health: Annotated[ProbeSettings, about("`-t health`: health a second time, and error codes.")] = _OWN
    npu_proc_mem: Annotated[
        ProbeSettings, about("`-t proc-mem`: all processes of a chip of which the table lists eight, its most.")
    ] = _OWN
    npu_usages: Annotated[ProbeSettings, about("`-t usages`: utilisation by unit.")] = _OWN
    npu_common: Annotated[ProbeSettings, about("`-t common`: clocks.")] = _OWN
    npu_temp: Annotated[ProbeSettings, about("`-t memory`: temperature of the HBM.")] = _OWN
    npu_board: Annotated[ProbeSettings, about("`-t board`: firmware and serial number.")] = _OWN
    npu_pcie_err: Annotated[ProbeSettings, about("`-t pcie-err`, where the chip has it.")] = _OWN
    npu_hccs: Annotated[ProbeSettings, about("`-t hccs`: links between chips, where the chip has them.")] = _OWN
    npu_tool_log: Annotated[ProbeSettings, about("The tail of `paths.npu_tool_log`.")] = _OWN
    hccn_link: Annotated[ProbeSettings, about("`hccn_tool -link`.")] = _OWN
    hccn_link_stat: Annotated[ProbeSettings, about("`hccn_tool -link_stat`.")] = _OWN
    hccn_stat: Annotated[ProbeSettings, about("`hccn_tool -stat`.")] = _OWN
    hccn_net_health: Annotated[ProbeSettings, about("`hccn_tool -net_health`.")] = _OWN
    hccn_optical: Annotated[ProbeSettings, about("`hccn_tool -optical`.")] = _OWN
    hccn_speed: Annotated[ProbeSettings, about("`hccn_tool -speed`.")] = _OWN
    ibstat: Annotated[ProbeSettings, about("The host's RoCE and InfiniBand ports.")] = _OWN
    rdma_counters: Annotated[ProbeSettings, about("Counters of those ports.")] = _OWN
    pcie_link: Annotated[ProbeSettings, about("PCIe speed and width up to the root port.")] = _OWN
    pcie_aer: Annotated[ProbeSettings, about("PCIe error counters.")] = _OWN
    pcie_load: Annotated[ProbeSettings, about("PCIe throughput; off unless enabled, as each reading costs.")] = _OWN
    processes: Annotated[ProbeSettings, about("From pid to job, of the processes in the newest table.")] = _OWN
    host: Annotated[ProbeSettings, about("Pressure, memory, shared memory, tasks and OOM kills of the host.")] = _OWN
    kernel_log: Annotated[ProbeSettings, about("/dev/kmsg.", used=False)] = _OWN
    app_log: Annotated[ProbeSettings, about("The files of `[logs]`.", used=False)] = _OWN
    versions: Annotated[ProbeSettings, about("Version files of driver, firmware, CANN and Python packages.")] = _OWN


PROBE_NAMES = ProbesSection.__struct_fields__


class WebSection(Section, frozen=True):
    listen: Annotated[tuple[Address, ...], about("Where `/metrics`, the page and the API are served.")] = (
        Address("0.0.0.0:18910"),
    )
    config_file: Annotated[
        Path | None,
        about(
            "TLS, client certificates, passwords and headers, in the format of Prometheus' `--web.config.file`.",
            unset="plain HTTP, open to all",
            example=Path("/etc/npu-watchd/web.yml"),
        ),
    ] = None


Sharing = Literal["never", "same_user", "vnpu", "allowed"]
SHARES: tuple[str, ...] = get_args(Sharing)


class ContentionSection(Section, frozen=True):
    share: Annotated[
        Sharing,
        about("Who may share a chip: nobody, jobs of one user, virtual NPUs (their names have `vir`), or anybody."),
    ] = "never"
    devices: Annotated[
        dict[str, Any],
        about(
            "The same for one device_id or a range of them, where it is not what holds for all.",
            unset="none",
            example={"0-3": "never", "4": "same_user"},
        ),
    ] = {}  # noqa: RUF012  # msgspec gives each its own
    services: Annotated[
        tuple[Name, ...],
        about(
            "Patterns of who may be on any chip beside a job: a process's name, or scheduler and id.",
            unset="none",
            example=(Name("unit npu-exporter.service"),),
        ),
    ] = ()
    job_mapping_dir: Annotated[
        Path | None,
        about(
            "A folder in which the site's prolog keeps a file a device with its job ids by line.",
            unset="none",
            example=Path("/run/npu-jobs"),
        ),
    ] = None


class FabricSection(Section, frozen=True):
    expected_ports: Annotated[
        tuple[RdmaPortName, ...],
        about(
            "RDMA ports of the host that should be up.",
            unset="those that were up since the daemon started",
            example=(RdmaPortName("mlx5_0/1"),),
        ),
    ] = ()
    exclude_devices: Annotated[
        tuple[Name, ...],
        about(
            "Patterns of RDMA devices that are not read: on some physical functions a read floods the kernel's log.",
            unset="none",
            example=(Name("mlx5_bond_*"),),
        ),
    ] = ()


class RulesSection(Section, frozen=True):
    off: Annotated[
        tuple[Name, ...],
        about(
            "Rules that are not judged; what they had found is resolved.", unset="none", example=(Name("pcie_load"),)
        ),
    ] = ()


class CodesSection(Section, frozen=True):
    file: Annotated[
        Path | None,
        about(
            "What this site says about error codes: tiers, texts, codes to be silent about (docs/codes.md).",
            unset="nothing",
            example=Path("/etc/npu-watchd/codes.toml"),
        ),
    ] = None


class LogsSection(Section, frozen=True):
    plog: Annotated[tuple[Glob, ...], about("The vendor's logs, for `diagnose`.", unset="none")] = ()
    training: Annotated[tuple[Glob, ...], about("Logs of training jobs, likewise.", unset="none")] = ()


class MetricsSection(Section, frozen=True):
    npu_exporter_names: Annotated[
        bool,
        about("Also export the metric names of Huawei's npu-exporter (docs/migrate-from-npu-exporter.md)."),
    ] = False


class Sections(Section, frozen=True):
    """The whole file."""

    node: Annotated[NodeSection, about("Who this node is.")] = NodeSection()
    tools: Annotated[ToolsSection, about("The programs to run: a name on PATH, or an absolute path.")] = ToolsSection()
    paths: Annotated[PathsSection, about("Files and folders, as absolute paths.")] = PathsSection()
    engine: Annotated[EngineSection, about("The daemon's own beat, and how much it may cost.")] = EngineSection()
    probes: Annotated[ProbesSection, about("What to ask, how often, and for how long to wait.")] = ProbesSection()
    web: Annotated[WebSection, about("The HTTP server.")] = WebSection()
    alertmanager: Annotated[AlertmanagerSection, about("Where alerts go. Files are read anew for each request.")] = (
        AlertmanagerSection()
    )
    quarantine: Annotated[QuarantineSection, about("What a verdict may do.")] = QuarantineSection()
    slurm: Annotated[SlurmSection, about("How to act on Slurm; the program is `tools.scontrol`.")] = SlurmSection()
    kubernetes: Annotated[
        KubernetesSection, about("How to act on Kubernetes. Files are read anew for each request.")
    ] = KubernetesSection()
    contention: Annotated[ContentionSection, about("What counts as contention.")] = ContentionSection()
    fabric: Annotated[FabricSection, about("The host's RDMA ports.")] = FabricSection()
    limits: Annotated[
        dict[str, Any],
        about(
            'Thresholds of the rules (docs/limits.md), a number or a duration; `[limits.chip."910B3"]` for one silicon.'
        ),
    ] = {}  # noqa: RUF012  # msgspec gives each its own
    rules: Annotated[RulesSection, about("Which rules are judged.")] = RulesSection()
    codes: Annotated[CodesSection, about("The chips' error codes.")] = CodesSection()
    preflight: Annotated[PreflightSection, about("The checklist before a job.")] = PreflightSection()
    logs: Annotated[LogsSection, about("Where `npu-watchd diagnose` looks for the newest logs.")] = LogsSection()
    metrics: Annotated[MetricsSection, about("What `/metrics` holds.")] = MetricsSection()


class Config(Sections, frozen=True):
    """A checked config, and where it came from. Made by `load`; never changed."""

    file: Path | None = None
    """None: there is no file, everything is built in."""
    given: frozenset[str] = frozenset()
    """Keys that the file sets, dotted: `probes.npu_info.every`."""

    def probe(self, name: str) -> ProbeSettings:
        """What the file says of one probe. Raises AttributeError for a name that is none of PROBE_NAMES."""
        settings: ProbeSettings = getattr(self.probes, name)
        return settings
