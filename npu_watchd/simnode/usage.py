"""The help that the tool prints after a refusal: our own, shorter words in the same frame."""

from __future__ import annotations

INFO_USAGE = """\
Usage: npu-smi info <watch|proc|-h|-m|-l|-t type> [Options...]

Commands:
       -h, --help     Print this text
       -m             Print the numbers of all chips
       -l             Print all cards
       -t type        Print one kind of information
                      type: board, common, ecc, hccs, health, memory, pcie-err, power, proc-mem, temp, usages, volt

Options:
       -i %d          Card ID
       -c %d          Chip ID
"""

TOOL_USAGE = """\
Usage: npu-smi <Command|-h|-v> [Options...]

npu-smi Command:
\t-h            Print this text
\t-v            Print the tool's version
\tinfo          Print hardware details
"""


def hccs_usage() -> str:
    """After `-t hccs` without a chip."""
    return INFO_USAGE.replace("<watch|proc|-h|-m|-l|-t type>", "-t hccs")
