"""All cases, and how one is played."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from tests.scenarios.faults import FAULTS
from tests.scenarios.hccl_faults import HCCL_FAULTS, HCCL_UGLY
from tests.scenarios.host_cases import HOST_FAULTS, HOST_UGLY
from tests.scenarios.label import Case, Text
from tests.scenarios.score import Score, score
from tests.scenarios.site import Site
from tests.scenarios.stagehand import play
from tests.scenarios.stories import FAULT_STORIES, UGLY_STORIES
from tests.scenarios.ugly import UGLY
from tests.scenarios.version_faults import VERSION_FAULTS, VERSION_UGLY

FAULT_CASES: tuple[Case, ...] = (*FAULTS, *HCCL_FAULTS, *HOST_FAULTS, *VERSION_FAULTS, *FAULT_STORIES)
HEALTHY_CASES: tuple[Case, ...] = (*UGLY, *HCCL_UGLY, *HOST_UGLY, *VERSION_UGLY, *UGLY_STORIES)
CASES: tuple[Case, ...] = (*FAULT_CASES, *HEALTHY_CASES)


def played(case: Case) -> Score:
    """Play a case and hold it against its labels."""
    if isinstance(case.how, Text):
        with TemporaryDirectory() as directory:
            watch = play(case.how, case.name.replace(" ", "_"), Path(directory))
    else:
        site = Site()
        case.how.tell(site)
        watch = site.watch
    return score(case.expected, watch.episodes, case.speed)
