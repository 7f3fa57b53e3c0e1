"""deploy/kubernetes: what Kubernetes' own schemas say of it, and that it fits the daemon."""

from __future__ import annotations

import json
import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from npu_watchd.config import load

FOLDER = Path(__file__).parents[1] / "deploy" / "kubernetes"
NPD = FOLDER / "node-problem-detector"
OTHERS = {"Kustomization", "ServiceMonitor"}
"""Kinds that are no part of Kubernetes itself: the schemas know nothing of them."""
VERSIONS = ("1.25", "1.37")

Document = dict[str, Any]


def documents() -> list[tuple[str, Document]]:
    found = []
    for file in sorted(FOLDER.glob("*.yaml")):
        found += [(f"{file.name} {each['kind']}", each) for each in yaml.safe_load_all(file.read_text())]
    return found


DOCUMENTS = documents()
BY_KIND = {document["kind"]: document for _, document in DOCUMENTS}
OWN = [pytest.param(document, id=name) for name, document in DOCUMENTS if document["kind"] not in OTHERS]
POD = BY_KIND["DaemonSet"]["spec"]["template"]["spec"]
(CONTAINER,) = POD["containers"]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("document", OWN)
def test_kubernetes_knows_every_field(document: Document, version: str) -> None:
    kubernetes_validate.validate(document, version, strict=True)


def test_a_misspelt_field_would_be_found() -> None:
    bad = {**BY_KIND["Service"], "spec": {**BY_KIND["Service"]["spec"], "clusterIp": "None"}}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(bad, "1.30", strict=True)


def test_the_kustomization_names_every_file_but_the_operators() -> None:
    files = {file.name for file in FOLDER.glob("*.yaml")} - {"kustomization.yaml"}
    assert set(BY_KIND["Kustomization"]["resources"]) == files - {"servicemonitor.yaml"}
    assert [each["name"] for each in BY_KIND["Kustomization"]["images"]] == [CONTAINER["image"]]


def test_everything_is_in_one_namespace() -> None:
    (namespace,) = {
        document["metadata"]["namespace"] for _, document in DOCUMENTS if "namespace" in document.get("metadata", {})
    }
    assert namespace == BY_KIND["Namespace"]["metadata"]["name"] == BY_KIND["Kustomization"]["namespace"]
    (subject,) = BY_KIND["ClusterRoleBinding"]["subjects"]
    assert subject["namespace"] == namespace
    assert BY_KIND["ServiceMonitor"]["spec"]["namespaceSelector"]["matchNames"] == [namespace]


def test_the_role_lets_the_daemon_read_and_patch_nodes_and_nothing_else() -> None:
    assert BY_KIND["ClusterRole"]["rules"] == [
        {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "patch"]},
        {"apiGroups": [""], "resources": ["nodes/status"], "verbs": ["patch"]},
    ]
    assert BY_KIND["ClusterRoleBinding"]["roleRef"]["name"] == BY_KIND["ClusterRole"]["metadata"]["name"]
    account = BY_KIND["ServiceAccount"]["metadata"]["name"]
    assert [each["name"] for each in BY_KIND["ClusterRoleBinding"]["subjects"]] == [account]
    assert POD["serviceAccountName"] == account


def test_the_daemon_loads_the_config_map(tmp_path: Path) -> None:
    text = BY_KIND["ConfigMap"]["data"]["config.toml"]
    file = tmp_path / "config.toml"
    file.write_text(text)
    assert load(file).quarantine.act == ()
    # The lines that are commented out are good ones too.
    file.write_text(
        re.sub(r"^# (\w+ = .*)$", r"\1", text, flags=re.MULTILINE).replace("act = []", 'act = ["kubernetes"]')
    )
    assert load(file).quarantine.act == ("kubernetes",)
    assert tomllib.loads(file.read_text())["quarantine"]["prometheus"].startswith("http://")


def test_each_mount_has_its_volume_and_each_volume_its_mount() -> None:
    mounts, volumes = ([each["name"] for each in part] for part in (CONTAINER["volumeMounts"], POD["volumes"]))
    assert sorted(mounts) == sorted(volumes)
    assert len(set(mounts)) == len(mounts)


def test_the_host_is_written_only_where_the_daemon_and_the_tools_write() -> None:
    host = {each["name"]: each["hostPath"]["path"] for each in POD["volumes"] if "hostPath" in each}
    written = {
        host[each["name"]] for each in CONTAINER["volumeMounts"] if each["name"] in host and not each.get("readOnly")
    }
    assert written == {"/dev", "/run/npu-watchd", "/var/lib/npu-watchd", "/var/log"}
    assert CONTAINER["securityContext"]["readOnlyRootFilesystem"] is True


def test_a_missing_file_of_the_host_is_never_made_into_a_folder() -> None:
    assert all(each["hostPath"].get("type") for each in POD["volumes"] if "hostPath" in each)


def test_a_quarantined_node_keeps_its_daemon() -> None:
    assert POD["tolerations"] == [{"operator": "Exists"}]


def test_the_pod_knows_its_node_and_sees_the_hosts_processes() -> None:
    env = {each["name"]: each for each in CONTAINER["env"]}
    assert env["NODE_NAME"]["valueFrom"]["fieldRef"]["fieldPath"] == "spec.nodeName"
    assert (POD["hostPID"], POD["hostNetwork"]) == (True, True)


def test_prometheus_finds_the_pods_under_the_job_that_the_rules_name() -> None:
    monitor, service = BY_KIND["ServiceMonitor"]["spec"], BY_KIND["Service"]
    labels = service["metadata"]["labels"]
    assert labels[monitor["jobLabel"]] == "npu-watchd"
    assert monitor["selector"]["matchLabels"].items() <= labels.items()
    (endpoint,) = monitor["endpoints"]
    (port,) = service["spec"]["ports"]
    assert endpoint["port"] == port["name"] == CONTAINER["ports"][0]["name"]
    assert port["port"] == CONTAINER["ports"][0]["containerPort"] == 18910
    assert service["spec"]["selector"].items() <= BY_KIND["DaemonSet"]["spec"]["template"]["metadata"]["labels"].items()


def gate(tmp_path: Path, script: str) -> tuple[int, str, str]:
    """Exit code and output of the plugin, and the arguments that it called us with."""
    program, called = tmp_path / "npu-watchd", tmp_path / "called"
    program.write_text(f'#!/bin/sh\necho "$@" > {called}\n{script}\n')
    program.chmod(0o755)
    done = subprocess.run(
        ["/bin/sh", str(NPD / "npu-watchd-check")],
        env={"NPU_WATCHD": str(program), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.stderr == ""
    return done.returncode, done.stdout, called.read_text().strip()


@pytest.mark.parametrize(("ours", "theirs"), [(0, 0), (2, 1), (1, 2), (3, 2), (7, 2)])
def test_the_detectors_plugin_turns_our_exit_codes_into_its_own(tmp_path: Path, ours: int, theirs: int) -> None:
    assert gate(tmp_path, f"echo one line; exit {ours}") == (theirs, "one line\n", "check --gate quarantine")


def test_the_detectors_plugin_says_one_line_of_at_most_80_characters(tmp_path: Path) -> None:
    code, said, _ = gate(tmp_path, f"echo {'x' * 300}; echo second; exit 2")
    assert (code, said) == (1, "x" * 80 + "\n")


def test_a_gate_that_cannot_be_run_is_unknown_and_not_healthy(tmp_path: Path) -> None:
    done = subprocess.run(
        [str(NPD / "npu-watchd-check")],
        env={"NPU_WATCHD": str(tmp_path / "absent"), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "npu-watchd check cannot be run (set NPU_WATCHD)\n")


def test_the_detectors_config_fits_its_plugin() -> None:
    config = json.loads((NPD / "npu-watchd-monitor.json").read_text())
    assert config["plugin"] == "custom"
    assert config["pluginConfig"]["max_output_length"] == 80
    (condition,), (rule,) = config["conditions"], config["rules"]
    assert rule["condition"] == condition["type"]
    assert Path(rule["path"]).name == "npu-watchd-check"
    # The condition that the daemon itself sets when it acts has another name: two writers would undo each other.
    assert condition["type"] != "NpuQuarantined"
    seconds = [int(config["pluginConfig"][key].rstrip("s")) for key in ("timeout", "invoke_interval")]
    assert int(rule["timeout"].rstrip("s")) <= seconds[0] < seconds[1]
