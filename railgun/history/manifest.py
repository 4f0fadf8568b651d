"""The manifest of a task's history: which task it is for, what it has, and a checksum of each file.

History is events from before a task's log, built into a folder that the task takes over. A build writes the manifest;
engines, hosts and backfills check it.
"""

import zlib
from pathlib import Path

import msgspec

from railgun.history.durable_files import make_all_durable
from railgun.task.errors import HistoryDamagedError
from railgun.task.settings import TaskIdentity

VERSION = 1
HISTORY = "history"
MANIFEST = "manifest.json"
MANIFEST_PLACE = f"{HISTORY}/{MANIFEST}"
# Pieces are small, because other threads wait while the system copies one.
_PIECE_BYTES = 256 * 1024


class HistoryManifest(msgspec.Struct, frozen=True):
    """The manifest of a task's history. See FORMAT.md. files: tuples of (path in the folder, bytes, CRC-32)."""

    history: str
    created: int
    stream: str
    partitioner: str
    partition: int
    cut_ms: int
    events: int
    duplicates: int
    first_ms: int | None
    last_ms: int | None
    remembered_ms: int | None
    position: int = 0
    known_place: int | None = None
    files: tuple[tuple[str, int, int], ...] = ()
    version: int = VERSION


def write_manifest(folder: Path, manifest: HistoryManifest) -> HistoryManifest:
    """List every file of a task's folder in its manifest, and make everything durable."""
    listed = []
    for path in sorted(each for each in folder.rglob("*") if each.is_file()):
        name = path.relative_to(folder).as_posix()
        listed.append((name, path.stat().st_size, _checksum(path)))
    full = msgspec.structs.replace(manifest, files=tuple(listed))
    place = folder / MANIFEST_PLACE
    place.parent.mkdir(exist_ok=True)
    place.write_bytes(msgspec.json.format(msgspec.json.encode(full), indent=1) + b"\n")
    make_all_durable(folder)
    return full


def read_manifest(folder: Path) -> HistoryManifest:
    """Read the manifest of a task's folder. Raises HistoryDamagedError and OSError."""
    place = folder / MANIFEST_PLACE
    try:
        manifest = msgspec.json.decode(place.read_bytes(), type=HistoryManifest)
    except FileNotFoundError as error:
        raise HistoryDamagedError(str(place), "the manifest is missing; build the history again") from error
    except msgspec.MsgspecError as error:
        raise HistoryDamagedError(
            str(place), f"it cannot be read ({error}); build the history again"
        ) from error
    if manifest.version > VERSION:
        raise HistoryDamagedError(
            str(place),
            f"it has version {manifest.version}, this program reads up to {VERSION}: use a newer one",
        )
    return manifest


KEPT = "installed"
"""The folder of kept histories in a stream's folder of histories. Each has a folder named by its id."""


def ready_folder(data: Path, stream: str) -> Path:
    """Return the folder for built histories of a stream's tasks in the data folder of an engine or a node."""
    return data / "backfill" / stream / "tasks"


def installed_folder(ready: Path, history: str) -> Path:
    """Return the folder in which a history that tasks have taken is kept. Copies that are made later need it.

    ready: the folder for built histories.
    """
    return ready.parent / KEPT / history


def verified_manifest(folder: Path, identity: TaskIdentity, created: int) -> HistoryManifest:
    """Verify every byte of a history that no task has opened yet, and return its manifest.

    created: the place in the catalogue of the stream's first definition.
    Raises HistoryDamagedError if the folder is not what its manifest says, or is for another task; and OSError.
    """
    manifest = read_manifest(folder)
    found = (manifest.stream, manifest.partitioner, manifest.partition, manifest.created)
    if found != (identity.stream, identity.partitioner, identity.partition, created):
        raise HistoryDamagedError(
            str(folder),
            f"it was built for another task, or for an earlier stream of that name, than {identity}; build the "
            "history again",
        )
    for name, size_bytes, checksum in manifest.files:
        check_file(folder / name, size_bytes, checksum)
    return manifest


def check_file(path: Path, size_bytes: int, checksum: int) -> None:
    """Raise HistoryDamagedError if a file does not have this size and checksum."""
    if not path.is_file():
        raise HistoryDamagedError(str(path), "the file is missing; build the history again")
    found = path.stat().st_size
    if found != size_bytes or _checksum(path) != checksum:
        message = (
            f"it has {found} bytes, not {size_bytes}" if found != size_bytes else "its checksum is another"
        )
        raise HistoryDamagedError(
            str(path), f"{message}: it is damaged, or was changed; build the history again"
        )


def _checksum(path: Path) -> int:
    found, piece = 0, memoryview(bytearray(_PIECE_BYTES))
    with path.open("rb", buffering=0) as file:
        while size_bytes := file.readinto(piece):
            found = zlib.crc32(piece[:size_bytes], found)
    return found
