"""A snapshot of a task: its last checkpoint, in a folder from which another copy of the task can be opened.

`snapshot_making.py` makes snapshots. railgun/task/FORMAT.md describes the folder.
"""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pyarrow as pa

from railgun import __version__
from railgun.history.durable_files import make_durable, write_whole
from railgun.history.manifest import MANIFEST_PLACE
from railgun.history.manifest import VERSION as HISTORY_VERSION
from railgun.state.end_marker import END_MARK
from railgun.state.errors import StateError
from railgun.state.store import Store
from railgun.state.values import PACKED_FORMAT
from railgun.task.errors import SnapshotError
from railgun.task.meta import VERSION as META_VERSION
from railgun.task.meta import TaskMeta
from railgun.task.recovery import commit_parts
from railgun.task.snapshot_file import SNAPSHOT, SnapshotFile
from railgun.task.view import TaskView
from reservoir.errors import ReservoirError
from reservoir.open_region.saved_rows import VERSION as OPEN_ROWS_VERSION
from reservoir.segments.committed import CommittedFiles
from reservoir.segments.format import VERSION as SEGMENTS_VERSION

FORMATS = {
    "commit": META_VERSION,
    "values": PACKED_FORMAT,
    "segments": SEGMENTS_VERSION,
    "open_rows": OPEN_ROWS_VERSION,
    "history": HISTORY_VERSION,
    # RocksDB's tables: raise it with a rocksdict whose tables the one before cannot read.
    "tables": 1,
}
"""The greatest versions of the formats in a task's folder that this program reads."""

_TRIAL = "trial"


@dataclass(frozen=True, slots=True)
class TaskSnapshot:
    """A checkpoint of a task that can be put into another folder while the task continues.

    No checkpoint of the task may begin until `put_into` has returned. A new commit would make the state and the
    reservoir's files disagree, and files that the snapshot needs are deleted after it.
    what: the content of the snapshot's description file.
    store: the task's state.
    files: the files of the reservoir that the checkpoint needs.
    spare_bytes: how much room the file system must have left besides what the reservoir's last segment takes.
    """

    what: SnapshotFile
    store: Store
    files: CommittedFiles
    spare_bytes: int

    def put_into(self, to: Path, check: Callable[[], None]) -> None:
        """Make the snapshot in a folder that does not exist yet, durably. Any thread may call this, once.

        check: is called often, and raises an error if the snapshot is to stop.
        Raises SnapshotError if the snapshot cannot be made. After an error the folder is removed.
        """
        try:
            to.mkdir(parents=True)
        except OSError as error:
            raise SnapshotError(f"the folder {to} cannot be made: {error.strerror}") from error
        try:
            self._fill(to, check)
        except BaseException as error:
            shutil.rmtree(to, ignore_errors=True)
            if isinstance(error, OSError | StateError | ReservoirError):
                raise SnapshotError(f"a snapshot in {to} failed: {error}") from error
            raise

    def _fill(self, to: Path, check: Callable[[], None]) -> None:
        folder = self.store.folder.parent
        _try_link(self.store.folder / END_MARK, to / _TRIAL)
        self._check_room(to)
        check()
        self.store.snapshot_to(to / "state", self.what.epoch)
        self.files.put_into(to / "reservoir", check)
        if self.what.history:
            (to / MANIFEST_PLACE).parent.mkdir()
            shutil.copyfile(folder / MANIFEST_PLACE, to / MANIFEST_PLACE)
            make_durable(to / MANIFEST_PLACE)
            make_durable((to / MANIFEST_PLACE).parent)
        check()
        write_whole(to / SNAPSHOT, msgspec.json.encode(self.what).decode() + "\n")

    def _check_room(self, to: Path) -> None:
        """Raise SnapshotError if the task itself could run out of room."""
        needed, free = self.files.last_bytes + self.spare_bytes, shutil.disk_usage(to).free
        if free < needed:
            raise SnapshotError(f"the disk of {to} has {free} bytes left, a snapshot may take {needed}")


def snapshot_of(task: TaskView, created: int) -> TaskSnapshot | None:
    """Return a snapshot of a task's last checkpoint. None if there is none, or if it does not hold the open rows
    because an earlier release made it.

    created: the place in the catalogue of the stream's first definition.
    Must be called in the task's thread, between batches, while no checkpoint is in flight.
    """
    found = task.store.last_commit()
    if found is None:
        return None
    epoch, body = found
    meta, length = commit_parts(body, str(task.store.folder.parent))
    if meta.saved_rows is None:
        return None
    return TaskSnapshot(
        _described(task, meta, created, epoch),
        task.store,
        task.reservoir.committed_files(length, meta.saved_rows),
        task.settings.write_buffer_bytes,
    )


def _described(task: TaskView, meta: TaskMeta, created: int, epoch: int) -> SnapshotFile:
    who = task.identity
    return SnapshotFile(
        stream=who.stream,
        created=created,
        partitioner=who.partitioner,
        partition=who.partition,
        topic_id=meta.topic_id,
        position=meta.position,
        leader_epoch=meta.leader_epoch,
        epoch=epoch,
        history=meta.history,
        release=__version__,
        arrow=pa.__version__,
        formats={**FORMATS, "commit": meta.version},
    )


def _try_link(path: Path, to: Path) -> None:
    """Raise SnapshotError if files cannot be linked. RocksDB would copy its tables then."""
    try:
        to.hardlink_to(path)
    except OSError as error:
        raise SnapshotError(
            f"no file in {path.parent} can be linked into {to.parent} ({error.strerror}): both have to be on one file "
            "system that has hard links"
        ) from error
    to.unlink()
