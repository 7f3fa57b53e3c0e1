"""Where processes live and listen: on a procfs of files, and on the real one."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from npu_watchd.model.hccl import HostPorts, Listener, ProcessPlace
from npu_watchd.model.ids import DeviceKey
from npu_watchd.model.jobs import Attribution, ProcessKey
from npu_watchd.sources.process_places import PlaceFinder, PlaceSweep
from npu_watchd.sources.process_tree import ProcessTree
from tests.sources.proc_tree import ProcTree

HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode          \n"
DEFAULT = HostPorts.of({})
HOST, POD = "net:[4026531840]", "net:[4026532777]"


class Node(ProcTree):
    """A procfs whose processes have namespaces and sockets."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        (root / "1" / "ns").mkdir(parents=True)
        (root / "1" / "ns" / "mnt").symlink_to("mnt:[1]")

    def place(self, pid: int, network: str = HOST, mount: str = "mnt:[1]", inodes: Sequence[int] = ()) -> ProcessKey:
        """A process, with these sockets open."""
        self.put(pid)
        folder = self.root / str(pid)
        for name in ("ns", "fd", "net"):
            (folder / name).mkdir()
        (folder / "ns" / "net").symlink_to(network)
        (folder / "ns" / "mnt").symlink_to(mount)
        (folder / "fd" / "0").symlink_to("/dev/null")
        self.listen(pid)
        for at, inode in enumerate(inodes):
            (folder / "fd" / str(at + 1)).symlink_to(f"socket:[{inode}]")
        return ProcessKey(pid, 5000)

    def listen(self, pid: int, *sockets: tuple[int, int]) -> None:
        """What the process's namespace shows: ports and inodes, all at 10.0.0.7."""
        lines = (
            f"{at:4}: 0700000A:{port:04X} 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 "
            f"{inode} 1 0000000000000000 100 0 0 10 0\n"
            for at, (port, inode) in enumerate(sockets)
        )
        (self.root / str(pid) / "net" / "tcp").write_text(HEAD + "".join(lines))


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path / "proc")


def test_a_listener_is_given_to_the_process_that_has_its_socket(node: Node) -> None:
    first, second = node.place(10, inodes=[77]), node.place(11, inodes=[78, 79])
    for pid in (10, 11):
        node.listen(pid, (60000, 77), (60001, 78), (22, 79))
    found = PlaceFinder(node.root).find({first: DEFAULT, second: DEFAULT})
    assert found == {
        first: ProcessPlace(HOST, True, (Listener("10.0.0.7", 60000),)),
        second: ProcessPlace(HOST, True, (Listener("10.0.0.7", 60001),)),
    }


def test_a_pod_has_a_network_and_files_of_its_own(node: Node) -> None:
    host, pod = node.place(10), node.place(11, POD, "mnt:[2]", inodes=[78])
    node.listen(11, (60000, 78))
    found = PlaceFinder(node.root).find({host: DEFAULT, pod: DEFAULT})
    assert found[host] == ProcessPlace(HOST, True, ())
    assert found[pod] == ProcessPlace(POD, False, (Listener("10.0.0.7", 60000),))


def test_only_ports_that_hccl_may_want_are_looked_for(node: Node) -> None:
    key = node.place(10, inodes=[77])
    node.listen(10, (50000, 77))
    shutil.rmtree(node.root / "10" / "fd")
    assert PlaceFinder(node.root).find({key: DEFAULT})[key].listening == ()
    node.place(10, inodes=[77])
    node.listen(10, (50000, 77))
    ports = HostPorts.of({"HCCL_IF_BASE_PORT": "50000"})
    assert PlaceFinder(node.root).find({key: ports})[key].listening == (Listener("10.0.0.7", 50000),)


def test_what_cannot_be_read_is_unknown_and_not_silence(node: Node) -> None:
    one, two = node.place(10, inodes=[77]), node.place(11)
    node.listen(10, (60000, 77))
    shutil.rmtree(node.root / "10" / "fd")
    found = PlaceFinder(node.root).find({one: DEFAULT, two: DEFAULT})
    assert (found[one].listening, found[two].listening) == (None, ())
    for pid in (10, 11):
        (node.root / str(pid) / "net" / "tcp").write_text("rubbish\n")
    assert PlaceFinder(node.root).find({one: DEFAULT})[one].listening is None
    (node.root / "10" / "ns" / "net").unlink()
    (node.root / "10" / "ns" / "mnt").unlink()
    assert PlaceFinder(node.root).find({one: DEFAULT})[one] == ProcessPlace(None, None, None)


def test_without_the_namespaces_of_pid_1_nobody_knows_whose_files_a_process_sees(node: Node) -> None:
    key = node.place(10)
    (node.root / "1" / "ns" / "mnt").unlink()
    assert PlaceFinder(node.root).find({key: DEFAULT})[key].on_host is None


def test_a_pid_that_is_used_again_has_no_place(node: Node) -> None:
    node.place(10)
    assert PlaceFinder(node.root).find({ProcessKey(10, 4999): DEFAULT}) == {}


def test_open_files_are_read_once_while_nothing_changes(node: Node) -> None:
    key, finder = node.place(10, inodes=[77]), PlaceFinder(node.root)
    node.listen(10, (60000, 77), (60001, 99))
    first = finder.find({key: DEFAULT})
    shutil.rmtree(node.root / "10" / "fd")
    assert finder.find({key: DEFAULT}) == first


def test_a_socket_without_an_owner_is_looked_for_again_when_a_process_is_new(node: Node) -> None:
    one, finder = node.place(10), PlaceFinder(node.root)
    node.listen(10, (60000, 77))
    assert finder.find({one: DEFAULT})[one].listening == ()
    two = node.place(11, inodes=[77])
    node.listen(11, (60000, 77))
    assert finder.find({one: DEFAULT, two: DEFAULT})[two].listening == (Listener("10.0.0.7", 60000),)


def test_of_a_table_that_is_long_only_the_part_that_listens_is_read(node: Node) -> None:
    key = node.place(10, inodes=[77])
    node.listen(10, (60000, 77), *((50000 + at, 1000 + at) for at in range(3000)))
    table = node.root / "10" / "net" / "tcp"
    connection = "   9: 0700000A:C350 0700000A:EA60 01 00000000:00000000 00:00000000 00000000     0        0 5 1\n"
    table.write_text(table.read_text() + connection * 200_000)
    assert table.stat().st_size > 8 * 1024 * 1024
    assert PlaceFinder(node.root).find({key: DEFAULT})[key].listening == (Listener("10.0.0.7", 60000),)
    table.write_text(HEAD + connection.replace(" 01 ", " 0A ") * 100_000)
    assert PlaceFinder(node.root).find({key: DEFAULT})[key].listening is None


def attribution(key: ProcessKey | None, variables: dict[str, str] | None = None) -> Attribution:
    return Attribution(DeviceKey(0), key.pid if key else 9, "python", 1, process=key, variables=variables or {})


def test_who_listens_is_looked_up_every_half_minute_or_when_a_process_is_new(node: Node) -> None:
    now = [0.0]
    sweep = PlaceSweep(PlaceFinder(node.root), lambda: now[0])
    key = node.place(10, inodes=[77])

    def heard() -> tuple[Listener, ...] | None:
        place = sweep.placed([attribution(key)])[0].place
        return place.listening if place else None

    assert heard() == ()
    node.listen(10, (60000, 77))
    now[0] = 29.0
    assert heard() == ()
    now[0] = 30.0
    assert heard() == (Listener("10.0.0.7", 60000),)
    node.listen(10)
    now[0] = 45.0
    assert heard() == (Listener("10.0.0.7", 60000),)
    other = node.place(11)
    assert sweep.placed([attribution(key), attribution(other)])[0].place == ProcessPlace(HOST, True, ())


def test_a_process_that_nobody_knows_has_no_place(node: Node) -> None:
    sweep = PlaceSweep(PlaceFinder(node.root), lambda: 0.0)
    assert sweep.placed([attribution(None)])[0].place is None


_LISTEN = """
import socket, sys
for port in range(60000, 60032):
    one = socket.socket()
    try:
        one.bind(("127.0.0.1", port))
    except OSError:
        continue
    one.listen()
    print(port, flush=True)
    sys.stdin.read()
    break
"""


def test_a_real_process_that_listens_is_found_in_the_real_proc() -> None:
    child = subprocess.Popen([sys.executable, "-c", _LISTEN], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdin is not None
        assert child.stdout is not None
        port = int(child.stdout.readline())
        stat = ProcessTree(Path("/proc")).stat(child.pid)
        key = ProcessKey(child.pid, stat.started_ticks)  # type: ignore[union-attr]  # it waits for us
        place = PlaceFinder(Path("/proc")).find({key: DEFAULT})[key]
        assert place.listening == (Listener("127.0.0.1", port),)
        assert place.network == str(Path("/proc/self/ns/net").readlink())
    finally:
        child.communicate()
