"""`[quarantine]` and `[slurm]`: what a verdict may do, and how."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from npu_watchd.config.section import Section, about
from npu_watchd.config.values import Name, PlainUrl, Seconds, Share


class QuarantineSection(Section, frozen=True):
    act: Annotated[
        tuple[Literal["slurm", "kubernetes", "command"], ...],
        about("On what to act. Nothing: recommend only.", unset="nothing"),
    ] = ()
    dry_run: Annotated[
        bool, about("Look, ask and say what would be done, in the log and the journal, but change no scheduler.")
    ] = False
    node_when: Annotated[
        Literal["any", "all"] | Annotated[int, msgspec.Meta(ge=1)],
        about("How many quarantined devices quarantine the node."),
    ] = "any"
    prometheus: Annotated[
        PlainUrl | None,
        about(
            "Whom to ask how much of the fleet is in quarantine.",
            unset="nobody, hence no action",
            example=PlainUrl("http://prom:9090"),
        ),
    ] = None
    max_share: Annotated[
        Share,
        about("Most of the fleet that may be in quarantine for this node to be taken out too; one node always may."),
    ] = Share(0.10)
    every_s: Annotated[
        Seconds,
        about("How often to look at the scheduler while the node is in quarantine or held; otherwise nobody looks."),
    ] = msgspec.field(default=Seconds(30), name="every")
    command: Annotated[
        tuple[Name, ...],
        about(
            'Program and arguments for act = ["command"]; `hold` or `free` is added, the verdict is on its stdin. It '
            "runs as the daemon's tools do: as root, in the host's mounts, with the unit's capabilities.",
            unset="none",
            example=(Name("/etc/npu-watchd/take-out"),),
        ),
    ] = ()
    command_timeout_s: Annotated[Seconds, about("Deadline of it; it is ended when it passes.")] = msgspec.field(
        default=Seconds(30), name="command_timeout"
    )


class SlurmSection(Section, frozen=True):
    node_name: Annotated[
        Name | None,
        about(
            "This node's name in Slurm, as `sinfo -N` has it.",
            unset="`node.name`, else the host name up to its first dot",
            example=Name("node17"),
        ),
    ] = None
    timeout_s: Annotated[
        Seconds, about("Deadline of one scontrol; where no controller answers it gives up after 9 s by itself.")
    ] = msgspec.field(default=Seconds(15), name="timeout")
