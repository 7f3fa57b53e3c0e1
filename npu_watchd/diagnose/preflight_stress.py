"""The vendor's own test, and what it did to the error counts of the devices; never on a busy one."""

from __future__ import annotations

from collections.abc import Iterator

from npu_watchd.diagnose.preflight import Check, Document, Result, passed, unknown
from npu_watchd.model.reading import Failure, Output

_NAME = "stress"


def refusal(document: Document, wanted: tuple[str, ...]) -> Check | None:
    """Why the test must not be run now: a device in use, or one of which nobody can tell."""
    known = {one["device_id"]: one for one in document["devices"]}
    for device_id in wanted:
        device = known.get(device_id)
        if device is None or not device["present"] or device["processes"] is None:
            why = f"not run: whether device {device_id} is in use cannot be seen"
            return unknown(_NAME, why, "npu-smi info", device_id)
        if device["processes"]:
            why = f"not run: device {device_id} is in use"
            return Check(_NAME, Result.FAILED, why, "run it on an idle node", device_id)
    return None if wanted else unknown(_NAME, "not run: no device is known")


def compared(before: Document, after: Document, wanted: tuple[str, ...], answer: Output | Failure) -> Iterator[Check]:
    """What the command said, and which counts grew meanwhile."""
    if isinstance(answer, Failure):
        yield unknown(_NAME, answer.detail, "check [preflight] stress in the config")
    elif answer.exit_code != 0:
        words = (answer.stderr.strip() or answer.text.strip()).splitlines()
        said = f": {words[-1][:200]}" if words else ""
        yield Check(_NAME, Result.FAILED, f"the test ended with exit code {answer.exit_code}{said}", "see its output")
    else:
        yield passed(_NAME, "the test ended well")
    then, now = _counts(before), _counts(after)
    for device_id in wanted:
        first, last = then.get(device_id, {}), now.get(device_id, {})
        grown = [f"{key} from {first[key]} to {count}" for key, count in last.items() if count > first.get(key, count)]
        once = {"afterwards": first.keys() - last.keys(), "before": last.keys() - first.keys()}
        unread = [f"not read {when}: {', '.join(sorted(keys))}" for when, keys in once.items() if keys]
        if grown:
            cure = f"npu-watchd explain device {device_id}"
            yield Check("counts after stress", Result.FAILED, "; ".join(grown), cure, device_id)
        elif unread or not last:
            why = "; ".join(unread) or "no count was read"
            yield unknown("counts after stress", why, "npu-smi info -t ecc -i N", device_id)
        else:
            yield passed("counts after stress", "none grew", device_id)


def _counts(document: Document) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for device in document["devices"]:
        counts = found.setdefault(device["device_id"], {})
        for memory, errors in device["memory_errors"].items():
            for kind, count in errors.items():
                if isinstance(count, int):
                    counts[f"{memory} {kind}"] = count
        errors = device["pcie_errors"] or {}
        for severity in ("correctable", "nonfatal", "fatal"):
            if isinstance(errors.get(severity), int):
                counts[f"PCIe {severity}"] = errors[severity]
    return found
