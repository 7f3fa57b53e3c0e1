"""`promtool check metrics`, of Debian's package prometheus."""

from __future__ import annotations

import shutil
import subprocess

NAMED_BY_CONTRACT = frozenset(
    f'{name} use base unit "bytes" instead of "bits"'
    for name in ("npu_device_roce_link_bits_per_second", "npu_node_rdma_port_bits_per_second")
)
"""Its lint wants links measured in bytes; DESIGN section 7 gives these names, and the trade counts links in bits."""


def problems(page: str) -> list[str] | None:
    """What it finds wrong with this page; [] where it is clean, None where promtool is not installed."""
    program = shutil.which("promtool")
    if program is None:
        return None
    done = subprocess.run([program, "check", "metrics"], input=page.encode(), capture_output=True, check=False)
    said = (done.stdout + done.stderr).decode().splitlines()
    assert (done.returncode == 0) == (said == []), f"exit code {done.returncode}, saying {said}"
    return [line for line in said if line not in NAMED_BY_CONTRACT]
