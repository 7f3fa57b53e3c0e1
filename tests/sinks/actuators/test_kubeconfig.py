"""From a kubeconfig, or a pod's mounts, to credentials: what is taken, what is refused, and in which words."""

from __future__ import annotations

import base64
import contextlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from npu_watchd.model.reading import Failure, FailureKind
from npu_watchd.sinks.actuators.actuator import Hold, Holder
from npu_watchd.sinks.actuators.kube_access import Access, Credentials, Pem, Unready, in_pod
from npu_watchd.sinks.actuators.kube_api import credentials_of
from npu_watchd.sinks.actuators.kubeconfig import _document, from_kubeconfig
from npu_watchd.sinks.actuators.kubernetes import Kubernetes
from tests.sinks.actuators.clusters import Cluster
from tests.sinks.certificates import encrypted

Change = Callable[[dict[str, Any]], None]
NONE = Access()


def document(user: Any = None, **cluster: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "preferences": {},
        "current-context": "one",
        "contexts": [
            {"name": "one", "context": {"cluster": "here", "user": "watch", "namespace": "x"}},
            {"name": "two", "context": {"cluster": "there"}},
        ],
        "clusters": [
            {"name": "here", "cluster": {"server": "https://kube.example:6443/", **cluster}},
            {"name": "there", "cluster": {"server": "https://other.example", "certificate-authority": "ca.pem"}},
        ],
        "users": [{"name": "watch", "user": {"token": "t1"} if user is None else user}],
    }


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "ca.pem").write_text("CA")
    return tmp_path / "kubeconfig"


def read(file: Path, found: dict[str, Any], access: Access = NONE) -> Credentials:
    file.write_text(yaml.safe_dump(found))
    return from_kubeconfig(access, file)


def refusal(file: Path, found: dict[str, Any] | str | bytes, access: Access = NONE) -> tuple[FailureKind, str]:
    text = found if isinstance(found, str | bytes) else yaml.safe_dump(found)
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(Unready) as raised:
        from_kubeconfig(access, file)
    return raised.value.failure.kind, raised.value.failure.detail.removeprefix(f"{file} ").removeprefix(f"{file}: ")


def test_the_current_context_is_read(file: Path) -> None:
    assert read(file, document()) == Credentials("https://kube.example:6443", str(file), token="t1")


def test_another_context_may_be_chosen(file: Path) -> None:
    ca = Pem(str(file.parent / "ca.pem"), b"CA")
    assert read(file, document(), Access(context="two")) == Credentials("https://other.example", str(file), ca)


def test_json_is_yaml_too(file: Path) -> None:
    file.write_text(json.dumps(document()))
    assert from_kubeconfig(NONE, file).token == "t1"


def test_data_go_before_files_and_a_token_file_before_the_token(file: Path) -> None:
    (file.parent / "renewed").write_text("t2\n")
    user = {"token": "t1", "tokenFile": "renewed"}
    data = base64.b64encode(b"INLINE").decode()
    found = document(user, **{"certificate-authority": "ca.pem", "certificate-authority-data": data})
    credentials = read(file, found)
    assert credentials.token == "t2"
    assert credentials.ca == Pem(f"{file}: certificate-authority-data", b"INLINE")


def test_the_configs_own_keys_go_before_the_files(file: Path) -> None:
    own = file.parent / "own.pem"
    own.write_text("OWN")
    credentials = read(file, document(), Access(api_url="https://10.0.0.1:443", ca_file=own))
    assert (credentials.server, credentials.ca) == ("https://10.0.0.1:443", Pem(str(own), b"OWN"))


def test_names_and_trust_are_as_the_file_has_them(file: Path) -> None:
    credentials = read(file, document(**{"insecure-skip-tls-verify": True, "tls-server-name": "kubernetes"}))
    assert (credentials.verify, credentials.server_name) == (False, "kubernetes")


OTHER = "name a kubeconfig with a token, a tokenFile or a client certificate in [kubernetes] kubeconfig"
MEND = "mend it, or name another in [kubernetes] kubeconfig"
REFUSED: list[tuple[dict[str, Any] | str | bytes, FailureKind, str]] = [
    (
        document({"exec": {"command": "aws", "apiVersion": "client.authentication.k8s.io/v1"}}),
        FailureKind.UNSUPPORTED,
        f"asks for an exec plugin: it would be run as root at each request, which is not supported; {OTHER}",
    ),
    (
        document({"auth-provider": {"name": "oidc"}}),
        FailureKind.UNSUPPORTED,
        f"asks for an auth-provider, which is not supported; {OTHER}",
    ),
    (
        document({"username": "a", "password": "b"}),
        FailureKind.UNSUPPORTED,
        f"asks for a user name and password, which is not supported; {OTHER}",
    ),
    (
        document({"token": "t", "as": "root"}),
        FailureKind.UNSUPPORTED,
        f"asks for impersonation (as), which is not supported; {OTHER}",
    ),
    (
        document(**{"proxy-url": "http://proxy:3128"}),
        FailureKind.UNSUPPORTED,
        f"asks for a proxy-url, which is not supported; {OTHER}",
    ),
    (
        {**document(), "current-context": "three"},
        FailureKind.MISSING,
        "has no context 'three'; there are: one, two",
    ),
    (
        {**document(), "current-context": ""},
        FailureKind.UNPARSEABLE,
        "has no current-context; name one in [kubernetes] context",
    ),
    (
        {**document(), "users": None},
        FailureKind.MISSING,
        "has no user 'watch'; there are: none",
    ),
    (
        document(server="http://kube.example:8080"),
        FailureKind.UNSUPPORTED,
        "server is plain http; anybody on the way could read the token: write https (http is for a proxy on loopback)",
    ),
    (
        document(server="kube.example:6443"),
        FailureKind.UNPARSEABLE,
        "server is no address of a server; write https://host:port",
    ),
    (
        document(server="https://user:secret@kube.example"),
        FailureKind.UNPARSEABLE,
        "server is no address of a server; write https://host:port",
    ),
    (
        document({"token": "two\nlines"}),
        FailureKind.UNPARSEABLE,
        "token holds no token; it must be one line of plain characters",
    ),
    (
        document({"client-certificate-data": base64.b64encode(b"C").decode()}),
        FailureKind.UNPARSEABLE,
        "the user has no client-key; write both, or neither",
    ),
    (
        document({"client-key-data": "%%%"}),
        FailureKind.UNPARSEABLE,
        "client-key-data is no base64; write it anew",
    ),
    ("a: [", FailureKind.UNPARSEABLE, f"is not YAML (line 1); {MEND}"),
    ("- a", FailureKind.UNPARSEABLE, f"is no kubeconfig (Expected `object`, got `array`); {MEND}"),
    (
        "clusters: [{name: a, cluster: {}}]",
        FailureKind.UNPARSEABLE,
        f"is no kubeconfig (Object missing required field `server` - at `$.clusters[0].cluster`); {MEND}",
    ),
    (b"", FailureKind.UNPARSEABLE, f"is empty; {MEND}"),
    (b"\xff\xfea", FailureKind.UNPARSEABLE, f"is not YAML; {MEND}"),
    ("[" * 5000, FailureKind.UNPARSEABLE, f"is no kubeconfig (RecursionError); {MEND}"),
    (b"#" * ((1 << 20) + 1), FailureKind.UNPARSEABLE, f"is larger than 1 MiB; {MEND}"),
]


@pytest.mark.parametrize(("found", "kind", "words"), REFUSED, ids=[words.partition(";")[0] for _, _, words in REFUSED])
def test_what_cannot_be_used_is_refused_with_its_cure(
    file: Path, found: dict[str, Any] | str | bytes, kind: FailureKind, words: str
) -> None:
    assert refusal(file, found) == (kind, words)


def test_a_secret_in_a_broken_file_is_not_shown(file: Path) -> None:
    assert "hunter2" not in refusal(file, "token: hunter2\n\t bad: [")[1]


@given(st.one_of(st.binary(), st.text().map(lambda text: text.encode("utf-8", "surrogatepass"))))
def test_no_bytes_do_anything_but_be_read_or_refused(data: bytes) -> None:
    with contextlib.suppress(Unready):
        _document(Path("kubeconfig"), data)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    with pytest.raises(Unready) as raised:
        credentials_of(Access(kubeconfig=gone))
    assert raised.value.failure == Failure(
        FailureKind.MISSING, f"{gone} cannot be read (No such file or directory); {MEND}"
    )


def test_a_pods_mounts_and_environment_are_enough(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("eyJ.1")
    (tmp_path / "ca.crt").write_text("CA")
    pod = Access(service_host="10.96.0.1", service_port="443", service_account=tmp_path)
    assert in_pod(pod) == Credentials(
        "https://10.96.0.1:443", str(tmp_path / "token"), Pem(str(tmp_path / "ca.crt"), b"CA"), "eyJ.1"
    )
    six = Access(service_host="fd00::1", service_port="443", service_account=tmp_path)
    assert in_pod(six).server == "https://[fd00::1]:443"


def test_outside_a_pod_the_keys_are_named(tmp_path: Path) -> None:
    assert Kubernetes(Access(service_account=tmp_path), "node0", lambda: 1.0).look() == Failure(
        FailureKind.MISSING,
        "the environment names no API server (KUBERNETES_SERVICE_HOST); "
        "set [kubernetes] kubeconfig (or api_url, ca_file and token_file), or run npu-watchd in a pod",
    )


def test_a_client_certificate_from_the_file_is_shown_and_a_bad_one_is_named(stub: Cluster, tmp_path: Path) -> None:
    certificate, key = stub.authority.issue("watchd")
    node = stub.new_node()
    data = {"certificate-authority": str(stub.authority.file), "server": stub.url}
    inline = {
        "client-certificate-data": base64.b64encode(certificate.read_bytes()).decode(),
        "client-key-data": base64.b64encode(key.read_bytes()).decode(),
    }
    file = tmp_path / "kubeconfig"
    for user in (inline, {"client-certificate": str(certificate), "client-key": str(key)}):
        file.write_text(yaml.safe_dump(document(user, **data)))
        assert Kubernetes(Access(kubeconfig=file), node, lambda: 1.0).look() == Hold(Holder.NOBODY, "schedulable")
    locked = encrypted(key)
    for bad, words in (
        (locked, f"the key in {locked} is encrypted; give one without a passphrase"),
        (certificate, f"{certificate} and {certificate} are no certificate and its key in PEM; write them anew"),
    ):
        user = {"client-certificate": str(certificate), "client-key": str(bad)}
        file.write_text(yaml.safe_dump(document(user, **data)))
        assert Kubernetes(Access(kubeconfig=file), node, lambda: 1.0).look() == Failure(FailureKind.UNPARSEABLE, words)


def test_an_authority_that_is_none_is_named(stub: Cluster, tmp_path: Path) -> None:
    bad = tmp_path / "ca.pem"
    bad.write_text("no PEM")
    found = Access(api_url=stub.url, ca_file=bad, token_file=stub.token_file())
    cure = "it must be the authority that signed the API server's"
    assert Kubernetes(found, "node0", lambda: 1.0).look() == Failure(
        FailureKind.UNPARSEABLE, f"{bad} holds no usable PEM certificate; {cure}"
    )
