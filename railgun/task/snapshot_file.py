"""The file `snapshot.json`, which says what a snapshot of a task is. FORMAT.md describes the folder.

It loads no engine, so that processes which only carry snapshots can read it.
"""

from pathlib import Path

import msgspec

from railgun.task.errors import SnapshotError

VERSION = 1
SNAPSHOT = "snapshot.json"


class SnapshotFile(msgspec.Struct, frozen=True):
    """The content of `snapshot.json`.

    stream, partitioner, partition: the task.
    created: the number of the catalogue's change that made the stream.
    topic_id: the id of the topic of the log that the state was made of; empty if it is not known.
    position: the offset of the next record.
    leader_epoch: the epoch of the record before it; -1 if it is not known.
    epoch: the last committed epoch of the state.
    history: the id of the history before the log; empty if there is none.
    release, arrow: the release of this program, and the version of Arrow, that made it. Bytes may differ between them.
    formats: the versions of the formats in the folder, by name.
    version: the version of the format of this file.
    """

    stream: str
    created: int
    partitioner: str
    partition: int
    topic_id: str
    position: int
    leader_epoch: int
    epoch: int
    history: str
    release: str
    arrow: str
    formats: dict[str, int]
    version: int = VERSION


def read_snapshot(folder: Path) -> SnapshotFile:
    """Read the file in a folder. Raises SnapshotError if the folder holds no snapshot, or that of a newer release."""
    try:
        found = msgspec.json.decode((folder / SNAPSHOT).read_bytes(), type=SnapshotFile)
    except (OSError, msgspec.MsgspecError) as error:
        raise SnapshotError(f"{folder} holds no snapshot: {error}") from error
    if found.version > VERSION:
        raise SnapshotError(f"the snapshot in {folder} has version {found.version}, {VERSION} can be read")
    return found
