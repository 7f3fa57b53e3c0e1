"""What a person does about each kind of failure."""

from __future__ import annotations

from collections.abc import Mapping

from npu_watchd.model.reading import FailureKind

ADVICE: Mapping[FailureKind, str] = {
    FailureKind.MISSING: (
        "It is not on this node. Install the driver package that brings it, or give its path under [tools] in "
        "config.toml and reload."
    ),
    FailureKind.DENIED: (
        "npu-watchd may not run or read it. Put its user into the group that owns the driver's device files, or "
        "correct the file mode."
    ),
    FailureKind.TIMEOUT: (
        "It did not answer in time and was ended. Type the same command by hand; if that hangs too, read dmesg for "
        "the driver's messages."
    ),
    FailureKind.WEDGED: (
        "A run of it cannot be ended, so no second one is started. See where it hangs with "
        "ps -eo pid,stat,wchan:32,cmd; a process in state D goes only when the driver lets go, often by a reboot."
    ),
    FailureKind.EXIT: "The tool says that it failed. Type the same command by hand to see whether it lasts.",
    FailureKind.UNPARSEABLE: (
        "The answer cannot be trusted, so none of its values is shown. Type the same command by hand and compare; "
        "npu-watchd parse shows what is understood of it."
    ),
    FailureKind.UNSUPPORTED: "This chip or this tool version cannot say. There is nothing to do.",
    FailureKind.STALE: "The last answer is too old to be shown. See the probes below for what fails since.",
}
