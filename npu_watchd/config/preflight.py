"""`[preflight]`: the checklist before a job."""

from __future__ import annotations

from typing import Annotated

import msgspec

from npu_watchd.config.section import Section, about
from npu_watchd.config.values import Name, Seconds


class PreflightSection(Section, frozen=True):
    stress: Annotated[
        tuple[Name, ...],
        about(
            "The vendor's test for `preflight --stress`, word by word; `{devices}` becomes `0,1,2`.",
            unset="no test",
            example=(Name("ascend-dmi"), Name("--dg"), Name("-i"), Name("{devices}")),
        ),
    ] = ()
    stress_timeout_s: Annotated[Seconds, about("After so long it is ended, and counts as unknown.")] = msgspec.field(
        default=Seconds(1800), name="stress_timeout"
    )
