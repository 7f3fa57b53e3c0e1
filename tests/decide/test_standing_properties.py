"""Over any story of conditions, blindness and calm: what stands is what was seen, and nothing comes or goes unseen."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from npu_watchd.decide.standing import Moment, Said, Standing, stand
from npu_watchd.model.finding import Event
from npu_watchd.model.ids import DeviceKey
from npu_watchd.model.reading import Failure, FailureKind
from npu_watchd.rules.rule import Judgement, Unseen, Verified
from tests.decide.test_standing import EVIDENCE, RULE, seen

KEYS = (DeviceKey(3), DeviceKey(5))
BLIND = Failure(FailureKind.TIMEOUT, "no answer")
SNAPSHOT = seen()

words = st.sampled_from(["bad", "fine", "blind"])
steps = st.lists(st.tuples(st.integers(1, 90), words, words), min_size=1, max_size=40)


def judgements(said: tuple[str, str], for_s: float) -> tuple[Judgement, ...]:
    made: list[Judgement] = []
    for key, word in zip(KEYS, said, strict=True):
        if word == "bad":
            made.append(Verified(key, "bad", EVIDENCE, for_s=for_s))
        elif word == "blind":
            made.append(Unseen(key, BLIND))
    return tuple(made)


@given(steps, st.sampled_from([0.0, 60.0]), st.sampled_from([0.0, 60.0]))
def test_what_stands_was_seen_and_what_is_over_was_seen_to_be(
    story: list[tuple[int, str, str]], for_s: float, calm_s: float
) -> None:
    rule = replace(RULE, calm_s=calm_s)
    standing, now_s, told = Standing(), 0.0, list[Event]()
    for passed_s, *said in story:
        now_s += passed_s
        before = standing.findings.keys()
        one = Said(rule, judgements((said[0], said[1]), for_s))
        standing, events = stand(standing, [one], SNAPSHOT, Moment(now_s, now_s))
        told += events
        for key, word in zip(KEYS, said, strict=True):
            stood, stands = (rule.id, key) in before, (rule.id, key) in standing.findings
            assert not (word == "blind" and stood != stands), "not seeing changes nothing"
            assert not (word == "fine" and stands and not stood), "nobody is found to be ill by being well"
            assert not (word == "bad" and stood and not stands), "nobody is found to be well by being ill"
            if stands:
                assert standing.findings[rule.id, key].held == (word == "blind")
        again, silence = stand(standing, [one], SNAPSHOT, Moment(now_s, now_s))
        assert (again, silence) == (standing, [])
    opened = sum(event.kind == "finding_opened" for event in told)
    resolved = sum(event.kind == "finding_resolved" for event in told)
    assert opened - resolved == len(standing.findings)
