"""What one chip says to one `-t` query: keys and texts, per family, or why it refuses."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from npu_watchd.simnode.answer import Refused, Unsupported
from npu_watchd.simnode.lines import Pairs
from npu_watchd.simnode.state import ChipState, ErrorCode, ErrorCounts, Family, Memory

ChipQuery = Callable[[Family, ChipState], Pairs]

CARD_MEMORY_ONLY: tuple[Family, ...] = ("310", "310B", "310P")


def ecc(family: Family, chip: ChipState) -> Pairs:
    """`-t ecc`. Where the error records may not be read, nothing follows and nobody says why."""
    if chip.failing("ecc"):
        raise Refused(207)
    if chip.failing("isolated"):
        raise Refused(211)
    if chip.failing("ecc_record"):
        return []
    if family in ("310", "310B"):
        return [
            ("Single-bit Error Count", chip.ddr_errors.single_bit),
            ("Double-bit Error Count", chip.ddr_errors.double_bit),
        ]
    if family == "310P":
        return _counts("DDR", chip.ddr_errors, next_isolated=True)
    if family == "910A":
        return _counts("DDR", chip.ddr_errors) + _counts("HBM", chip.hbm_errors)
    return _counts("HBM", chip.hbm_errors, next_isolated=True)


def _counts(memory: str, counts: ErrorCounts, next_isolated: bool = False) -> Pairs:
    single, double = f"{memory} Single Bit", f"{memory} Double Bit"
    pairs: Pairs = [
        (f"{single} Error Count", counts.single_bit),
        (f"{double} Error Count", counts.double_bit),
        (f"{single} Aggregate Total Err Cnt", counts.single_bit_lifetime),
        (f"{double} Aggregate Total Err Cnt", counts.double_bit_lifetime),
        (f"{single} Isolated Pages Count", counts.single_bit_isolated_pages),
        (f"{double} Isolated Pages Count", counts.double_bit_isolated_pages),
    ]
    if next_isolated:
        # The tool subtracts unsigned: below zero it prints 42949672xx.
        pairs.append((f"{single} Next-Isolated Pages Count", counts.single_bit_next_isolated_pages & 0xFFFFFFFF))
        pairs.append((f"{double} Next-Isolated Pages Count", counts.double_bit_next_isolated_pages & 0xFFFFFFFF))
    return pairs


def health_word(_family: Family, chip: ChipState) -> Pairs:
    """`-t health`, card form: the word alone, whatever the codes."""
    if chip.failing("health"):
        raise Refused(210)
    if chip.health is None:
        raise Refused(215)
    return [("Health", chip.health)]


def health_with_codes(_family: Family, chip: ChipState) -> Pairs:
    """`-t health`, chip form (and the only form of Ascend 950): a bad word without a code becomes OK."""
    if chip.failing("health"):
        raise Refused(210)
    if chip.health is None:
        raise Refused(215)
    if chip.failing("codes"):
        raise Refused(211)
    word = "OK" if not chip.codes and chip.health in ("Warning", "Alarm", "Critical") else chip.health
    return status(word, chip.codes)


def status(word: str, codes: tuple[ErrorCode, ...]) -> Pairs:
    """A unit's health word, its codes on one line, their texts on one line each."""
    if not codes:
        return [("Health Status", word), ("Error Code", "NA"), ("Error Information", "NA")]
    pairs: Pairs = [("Health Status", word), ("Error Code", " ".join(one.code.upper() for one in codes))]
    return pairs + [("" if at else "Error Information", code) for at, code in enumerate(codes)]


def usages(family: Family, chip: ChipState) -> Pairs:
    """`-t usages`."""
    if chip.failing("hbm") or (family == "310P" and chip.failing("util")):
        raise Refused(197)
    load = chip.load
    seen = 0 if chip.failing("util") else 1
    if family in ("310", "310B"):
        return [
            ("Memory Capacity(MB)", chip.ddr.total_mb),
            ("Memory Usage Rate(%)", chip.ddr.used_percent),
            ("Hugepages Total(page)", chip.hugepages_total),
            ("Hugepages Usage Rate(%)", _hugepages(chip)),
            ("Aicore Usage Rate(%)", load.aicore * seen),
            ("Aicpu Usage Rate(%)", load.aicpu * seen),
            ("Ctrlcpu Usage Rate(%)", load.ctrlcpu * seen),
            ("Memory Bandwidth Usage Rate(%)", load.ddr_bandwidth * seen),
        ]
    pairs = _memory_use("DDR", chip.ddr)
    pairs += [("DDR Hugepages Total(page)", chip.hugepages_total), ("DDR Hugepages Usage Rate(%)", _hugepages(chip))]
    if family == "310P":
        units: Pairs = [("Aicore", load.aicore), ("Aicpu", load.aicpu), ("Ctrlcpu", load.ctrlcpu)]
        units += [("Vectorcore", load.aivector), ("DDR Bandwidth", load.ddr_bandwidth)]
        units += [(f"DVPP {unit}", 0) for unit in ("VDEC", "VPC", "VENC", "JPEGE", "JPEGD")]
        return pairs + [(f"{unit} Usage Rate(%)", value) for unit, value in units]
    pairs += _memory_use("HBM", chip.hbm)
    pairs.append(("Aicore Usage Rate(%)", load.aicore * seen))
    if family != "910A":
        pairs.append(("Aivector Usage Rate(%)", load.aivector * seen))
    pairs += [
        ("Aicpu Usage Rate(%)", load.aicpu * seen),
        ("Ctrlcpu Usage Rate(%)", load.ctrlcpu * seen),
        ("DDR Bandwidth Usage Rate(%)", load.ddr_bandwidth * seen),
        ("HBM Bandwidth Usage Rate(%)", load.hbm_bandwidth * seen),
    ]
    if family != "910A":
        pairs += [("NPU Utilization(%)", load.npu * seen), ("Aicube Usage Rate(%)", load.aicube * seen)]
    return pairs


def _memory_use(memory: str, use: Memory) -> Pairs:
    return [(f"{memory} Capacity(MB)", use.total_mb), (f"{memory} Usage Rate(%)", use.used_percent)]


def _hugepages(chip: ChipState) -> int:
    return Memory(chip.hugepages_used, chip.hugepages_total).used_percent


def common(family: Family, chip: ChipState) -> Pairs:
    """`-t common`: the only block that never refuses; what fails is 0."""
    single_memory = family in CARD_MEMORY_ONLY
    memory = 0 if chip.failing("hbm") else chip.ddr.used_percent
    pairs: Pairs = [("Memory Usage Rate(%)", memory)]
    if not single_memory:
        pairs.append(("HBM Usage Rate(%)", 0 if chip.failing("hbm") else chip.hbm.used_percent))
    pairs += [
        ("Aicore Usage Rate(%)", 0 if chip.failing("util") else chip.load.aicore),
        ("Aicore Freq(MHZ)", 0 if chip.failing("clock") else chip.clock_max_mhz),
        ("Aicore curFreq(MHZ)", 0 if chip.failing("clock") else chip.clock_mhz),
    ]
    if not single_memory:
        pairs.append(("Aicore Count", 0 if chip.failing("util") else chip.cores))
    pairs.append(("Temperature(C)", 0 if chip.failing("temp") else chip.temperature_c))
    if family in ("310", "310B"):
        pairs.append(("Rated Power Dissipation(W)", f"{chip.power_watts or 0.0:.1f}"))
    elif not single_memory:
        watts = 0.0 if chip.failing("power") else chip.power_watts or 0.0
        pairs.append(("NPU Real-time Power(W)", f"{watts:.1f}"))
    return pairs


def temp(family: Family, chip: ChipState) -> Pairs:
    """`-t temp`."""
    if chip.failing("temp"):
        raise Refused(207)
    key = "NPU Temperature (C)" if family in ("910A", "910B", "A3") else "Temperature (C)"
    return [(key, chip.temperature_c)]


def power(family: Family, chip: ChipState) -> Pairs:
    """`-t power`: of a 310P only the board's MCU knows it."""
    if family == "310P":
        raise Unsupported
    if chip.failing("power"):
        raise Refused(207)
    return [("NPU Real-time Power(W)", "NA" if chip.power_watts is None else f"{chip.power_watts:.1f}")]


def volt(_family: Family, chip: ChipState) -> Pairs:
    """`-t volt`."""
    if chip.failing("power"):
        raise Refused(207)
    return [("Voltage(V)", f"{chip.voltage:.2f}")]


def memory(family: Family, chip: ChipState) -> Pairs:
    """`-t memory`."""
    if chip.failing("hbm"):
        raise Refused(211)
    ddr, hbm = chip.ddr.total_mb, chip.hbm.total_mb
    if family in ("310", "310B"):
        return [("Total Capacity(MB)", _fitted(ddr, 4096)), ("Capacity(MB)", ddr), ("Clock Speed(MHz)", 2131)]
    if family == "310P":
        total = _fitted(ddr, 8192)
        return [("Total DDR Capacity(MB)", total), ("DDR Capacity(MB)", ddr), ("DDR Clock Speed(MHz)", 1800)]
    pairs: Pairs = [("DDR Capacity(MB)", ddr), ("DDR Clock Speed(MHz)", 1800 if ddr else 0)]
    pairs += [
        ("HBM Capacity(MB)", hbm),
        ("HBM Clock Speed(MHz)", 1600),
        ("HBM Temperature(C)", chip.hbm_temperature_c),
    ]
    return pairs if family == "910A" else [*pairs, ("HBM Manufacturer ID", "0x56")]


def _fitted(usable_mb: int, step_mb: int) -> int:
    """What is soldered on the board: the next whole module above what the system left."""
    return -(-usable_mb // step_mb) * step_mb


def pcie_err(_family: Family, chip: ChipState) -> Pairs:
    """`-t pcie-err`: Ascend 950 on PCIe only."""
    if chip.pcie is None:
        raise Unsupported
    counts = chip.pcie
    return [
        ("TX Error Count", counts.tx),
        ("RX Error Count", counts.rx),
        ("Lcrc Error Count", counts.lcrc),
        ("Ecrc Error Count", counts.ecrc),
        ("Retry Count", counts.retry),
    ]


def hccs(family: Family, chip: ChipState) -> Pairs:
    """`-t hccs -c`: one number a link, each padded to 20 and followed by a blank."""
    if chip.hccs is None:
        raise Unsupported
    if chip.failing("hccs"):
        raise Refused(207)
    links = chip.hccs.links
    traffic: Pairs = [
        ("hccs tx packets", _list(link.tx_packets for link in links)),
        ("hccs tx bytes", _list(link.tx_packets * 20 for link in links)),
        ("hccs rx packets", _list(link.rx_packets for link in links)),
        ("hccs rx bytes", _list(link.rx_packets * 20 for link in links)),
        ("hccs retry count", _list(link.retries for link in links)),
        ("hccs error count", _list(link.errors for link in links)),
    ]
    if family == "310P":
        return traffic
    lane = chip.hccs.first_error_lane
    return [
        ("hccs health status", "OK" if chip.hccs.healthy else "NOK"),
        ("hccs lane mode", _list(4 for _ in links)),
        ("hccs link lane list", _list(1111 for _ in links)),
        ("hccs link speed", _list(224 for _ in links)),
        *traffic,
        ("hccs first error lane", "NA" if lane is None else lane),
    ]


def _list(values: Iterable[int]) -> str:
    return "[" + "".join(f"{value:<20} " for value in values) + "]"
