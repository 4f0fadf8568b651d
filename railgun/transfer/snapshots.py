"""The snapshots in a donor's data folder: orders them from units, and deletes them when they are not read.

A donor is a node that gives its data to others, and its units are the processes that run tasks.
"""

import asyncio
import contextlib
import logging
import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from railgun.host.data_folder import SNAPSHOTS, TASKS
from railgun.node.relay import MakeSnapshot
from railgun.private_folder import make_private
from railgun.task.errors import SnapshotError
from railgun.task.snapshot_file import SNAPSHOT, read_snapshot
from railgun.transfer.hashing import FileHashes
from railgun.transfer.limits import FETCHES_MAX, SILENT_S
from railgun.transfer.manifest import ClusterId, ManifestFile, make_manifest, read_manifest

FRESH_S: Final = 60.0
"""Fetchers share a snapshot that was made within this time."""
UNREAD_S: Final = 60.0
"""A snapshot that nobody has read for this long is deleted."""

_ASK_AGAIN_S = 30.0
# A unit that has not made a snapshot by then makes none.
_MAKING_S = 600.0
# How long a request waits for a snapshot or a manifest before it is told to come again.
_WAIT_S = 4.0
# Room is short if less of the disk than this part is free.
_ROOM_LEAST = 0.05

_log = logging.getLogger("railgun.transfer")


# A file that is made for a moment.
_TRIAL = ".trial"


class NoSnapshotError(Exception):
    """There is no such snapshot or file."""


@dataclass(slots=True)
class _Snapshot:
    """A snapshot.

    least: it is of no use at an earlier offset.
    position: its offset, once it is made.
    hashed: how many bytes its manifest covers by now.
    """

    name: str
    unit: int
    task: str
    least: int
    begun_s: float
    asked_s: float
    read_s: float
    is_made: bool = False
    position: int = 0
    error: str = ""
    readers: int = 0
    hashed: int = 0
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    manifest: asyncio.Task[bytes] | None = None
    files: dict[str, ManifestFile] = field(default_factory=dict)


class Snapshots:
    """The snapshots of this node's tasks. The event loop alone uses it.

    data: the node's data folder.
    order: sends an order to a unit.
    cluster: returns the id of the cluster.
    """

    def __init__(
        self,
        data: Path,
        order: Callable[[int, MakeSnapshot], object],
        cluster: Callable[[], ClusterId],
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._folder, self._order, self._cluster, self._now_s = data / SNAPSHOTS, order, cluster, now_s
        self._known: dict[str, _Snapshot] = {}
        # Folders of unknown snapshots, each with the time when it was first seen.
        self._unknown: dict[str, float] = {}
        self._hashes, self._hashing = FileHashes(), asyncio.Semaphore(FETCHES_MAX)

    def begin(self) -> None:
        """Delete the snapshots of earlier starts. Raises OSError."""
        shutil.rmtree(self._folder, ignore_errors=True)
        make_private(self._folder)

    async def get(self, unit: int, task: str, least: int = 0) -> str | None:
        """Return the name of a snapshot of a task; None if it is still being made. Raises SnapshotError.

        least: a snapshot at an earlier offset is of no use.
        """
        found = next((each for each in self._known.values() if self._is_fresh(each, unit, task, least)), None)
        if found is None:
            now_s = self._now_s()
            found = _Snapshot(secrets.token_hex(16), unit, task, least, now_s, now_s, now_s)
            self._known[found.name] = found
            self._order(unit, MakeSnapshot(task, found.name))
        elif not found.is_made and self._now_s() - found.asked_s >= _ASK_AGAIN_S:
            found.asked_s = self._now_s()
            self._order(unit, MakeSnapshot(task, found.name))
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(found.ended.wait(), _WAIT_S)
        self._look(found)
        if found.error:
            await self._delete(found)
            raise SnapshotError(found.error)
        found.read_s = self._now_s()
        return found.name if found.is_made else None

    def made(self, name: str, error: str) -> None:
        """Note that a unit has made a snapshot, or why not."""
        found = self._known.get(name)
        if found is None or found.is_made:
            return
        self._look(found)
        if not found.is_made:
            found.error = error or "the unit says that it is made, but there is none"
            found.ended.set()

    async def manifest(self, name: str) -> bytes | None:
        """Return the manifest of a snapshot; None if it is still being made. Raises NoSnapshotError, SnapshotError."""
        found = self._found(name)
        found.read_s = self._now_s()
        if found.manifest is None:
            found.manifest = asyncio.create_task(self._make_manifest(found))
        with contextlib.suppress(TimeoutError):
            return await asyncio.wait_for(asyncio.shield(found.manifest), _WAIT_S)
        return None

    def hashed(self, name: str) -> int:
        """Return how many bytes of a snapshot its manifest covers by now. Raises NoSnapshotError."""
        return self._found(name).hashed

    @contextmanager
    def opened(self, name: str, path: str) -> Iterator[tuple[int, int]]:
        """Open a file that the manifest names. Yields its descriptor and its size. The snapshot is not deleted
        meanwhile. Raises NoSnapshotError, OSError.
        """
        found = self._found(name)
        file = found.files.get(path)
        if file is None:
            raise NoSnapshotError
        found.readers += 1
        try:
            handle = os.open(self._folder / name / path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                yield handle, file.size
            finally:
                os.close(handle)
        finally:
            found.readers -= 1
            found.read_s = self._now_s()

    async def sweep(self) -> None:
        """Delete snapshots that are not read any more, those that nobody ordered, and the oldest ones that are not read
        now if room is short.
        """
        now_s = self._now_s()
        for each in [each for each in self._known.values() if self._is_over(each, now_s)]:
            await self._delete(each)
        for name in self._unknown_over(await asyncio.to_thread(os.listdir, self._folder), now_s):
            await self._delete_folder(name)
        while await asyncio.to_thread(self._is_room_short):
            idle = [
                each
                for each in self._known.values()
                if each.is_made and not each.readers and now_s - each.read_s >= SILENT_S
            ]
            if not idle:
                return
            oldest = min(idle, key=lambda each: each.begun_s)
            _log.warning("%s: room is short, so the snapshot of %s is deleted", self._folder, oldest.task)
            await self._delete(oldest)

    def _is_fresh(self, each: _Snapshot, unit: int, task: str, least: int) -> bool:
        if (each.unit, each.task) != (unit, task) or each.error:
            return False
        self._look(each)
        age_s = self._now_s() - each.begun_s
        if not each.is_made:
            return age_s < _MAKING_S and least <= each.least
        return age_s < FRESH_S and least <= each.position

    def _look(self, each: _Snapshot) -> None:
        """Note that a snapshot has been made: the unit's message may have been lost."""
        if each.is_made:
            return
        try:
            each.position = read_snapshot(self._folder / each.name).position
        except SnapshotError:
            return
        each.is_made, each.read_s = True, self._now_s()
        if each.position < each.least:
            each.error = f"its last checkpoint is at offset {each.position}, and {each.least} is needed"
        each.ended.set()

    def _found(self, name: str) -> _Snapshot:
        found = self._known.get(name)
        if found is None or not found.is_made:
            raise NoSnapshotError
        return found

    async def _make_manifest(self, found: _Snapshot) -> bytes:
        found.readers += 1

        def count(size: int) -> None:
            found.hashed += size

        try:
            async with self._hashing:
                body = await asyncio.to_thread(
                    make_manifest, self._folder / found.name, self._cluster(), self._hashes, count
                )
        except OSError as error:
            # The next one who asks gets another snapshot.
            found.error = f"the snapshot cannot be read: {error.strerror}"
            raise SnapshotError(found.error) from error
        finally:
            found.readers -= 1
            found.read_s = self._now_s()
        found.files = {each.path: each for each in read_manifest(body).files}
        return body

    def _is_over(self, each: _Snapshot, now_s: float) -> bool:
        if not each.is_made:
            self._look(each)
            return bool(each.error) or now_s - each.begun_s >= _MAKING_S
        return not each.readers and now_s - each.read_s >= UNREAD_S

    async def _delete(self, each: _Snapshot) -> None:
        self._known.pop(each.name, None)
        await self._delete_folder(each.name)

    async def _delete_folder(self, name: str) -> None:
        await asyncio.to_thread(shutil.rmtree, self._folder / name, ignore_errors=True)

    def _unknown_over(self, names: Iterable[str], now_s: float) -> list[str]:
        """Return the folders that are to be deleted though no order for them is known. Units made them for a process
        before this one, or too late. One that is not complete may still be worked on.
        """
        unknown = set(names) - self._known.keys()
        self._unknown = {name: self._unknown.get(name, now_s) for name in unknown}
        return [
            name
            for name, since_s in self._unknown.items()
            if now_s - since_s >= _MAKING_S or (self._folder / name / SNAPSHOT).is_file()
        ]

    def _is_room_short(self) -> bool:
        found = shutil.disk_usage(self._folder)
        return found.free < found.total * _ROOM_LEAST


def try_link(data: Path) -> None:
    """Raise SnapshotError if the files of tasks cannot be linked into snapshots. data: the node's data folder."""
    tasks, snapshots = data / TASKS / _TRIAL, data / SNAPSHOTS / _TRIAL
    try:
        for each in (tasks, snapshots):
            make_private(each.parent)
            each.unlink(missing_ok=True)
        tasks.touch()
        try:
            snapshots.hardlink_to(tasks)
            snapshots.unlink()
        finally:
            tasks.unlink()
    except OSError as error:
        raise SnapshotError(
            f"no file in {tasks.parent} can be linked into {snapshots.parent} ({error.strerror}): both have to be on "
            "one file system that has hard links"
        ) from error
