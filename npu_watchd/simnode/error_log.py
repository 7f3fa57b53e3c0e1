"""npu-smi's own error log: it names the sub-queries whose failure the table hides behind zeros.

Where the log is and that it names function and code is known; the rest of a line is our own.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import pairwise

from npu_watchd.simnode.state import NodeState

FILE = "log/nputools_LOG_ERR.log"
LARGEST_BYTES = 256 * 1024

FUNCTIONS = {
    "health": ("dcmi_get_device_health", -8006),
    "codes": ("dcmi_get_device_errorcode_v2", -8009),
    "pci": ("dcmi_get_device_pcie_info", -8009),
    "name": ("dcmi_get_device_chip_info", -8005),
    "temp": ("dcmi_get_device_temperature", -8006),
    "power": ("dcmi_get_device_power_info", -8006),
    "util": ("dcmi_get_device_utilization_rate", -8006),
    "hbm": ("dcmi_get_device_hbm_info", -8006),
    "phyid": ("dcmi_get_device_phyid_from_logicid", -8005),
    "proc": ("dcmi_get_device_resource_info", -8006),
    "ecc": ("dcmi_get_device_ecc_info", -8009),
    "isolated": ("dcmi_get_device_ecc_isolated_pages", -8009),
    "ecc_record": ("dcmi_get_device_ecc_record", -8002),
}
OF_THE_TABLE = ("health", "pci", "name", "temp", "power", "util", "hbm", "phyid", "proc")
OF_A_TYPE = {
    "ecc": ("ecc", "isolated", "ecc_record"),
    "health": ("health", "codes"),
    "temp": ("temp",),
    "power": ("power",),
    "usages": ("hbm", "util"),
    "common": ("hbm", "util", "temp", "power"),
    "memory": ("hbm",),
    "proc-mem": ("proc",),
}


def append(directory: str, node: NodeState, argv: tuple[str, ...]) -> None:
    """One line for each sub-query that this call had to do without.

    A log that cannot be written is no reason to fail.
    """
    lines = list(_lines(node, argv))
    if not lines:
        return
    file = f"{directory}/{FILE}"
    stamp = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
    try:
        with open(file, "a", encoding="utf-8") as log:
            if log.tell() > LARGEST_BYTES:
                log.truncate(0)
            log.writelines(f"[{stamp}][npu-smi][ERROR]{line}\n" for line in lines)
    except OSError:
        return


def _lines(node: NodeState, argv: tuple[str, ...]) -> Iterator[str]:
    """The table goes on after a failure and meets the next; a `-t` answer ends with its first."""
    if node.driver == "gone":
        yield "dcmi_init failed. err is -8005"
        return
    options = dict(pairwise(argv))
    queries = OF_THE_TABLE if argv == ("info",) else OF_A_TYPE.get(options.get("-t", ""), ())
    for card in node.seen():
        if argv != ("info",) and options.get("-i") != str(card.npu):
            continue
        for chip in card.chips:
            failed = [query for query in queries if chip.failing(query)]
            for query in failed if argv == ("info",) else failed[:1]:
                function, code = FUNCTIONS[query]
                yield f"{function} failed. err is {code}. card_id={card.npu} device_id={chip.chip}"
