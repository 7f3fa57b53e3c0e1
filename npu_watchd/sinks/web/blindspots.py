"""The page's section on what cannot be seen: the tools' own words, and what to do; one entry for the same trouble."""

from __future__ import annotations

from markupsafe import Markup

from npu_watchd.model.reading import Failure
from npu_watchd.model.snapshot import Snapshot
from npu_watchd.sinks.plaintext import clean
from npu_watchd.sinks.web.advice import ADVICE
from npu_watchd.sinks.web.table import section

_DETAIL_MAX = 4000

_ENTRY = Markup("""<li>
<p class="what"><strong>{probe}</strong> <span class="state state-unknown">{kind}</span> {whom}</p>
<pre>{detail}</pre>
<p>{advice}</p>
</li>""")


def blind_section(snapshot: Snapshot) -> Markup:
    """The section; one sentence where everything is seen."""
    entries = [
        _ENTRY.format(
            probe=probe,
            kind=failure.kind.value,
            whom=whom,
            detail=_lines(failure.detail),
            advice=ADVICE[failure.kind],
        )
        for probe, failure, whom in _troubles(snapshot)
    ]
    if entries:
        body = Markup('<ul class="troubles">\n{}\n</ul>').format(Markup("\n").join(entries))
    elif snapshot.devices:
        body = Markup('<p class="quiet">Nothing: every probe of every device answers.</p>')
    else:
        body = Markup("<p>No tool failed, and none named a device. See the probes below for what was asked.</p>")
    return section("blind", "What we cannot see, and what to do", body + Markup("\n") + _unsupported(snapshot))


def _lines(detail: str) -> str:
    return "\n".join(clean(line, 1000) for line in detail[:_DETAIL_MAX].splitlines()) or "(the tool said nothing)"


def _troubles(snapshot: Snapshot) -> list[tuple[str, Failure, str]]:
    """Probe, failure, and whom it concerns; the node's own first, devices with the same failure together."""
    troubles = [(probe, failure, "the whole node") for probe, failure in snapshot.blind.items()]
    concerned: dict[tuple[str, Failure], list[str]] = {}
    for key in sorted(snapshot.devices):
        device = snapshot.devices[key]
        for probe, failure in device.blind.items():
            if snapshot.blind.get(probe) != failure:
                concerned.setdefault((probe, failure), []).append(device.device_id)
    return troubles + [(probe, failure, _whom(ids)) for (probe, failure), ids in concerned.items()]


def _whom(device_ids: list[str]) -> str:
    return f"device {device_ids[0]}" if len(device_ids) == 1 else f"devices {', '.join(device_ids)}"


def _unsupported(snapshot: Snapshot) -> Markup:
    """What chips cannot say: no trouble, so folded away."""
    concerned: dict[tuple[str, str], list[str]] = {}
    for key in sorted(snapshot.devices):
        device = snapshot.devices[key]
        for probe, words in device.unsupported.items():
            concerned.setdefault((probe, words), []).append(device.device_id)
    if not concerned:
        return Markup()
    items = Markup("\n").join(
        Markup("<li><strong>{}</strong> ({}): {}</li>").format(probe, _whom(ids), clean(words, 1000))
        for (probe, words), ids in concerned.items()
    )
    return Markup(
        "<details><summary>What these chips do not support (nothing to do)</summary>\n<ul>\n{}\n</ul></details>\n"
    ).format(items)
