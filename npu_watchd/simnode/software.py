"""What is installed on the simulated node, as the files of the vendor's installers say, and /etc/hccn.conf."""

from __future__ import annotations

from npu_watchd.simnode.state import NodeState

CANN, CANN_INNER = "8.0.RC3", "7.5.0.1.129"
_PARTS = ("runtime", "compiler", "hccl", "opp", "toolkit")


def files(node: NodeState) -> dict[str, str]:
    """Paths below the node's folder."""
    firmware = next((card.firmware for card in node.cards), "7.1.0.11.220")
    major = firmware.partition(".")[0]
    takes = f"[{major}.0.0,{major}.99.99]"
    running = "".join(f"{part}_running_version=[{CANN_INNER}:{CANN}]\n" for part in _PARTS)
    return {
        "ascend/driver/version.info": f"Version={node.driver_version}\ncompatible_version_fw={takes}\n",
        "ascend/firmware/version.info": f"Version={firmware}\nfirmware_version=1.0\n",
        "ascend/ascend-toolkit/latest/version.cfg": f"# version: 1.0\n{running}",
        "etc/hccn.conf": _hccn(node),
    }


def _hccn(node: NodeState) -> str:
    """A chip without a port of its own has no lines."""
    chips = [chip for card in node.cards for chip in card.chips]
    lines = [
        f"address_{at}=192.0.2.{10 + at}\nnetmask_{at}=255.255.255.0\nnetdetect_{at}=192.0.2.1\n"
        for at, chip in enumerate(chips)
        if chip.roce is not None
    ]
    return "".join(lines)
