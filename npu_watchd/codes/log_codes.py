"""Codes that HCCL, the runtime and torch_npu write into a job's log: no alarm of a chip, but what a program was told.

Names and meanings: CANN's error code references and acl_rt's public header; EZ9999 and its like say only which module
speaks. What to do is ours.
"""

from __future__ import annotations

import re

from npu_watchd.codes.hccl_codes import HCCL_CODES
from npu_watchd.codes.log_code import NEXT, LogCode
from npu_watchd.codes.runtime_codes import RUNTIME_CODES

TABLE = {code.code: code for code in (*HCCL_CODES, *RUNTIME_CODES)}
_FORM = re.compile(r"E[A-Z0-9]\d{4}|ERR\d{5}|[125]07\d{3}", re.IGNORECASE | re.ASCII)
_FAMILIES: dict[str, tuple[str, str]] = {
    "ERR": ("torch_npu", "An error of torch_npu."),
    "EI": ("HCCL", "An error of collective communication."),
    "EE": ("Runtime", "An error of the runtime."),
    "EZ": ("AI Core", "An error of an operator on the cores of the device."),
    "EL": ("Driver", "An error of the driver's interface."),
    "EH": ("AscendCL", "An error of the programming interface."),
    "EJ": ("Process", "An error of the processes that HCCL starts."),
    "EB": ("Compiler", "An error of the operator compiler."),
    "E": ("CANN", "An error of a module of CANN."),
    "107": ("Runtime, arguments", "The runtime refused what it was given."),
    "207": ("Runtime, resources", "The runtime lacks a resource, or a feature."),
    "507": ("Runtime, internal", "The runtime, the driver or the device failed."),
}
"""By how the code begins; the first that fits."""


def log_code(text: str) -> LogCode | None:
    """The code that the text is; None: it has another form. Of that form, but in no table: by its family alone."""
    bare = text.strip().upper()
    if not _FORM.fullmatch(bare):
        return None
    if bare in TABLE:
        return TABLE[bare]
    name, said = next(family for start, family in _FAMILIES.items() if bare.startswith(start))
    text = f"{said} What this one means is in no table of ours; the lines below it in the log say more."
    return LogCode(bare, name, text, "-", NEXT)
