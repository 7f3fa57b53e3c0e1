"""What happens in `make demo-stack`; the nodes' own part of it is in tools/demo-stack/."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Beat:
    """Something that happens."""

    at_s: float
    """Second of the story."""
    text: str
    see: str
    """Whose page shows it: a node, Prometheus or Alertmanager."""
    order: tuple[str, ...] = ()
    """What ops type on that node, after `npu-watchd`."""


BEATS = (
    Beat(0, "Four nodes of four 910B3, each with a Slurm job. All is well, and nobody is told anything.", "train-1"),
    Beat(60, "train-2: corrected memory errors begin to climb on device 2.", "train-2"),
    Beat(120, "train-3: bob's job 4712 starts on devices 1 to 3; device 1 is alice's: they contend.", "train-3"),
    Beat(150, "train-4: the host's port mlx5_1 begins to flap.", "train-4"),
    Beat(210, "train-2: device 2 has an error that cannot be corrected: quarantine is recommended.", "Alertmanager"),
    Beat(250, "train-2: alice's job dies of it. Nothing but a release will end the quarantine.", "train-2"),
    Beat(
        300,
        "train-2: somebody tries to release device 2, although nothing has been mended:",
        "train-2",
        ("release", "device", "2", "--reason", "looks fine to me"),
    ),
    Beat(
        360,
        "train-2: device 2 is reset and away for 20 s. Back with counts of 0, and in quarantine.",
        "train-2",
    ),
    Beat(420, "train-3: job 4712 is cancelled: the contention is over, and its alert with it.", "Prometheus"),
    Beat(450, "train-4: the port stays up from now on; that it flapped stays known for twelve hours.", "train-4"),
    Beat(
        510,
        "train-2: ops have tested device 2 and release it:",
        "train-2",
        ("release", "device", "2", "--reason", "reset; memory test of 30 min without an error"),
    ),
    Beat(540, "train-2: device 2 is on probation, a day long. What the journal has of it all:", "train-2", ("events",)),
    Beat(600, "The end of the story. Everything goes on running: look around, stop with Ctrl-C.", "Alertmanager"),
)
"""By time."""
