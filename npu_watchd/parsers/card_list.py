"""`npu-smi info -l`: the cards that the driver counts, lost ones included."""

from __future__ import annotations

from npu_watchd.model.records import Card, CardList
from npu_watchd.parsers.lines import Line, ParseError, absent, integer, lines_of
from npu_watchd.parsers.tool_words import refusal


def parse(text: str) -> CardList:
    """Every card, in the tool's order; `NPU ID : -1` is a lost one and is kept with `npu` None.

    Raises ParseError where the tool failed, or counts other cards than it lists.
    """
    lines = list(lines_of(text))
    total: int | None = None
    cards: list[dict[str, str]] = []
    owners: list[Line] = []
    for line in lines:
        key, colon, value = (part.strip() for part in line.text.partition(":"))
        if not colon or not line.ended:
            continue
        if key in ("Total Count", "Card Count") and total is None:
            total = integer(line, value)
        elif key == "NPU ID":
            cards.append({key: value})
            owners.append(line)
        elif cards:
            cards[-1][key] = value
    if total is None:
        raise refusal(lines) or ParseError(1, "no Total Count" if lines else "npu-smi printed nothing")
    if total != len(cards):
        raise ParseError(lines[-1].number, f"Total Count says {total}, but {len(cards)} cards follow")
    return CardList(total, tuple(_card(line, card) for line, card in zip(owners, cards, strict=True)))


def _card(line: Line, values: dict[str, str]) -> Card:
    lost = values["NPU ID"] == "-1"
    npu = None if lost else integer(line, values["NPU ID"])
    if npu is None and not lost:
        raise line.refuse("a card without its id")
    return Card(
        npu=npu,
        chip_count=integer(line, values.get("Chip Count", "NA")),
        product_name=_text(values.get("Product Name")),
        serial_number=_text(values.get("Serial Number")),
    )


def _text(value: str | None) -> str | None:
    return None if value is None or absent(value) else value
