"""The manifest of a snapshot: the task, the position and formats, and the size and hash of each file. See FORMAT.md.

A donor sends it first. `TaskFetch` checks it before a byte of a file is fetched.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from railgun.catalog.task_key import TaskKey
from railgun.node.relay import Fetch
from railgun.task.snapshot_file import SNAPSHOT, SnapshotFile, read_snapshot
from railgun.transfer.hashing import FileHashes

VERSION: Final = 1
_ROOMS = ("state", "reservoir", "history")
_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,254}", re.ASCII)
_HASH = re.compile(r"[0-9a-f]{64}", re.ASCII)


class ManifestError(Exception):
    """A manifest cannot be used. The message is one line."""


class ManifestFile(msgspec.Struct, frozen=True):
    """A file of a snapshot. path: relative to the snapshot's folder.  hash: BLAKE2b of 32 bytes, in hexadecimal."""

    path: str
    size: int
    hash: str


class Manifest(msgspec.Struct, frozen=True):
    """A snapshot as a donor describes it.

    catalogue: the id of the topic of the cluster's catalogue; empty if it is not known.
    topic_prefix: the prefix of the cluster's topics.
    snapshot: says what the snapshot is.
    files: the path, size and hash of each file.
    version: the version of the format of the manifest.
    """

    catalogue: str
    topic_prefix: str
    snapshot: SnapshotFile
    files: list[ManifestFile]
    version: int = VERSION

    @property
    def size(self) -> int:
        """The bytes of all files."""
        return sum(each.size for each in self.files)


@dataclass(frozen=True, slots=True)
class ClusterId:
    """What tells a cluster from others: the id of its catalogue's topic (empty if it is not known), and the prefix of
    its topics.
    """

    catalogue: str
    topic_prefix: str


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Manifest).decode


def make_manifest(
    folder: Path, cluster: ClusterId, hashes: FileHashes, read: Callable[[int], object] = lambda size: None
) -> bytes:
    """Return the manifest of the snapshot in a folder. Reads all files. Raises SnapshotError, OSError.

    read: is called with the sizes of the chunks whose hash is known by now.
    """
    snapshot = read_snapshot(folder)
    files = []
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path != folder / SNAPSHOT:
            files.append(ManifestFile(path.relative_to(folder).as_posix(), *hashes.of(path, read)))
    return _encode(Manifest(cluster.catalogue, cluster.topic_prefix, snapshot, files))


def read_manifest(body: bytes) -> Manifest:
    """Return a manifest whose paths stay in the folder of a task. Raises ManifestError."""
    try:
        found = _decode(body)
    except msgspec.MsgspecError as error:
        raise ManifestError(f"a manifest that cannot be read: {error}") from None
    if found.version > VERSION:
        raise ManifestError(f"a manifest of version {found.version}; this release reads {VERSION}")
    for each in found.files:
        if not _is_path(each.path) or _HASH.fullmatch(each.hash) is None or each.size < 0:
            raise ManifestError(f"a manifest with a file that no snapshot has: {each.path[:80]!r}")
    if len({each.path for each in found.files}) < len(found.files):
        raise ManifestError("a manifest that names a file twice")
    return found


def check_manifest(found: Manifest, order: Fetch, own: ClusterId, release: str) -> None:
    """Raise ManifestError if a snapshot is not what was ordered. release: the release of this program."""
    snapshot = found.snapshot
    if _differs(found.catalogue, own.catalogue) or found.topic_prefix != own.topic_prefix:
        raise ManifestError(
            f"it is of another cluster: catalogue {found.catalogue or 'unknown'}, topics {found.topic_prefix}; this "
            f"one has {own.catalogue or 'unknown'}, {own.topic_prefix}"
        )
    task = TaskKey(snapshot.stream, snapshot.created, snapshot.partitioner, snapshot.partition).full_name
    if task != order.task:
        raise ManifestError(f"it is of another task: {task}")
    if _differs(snapshot.topic_id, order.topic_id):
        raise ManifestError(f"it was made of another log: topic {snapshot.topic_id}, not {order.topic_id}")
    if snapshot.position < order.log_start:
        raise ManifestError(
            f"it ends at offset {snapshot.position}, and the log begins at {order.log_start}: a later one is needed"
        )
    newer = sorted(
        f"{name} {version}"
        for name, version in snapshot.formats.items()
        if version > order.formats.get(name, 0)
    )
    if newer:
        raise ManifestError(
            f"release {snapshot.release} made it, and release {release} cannot read it ({', '.join(newer)}): start "
            "this node with the newer release"
        )


def _differs(one: str, other: str) -> bool:
    """Whether two ids differ, as far as both are known."""
    return bool(one and other) and one != other


def _is_path(path: str) -> bool:
    room, _, name = path.partition("/")
    return room in _ROOMS and _NAME.fullmatch(name) is not None
