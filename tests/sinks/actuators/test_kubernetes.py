"""Holding a Node and giving it back: what stays ours, what stays theirs. `make test-k8s`: on a real server too."""

from __future__ import annotations

import json

import msgspec
import pytest
import yaml

from npu_watchd.config.kubernetes import KubernetesSection
from npu_watchd.config.values import Name, PlainUrl
from npu_watchd.model.reading import Failure, FailureKind
from npu_watchd.sinks.actuators.actuator import Actuator, Hold, Holder, Intention
from npu_watchd.sinks.actuators.kube_api import RequestError, exchange
from npu_watchd.sinks.actuators.kubernetes import Kubernetes, kubernetes
from tests.sinks.actuators.api_stub import APPLY
from tests.sinks.actuators.clusters import KUBELESS, NOW_S, READER, ROLE, Cluster

MARK = "q-20261130-7"
TAINT = f"npu-watchd/quarantine={MARK}:NoSchedule"
NOT_READY = "node.kubernetes.io/not-ready=:NoSchedule"
KEY = "npu-watchd/quarantine"
INTENTION = Intention(MARK, "device 3: 2 double-bit errors", b"{}")


def other(mark: str) -> Intention:
    return Intention(mark, "device 5 is missing", b"{}")


def hold_of(cluster: Cluster, node: str) -> Hold:
    hold = cluster.actuator(node).look()
    assert isinstance(hold, Hold), hold
    return hold


def annotation(cluster: Cluster, node: str) -> dict[str, object] | None:
    text = cluster.node(node)["metadata"].get("annotations", {}).get(KEY)
    return json.loads(text) if text else None


def version(cluster: Cluster, node: str) -> str:
    return str(cluster.node(node)["metadata"]["resourceVersion"])


def test_it_is_an_actuator(cluster: Cluster) -> None:
    actuator: Actuator = cluster.actuator("node0")
    assert actuator.name == "kubernetes"


def test_a_hold_cordons_taints_annotates_and_says_so_in_a_condition(cluster: Cluster) -> None:
    node = cluster.new_node()
    assert hold_of(cluster, node) == Hold(Holder.NOBODY, "schedulable")
    assert cluster.actuator(node).hold(INTENTION) is None
    assert cluster.cordoned(node)
    assert TAINT in cluster.taints(node)
    assert annotation(cluster, node) == {
        "mark": MARK, "reason": "device 3: 2 double-bit errors", "cordoned": True, "effect": "NoSchedule",
    }  # fmt: skip
    condition = cluster.condition(node)
    assert condition is not None
    assert {key: condition[key] for key in ("status", "reason", "message", "lastTransitionTime")} == {
        "status": "True",
        "reason": "NpuWatchdQuarantine",
        "message": f"device 3: 2 double-bit errors [{MARK}]",
        "lastTransitionTime": "2026-11-30T00:53:20Z",
    }
    assert hold_of(cluster, node) == Hold(Holder.OURS, f"cordoned, taint {TAINT}: device 3: 2 double-bit errors", MARK)


def test_holding_twice_is_as_good_as_once(cluster: Cluster) -> None:
    node = cluster.new_node()
    assert cluster.actuator(node).hold(INTENTION) is None
    before = version(cluster, node)
    assert cluster.actuator(node).hold(INTENTION) is None
    assert version(cluster, node) == before


def test_a_node_given_back_is_as_it_was(cluster: Cluster) -> None:
    node = cluster.new_node()
    assert cluster.actuator(node).hold(INTENTION) is None
    assert cluster.actuator(node).free(MARK) is None
    assert not cluster.cordoned(node)
    assert cluster.taints(node) == [NOT_READY]
    assert annotation(cluster, node) is None
    condition = cluster.condition(node)
    assert condition is not None
    assert condition["status"] == "False"
    assert hold_of(cluster, node) == Hold(Holder.NOBODY, "schedulable")
    before = version(cluster, node)
    assert cluster.actuator(node).free(MARK) is None
    assert version(cluster, node) == before


def test_a_foreign_taint_survives_hold_and_free(cluster: Cluster) -> None:
    node = cluster.new_node(taints=[{"key": "dedicated", "value": "npu", "effect": "NoExecute"}])
    foreign = sorted(["dedicated=npu:NoExecute", NOT_READY])
    assert cluster.actuator(node).hold(INTENTION) is None
    assert sorted(cluster.taints(node)) == sorted([*foreign, TAINT])
    # Another one comes while we hold the node.
    taints = cluster.node(node)["spec"]["taints"]
    cluster.edit(node, taints=[*taints, {"key": "maintenance", "value": "fan", "effect": "NoSchedule"}])
    assert cluster.actuator(node).free(MARK) is None
    assert sorted(cluster.taints(node)) == sorted([*foreign, "maintenance=fan:NoSchedule"])


def test_a_foreign_cordon_survives_hold_and_free(cluster: Cluster) -> None:
    node = cluster.new_node()
    cluster.edit(node, unschedulable=True)
    assert hold_of(cluster, node) == Hold(Holder.OTHER, "cordoned, not by us")
    assert cluster.actuator(node).hold(INTENTION) is None
    assert TAINT in cluster.taints(node)
    assert hold_of(cluster, node).holder is Holder.OURS
    assert cluster.actuator(node).free(MARK) is None
    assert cluster.cordoned(node)
    assert cluster.taints(node) == [NOT_READY]
    assert hold_of(cluster, node) == Hold(Holder.OTHER, "cordoned, not by us")


def test_a_foreign_cordon_that_is_lifted_leaves_our_taint(cluster: Cluster) -> None:
    node = cluster.new_node()
    cluster.edit(node, unschedulable=True)
    assert cluster.actuator(node).hold(INTENTION) is None
    cluster.edit(node, unschedulable=None)
    assert hold_of(cluster, node) == Hold(
        Holder.OURS, f"schedulable, taint {TAINT}: device 3: 2 double-bit errors", MARK
    )


def test_a_persons_uncordon_is_seen_and_not_undone(cluster: Cluster) -> None:
    node = cluster.new_node()
    assert cluster.actuator(node).hold(INTENTION) is None
    cluster.edit(node, unschedulable=None)
    words = f"schedulable, taint {TAINT}: somebody uncordoned it after our mark {MARK}"
    assert hold_of(cluster, node) == Hold(Holder.NOBODY, words)
    assert cluster.actuator(node).hold(INTENTION) is None
    assert not cluster.cordoned(node)
    # What is left of us is tidied up when the engine says so.
    assert cluster.actuator(node).free(MARK) is None
    assert (cluster.cordoned(node), cluster.taints(node)) == (False, [NOT_READY])


def test_a_taint_that_a_person_took_away_is_not_set_again(cluster: Cluster) -> None:
    node = cluster.new_node()
    assert cluster.actuator(node).hold(INTENTION) is None
    cluster.edit(node, taints=[{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}])
    words = f"cordoned: somebody took our taint away after our mark {MARK}"
    assert hold_of(cluster, node) == Hold(Holder.OTHER, words)
    assert cluster.actuator(node).hold(INTENTION) is None
    assert cluster.taints(node) == [NOT_READY]
    # They kept the cordon: from now on it is theirs.
    assert cluster.actuator(node).free(MARK) is None
    assert cluster.cordoned(node)
    assert annotation(cluster, node) is None


def test_a_node_that_a_person_gave_back_wholly_stays_given_back(cluster: Cluster) -> None:
    node = cluster.new_node()
    assert cluster.actuator(node).hold(INTENTION) is None
    cluster.edit(node, taints=None, unschedulable=None)
    words = f"schedulable: somebody uncordoned it and took our taint away after our mark {MARK}"
    assert hold_of(cluster, node) == Hold(Holder.NOBODY, words)
    assert cluster.actuator(node).hold(INTENTION) is None
    assert (cluster.cordoned(node), cluster.taints(node)) == (False, [])


def test_a_cordon_set_anew_by_a_person_is_theirs_where_the_server_keeps_books(cluster: Cluster) -> None:
    node = cluster.new_node()
    cluster.keep_books(node)
    assert cluster.actuator(node).hold(INTENTION) is None
    cluster.edit(node, unschedulable=None)
    cluster.edit(node, unschedulable=True)
    words = f"cordoned, taint {TAINT}: somebody (kubectl) cordoned it too after our mark {MARK}"
    assert hold_of(cluster, node) == Hold(Holder.OTHER, words)
    assert cluster.actuator(node).free(MARK) is None
    assert (cluster.cordoned(node), cluster.taints(node)) == (True, [NOT_READY])


def test_a_cordon_that_somebody_else_applies_too_is_not_lifted(cluster: Cluster) -> None:
    node = cluster.new_node()
    cluster.keep_books(node)
    assert cluster.actuator(node).hold(INTENTION) is None
    wanted = {"kind": "Node", "apiVersion": "v1", "metadata": {"name": node}, "spec": {"unschedulable": True}}
    cluster.admin("PATCH", f"/api/v1/nodes/{node}?fieldManager=gitops", wanted, APPLY)
    words = f"cordoned, taint {TAINT}: somebody (gitops) cordoned it too after our mark {MARK}"
    assert hold_of(cluster, node) == Hold(Holder.OTHER, words)
    assert cluster.actuator(node).free(MARK) is None
    assert (cluster.cordoned(node), cluster.taints(node)) == (True, [NOT_READY])


def test_without_the_servers_books_a_cordon_set_anew_looks_like_ours(cluster: Cluster) -> None:
    node = cluster.new_node()
    assert cluster.actuator(node).hold(INTENTION) is None
    cluster.edit(node, unschedulable=None)
    cluster.edit(node, unschedulable=True)
    assert hold_of(cluster, node).holder is Holder.OURS


@pytest.mark.parametrize("kept", [False, True])
def test_books_that_begin_after_our_cordon_do_not_make_it_somebody_elses(cluster: Cluster, *, kept: bool) -> None:
    node = cluster.new_node()
    if kept:
        cluster.keep_books(node)
    assert cluster.actuator(node).hold(INTENTION) is None
    if not kept:
        cluster.keep_books(node)
    assert hold_of(cluster, node).holder is Holder.OURS
    assert cluster.actuator(node).free(MARK) is None
    assert not cluster.cordoned(node)


def test_a_taint_that_a_person_changed_is_theirs(cluster: Cluster) -> None:
    node = cluster.new_node()
    assert cluster.actuator(node).hold(INTENTION) is None
    cluster.edit(node, taints=[{"key": KEY, "value": MARK, "effect": "NoExecute"}])
    words = f"cordoned, taint {KEY}={MARK}:NoExecute: somebody changed our taint after our mark {MARK}"
    assert hold_of(cluster, node) == Hold(Holder.OTHER, words)
    assert cluster.actuator(node).free(MARK) is None
    assert (cluster.cordoned(node), cluster.taints(node)) == (True, [f"{KEY}={MARK}:NoExecute"])


def test_a_taint_with_our_key_that_a_person_set_is_theirs(cluster: Cluster) -> None:
    node = cluster.new_node()
    cluster.edit(node, taints=[{"key": KEY, "value": "by-hand", "effect": "NoSchedule"}])
    words = f"schedulable, taint {KEY}=by-hand:NoSchedule: a taint with our key, but no annotation of ours"
    assert hold_of(cluster, node) == Hold(Holder.OTHER, words)
    assert cluster.actuator(node).hold(INTENTION) is None
    assert cluster.actuator(node).free(MARK) is None
    assert (cluster.cordoned(node), cluster.taints(node)) == (False, [f"{KEY}=by-hand:NoSchedule"])


def test_the_next_quarantine_takes_the_place_of_the_last(cluster: Cluster) -> None:
    node = cluster.new_node()
    assert cluster.actuator(node).hold(INTENTION) is None
    assert cluster.actuator(node).hold(other("q-8")) is None
    assert cluster.taints(node) == [NOT_READY, f"{KEY}=q-8:NoSchedule"]
    assert hold_of(cluster, node).mark == "q-8"
    assert cluster.actuator(node).free(MARK) is None
    assert hold_of(cluster, node).mark == "q-8"
    assert cluster.actuator(node).free("q-8") is None
    assert hold_of(cluster, node) == Hold(Holder.NOBODY, "schedulable")


def test_the_next_quarantine_holds_a_node_that_a_person_had_given_back(cluster: Cluster) -> None:
    node = cluster.new_node()
    assert cluster.actuator(node).hold(INTENTION) is None
    cluster.edit(node, taints=None, unschedulable=None)
    assert cluster.actuator(node).hold(other("q-9")) is None
    assert (cluster.cordoned(node), cluster.taints(node)) == (True, [f"{KEY}=q-9:NoSchedule"])


def test_a_cordon_that_a_person_kept_is_not_inherited_by_the_next_quarantine(cluster: Cluster) -> None:
    node = cluster.new_node()
    assert cluster.actuator(node).hold(INTENTION) is None
    cluster.edit(node, taints=None)
    assert cluster.actuator(node).hold(other("q-8")) is None
    assert cluster.actuator(node).free("q-8") is None
    assert (cluster.cordoned(node), cluster.taints(node)) == (True, [])


def test_a_mark_that_no_taint_may_bear_is_told_apart_all_the_same(cluster: Cluster) -> None:
    node = cluster.new_node()
    marks = ["boot/1:quarantine-of-device-0-1-2-3-4-5-6-7-8-9-10-11-12-13-14", "boot/1:quarantine-of-device-0-1-2-3"]
    for mark in marks:
        assert cluster.actuator(node).hold(other(mark)) is None
        assert hold_of(cluster, node).mark == mark
    assert cluster.actuator(node).free(marks[0]) is None
    assert hold_of(cluster, node).mark == marks[1]
    assert cluster.actuator(node).free(marks[1]) is None
    assert hold_of(cluster, node).holder is Holder.NOBODY


def test_no_execute_is_set_where_the_config_says_so(cluster: Cluster) -> None:
    node = cluster.new_node()
    actuator = cluster.actuator(node, effect="NoExecute")
    assert actuator.hold(INTENTION) is None
    assert cluster.taints(node) == [NOT_READY, f"{KEY}={MARK}:NoExecute"]
    # The mark says what it did: a config changed since then does not make it somebody else's.
    assert hold_of(cluster, node).holder is Holder.OURS
    assert cluster.actuator(node).free(MARK) is None
    assert (cluster.cordoned(node), cluster.taints(node)) == (False, [NOT_READY])


class Killed(BaseException):
    """The process is no more."""


@pytest.fixture
def dying(cluster: Cluster) -> tuple[str, Kubernetes]:
    """A node, and an actuator that dies between its change of the node and its change of the status."""

    def wall() -> float:
        raise Killed

    node = cluster.new_node()
    return node, Kubernetes(cluster.access(), node, wall, deadline_s=20)


def test_killed_between_node_and_condition_the_next_hold_completes_it(
    cluster: Cluster, dying: tuple[str, Kubernetes]
) -> None:
    node, actuator = dying
    with pytest.raises(Killed):
        actuator.hold(INTENTION)
    assert (cluster.cordoned(node), cluster.condition(node)) == (True, None)
    assert hold_of(cluster, node).mark == MARK
    assert cluster.actuator(node).hold(INTENTION) is None
    condition = cluster.condition(node)
    assert condition is not None
    assert condition["status"] == "True"


def test_killed_between_node_and_condition_the_next_free_gives_it_back(
    cluster: Cluster, dying: tuple[str, Kubernetes]
) -> None:
    node, actuator = dying
    with pytest.raises(Killed):
        actuator.hold(INTENTION)
    assert cluster.actuator(node).free(MARK) is None
    assert (cluster.cordoned(node), cluster.taints(node), cluster.condition(node)) == (False, [NOT_READY], None)


def test_killed_while_it_gives_a_node_back_the_next_free_completes_it(cluster: Cluster) -> None:
    node = cluster.new_node()
    assert cluster.actuator(node).hold(INTENTION) is None
    with exchange(cluster.access(), node, 20) as opened:
        opened.patch_status({"status": {"conditions": [{"type": "NpuQuarantined", "status": "False"}]}})
    assert cluster.actuator(node).free(MARK) is None
    assert (cluster.cordoned(node), cluster.taints(node)) == (False, [NOT_READY])


def test_a_condition_that_outlived_its_mark_is_ended_by_free(cluster: Cluster) -> None:
    node = cluster.new_node()
    assert cluster.actuator(node).hold(INTENTION) is None
    cluster.admin("PATCH", f"/api/v1/nodes/{node}", {"metadata": {"annotations": {KEY: None}}})
    assert cluster.actuator(node).free(MARK) is None
    condition = cluster.condition(node)
    assert condition is not None
    assert (condition["status"], condition["message"]) == ("False", f"released [{MARK}]")


def test_other_conditions_stay(cluster: Cluster) -> None:
    node = cluster.new_node()
    ready = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    cluster.admin("PATCH", f"/api/v1/nodes/{node}/status", ready, "application/strategic-merge-patch+json")
    assert cluster.actuator(node).hold(INTENTION) is None
    assert cluster.actuator(node).free(MARK) is None
    types = [each["type"] for each in cluster.node(node)["status"]["conditions"]]
    assert sorted(types) == ["NpuQuarantined", "Ready"]


def failure(found: object) -> Failure:
    assert isinstance(found, Failure), found
    return found


def test_without_the_right_on_the_status_the_node_is_held_and_the_right_is_named(cluster: Cluster) -> None:
    node = cluster.new_node()
    told = failure(cluster.actuator(node, KUBELESS).hold(INTENTION))
    assert told.kind is FailureKind.DENIED
    assert "does not let us patch nodes/status (403: " in told.detail
    assert told.detail.endswith("; give its role the verb patch on nodes/status (deploy/kubernetes/rbac.yaml)")
    assert hold_of(cluster, node).mark == MARK
    assert cluster.actuator(node).hold(INTENTION) is None
    told = failure(cluster.actuator(node, KUBELESS).free(MARK))
    assert "does not let us patch nodes/status" in told.detail
    assert hold_of(cluster, node).holder is Holder.NOBODY


def test_without_the_right_to_patch_nothing_changes_and_the_right_is_named(cluster: Cluster) -> None:
    node = cluster.new_node()
    before = version(cluster, node)
    told = failure(cluster.actuator(node, READER).hold(INTENTION))
    assert told.kind is FailureKind.DENIED
    assert 'cannot patch resource "nodes" in API group "" at the cluster scope' in told.detail
    assert told.detail.endswith("; give its role the verb patch on nodes (deploy/kubernetes/rbac.yaml)")
    assert version(cluster, node) == before


def test_a_token_that_nobody_knows_is_named_with_its_file(cluster: Cluster) -> None:
    told = failure(cluster.actuator(cluster.new_node(), "stolen").look())
    assert told.kind is FailureKind.DENIED
    file = cluster.folder / "stolen.file"
    cure = f"the credentials in {file} have expired, or are another cluster's: give new ones"
    assert told.detail == f"{cluster.url.removeprefix('https://')}: does not know us (401: Unauthorized); {cure}"


def test_a_node_that_does_not_exist_is_named_with_the_key(cluster: Cluster) -> None:
    for found in (cluster.actuator("nowhere").look(), cluster.actuator("nowhere").hold(INTENTION)):
        told = failure(found)
        assert told.kind is FailureKind.MISSING
        assert 'has no such node (404: nodes "nowhere" not found); set [kubernetes] node_name' in told.detail
    assert failure(cluster.actuator("no/where").look()).detail == (
        "'no/where' cannot be a node's name; set [kubernetes] node_name to a name that `kubectl get nodes` has"
    )


def test_a_token_that_was_rotated_is_used_at_once(cluster: Cluster) -> None:
    node = cluster.new_node()
    actuator = cluster.actuator(node)
    assert isinstance(actuator.look(), Hold)
    file = cluster.token_file()
    file.write_text("expired")
    assert failure(actuator.look()).kind is FailureKind.DENIED
    cluster.token_file()
    assert isinstance(actuator.look(), Hold)


def test_a_patch_of_an_old_version_is_a_conflict(cluster: Cluster) -> None:
    node = cluster.new_node()
    with exchange(cluster.access(), node, 20) as opened:
        old = opened.node().resource_version
        cluster.edit(node, unschedulable=True)
        with pytest.raises(RequestError) as raised:
            opened.patch({"metadata": {"resourceVersion": old}, "spec": {"taints": None}})
    assert raised.value.status == 409
    assert "the object has been modified" in raised.value.failure.detail


def test_a_patch_of_taints_replaces_the_whole_list(cluster: Cluster) -> None:
    # What this module is built around: if a server merged instead, we would have to know.
    node = cluster.new_node()
    with exchange(cluster.access(), node, 20) as opened:
        opened.patch({"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}})
    assert cluster.taints(node) == ["a=:NoSchedule"]


def test_a_patch_that_is_invalid_is_named_with_its_field(cluster: Cluster) -> None:
    node = cluster.new_node()
    with exchange(cluster.access(), node, 20) as opened, pytest.raises(RequestError) as raised:
        opened.patch({"spec": {"taints": [{"key": "a", "value": "no blanks", "effect": "NoSchedule"}]}})
    assert raised.value.status == 422
    assert "refused the change as invalid (422: " in raised.value.failure.detail
    assert "metadata.taints[0].value" in raised.value.failure.detail


@pytest.mark.parametrize(
    ("config", "environment", "host"),
    [
        (KubernetesSection(node_name=Name("NODE")), {"NODE_NAME": "other"}, "host"),
        (KubernetesSection(), {"NODE_NAME": "NODE"}, "host"),
        (KubernetesSection(), {}, "NODE"),
        (KubernetesSection(), {"NODE_NAME": ""}, "NODE"),
    ],
)
def test_the_node_is_named_by_config_environment_or_host(
    cluster: Cluster, config: KubernetesSection, environment: dict[str, str], host: str
) -> None:
    node = cluster.new_node()
    chosen = config.node_name and Name(node)
    names = {key: value.replace("NODE", node) for key, value in environment.items()}
    api, ca, token = PlainUrl(cluster.url), cluster.authority.file, cluster.token_file()
    settings = msgspec.structs.replace(config, node_name=chosen, api_url=api, ca_file=ca, token_file=token)
    # A host's name may have capitals, a Node's cannot.
    actuator = kubernetes(settings, names, host.replace("NODE", node.upper()), lambda: NOW_S)
    assert actuator.hold(INTENTION) is None
    assert hold_of(cluster, node).mark == MARK


def test_the_server_takes_the_manifests(cluster: Cluster) -> None:
    if cluster.stub is not None:
        pytest.skip("the stub knows Nodes only")
    group = {"v1": "/api/v1", "apps/v1": "/apis/apps/v1"}
    namespace = "npu-watchd"
    for file in ("namespace", "rbac", "config", "daemonset", "service"):
        for document in yaml.safe_load_all((ROLE.parent / f"{file}.yaml").read_text()):
            kind = document["kind"]
            base = group.get(document["apiVersion"], f"/apis/{document['apiVersion']}")
            below = f"/namespaces/{namespace}" if "namespace" in document["metadata"] else ""
            # Those that are there already, as the role is, would be refused a second time.
            document["metadata"]["name"] = "npu-watchd" if kind == "Namespace" else f"try-{kind.lower()}"
            cluster.admin("POST", f"{base}{below}/{kind.lower()}s", document, "application/json")
