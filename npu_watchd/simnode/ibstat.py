"""The simulated ibstat: what the real one prints of these devices, or says of the first that it cannot read.

Held to the real ibstat over the same tree, byte for byte (tests/simnode/test_real_tree.py).
"""

from __future__ import annotations

from collections.abc import Iterable

from npu_watchd.simnode.answer import Answer
from npu_watchd.simnode.state import NodeState
from npu_watchd.simnode.sysfs_ib import SimHca, SimPort

STATES = ("NOP", "Down", "Initializing", "Armed", "Active")
PHYSICAL_STATES = (
    *("No state change", "Sleep", "Polling", "Disabled", "PortConfigurationTraining"),
    *("LinkUp", "LinkErrorRecovery", "PhyTest"),
)
PID = 4711
USAGE = "\nUsage: ibstat [options] <ca_name> [portnum]\n"


def answer(node: NodeState, argv: tuple[str, ...]) -> Answer:
    """What ibstat does with these arguments. A node without a device: nothing, and exit code 0."""
    hcas = sorted(node.hcas or (), key=lambda hca: hca.name)
    if not argv:
        return _listed(hcas)
    if argv == ("-l",):
        return Answer("".join(f"{hca.name}\n" for hca in hcas))
    if argv[0].startswith("-"):
        return Answer("", 2, f"ibstat: invalid option -- '{argv[0].lstrip('-')}'\n{USAGE}")
    return _named([hca for hca in hcas if hca.name == argv[0]], argv[0], argv[1:])


def _listed(hcas: Iterable[SimHca]) -> Answer:
    text = ""
    for hca in hcas:
        if any(port.rate is None for port in hca.ports):
            return Answer(text, 255, _panic(f"stat of IB device '{hca.name}' failed: No such file or directory"))
        text += _unit(hca)
    return Answer(text)


def _named(found: list[SimHca], name: str, rest: tuple[str, ...]) -> Answer:
    if not found:
        return Answer("", 255, _panic(f"'{name}' IB device can't be found: Success"))
    if not rest:
        return _listed(found)
    port = next((one for one in found[0].ports if str(one.number) == rest[0]), None)
    if port is None:
        most = len(found[0].ports)
        warning = f"ibwarn: [{PID}] ca_stat: CA: '{name}' has no port number {rest[0]} - max ({most})\n"
        return Answer("", 255, warning + _panic(f"stat of IB device '{name}' failed: Success"))
    return Answer(f"CA: '{name}'\nPort {port.number}:\n{_port(port, '')}")


def _panic(words: str) -> str:
    return f"ibpanic: [{PID}] main: {words}\n"


def _unit(hca: SimHca) -> str:
    text = f"""\
CA '{hca.name}'
\tCA type: {hca.hca_type or ""}
\tNumber of ports: {len(hca.ports)}
\tFirmware version: {hca.firmware or ""}
\tHardware version: {hca.hardware_revision or ""}
\tNode GUID: 0x{hca.node_guid:016x}
\tSystem image GUID: 0x{hca.system_image_guid:016x}
"""
    return text + "".join(f"\tPort {port.number}:\n{_port(port, indent=chr(9) * 2)}" for port in hca.ports)


def _port(port: SimPort, indent: str) -> str:
    number, _, rest = (port.rate or "").partition(" ")
    values = {
        "State": STATES[port.state],
        "Physical state": PHYSICAL_STATES[port.physical_state],
        "Rate": f"{number} (FDR10)" if "FDR10" in rest else number,
        "Base lid": port.lid,
        "LMC": port.lid_mask_count,
        "SM lid": port.sm_lid,
        "Capability mask": f"0x{port.capability_mask:08x}",
        "Port GUID": f"0x{port.guid:016x}",
        "Link layer": port.link_layer,
    }
    return "".join(f"{indent}{key}: {value}\n" for key, value in values.items())
