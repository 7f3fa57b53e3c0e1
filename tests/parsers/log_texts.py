"""Our own logs, and the folder of real ones where there is one."""

from __future__ import annotations

import os
from pathlib import Path

OWN_FOLDER = Path(__file__).parents[1] / "captures" / "logs"
OWN = tuple(sorted(OWN_FOLDER.glob("*.log")))
SHARED_FOLDER = Path(os.environ.get("NPU_WATCHD_CAPTURES", "/nonexistent")) / "logs"
