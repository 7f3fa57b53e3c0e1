"""`[kubernetes]`: which Node this is, and the way to the API server."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import msgspec

from npu_watchd.config.section import Section, about
from npu_watchd.config.values import Name, PlainUrl, Seconds


class KubernetesSection(Section, frozen=True):
    node_name: Annotated[
        Name | None,
        about(
            "This node's name in Kubernetes, as `kubectl get nodes` has it.",
            unset="`NODE_NAME` of the environment, else the host name in lower case",
            example=Name("node17"),
        ),
    ] = None
    kubeconfig: Annotated[
        Path | None,
        about(
            "Server, authority and credentials, where npu-watchd is no pod; one that runs a program (exec) is refused.",
            unset="the pod's service account",
            example=Path("/etc/npu-watchd/kubeconfig"),
        ),
    ] = None
    context: Annotated[
        Name | None, about("Which context of it.", unset="its current one", example=Name("npu-watchd@cluster1"))
    ] = None
    api_url: Annotated[
        PlainUrl | None,
        about(
            "The API server; plain http only on loopback, and then without a token.",
            unset="as the kubeconfig says, or the pod's environment",
            example=PlainUrl("https://10.96.0.1:443"),
        ),
    ] = None
    ca_file: Annotated[
        Path | None,
        about(
            "Authorities (PEM) that may have signed its certificate.",
            unset="the kubeconfig's, or the service account's",
            example=Path("/etc/npu-watchd/kubernetes-ca.crt"),
        ),
    ] = None
    token_file: Annotated[
        Path | None,
        about(
            "File with a bearer token; it may be renewed at any time.",
            unset="the kubeconfig's token, or the service account's",
            example=Path("/etc/npu-watchd/kubernetes.token"),
        ),
    ] = None
    taint_effect: Annotated[
        Literal["NoSchedule", "NoExecute"],
        about("What the taint does: keep new pods away, or also end those that run and do not tolerate it."),
    ] = "NoSchedule"
    timeout_s: Annotated[Seconds, about("For one look at the node or one change of it, all requests together.")] = (
        msgspec.field(default=Seconds(10), name="timeout")
    )
