"""A procfs of files, with the processes that a test wants, on a node that has been up for 1000 seconds."""

from __future__ import annotations

import shutil
from pathlib import Path

BOOT_WALL_S = 1790000000


class ProcTree:
    """Below `root`; ticks are a hundredth of a second."""

    def __init__(self, root: Path, *, first_namespace: bool = True) -> None:
        self.root = root
        (root / "self" / "ns").mkdir(parents=True)
        (root / "self" / "ns" / "pid").symlink_to("pid:[4026531836]" if first_namespace else "pid:[4026532201]")
        (root / "uptime").write_text("1000.00 2000.00\n")
        (root / "stat").write_text(f"cpu 1 2 3\nbtime {BOOT_WALL_S}\n")

    def put(
        self,
        pid: int,
        *,
        cgroup: str = "0::/\n",
        environ: str = "",
        name: str = "python",
        uid: int = 1000,
        started_ticks: int = 5000,
        namespace_pids: tuple[int, ...] | None = None,
        flags: int = 4194304,
        parent: int = 1,
        cmdline: str = "",
    ) -> None:
        """A process, in place of the one that had this pid. environ: its entries, divided by blanks."""
        folder = self.root / str(pid)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        rest = f"S {parent} {pid} {pid} 0 -1 {flags} 106 0 0 0 0 0 0 0 20 0 1 0 {started_ticks} 2629632 202"
        pids = "\t".join(str(number) for number in namespace_pids or (pid,))
        (folder / "stat").write_text(f"{pid} ({name}) {rest}\n")
        (folder / "status").write_text(f"Name:\t{name}\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\nNSpid:\t{pids}\n")
        (folder / "cgroup").write_text(cgroup)
        (folder / "cmdline").write_text(cmdline)
        (folder / "environ").write_text("".join(entry + "\0" for entry in environ.split()))

    def end(self, pid: int) -> None:
        shutil.rmtree(self.root / str(pid))
