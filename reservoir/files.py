"""The only module of the reservoir that opens, writes, fsyncs, truncates, deletes and lists files.

All other modules are given a `Files`, so that tests can simulate faults and power cuts.
"""

import os
from pathlib import Path
from typing import Protocol


class File(Protocol):
    """One open file. Every method may raise OSError; after a failed write or sync it is not used again."""

    def write(self, data: bytes | memoryview) -> int:
        """Append bytes. Returns how many were written, which may be fewer than given, but is never 0."""

    def write_at(self, offset: int, data: bytes) -> None:
        """Overwrite bytes within a file that was opened with `open_update`."""

    def read(self, offset: int, size_bytes: int) -> bytes:
        """Return the bytes from offset on; fewer than size_bytes only at the end of the file."""

    def size(self) -> int:
        """Length in bytes."""

    def truncate(self, size_bytes: int) -> None:
        """Cut to a length."""

    def sync(self) -> None:
        """Sync the file, so that its bytes and its length survive a loss of power."""

    def close(self) -> None:
        """Close the handle. The file stays."""


class Files(Protocol):
    """A file system. Every method may raise OSError."""

    def make_folder(self, folder: Path) -> None:
        """Make a folder and its parents. No error if it exists."""

    def list(self, folder: Path) -> list[str]:
        """Names in a folder, sorted."""

    def create(self, path: Path) -> File:
        """Make an empty file and open it for writing. Raises an error if it exists."""

    def open_append(self, path: Path) -> File:
        """Open an existing file for reading, writing at its end and truncating."""

    def open_update(self, path: Path) -> File:
        """Open an existing file for reading, and for overwriting its bytes."""

    def open_read(self, path: Path) -> File:
        """Open an existing file for reading, by any number of threads."""

    def delete(self, path: Path) -> None:
        """Remove a file."""

    def link(self, path: Path, to: Path) -> None:
        """Give a file a second name, on the same file system. Raises an error if that name exists."""

    def sync_folder(self, folder: Path) -> None:
        """Sync a folder, so that the names in it survive a loss of power."""


class DiskFile:
    """A file of the operating system. It is closed when it is dropped, so a reader that still holds it is safe."""

    __slots__ = ("_handle",)

    def __init__(self, handle: int) -> None:
        self._handle = handle

    def write(self, data: bytes | memoryview) -> int:
        return os.write(self._handle, data)

    def write_at(self, offset: int, data: bytes) -> None:
        while data:
            taken = os.pwrite(self._handle, data, offset)
            offset, data = offset + taken, data[taken:]

    def read(self, offset: int, size_bytes: int) -> bytes:
        data = os.pread(self._handle, size_bytes, offset)
        while len(data) < size_bytes:
            more = os.pread(self._handle, size_bytes - len(data), offset + len(data))
            if not more:
                break
            data += more
        return data

    def size(self) -> int:
        return os.fstat(self._handle).st_size

    def truncate(self, size_bytes: int) -> None:
        os.ftruncate(self._handle, size_bytes)

    def sync(self) -> None:
        os.fdatasync(self._handle)

    def close(self) -> None:
        handle, self._handle = self._handle, -1
        if handle >= 0:
            os.close(handle)

    def __del__(self) -> None:
        self.close()


class DiskFiles:
    """The file system of the operating system."""

    def make_folder(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)

    def list(self, folder: Path) -> list[str]:
        return sorted(os.listdir(folder))

    def create(self, path: Path) -> File:
        return DiskFile(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o644))

    def open_append(self, path: Path) -> File:
        return DiskFile(os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC))

    def open_update(self, path: Path) -> File:
        return DiskFile(os.open(path, os.O_RDWR | os.O_CLOEXEC))

    def open_read(self, path: Path) -> File:
        return DiskFile(os.open(path, os.O_RDONLY | os.O_CLOEXEC))

    def delete(self, path: Path) -> None:
        path.unlink()

    def link(self, path: Path, to: Path) -> None:
        to.hardlink_to(path)

    def sync_folder(self, folder: Path) -> None:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
