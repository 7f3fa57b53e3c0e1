"""A cluster of one API server for the tests: the stub, or a real kube-apiserver with its etcd."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from urllib3 import PoolManager
from urllib3.exceptions import HTTPError

from npu_watchd.sinks.actuators.kube_access import Access
from npu_watchd.sinks.actuators.kubernetes import Kubernetes
from tests.sinks.actuators.api_stub import APPLY, MERGE, ApiStub, serve
from tests.sinks.certificates import Authority, make_authority

ROLE = Path(__file__).parents[3] / "deploy" / "kubernetes" / "rbac.yaml"
ADMIN, WATCHD, READER, KUBELESS = "admin-token", "watchd-token", "reader-token", "no-status-token"
NOW_S = 1796000000.0
Document = dict[str, Any]


def role_rules() -> list[Document]:
    """What the shipped role grants."""
    found: list[Document] = next(
        each["rules"] for each in yaml.safe_load_all(ROLE.read_text()) if each["kind"] == "ClusterRole"
    )
    return found


@dataclass
class Cluster:
    url: str
    authority: Authority
    folder: Path
    stub: ApiStub | None = None
    """None: a real one."""
    _made: list[str] = field(default_factory=list)

    def token_file(self, token: str = WATCHD) -> Path:
        file = self.folder / f"{token}.file"
        file.write_text(token)
        return file

    def access(self, token: str = WATCHD) -> Access:
        return Access(api_url=self.url, ca_file=self.authority.file, token_file=self.token_file(token))

    def actuator(self, node: str, token: str = WATCHD, effect: str = "NoSchedule") -> Kubernetes:
        return Kubernetes(self.access(token), node, lambda: NOW_S, effect=effect, deadline_s=20)

    def admin(self, method: str, path: str, document: Document | None = None, content_type: str = MERGE) -> Document:
        """What a person does, with kubectl's name."""
        headers = {"Authorization": f"Bearer {ADMIN}", "Content-Type": content_type, "User-Agent": "kubectl/1.37"}
        with PoolManager(ca_certs=str(self.authority.file)) as pool:
            answer = pool.request(
                method,
                f"{self.url}{path}",
                headers=headers,
                body=json.dumps(document) if document else None,
                timeout=20,
            )
        assert answer.status < 300, answer.data
        found: Document = json.loads(answer.data)
        return found

    def new_node(self, **spec: Any) -> str:
        name = f"node{len(self._made)}"
        self._made.append(name)
        self.admin(
            "POST", "/api/v1/nodes", {"kind": "Node", "apiVersion": "v1", "metadata": {"name": name}, "spec": spec},
            "application/json",
        )  # fmt: skip
        return name

    def keep_books(self, name: str) -> None:
        """Let the server note who sets which field, as it does from the start since Kubernetes 1.22."""
        document = {"kind": "Node", "apiVersion": "v1", "metadata": {"name": name, "labels": {"rack": "7"}}}
        self.admin("PATCH", f"/api/v1/nodes/{name}?fieldManager=rack-labels", document, APPLY)

    def node(self, name: str) -> Document:
        return self.admin("GET", f"/api/v1/nodes/{name}")

    def edit(self, name: str, **spec: Any) -> None:
        self.admin("PATCH", f"/api/v1/nodes/{name}", {"spec": spec})

    def taints(self, name: str) -> list[str]:
        found = self.node(name)["spec"].get("taints", [])
        return [f"{each['key']}={each.get('value', '')}:{each['effect']}" for each in found]

    def cordoned(self, name: str) -> bool:
        return bool(self.node(name)["spec"].get("unschedulable"))

    def condition(self, name: str) -> Document | None:
        found = self.node(name).get("status", {}).get("conditions") or ()
        return next((each for each in found if each["type"] == "NpuQuarantined"), None)


def server_context(authority: Authority) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority.issue("127.0.0.1"))
    context.load_verify_locations(authority.file)
    context.verify_mode = ssl.CERT_OPTIONAL
    return context


@contextlib.contextmanager
def stub_cluster(folder: Path) -> Iterator[Cluster]:
    authority = make_authority(folder / "tls")
    granted = {(verb, resource) for rule in role_rules() for resource in rule["resources"] for verb in rule["verbs"]}
    stub = ApiStub(
        tokens={ADMIN: "admin", WATCHD: "watchd", READER: "reader", KUBELESS: "no-status"},
        rights={"watchd": granted, "reader": {("get", "nodes")}, "no-status": granted - {("patch", "nodes/status")}},
    )
    server = serve(stub, server_context(authority))
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield Cluster(f"https://127.0.0.1:{server.server_address[1]}", authority, folder, stub)
    finally:
        server.shutdown()
        thread.join(10)
        server.server_close()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@contextlib.contextmanager
def _running(argv: list[str], folder: Path) -> Iterator[None]:
    with (folder / f"{Path(argv[0]).name}.log").open("wb") as log:
        process = subprocess.Popen(argv, stdout=log, stderr=log, cwd=folder)
        try:
            yield
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _until_ready(cluster: Cluster, log: Path) -> None:
    until = time.monotonic() + 60
    while True:
        try:
            cluster.admin("GET", "/api/v1/nodes")
        except (HTTPError, AssertionError):
            assert time.monotonic() < until, log.read_text()[-4000:]
            time.sleep(0.2)
        else:
            return


@contextlib.contextmanager
def real_cluster(binary: Path, folder: Path) -> Iterator[Cluster]:
    """kube-apiserver with the shipped role bound to the daemon's user."""
    etcd = shutil.which("etcd")
    assert etcd is not None, "install Debian's etcd-server"
    authority = make_authority(folder / "tls")
    certificate, key = authority.issue("127.0.0.1")
    _service_account_key(folder)
    (folder / "tokens.csv").write_text(
        f'{ADMIN},admin,1,"system:masters"\n{WATCHD},watchd,2\n{READER},reader,3\n{KUBELESS},no-status,4\n'
    )
    client, peer, port = _free_port(), _free_port(), _free_port()
    etcd_argv = [
        *(etcd, f"--data-dir={folder}/etcd", "--unsafe-no-fsync", "--name=default"),
        *(f"--listen-client-urls=http://127.0.0.1:{client}", f"--advertise-client-urls=http://127.0.0.1:{client}"),
        *(f"--listen-peer-urls=http://127.0.0.1:{peer}", f"--initial-advertise-peer-urls=http://127.0.0.1:{peer}"),
        f"--initial-cluster=default=http://127.0.0.1:{peer}",
    ]
    api_argv = [
        *(str(binary), f"--etcd-servers=http://127.0.0.1:{client}", "--bind-address=127.0.0.1"),
        *(f"--secure-port={port}", "--insecure-port=0", "--advertise-address=127.0.0.1"),
        *("--endpoint-reconciler-type=none", f"--tls-cert-file={certificate}", f"--tls-private-key-file={key}"),
        *(f"--client-ca-file={authority.file}", f"--cert-dir={folder}/certs"),
        "--allow-privileged=true",
        "--service-account-issuer=https://kubernetes.default.svc",
        *(f"--service-account-signing-key-file={folder}/sa.key", f"--service-account-key-file={folder}/sa.pub"),
        *(f"--token-auth-file={folder}/tokens.csv", "--authorization-mode=RBAC"),
        *("--service-cluster-ip-range=10.96.0.0/24", "--disable-admission-plugins=ServiceAccount"),
    ]
    cluster = Cluster(f"https://127.0.0.1:{port}", authority, folder)
    with _running(etcd_argv, folder), _running(api_argv, folder):
        _until_ready(cluster, folder / f"{binary.name}.log")
        rules = role_rules()
        _grant(cluster, "watchd", rules)
        _grant(cluster, "no-status", rules[:1])
        _grant(cluster, "reader", [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]}])
        yield cluster


def _grant(cluster: Cluster, user: str, rules: list[Document]) -> None:
    api, meta = "/apis/rbac.authorization.k8s.io/v1", {"metadata": {"name": user}}
    plain = "application/json"
    cluster.admin("POST", f"{api}/clusterroles", {**meta, "rules": rules}, plain)
    group = "rbac.authorization.k8s.io"
    binding = {
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": user},
        "subjects": [{"apiGroup": group, "kind": "User", "name": user}],
    }
    cluster.admin("POST", f"{api}/clusterrolebindings", {**meta, **binding}, plain)


def _service_account_key(folder: Path) -> None:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    private, public = serialization.PrivateFormat.TraditionalOpenSSL, serialization.PublicFormat.SubjectPublicKeyInfo
    (folder / "sa.key").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, private, serialization.NoEncryption())
    )
    (folder / "sa.pub").write_bytes(key.public_key().public_bytes(serialization.Encoding.PEM, public))


BINARY = os.environ.get("NPU_WATCHD_KUBE_APISERVER")
"""Path of a kube-apiserver: `make test-k8s` sets it; the same tests then run against it too."""
