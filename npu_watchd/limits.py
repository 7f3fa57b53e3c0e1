"""Every threshold of the rules: what it is by default, why, and whose advice that is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

ASSUMPTION = "assumption"
_DESIGN = "DESIGN 8"
_STEP = f"{ASSUMPTION}, after gpud (2 reboots that did not help) and NVSentinel (5 remedies in 7 days)"
_GPUD = "gpud: flap of ≥3 × (down ≥25 s, then up) in 12 h, drop of ≥4 min"
_FAULTDIAG = "ascend-faultdiag, threshold_config.py"
_NVSENTINEL = "NVSentinel, ADR-046 (fields of the mlx5 driver)"
_DCGM = "DCGM, DcgmGPUHardwareLimits.h: replays a minute and lane at a bit error rate of 1e-12, 16 GT/s"
_OOMD = "systemd-oomd kills at 60 % (DefaultMemoryPressureLimit)"
_LADDER = "Ascend fault codes 80E18401 (16 rows isolated) and 80E18402 (64)"


@dataclass(frozen=True, slots=True)
class Limit:
    """One threshold."""

    name: str
    default: float
    unit: str
    """Base unit: s, celsius, watts, ratio, count, count/h, count/s; durations are written as `"240s"` in the config."""
    why: str
    source: str
    """Whose advice; `assumption` where nobody's."""
    by_chip: Mapping[str, float] = field(default_factory=dict)
    """Name of the silicon's profile (chips.py) → its own default."""


LIMITS: tuple[Limit, ...] = (
    Limit("missing_polls", 3, "count", "One table may leave a chip out that is busy resetting.", _DESIGN),
    Limit("double_bit_errors", 1, "count", "An error that cannot be corrected has destroyed data.", _DESIGN),
    Limit(
        "single_bit_errors_per_hour",
        20,
        "count/h",
        "Corrected errors come now and then; a cell that dies, often.",
        ASSUMPTION,
    ),
    Limit(
        "single_bit_factor",
        4,
        "ratio",
        "How far above its own week and its neighbours' median a device must be.",
        ASSUMPTION,
    ),
    Limit("isolated_pages_warning", 16, "count", "The vendor's first step of isolated rows.", _LADDER),
    Limit("isolated_pages_critical", 64, "count", "The vendor isolates the chip here: spare rows run out.", _LADDER),
    Limit(
        "chip_warning_celsius",
        90,
        "celsius",
        "Below the clocks' throttling (105 °C in the source's rule).",
        f"{ASSUMPTION}, from {_FAULTDIAG}",
    ),
    Limit("chip_critical_celsius", 105, "celsius", "At ≥105 °C the clock falls.", _FAULTDIAG),
    Limit("hbm_warning_celsius", 90, "celsius", "Before the vendor's own alarm at 95 °C.", ASSUMPTION),
    Limit("hbm_critical_celsius", 95, "celsius", "The vendor's code 80E00209.", "Ascend fault code 80E00209"),
    Limit("cooled_celsius", 5, "celsius", "So far below the limit before it counts as cool again.", ASSUMPTION),
    Limit("overheating_s", 60, "s", "A peak of one reading harms nobody.", _DESIGN),
    Limit("pcie_link_polls", 3, "count", "A link retrains for a moment after a reset.", _DESIGN),
    Limit(
        "pcie_correctable_per_minute_per_lane",
        0.96,
        "count",
        "More says that the link's bit error rate is too high.",
        _DCGM,
    ),
    Limit("pcie_correctable_window_s", 600, "s", "Rates of errors come in bursts.", ASSUMPTION),
    Limit("pcie_errors_window_s", 86400, "s", "How long an uncorrectable error on the link is news.", ASSUMPTION),
    Limit("pcie_load_ratio", 0.85, "ratio", "Packet headers take much of what is left.", ASSUMPTION),
    Limit("pcie_load_s", 60, "s", "A checkpoint saturates a link for seconds.", _DESIGN),
    Limit("port_down_s", 240, "s", "A reboot of the switch passes.", _GPUD),
    Limit("flap_down_s", 25, "s", "Shorter ones are counted as link downs.", _GPUD),
    Limit("flaps", 3, "count", "Once or twice is somebody at the cable.", _GPUD),
    Limit("flap_window_s", 43200, "s", "A night shift: older falls are another story.", _GPUD),
    Limit("link_downs", 5, "count", "Many short ones are a flap too.", "Azure NHC: ≥5 lost carriers a device in 24 h"),
    Limit("link_downs_window_s", 86400, "s", "The span of the source's count.", "Azure NHC"),
    Limit("slow_polls", 2, "count", "A port tells a speed while it still negotiates.", ASSUMPTION),
    Limit("port_errors_window_s", 600, "s", "Over which the rates of ports' errors are taken.", ASSUMPTION),
    Limit("symbol_errors_per_hour", 120, "count/h", "A bit error rate of 1e-12.", _NVSENTINEL),
    Limit("link_recoveries_per_minute", 5, "count/min", "Each stops the traffic.", _NVSENTINEL),
    Limit(
        "receive_errors_per_second", 10, "count/s", "Packets that arrive damaged are lost or sent again.", _NVSENTINEL
    ),
    Limit("discards_per_second", 100, "count/s", "Congestion discards a few.", _NVSENTINEL),
    Limit("ack_timeouts_per_second", 1, "count/s", "Each costs a retransmission after its time is out.", _NVSENTINEL),
    Limit(
        "integrity_errors", 1, "count", "The port's buffers or its link integrity failed: never normal.", _NVSENTINEL
    ),
    Limit("npu_crc_errors_per_second", 1, "count/s", "A clean link has none.", ASSUMPTION),
    Limit("npu_retries_per_second", 1, "count/s", "As the host ports' timeouts.", f"{ASSUMPTION}, after {_NVSENTINEL}"),
    Limit(
        "optical_transmit_low_watts",
        0.0002,
        "watts",
        "Where the module itself states no limit: too little light sent.",
        _FAULTDIAG,
    ),
    Limit("optical_transmit_high_watts", 0.0025, "watts", "The same, for too much light sent.", _FAULTDIAG),
    Limit("optical_receive_low_watts", 0.0001445, "watts", "The same, for too little light received.", _FAULTDIAG),
    Limit("optical_receive_high_watts", 0.0023, "watts", "The same, for too much light received.", _FAULTDIAG),
    Limit("optical_polls", 2, "count", "A module that has just been plugged in has no steady light.", ASSUMPTION),
    Limit("shared_polls", 2, "count", "One job may still be leaving as the next one comes.", _DESIGN),
    Limit(
        "hccl_ports_s",
        60,
        "s",
        "A root process listens until all ranks have come, which takes seconds; then the port is free again.",
        ASSUMPTION,
    ),
    Limit(
        "leftover_bytes",
        8 * (1 << 30),
        "bytes",
        "An idle chip's own share is less: 3.5 GB on 910B and A3, 6.6 GB on 950, next to nothing on 910A.",
        ASSUMPTION,
        {"910A": 1 << 30, "910B": 5 * (1 << 30), "A3": 5 * (1 << 30)},
    ),
    Limit("leftover_s", 300, "s", "The driver needs a moment to give memory back.", _DESIGN),
    Limit("host_contention_s", 60, "s", "Every job compiles, loads or saves for a moment.", _DESIGN),
    Limit(
        "host_cpu_pressure_ratio",
        0.5,
        "ratio",
        "Half of the time somebody is ready to work and has no CPU: launches to the chips come late.",
        ASSUMPTION,
    ),
    Limit(
        "host_memory_pressure_ratio",
        0.2,
        "ratio",
        "Waiting for memory to be freed is rare on a healthy node, and the next step is a kill.",
        f"{ASSUMPTION}, well before {_OOMD}",
    ),
    Limit("oom_kills", 1, "count", "A job that lost one of its processes fails, or hangs.", _DESIGN),
    Limit(
        "oom_window_s",
        3600,
        "s",
        "How long a kill is news: by then the job that lost a process has failed by its own timeouts.",
        f"{ASSUMPTION}, about twice the default of HCCL_EXEC_TIMEOUT (1836 s)",
    ),
    Limit(
        "untrusted_s",
        30,
        "s",
        "A row that bears the marks of a failed query may be whole again in the next table.",
        ASSUMPTION,
    ),
    Limit("tool_hung_polls", 3, "count", "One slow answer is no wedged driver.", _DESIGN),
    Limit("verdict_calm_s", 600, "s", "What comes and goes is not healthy in between.", _DESIGN),
    Limit("probation_clean_s", 86400, "s", "What was mended has to show it over a day.", _DESIGN),
    Limit("probation_load_s", 3600, "s", "An idle chip shows few of its faults.", _DESIGN),
    Limit("returns_to_replace", 2, "count", "Twice back after a reset or a release: resets do not mend it.", _STEP),
    Limit("returns_window_s", 7 * 86400, "s", "Over which faults that come back are counted.", _STEP),
)
BY_NAME: Mapping[str, Limit] = {limit.name: limit for limit in LIMITS}


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits as they hold here. `limits["port_down_s"]`, or `of` where a chip may have its own."""

    given: Mapping[str, float] = field(default_factory=dict)
    """What the config says."""
    given_by_chip: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Likewise for one silicon, by the chip's name as npu-smi prints it or by its profile's."""

    def __getitem__(self, name: str) -> float:
        return self.of(name)

    def of(self, name: str, *silicon: str | None) -> float:
        """The limit for a chip that bears these names, most particular first. Raises KeyError for an unknown limit."""
        # Loops rather than expressions: the rules ask some 300 times a cycle.
        limit = BY_NAME[name]
        for chip in silicon:
            if chip is not None and name in self.given_by_chip.get(chip, ()):
                return self.given_by_chip[chip][name]
        if name in self.given:
            return self.given[name]
        for chip in silicon:
            if chip is not None and chip in limit.by_chip:
                return limit.by_chip[chip]
        return limit.default


def unknown(names: Mapping[str, object]) -> Iterator[str]:
    """Those that are no limit of ours."""
    return (name for name in names if name not in BY_NAME)


PREFLIGHT_LIMITS: tuple[Limit, ...] = (
    Limit("compile_children", 24, "count", "MS_BUILD_PROCESS_NUM is 1 to 24; not set, the most counts.", "MindSpore"),
    Limit(
        "compile_child_bytes", 512 * 1024**2, "bytes", "A process of the operator compiler holds so much.", ASSUMPTION
    ),
    Limit(
        "shm_bytes_per_device", 1024**3, "bytes", "Data loaders and HCCL pass their data on in /dev/shm.", ASSUMPTION
    ),
    Limit("open_files", 4096, "count", "A rank opens files, sockets and devices by the hundred.", ASSUMPTION),
    Limit("tasks_per_device", 512, "count", "A rank's threads, beside its compile children.", ASSUMPTION),
)
"""Of `preflight`, which only warns by them."""
