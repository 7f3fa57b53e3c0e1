"""Strategies for states of the fabric, and what a parser should make of each."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from hypothesis import strategies as st

from npu_watchd.model.fabric import LinkChange as ReadChange
from npu_watchd.model.fabric import RdmaPort
from npu_watchd.simnode.hccn_tool import answer
from npu_watchd.simnode.ibstat import PHYSICAL_STATES, STATES
from npu_watchd.simnode.roce_port import NET_HEALTH, STAT_KEYS, STAT_KEYS_950, Lane, LinkChange, Optics, RocePort
from npu_watchd.simnode.silicon import SILICON, new_cards
from npu_watchd.simnode.state import START_S, Family, NodeState
from npu_watchd.simnode.sysfs_ib import SimHca, SimPort

COUNT = st.integers(0, 2**64 - 1)
MILLIWATTS = st.integers(0, 60_000).map(lambda tenths_of_microwatts: tenths_of_microwatts / 10_000)
RATES = (
    "200 Gb/sec (4X HDR)",
    "400 Gb/sec (4X NDR)",
    "2.5 Gb/sec (1X SDR)",
    "10 Gb/sec (1X FDR10)",
    "56 Gb/sec (4X FDR)",
)
GUID = st.integers(0, 2**64 - 1)


def node(port: RocePort, family: Family = "910B", device: int = 0, now_s: float = START_S) -> NodeState:
    """A node whose chip of that logic id has this port."""
    generation = {"910A": "910A", "910B": "910B3", "A3": "A3", "950": "950PR"}[family]
    silicon = SILICON[generation]
    cards = tuple(
        replace(
            card,
            chips=tuple(replace(chip, roce=port) if chip.logic_id == device else chip for chip in card.chips),
        )
        for card in new_cards(silicon, silicon.cards)
    )
    return NodeState(family, "25.5.1", "25.5.1", cards, now_s=now_s)


def says(port: RocePort, command: str, family: Family = "910B", device: int = 0, now_s: float = START_S) -> str:
    """What hccn_tool prints about it."""
    return answer(node(port, family, device, now_s), tuple(command.split())).text


@st.composite
def changes(draw: st.DrawFn) -> tuple[LinkChange, ...]:
    """Newest first, all before START_S, to the second as the tool prints them."""
    ages = sorted(draw(st.sets(st.integers(0, 30_000_000), max_size=10)))
    return tuple(LinkChange(START_S - age, draw(st.booleans())) for age in ages)


@st.composite
def lanes(draw: st.DrawFn) -> tuple[Lane, ...]:
    ratio = st.none() | st.integers(1, 400).map(lambda tenths: tenths / 10)
    bias = st.integers(0, 200_000).map(lambda parts: parts / 10_000)
    one = st.builds(Lane, MILLIWATTS, MILLIWATTS, bias, ratio, ratio)
    return draw(st.lists(one, min_size=4, max_size=4).map(tuple))


@st.composite
def optics(draw: st.DrawFn) -> Optics:
    mask = st.integers(0, 15)
    return Optics(
        present=draw(st.booleans()),
        temperature_c=draw(st.integers(-20, 120)),
        voltage_mv=draw(st.none() | st.integers(0, 600_000).map(lambda parts: parts / 100)),
        lanes=draw(lanes()),
        transmit_los=draw(mask),
        receive_los=draw(mask),
        transmit_lol=draw(mask),
        receive_lol=draw(mask),
    )


@st.composite
def ports(draw: st.DrawFn, family: Family = "910B") -> RocePort:
    keys = STAT_KEYS_950 if family == "950" else STAT_KEYS
    told = draw(changes())
    return RocePort(
        up=draw(st.booleans()),
        speed_mbps=draw(st.none() | st.integers(1, 800).map(lambda gigabits: gigabits * 1000)),
        up_count=draw(st.integers(0, 10**6)),
        down_count=draw(st.integers(0, 10**6) | (st.nothing() if family == "950" else st.none())),
        changes=told,
        counters={key: draw(COUNT) for key in draw(st.lists(st.sampled_from(keys), min_size=1, unique=True))},
        net_health=draw(st.sampled_from(NET_HEALTH)),
        optics=draw(optics()),
        udie=draw(st.integers(0, 1)),
        port=draw(st.integers(0, 8)),
        lanes=draw(st.integers(1, 4)),
    )


def expected_changes(port: RocePort, *, ages: bool) -> tuple[ReadChange, ...]:
    return tuple(
        ReadChange(
            datetime.fromtimestamp(one.at_s, tz=UTC).replace(tzinfo=None).isoformat(),
            one.up,
            round(START_S - one.at_s) if ages else None,
        )
        for one in port.changes
    )


@st.composite
def hcas(draw: st.DrawFn) -> tuple[SimHca, ...]:
    names = draw(
        st.lists(st.sampled_from([f"mlx5_{at}" for at in range(12)] + ["hns_0", "mlx4_0"]), unique=True, max_size=5)
    )
    return tuple(draw(_hca(name)) for name in names)


@st.composite
def _hca(draw: st.DrawFn, name: str) -> SimHca:
    def port(number: int) -> st.SearchStrategy[SimPort]:
        return st.builds(
            SimPort,
            number=st.just(number),
            state=st.integers(1, 4),
            physical_state=st.integers(1, 7),
            rate=st.sampled_from(RATES),
            lid=st.integers(0, 65535),
            sm_lid=st.integers(0, 65535),
            lid_mask_count=st.integers(0, 7),
            capability_mask=st.integers(0, 2**32 - 1),
            link_layer=st.sampled_from(("Ethernet", "InfiniBand")),
            guid=GUID,
            netdev=st.none(),
        )

    return SimHca(
        name,
        draw(st.sampled_from((None, "MT4123", "MT4129"))),
        draw(st.sampled_from((None, "20.43.1014"))),
        draw(st.sampled_from((None, "0"))),
        node_guid=draw(GUID),
        system_image_guid=draw(GUID),
        ports=tuple(draw(port(number)) for number in range(1, draw(st.integers(1, 2)) + 1)),
    )


def expected_ports(hcas: tuple[SimHca, ...]) -> tuple[RdmaPort, ...]:
    """As ibstat orders them."""
    return tuple(
        RdmaPort(
            ca=hca.name,
            port=port.number,
            ca_type=hca.hca_type,
            firmware=hca.firmware,
            hardware_version=hca.hardware_revision,
            node_guid=f"0x{hca.node_guid:016x}",
            system_image_guid=f"0x{hca.system_image_guid:016x}",
            state=STATES[port.state],
            physical_state=PHYSICAL_STATES[port.physical_state],
            rate_gbps=float((port.rate or "").split()[0]),
            base_lid=port.lid,
            lmc=port.lid_mask_count,
            sm_lid=port.sm_lid,
            capability_mask=port.capability_mask,
            port_guid=f"0x{port.guid:016x}",
            link_layer=port.link_layer,
        )
        for hca in sorted(hcas, key=lambda hca: hca.name)
        for port in hca.ports
    )
