"""`python -m tests.diagnose`: the confusion table of all labelled cases; NPU_WATCHD_CAPTURES names the real logs."""

from __future__ import annotations

from npu_watchd.diagnose.cause import Cause
from npu_watchd.diagnose.ranking import ranking
from tests.diagnose.cases import all_cases


def table() -> list[str]:
    found = [(case, ranking(case.incident)[0].cause) for case in all_cases()]
    causes = list(Cause)
    head = f"{'labelled, and judged as':32}" + "".join(f"{cause.value[:12]:>14}" for cause in causes)
    rows = [
        f"{label.value:32}"
        + "".join(
            f"{sum(case.cause is label and judged is cause for case, judged in found) or '.':>14}" for cause in causes
        )
        for label in causes
    ]
    right = sum(case.cause is judged for case, judged in found)
    wrong = [f"wrong: {case.name}: {judged.value}" for case, judged in found if case.cause is not judged]
    return [head, *rows, f"{right} of {len(found)} right ({right / len(found):.1%})", *wrong]


if __name__ == "__main__":
    print("\n".join(table()))
