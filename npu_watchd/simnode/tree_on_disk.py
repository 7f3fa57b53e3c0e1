"""Sysfs or procfs as files: brought up to date so that who reads it meanwhile sees the old or the new, never half one.

A directory that comes or goes does so in one step, as when a device is plugged or pulled.
"""

from __future__ import annotations

import fcntl
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path, PurePosixPath
from uuid import uuid4

from npu_watchd.simnode.sysfs import Tree


class TreeOnDisk:
    """What is below `root`. `workshop` is a directory beside it, on the same file system, where things are made.

    Several may write the same tree, in turn. Raises OSError where that cannot be done.
    """

    def __init__(self, root: Path, workshop: Path) -> None:
        self._root = root
        self._workshop = workshop
        workshop.mkdir(exist_ok=True)
        self._name_of_mine = uuid4().hex
        self._numbers = count()
        self._look()

    def _look(self) -> None:
        root = self._root
        self._files = {self._name(path): path.read_bytes() for path in root.rglob("*") if _is_plain(path)}
        self._links = {self._name(path): str(path.readlink()) for path in root.rglob("*") if path.is_symlink()}
        self._folders = {self._name(path) for path in root.rglob("*") if path.is_dir() and not path.is_symlink()}

    def put(self, tree: Tree) -> int:
        """Make the disk hold this tree and nothing else; returns how many files were written."""
        with self._alone():
            return self._put(tree)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One writer at a time. What another one did meanwhile, or did not finish, is looked up first."""
        with (self._workshop / "lock").open("a+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            lock.seek(0)
            last_writer = lock.read()
            lock.truncate(0)
            if last_writer != self._name_of_mine:
                self._look()
            yield
            lock.write(self._name_of_mine)

    def _put(self, tree: Tree) -> int:
        folders = _folders_of(tree)
        for name in self._links.keys() - tree.links.keys():
            (self._root / name).unlink()
        self._remove_folders(self._folders - folders)
        for name in self._files.keys() - tree.files.keys():
            (self._root / name).unlink(missing_ok=True)
        fresh = {name: data for name, data in tree.files.items() if self._files.get(name) != data}
        self._make_folders(folders - self._folders, fresh)
        for name, data in fresh.items():
            if "/" not in name or PurePosixPath(name).parent.as_posix() in self._folders:
                self._replace(name, data)
        for name, target in tree.links.items():
            if name not in self._links:
                (self._root / name).symlink_to(target)
        self._files, self._links, self._folders = dict(tree.files), dict(tree.links), folders
        return len(fresh)

    def _name(self, path: Path) -> str:
        return path.relative_to(self._root).as_posix()

    def _spare(self) -> Path:
        return self._workshop / f"{self._name_of_mine}-{next(self._numbers)}"

    def _replace(self, name: str, data: bytes) -> None:
        spare = self._spare()
        spare.write_bytes(data)
        spare.replace(self._root / name)

    def _remove_folders(self, gone: set[str]) -> None:
        for name in _topmost(gone):
            spare = self._spare()
            (self._root / name).rename(spare)
            shutil.rmtree(spare)

    def _make_folders(self, new: set[str], files: dict[str, bytes]) -> None:
        """Each topmost one is filled in the workshop, links left out, and put in place whole."""
        for top in _topmost(new):
            spare = self._spare()
            for name in (top, *(one for one in new if one.startswith(f"{top}/"))):
                (spare / PurePosixPath(name).relative_to(top)).mkdir(parents=True, exist_ok=True)
            for name, data in files.items():
                if name.startswith(f"{top}/"):
                    (spare / PurePosixPath(name).relative_to(top)).write_bytes(data)
            spare.rename(self._root / top)


def _is_plain(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


def _folders_of(tree: Tree) -> set[str]:
    return {folder for name in (*tree.files, *tree.links) for folder in _parents(name)} | {
        folder for name in tree.folders for folder in (name, *_parents(name))
    }


def _parents(name: str) -> Iterator[str]:
    while "/" in name:
        name = name.rpartition("/")[0]
        yield name


def _topmost(folders: Iterable[str]) -> list[str]:
    known = set(folders)
    return sorted(name for name in known if name.rpartition("/")[0] not in known)
