"""The fabric's captures, and which parser reads which kind of them: the first part of a name is the kind."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from npu_watchd.parsers import hccn, hccn_optical, hccn_stat, ibstat, rdma_link
from tests.parsers.texts import CAPTURES

PARSERS: dict[str, Callable[[str], Any]] = {
    "ibstat": ibstat.parse,
    "rdma-link": rdma_link.parse,
    "hccn-link": hccn.link,
    "hccn-link-stat": hccn.link_history,
    "hccn-stat": hccn_stat.parse,
    "hccn-speed": hccn.speed,
    "hccn-net-health": hccn.net_health,
    "hccn-optical": hccn_optical.parse,
}
FILES = sorted([*(CAPTURES / "ibstat").glob("*.txt"), *(CAPTURES / "hccn_tool").glob("hccn-*.txt")])


def kind_of(path: Path) -> str:
    return path.name.partition("__")[0]


def written(name: str) -> str:
    folder = "ibstat" if name.startswith(("ibstat", "rdma-link")) else "hccn_tool"
    return (CAPTURES / folder / f"{name}.txt").read_text(encoding="utf-8")
