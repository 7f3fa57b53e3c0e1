"""Who is there: every chip ever seen, its identity, its device_id, and how many there should be."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from npu_watchd.model.ids import DeviceKey
from npu_watchd.model.records import Board, CardList, DeviceMap, DeviceRow, InfoTable
from npu_watchd.model.snapshot import Identity


@dataclass(slots=True)
class Roster:
    """Grows with what the tools show; nothing ever leaves it, so a chip that vanishes is missed and not forgotten."""

    identities: dict[DeviceKey, Identity] = field(default_factory=dict)
    rows: dict[DeviceKey, DeviceRow] = field(default_factory=dict)
    """The newest table's rows."""
    chips_of_card: dict[int, tuple[int, ...]] = field(default_factory=dict)
    has_chip_ids: bool = True
    """False: this layout has none (Ascend 950), so commands take the card form."""
    unclaimed: tuple[str, ...] = ()
    """Rows whose chip nobody can name."""
    listed: int | None = None
    """Chips by `npu-smi info -l`, lost cards counted as the others are."""
    lost_cards: int = 0

    def see_table(self, table: InfoTable) -> bool:
        """Take the newest table; True where other chips are in it than in the one before."""
        before = set(self.rows)
        self.rows, unclaimed = {}, []
        # Rows with a number first: one without may only get a chip that no other row is about.
        for row in sorted(table.devices, key=lambda row: row.npu is None):
            key = self._key(row)
            if key is None or key in self.rows:
                unclaimed.append(f"a row of the table names no chip that we know ({row.pci_address or 'no bus id'})")
                continue
            self.rows[key] = row
            if row.npu is not None:
                self.has_chip_ids = row.chip is not None
                self._remember(key, row)
        self.unclaimed = tuple(unclaimed)
        return set(self.rows) != before

    def see_map(self, found: DeviceMap) -> None:
        """Take logic and phy ids; they follow the newest map, since the driver may number anew after a reload."""
        self.lost_cards = found.lost_cards
        for row in found.devices:
            key = DeviceKey(row.npu, row.chip)
            old = self.identities.get(key, Identity())
            self.identities[key] = replace(
                old,
                logic_id=row.logic_id if row.logic_id is not None else old.logic_id,
                phy_id=row.phy_id if row.phy_id is not None else old.phy_id,
                name=old.name or row.name,
            )

    def see_list(self, found: CardList) -> None:
        """Take the cards that the driver counts, and those that it cannot reach."""
        counts = [card.chip_count for card in found.cards if card.npu is not None and card.chip_count]
        usual = max(counts, default=max((len(chips) for chips in self.chips_of_card.values()), default=1))
        self.lost_cards = sum(1 for card in found.cards if card.npu is None)
        self.listed = sum(
            usual if card.npu is None or card.chip_count is None else card.chip_count for card in found.cards
        )

    def see_board(self, key: DeviceKey, board: Board) -> None:
        old = self.identities.get(key, Identity())
        self.identities[key] = replace(
            old, firmware=board.firmware_version or old.firmware, serial_number=board.serial_number or old.serial_number
        )

    def logic_ids(self, npu: int) -> dict[int, int]:
        """Chip → logic id of one card, where `-m` or the table gives it."""
        found = {key.chip: identity.logic_id for key, identity in self.identities.items() if key.npu == npu}
        return {chip: number for chip, number in found.items() if number is not None}

    def members(self) -> list[DeviceKey]:
        return sorted(set(self.identities) | set(self.rows))

    def expected(self, configured: int | None) -> int | None:
        """How many chips there should be: by the config, else the most that anything has ever shown; None: no idea."""
        if configured is not None:
            return configured
        most = max(len(self.members()), self.listed or 0)
        return most or None

    def device_ids(self) -> Mapping[DeviceKey, tuple[str, str]]:
        """Key → device_id and where it is from: logic id, else phy id, else position among all chips ever seen.

        One source for all chips of the table, the first that covers them. A vanished chip keeps its number unless the
        driver has given it to another.
        """
        keys = self.members()
        present = sorted(self.rows) or keys
        positions = {key: position for position, key in enumerate(keys)}
        sources: tuple[tuple[str, dict[DeviceKey, int | None]], ...] = (
            ("logic_id", {key: self.identities[key].logic_id for key in keys}),
            ("phy_id", {key: self.identities[key].phy_id for key in keys}),
            ("position", {**positions}),
        )
        source, numbers = next(found for found in sources if _covers(found[1], present))
        ids = {key: (str(numbers[key]), source) for key in present}
        taken = {number for number, _ in ids.values()}
        for key in keys:
            if key not in ids:
                number = str(numbers[key])
                known = numbers[key] is not None and number not in taken
                ids[key] = (number, source) if known else (f"npu{key.npu}-chip{key.chip}", "lost")
                taken.add(ids[key][0])
        return ids

    def _key(self, row: DeviceRow) -> DeviceKey | None:
        """The chip of a row; one whose first row npu-smi left out is known again by its phy id or bus id.

        The chip number must fit too: the two chips of a 300I Duo share a bus id.
        """
        if row.npu is not None:
            return DeviceKey(row.npu, row.chip or 0)
        fitting = {key: identity for key, identity in self.identities.items() if key.chip == (row.chip or 0)}
        for name in ("phy_id", "logic_id", "pci_address"):
            value = getattr(row, name)
            if value is None:
                continue
            matches = [key for key, identity in fitting.items() if getattr(identity, name) == value]
            if len(matches) == 1:
                return matches[0]
        return None

    def _remember(self, key: DeviceKey, row: DeviceRow) -> None:
        old = self.identities.get(key, Identity())
        self.identities[key] = replace(
            old,
            name=row.name or old.name,
            phy_id=row.phy_id if row.phy_id is not None else old.phy_id,
            logic_id=row.logic_id if row.logic_id is not None else old.logic_id,
            pci_address=row.pci_address or old.pci_address,
        )
        chips = {*self.chips_of_card.get(key.npu, ()), key.chip}
        self.chips_of_card[key.npu] = tuple(sorted(chips))


def _covers(numbers: Mapping[DeviceKey, int | None], present: Iterable[DeviceKey]) -> bool:
    found = [numbers[key] for key in present]
    return None not in found and len(set(found)) == len(found)
