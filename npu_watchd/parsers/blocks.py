"""Any `-t` answer as keys and texts: what support needs to see of a type that nothing else here reads."""

from __future__ import annotations

from npu_watchd.model.records import Block, BlockChip
from npu_watchd.parsers.sections import Section, sections


def parse(text: str) -> Block:
    """The answer's keys and their texts by chip. Raises ParseError where no text can be trusted."""
    answer = sections(text)
    return Block(
        npu=answer.npu,
        chips=tuple(BlockChip(section.chip, _values(section), section.failure) for section in answer.chips),
        mcu=None if answer.mcu is None or answer.mcu.failure else _values(answer.mcu),
    )


def _values(section: Section) -> dict[str, str]:
    return {key: entry.value for key, entry in section.by_key().items()}
