"""Random histories of our calls, of people and of other programs: nothing of theirs is lost, nothing of ours stays."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from npu_watchd.sinks.actuators.actuator import Holder, Intention
from npu_watchd.sinks.actuators.kube_node import KubeNode, condition_for, freeing, hold_of, holding, node_of
from npu_watchd.sinks.actuators.kube_note import KEY
from tests.sinks.actuators.api_stub import APPLY, MERGE, STRATEGIC, ApiStub

MARKS = st.sampled_from(["q1", "q2", "boot/7:q3"])
EFFECTS = st.sampled_from(["NoSchedule", "NoExecute"])
FOREIGN = st.sampled_from(["dedicated", "maintenance", "node.kubernetes.io/unschedulable"])
PATH = "/api/v1/nodes/n"


class History(RuleBasedStateMachine):
    """The pure functions against the stub's rules, without the wire; each call may die between its two patches."""

    def __init__(self) -> None:
        super().__init__()
        self.api = ApiStub(tokens={"t": "admin"})
        self.send("POST", "/api/v1/nodes", {"metadata": {"name": "n"}}, "application/json")
        self.send("PATCH", f"{PATH}?fieldManager=x", {"metadata": {"labels": {"a": "b"}}}, APPLY)
        self.foreign: set[tuple[str, str]] = {("node.kubernetes.io/not-ready", "NoSchedule")}
        self.their_cordon = False
        """Somebody cordoned it, or took a part of our hold and left the cordon; and nobody has lifted it."""

    def send(self, method: str, path: str, document: Any = None, content_type: str = MERGE) -> dict[str, Any]:
        headers = {"authorization": "Bearer t", "content-type": content_type}
        code, found = self.api.answer(method, path, headers, json.dumps(document).encode())
        assert code < 300, found
        return found

    def node(self) -> KubeNode:
        return node_of(self.send("GET", PATH))

    def ours(self, patch: Any) -> None:
        if patch is not None:
            self.send("PATCH", f"{PATH}?fieldManager=npu-watchd", patch)

    def tell(self, node: KubeNode, mark: str, *, held: bool) -> None:
        patch = condition_for(node, node.note if held else None, mark, 1.0)
        if patch is not None:
            self.send("PATCH", f"{PATH}/status?fieldManager=npu-watchd", patch, STRATEGIC)

    @rule(mark=MARKS, effect=EFFECTS, dies=st.booleans())
    def hold(self, mark: str, effect: str, *, dies: bool) -> None:
        self.ours(holding(self.node(), Intention(mark, "r", b""), effect))
        node = self.node()
        if not dies and node.note is not None and node.note.mark == mark and node.is_whole(node.note):
            self.tell(node, mark, held=True)
        # Once more changes nothing.
        assert holding(node, Intention(mark, "r", b""), effect) is None

    @rule(mark=MARKS, dies=st.booleans())
    def free(self, mark: str, *, dies: bool) -> None:
        self.tell(self.node(), mark, held=False)
        if dies:
            return
        was_ours = hold_of(self.node()).mark == mark
        self.ours(freeing(self.node(), mark))
        node = self.node()
        if was_ours:
            assert (node.unschedulable, node.our_taints) == (self.their_cordon, ())
        assert freeing(node, mark) is None
        assert node.note is None or node.note.mark != mark
        assert node.condition is None or not (
            node.condition["status"] == "True" and node.condition["message"].endswith(f"[{mark}]")
        )
        # What is still there of a hold is another mark's, or somebody's.
        assert hold_of(node).mark != mark

    @rule(cordoned=st.booleans())
    def person_cordons(self, *, cordoned: bool) -> None:
        if cordoned and not self.node().unschedulable:
            self.their_cordon = True
        if not cordoned:
            self.their_cordon = False
        self.send("PATCH", f"{PATH}?fieldManager=kubectl", {"spec": {"unschedulable": cordoned or None}})

    @rule(key=FOREIGN, effect=EFFECTS, there=st.booleans())
    def other_taints(self, key: str, effect: str, *, there: bool) -> None:
        pair = (key, effect)
        left = [each for each in self.node().taints if (each["key"], each["effect"]) != pair]
        self.send("PATCH", PATH, {"spec": {"taints": [*left, {"key": key, "effect": effect}] if there else left}})
        (self.foreign.add if there else self.foreign.discard)(pair)

    def adopt(self) -> None:
        node = self.node()
        if hold_of(node).holder is Holder.OURS and node.unschedulable:
            self.their_cordon = True

    @rule()
    def person_takes_our_taint(self) -> None:
        self.adopt()
        self.send("PATCH", PATH, {"spec": {"taints": [each for each in self.node().taints if each["key"] != KEY]}})

    @rule()
    def person_takes_our_annotation(self) -> None:
        self.adopt()
        self.send("PATCH", PATH, {"metadata": {"annotations": {KEY: None}}})

    @invariant()
    def foreign_taints_are_as_their_owners_left_them(self) -> None:
        found = {(each["key"], each["effect"]) for each in self.node().taints if each["key"] != KEY}
        assert found == self.foreign

    @invariant()
    def a_persons_cordon_stands(self) -> None:
        if self.their_cordon:
            assert self.node().unschedulable

    @invariant()
    def ours_means_that_everything_is_as_we_made_it(self) -> None:
        node = self.node()
        hold = hold_of(node)
        assert (hold.mark is not None) == (hold.holder is Holder.OURS)
        if hold.holder is Holder.NOBODY:
            assert not node.unschedulable
        if hold.holder is Holder.OURS:
            assert node.note is not None
            assert len(node.our_taints) == 1


History.TestCase.settings = settings(max_examples=150, stateful_step_count=30)
TestHistories = History.TestCase
