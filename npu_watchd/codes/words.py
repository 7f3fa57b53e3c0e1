"""What the numbers in a code stand for: node types, sensors and the states of a sensor, in our words.

The numbers are those of the vendor's open driver (node types, sensor types, states of an event); a number that is not
here has no name in it. Facts only: the wording is ours.
"""

from __future__ import annotations

from dataclasses import dataclass

NAMELESS_NODE_TYPE = 0x78C
"""Of the 950 generation: its sensors and states are numbered otherwise, and nobody has published what they mean."""


@dataclass(frozen=True, slots=True)
class Unit:
    """One node type."""

    name: str
    """Short, as people and tables call it."""
    words: str
    """What it is; begins a sentence."""


def _part(name: str, words: str) -> Unit:
    return Unit(name, words)


def _process(name: str) -> Unit:
    return Unit(name, f"device process {name}")


def _dispatch(name: str) -> Unit:
    return Unit(f"{name} dispatch", f"bus dispatch of the {name} subsystem")


def _adapter(name: str) -> Unit:
    return Unit(f"{name} AA", f"bus adapter of the {name} subsystem")


def _translation(name: str) -> Unit:
    return Unit(f"{name} SMMU", f"address translation (SMMU) of the {name} subsystem")


UNITS: dict[int, Unit] = {
    0x40: _part("SoC", "chip as a whole"),
    0x50: _part("CPU core", "control or AI CPU core"),
    0x51: _part("L3D", "L3 cache data"),
    0x52: _part("L3T", "L3 cache tags"),
    0x56: _part("GIC", "interrupt controller"),
    0x58: _part("MN", "on-chip network node"),
    0x5A: _part("SIOE", "chip-to-chip I/O (SIOE)"),
    0x5B: _part("SLLC", "chip-to-chip link layer (SLLC)"),
    0x5C: _part("PCIe", "PCIe controller"),
    0x5D: _part("RoCE", "RoCE engine"),
    0x5E: _part("NIC", "on-chip NIC"),
    0x63: _part("TS", "task scheduler"),
    0x64: _part("AIC", "AI Core, cube side"),
    0x65: _part("AIV", "AI Core, vector side"),
    0x66: _part("L2 buffer", "L2 buffer"),
    0x67: _part("SDMA", "system DMA engine"),
    0x69: _part("JPEGD", "JPEG decoder"),
    0x6A: _part("JPEGE", "JPEG encoder"),
    0x6C: _part("VDEC", "video decoder"),
    0x6D: _part("VENC", "video encoder"),
    0x6E: _part("VPC", "image preprocessor (VPC)"),
    0x6F: _part("DDR", "DDR memory"),
    0x70: _part("HBM", "HBM memory"),
    0x71: _part("LPM", "power management (LPM)"),
    0x72: _part("HSM", "security module (HSM)"),
    0x73: _part("TEE driver", "flash behind the secure driver"),
    0x78: _part("DDRA", "DDR access unit"),
    0x79: _part("HBMA", "HBM access unit"),
    0x7B: _part("HWTS", "hardware task scheduler"),
    0x7C: _part("base service", "system software of the device"),
    0x7D: _part("TS CPU", "CPU of the task scheduler"),
    0x83: _part("port", "network port of the NPU"),
    0x8C: _part("AO", "always-on subsystem"),
    0x97: _part("TS firmware", "firmware of the task scheduler"),
    0x98: _part("DSA", "random number unit (DSA)"),
    0x99: _dispatch("TS"),
    0x9A: _adapter("TS"),
    0x9C: _translation("TS"),
    0x9D: _dispatch("AIC"),
    0x9E: _adapter("AIC"),
    0x9F: _translation("AIC"),
    0xA2: _translation("AIV"),
    0xA3: _dispatch("DVPP"),
    0xA4: _adapter("DVPP"),
    0xA6: _translation("DVPP"),
    0xA7: _dispatch("ISP"),
    0xAB: _dispatch("AO"),
    0xAF: _dispatch("peripheral"),
    0xB0: _adapter("peripheral"),
    0xB7: _dispatch("I/O"),
    0xB8: _adapter("I/O"),
    0xC9: _dispatch("DSA"),
    0xCA: _dispatch("NIC"),
    0xCB: _dispatch("PCIe"),
    0xCD: _part("HCCS", "HCCS interface"),
    0xCE: _part("eMMC", "eMMC storage"),
    0xD1: _part("HCCS port", "HCCS port"),
    0xD2: _part("IMU", "management unit (IMU)"),
    0xD5: _part("RoH", "RoH engine"),
    0xD6: _part("RoH port", "RoH port"),
    0xD7: _part("UB", "UB engine"),
    0xD8: _part("UB port", "UB port"),
    0xD9: _part("CCU", "collective communication unit (CCU)"),
    0xDA: _dispatch("UB"),
    0xDB: _adapter("UB"),
    0xE2: _translation("DSA"),
    0xE3: _translation("PCIe"),
    0xE4: _translation("NIC"),
    0xE5: _part("HSCB", "HSCB bus"),
    0x601: _process("proc_mgr"),
    0x602: _process("iammgr"),
    0x603: _process("proc_launcher"),
    0x604: _process("adda"),
    0x605: _process("dmp_daemon"),
    0x606: _process("sklogd"),
    0x607: _process("slogd"),
    0x608: _process("log-daemon"),
    0x609: _process("hdcd"),
    0x60B: _process("aicpu_scheduler"),
    0x60C: _process("queue_scheduler"),
    0x60E: _process("aicpu_cust_sd"),
    0x60F: _process("hccp"),
    0x610: _process("tsd_daemon"),
    0x617: _part("device OS", "operating system of the device"),
    0x623: _process("resource_mgr"),
    0x624: _part("MAMI", "device control (MAMI)"),
    0x625: _part("driver", "kernel driver"),
    0x626: _process("ubcfglite"),
}

SENSORS: dict[int, str] = {
    0x01: "temperature",
    0x02: "voltage",
    0x08: "power supply",
    0x09: "power unit",
    0x0C: "memory",
    0x0F: "firmware progress",
    0x27: "heartbeat",
    0xC0: "hardware error (RAS)",
    0xC1: "certificate",
    0xC2: "memory error record",
    0xC3: "port state",
    0xC4: "link diagnosis",
    0xC6: "self-check",
    0xC7: "cryptography",
    0xC9: "scheduler",
    0xD0: "software",
    0xD1: "voltage and frequency",
    0xD5: "remote memory access over UB",
}

STATES: dict[int, dict[int, str]] = {
    0x01: {0x0: "too cold", 0x7: "hot, not yet dangerous", 0x9: "critically hot", 0xB: "fatally hot"},
    0x08: {0x7: "overcurrent", 0x8: "the current limiter does not hold"},
    0x09: {0xD: "alert on the power bus"},
    0x0C: {
        0x1: "multi-bit ECC error",
        0x3: "multi-bit ECC error found while scanning",
        0x5: "log of correctable ECC errors is full",
        0x9: "multi-bit ECC error found while scrubbing",
        0xD: "both copies of the firmware image are bad",
    },
    0x0F: {0x1: "firmware hangs"},
    0x27: {0x0: "heartbeat lost", 0x1: "heartbeat lost, as the second monitor sees it"},
    0xC0: {
        0x0: "module fault",
        0x1: "reset failed",
        0x2: "bad input from outside",
        0x3: "wrong internal settings, usually the software's doing",
        0x4: "wrong settings, usually the software's doing",
        0x5: "parity error",
        0x6: "more corrected single-bit ECC errors than its threshold",
        0x7: "single-bit ECC error that could not be corrected",
        0x8: "multi-bit ECC error in its own memory",
        0x9: "bus error, often a wrong address from software",
        0xA: "timeout",
        0xD: "link error",
        0xF: "parity error on the data lines",
        0x10: "poisoned data read",
    },
    0xC1: {
        0x0: "a certificate expires soon",
        0x1: "a certificate has expired",
        0x2: "a revocation list expires soon",
        0x3: "a revocation list has expired",
        0x4: "a CA certificate expires soon",
        0x5: "a CA certificate has expired",
    },
    0xC2: {
        0x0: "a process hit a multi-bit ECC error",
        0x1: "isolated addresses reach the first threshold",
        0x2: "isolated addresses reach the upper limit",
        0x4: "so many multi-bit errors that their reports are held back",
        0x5: "memory in sub-health",
    },
    0xC3: {
        0x3: "link went from up to down",
        0x5: "some lanes are lost",
        0x7: "port down",
        0x8: "RDMA completion with an error",
        0x9: "a collective operation was retried with success",
        0xA: "the backup link is in use",
        0xB: "a collective operation was retried in vain",
        0xC: "report channel broken",
    },
    0xC4: {0xC: "link diagnosis found something unusual"},
    0xC6: {
        0x0: "precision anomaly in computed results",
        0x2: "a task queue is stuck",
        0x3: "a control queue is deadlocked",
        0x4: "a PCIe DMA channel is deadlocked",
        0x5: "high-risk computing errors",
        0x6: "low-risk computing errors",
    },
    0xC7: {0x2: "cipher engine fault", 0x3: "key manager fault", 0x5: "signs of a physical attack"},
    0xC9: {0x0: "temperature sensor module fault"},
    0xD0: {
        0x0: "a process did not start, or ended by itself",
        0x1: "little memory left",
        0x5: "shared resources were not released",
        0x6: "key resources were not released",
        0x9: "start completed",
        0xC: "software failed and cannot recover",
    },
    0xD1: {
        0x1: "voltage cannot be adjusted",
        0x2: "frequency cannot be adjusted",
        0x3: "current cannot be measured",
        0x7: "events and data are not reported",
    },
    0xD5: {
        0x0: "bad data from the remote memory",
        0x1: "port fault",
        0x2: "network timeout",
        0x3: "wrong settings on the remote side",
        0x4: "wrong settings on this side",
        0x5: "the remote address space cannot be used",
        0x6: "network fault",
    },
}
