"""Writes the data of a task, which is fetched from another node, into a folder beside the task's own.

It keeps what an earlier attempt has fetched, and checks every file by its hash. `TaskFetch` (fetch.py) calls `prepare`,
then `take` for each missing file, then `finish`. FORMAT.md describes the folder.
"""

import errno
import os
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from railgun.history.durable_files import make_durable, write_whole
from railgun.history.task_folder import current_folder
from railgun.host.data_folder import FETCHED, fetching_folder
from railgun.host.verified import is_verified
from railgun.private_folder import make_private
from railgun.task.errors import HistoryDamagedError
from railgun.transfer.hashing import FileHashes, new_hash
from railgun.transfer.manifest import Manifest, ManifestError, ManifestFile, read_manifest

SPARE_BYTES: Final = 256 << 20
"""So much of the disk stays free for the node's tasks."""
_LOOK_BYTES = 64 << 20
_RESERVOIR, _SEGMENT, _PART = "reservoir/", ".seg", ".part"


class NoRoomError(Exception):
    """The disk has no room for what is to be fetched. The message is one line."""


class DamagedError(Exception):
    """A file that was fetched is not the one of the manifest."""


class Missing(NamedTuple):
    """A file that is missing. begin: how many of its bytes have come."""

    file: ManifestFile
    begin: int


class TargetFolder:
    """The folder of the fetched data. One thread uses it.

    It reads and links files of the task's own folder, and changes none there.
    check: is called often, and raises an error if the fetch is to stop.
    free_bytes: returns how much of the disk is free.
    """

    def __init__(
        self,
        task_folder: Path,
        check: Callable[[], object],
        free_bytes: Callable[[Path], int],
    ) -> None:
        self._own, self._check, self._free_bytes = task_folder, check, free_bytes
        self.folder = fetching_folder(task_folder)
        self._unwatched = 0
        # A fetch that begins again does not read what it has verified.
        self._hashes = FileHashes()
        # Files are synced while the next ones come.
        self._syncing: dict[str, Future[None]] = {}
        self._syncs = ThreadPoolExecutor(1, "sync")

    def close(self) -> None:
        """End the thread that syncs files."""
        self._syncs.shutdown(wait=False, cancel_futures=True)

    def verified(self) -> Manifest | None:
        """Return the manifest if an earlier attempt has fetched and verified all files."""
        if not is_verified(self.folder):
            return None
        try:
            return read_manifest((self.folder / FETCHED).read_bytes())
        except (FileNotFoundError, ManifestError):
            return None

    def prepare(self, manifest: Manifest, read: Callable[[int], object]) -> tuple[list[Missing], int]:
        """Keep the files of the snapshot that are already there, link those that the task's own folder has, and delete
        all others.

        read: is called with the size of each chunk that was hashed.
        Returns the missing files, and how many bytes of the snapshot are there. Raises NoRoomError, OSError.
        """
        make_private(self.folder)
        (self.folder / FETCHED).unlink(missing_ok=True)
        self._delete_others(manifest)
        missing, there = [], 0
        fixed = self._fixed(manifest)
        for each in manifest.files:
            own = fixed.get(each.path)
            if self._is_there(each, read) or (own is not None and self._link(each, own, read)):
                there += each.size
            else:
                missing.append(Missing(each, self._begun(each)))
        self._check_room(sum(each.file.size - each.begin for each in missing))
        return missing, there

    def take(self, file: ManifestFile, content: Callable[[int], Iterator[bytes]]) -> Iterator[int]:
        """Write the missing part of a file. Yields the size of each chunk. `finish` makes the file durable.

        content: returns the bytes from an offset on.
        Raises DamagedError, after deleting the file, if it is not the one of the manifest; NoRoomError, OSError, and
        what `content` raises.
        """
        part, state = self._part(file), new_hash()
        size = self._begun(file)
        with part.open("r+b" if size else "wb") as opened:
            self._read_begun(size, opened.fileno(), state.update)
            for chunk in content(size) if size < file.size else ():
                self._check()
                size += len(chunk)
                if size > file.size:
                    break
                self._write(opened.fileno(), chunk)
                state.update(chunk)
                yield len(chunk)
        if size < file.size:
            raise DamagedError(f"{file.path} has ended after {size} of {file.size} bytes")
        if size > file.size or state.hexdigest() != file.hash:
            part.unlink()
            raise DamagedError(f"{file.path} is not the file of the manifest")
        place = self.folder / file.path
        part.rename(place)
        self._hashes.note(place, file.hash)
        self._syncing[file.path] = self._syncs.submit(_sync, place)

    def finish(self, manifest: Manifest) -> None:
        """Note durably that all files are there and verified. Raises DamagedError, OSError."""
        for each in manifest.files:
            self._check()
            place, syncing = self.folder / each.path, self._syncing.pop(each.path, None)
            if syncing is not None:
                syncing.result()
            else:
                # An attempt before this one may have been cut off before it was synced.
                _sync(place)
            if place.stat().st_size != each.size:
                raise DamagedError(f"{each.path} has {place.stat().st_size} bytes, not {each.size}")
        for folder in {(self.folder / each.path).parent for each in manifest.files}:
            make_durable(folder)
        make_durable(self.folder.parent)
        # The unit may meanwhile have opened the task with the data that it had. Then it deletes this folder.
        self._check()
        write_whole(self.folder / FETCHED, msgspec.json.encode(manifest).decode())

    def delete(self) -> None:
        """Delete the folder."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _delete_others(self, manifest: Manifest) -> None:
        wanted = {self.folder / each.path for each in manifest.files}
        wanted |= {self._part(each) for each in manifest.files}
        for path in self.folder.rglob("*"):
            if not path.is_dir() and path not in wanted:
                path.unlink()
        for each in manifest.files:
            (self.folder / each.path).parent.mkdir(parents=True, exist_ok=True)

    def _is_there(self, file: ManifestFile, read: Callable[[int], object]) -> bool:
        place = self.folder / file.path
        if not place.is_file():
            return False
        if place.stat().st_size == file.size and self._hashes.of(place, read) == (file.size, file.hash):
            return True
        place.unlink()
        return False

    def _fixed(self, manifest: Manifest) -> dict[str, Path]:
        """Return the files of the task's own folder that may be those of the manifest, and that nobody appends to."""
        try:
            own = current_folder(self._own) / _RESERVOIR
            last = max((path.name for path in own.iterdir() if path.suffix == _SEGMENT), default="")
        except (HistoryDamagedError, OSError):
            # There is no such folder, or it cannot be used.
            return {}
        paths = {each.path for each in manifest.files if each.path.startswith(_RESERVOIR)}
        last_sent = max((path for path in paths if path.endswith(_SEGMENT)), default="")
        return {path: own / path.removeprefix(_RESERVOIR) for path in paths - {last_sent, _RESERVOIR + last}}

    def _link(self, file: ManifestFile, own: Path, read: Callable[[int], object]) -> bool:
        try:
            if own.stat().st_size != file.size or self._hashes.of(own, read) != (file.size, file.hash):
                return False
            (self.folder / file.path).hardlink_to(own)
        except OSError:
            # The task may be open, and delete it meanwhile. It is fetched then.
            return False
        self._part(file).unlink(missing_ok=True)
        return True

    def _begun(self, file: ManifestFile) -> int:
        """Return how many bytes of a file that is missing have come."""
        part = self._part(file)
        size = part.stat().st_size if part.is_file() else 0
        return size if size < file.size else 0

    def _part(self, file: ManifestFile) -> Path:
        """Return the place of a file that has come in part. Its name has the hash of the whole, so that the rest may
        come from any donor."""
        place = self.folder / file.path
        return place.with_name(f"{place.name}.{file.hash[:32]}{_PART}")

    def _read_begun(self, size: int, handle: int, take: Callable[[bytes], object]) -> None:
        at = 0
        while at < size:
            self._check()
            read = os.read(handle, min(1 << 20, size - at))
            at += len(read)
            take(read)

    def _write(self, handle: int, chunk: bytes) -> None:
        self._unwatched += len(chunk)
        if self._unwatched >= _LOOK_BYTES:
            self._unwatched = 0
            self._check_room(0)
        try:
            written = 0
            while written < len(chunk):
                written += os.write(handle, memoryview(chunk)[written:])
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise NoRoomError(f"{self.folder}: the disk is full") from None
            raise

    def _check_room(self, needed: int) -> None:
        free = self._free_bytes(self.folder)
        if free < needed + SPARE_BYTES:
            raise NoRoomError(
                f"{self.folder}: the disk has {free} bytes left; {needed} are to be fetched, and {SPARE_BYTES} have to "
                "stay free: make room there"
            )


def _sync(place: Path) -> None:
    """Make a file durable. Raises OSError; the file is deleted then, since what is read of it may never be on disk."""
    try:
        make_durable(place)
    except OSError:
        place.unlink(missing_ok=True)
        raise
