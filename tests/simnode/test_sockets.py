"""The simulated node's sockets and namespaces: what the daemon's own parsers and finders make of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from npu_watchd.model.hccl import HostPorts, Listener, ProcessPlace
from npu_watchd.model.jobs import ProcessKey
from npu_watchd.parsers import sockets as parser
from npu_watchd.simnode import procfs, sockets
from npu_watchd.simnode.scenario import Scenario, from_json, to_json
from npu_watchd.simnode.scenario_file import ScenarioError, load, parse
from npu_watchd.simnode.tree_on_disk import TreeOnDisk
from npu_watchd.sources.process_places import PlaceFinder
from npu_watchd.sources.process_tree import ProcessTree

POD = "kubernetes 3f1c52ce-8a11-4b0e-9d55-0c5be0a7f0d1"
HEAD = 'title = "t"\ndescription = "d"\ngeneration = "910B3"\ntool_version = "25.5.1"\ncards = 2\n'


def scenario(start: str) -> Scenario:
    process = f'pid = 7, name = "a", memory = 1, {start}'
    return parse(f"{HEAD}[[at]]\nt = 0\ndevice = 0\nstart = [{{ {process} }}]\n", "x", "x.toml")


def test_the_parser_reads_what_is_written() -> None:
    listens = {10: ("10.0.0.7:60000", "127.0.0.1:1"), 11: ("0.0.0.0:65535",), 12: ("10.0.0.9:60000",)}
    files = sockets.files(listens, {12: POD})
    found = [one.listener for one in parser.listening(files["11/net/tcp"])]
    assert found == [Listener("10.0.0.7", 60000), Listener("127.0.0.1", 1), Listener("0.0.0.0", 65535)]
    assert files["10/net/tcp"] == files["11/net/tcp"]
    assert [one.listener for one in parser.listening(files["12/net/tcp"])] == [Listener("10.0.0.9", 60000)]
    assert parser.listening(files["10/net/tcp6"]) == ()


def test_the_finder_sees_who_listens_in_the_scenario(tmp_path: Path) -> None:
    root = tmp_path / "proc"
    root.mkdir()
    TreeOnDisk(root, tmp_path / "workshop").put(procfs.tree(load("hccl_ports"), 100.0))
    stats = (ProcessTree(root).stat(pid) for pid in (61000, 62000))
    holder, waiting = (ProcessKey(one.pid, one.started_ticks) for one in stats)  # type: ignore[union-attr]
    ports = dict.fromkeys((holder, waiting), HostPorts.of({}))
    assert PlaceFinder(root).find(ports) == {
        holder: ProcessPlace("net:[4026531840]", True, (Listener("10.0.0.7", 60004),)),
        waiting: ProcessPlace("net:[4026531840]", True, ()),
    }


def test_a_pod_has_namespaces_of_its_own() -> None:
    links = sockets.links({10: (), 11: ("10.0.0.7:60000",)}, {11: POD})
    assert links["10/ns/net"] == "net:[4026531840]"
    assert links["10/ns/mnt"] == links["1/ns/mnt"]
    assert links["11/ns/net"] != links["10/ns/net"]
    assert links["11/ns/mnt"] != links["10/ns/mnt"]


def test_a_scenario_with_sockets_is_the_same_after_json() -> None:
    story = scenario('environ = ["A=1"], listens = ["10.0.0.7:60000"]')
    assert from_json(to_json(story)) == story


@pytest.mark.parametrize(
    ("start", "complaint"),
    [
        ('environ = ["RANK"]', "'RANK' is no entry like NAME=value"),
        ('listens = ["60000"]', "'60000' is no address like 10.0.0.1:60000"),
        ('listens = ["10.0.0.300:1"]', "'10.0.0.300:1' is no address"),
        ('listens = ["10.0.0.1:65536"]', "'10.0.0.1:65536' is no address"),
    ],
)
def test_what_no_process_can_have_is_refused(start: str, complaint: str) -> None:
    with pytest.raises(ScenarioError, match=complaint):
        scenario(start)
