"""From what is seen to findings: one rule, one alert, one runbook."""

from __future__ import annotations

from npu_watchd.rules.blindness import BLINDNESS
from npu_watchd.rules.contention import CONTENTION
from npu_watchd.rules.ecc import ECC
from npu_watchd.rules.hccl import HCCL
from npu_watchd.rules.health import HEALTH
from npu_watchd.rules.host import HOST
from npu_watchd.rules.link import LINK
from npu_watchd.rules.pcie import PCIE
from npu_watchd.rules.presence import PRESENCE
from npu_watchd.rules.quarantine import QUARANTINE
from npu_watchd.rules.rule import Rule
from npu_watchd.rules.thermal import THERMAL
from npu_watchd.rules.transport import TRANSPORT
from npu_watchd.rules.versions import VERSIONS
from npu_watchd.rules.visible_devices import VISIBLE_DEVICES

RULES: tuple[Rule, ...] = (
    *(*PRESENCE, *HEALTH, *ECC, *THERMAL, *PCIE, *LINK, *TRANSPORT),
    *(*CONTENTION, *HCCL, *VISIBLE_DEVICES, *HOST, *VERSIONS, *BLINDNESS),
    QUARANTINE,
)
"""Every rule, in the order of DESIGN 8."""
BLINDING: frozenset[str] = frozenset(rule.id for rule in BLINDNESS)
"""Their findings make a verdict unknown, not worse."""
CIRCUMSTANCES: frozenset[str] = frozenset(rule.id for rule in (*CONTENTION, *HCCL, *VISIBLE_DEVICES, *HOST, *VERSIONS))
"""Their findings are about who uses a device or the host, or about its software, and say nothing against it."""
RULE_IDS: frozenset[str] = frozenset(rule.id for rule in RULES)
