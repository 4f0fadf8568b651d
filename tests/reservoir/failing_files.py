"""A file system whose k-th call fails, and which does not let a handle be used after it failed."""

import errno
import os
import threading
from pathlib import Path
from typing import Any

from reservoir.files import File, Files


class FailingFile:
    def __init__(self, files: "FailingFiles", file: File) -> None:
        self._files, self._file, self._failed = files, file, False

    def write(self, data: bytes | memoryview) -> int:
        taken = self._guarded("write", len(data))
        return self._file.write(memoryview(data)[:taken])

    def write_at(self, offset: int, data: bytes) -> None:
        self._guarded("write_at")
        self._file.write_at(offset, data)

    def sync(self) -> None:
        self._guarded("sync")
        self._file.sync()

    def truncate(self, size_bytes: int) -> None:
        self._guarded("truncate")
        self._file.truncate(size_bytes)

    def read(self, offset: int, size_bytes: int) -> bytes:
        self._files.call("read")
        return self._file.read(offset, size_bytes)

    def size(self) -> int:
        self._files.call("size")
        return self._file.size()

    def close(self) -> None:
        self._file.close()

    def _guarded(self, action: str, size_bytes: int = 0) -> int:
        if self._failed:
            self._files.misuse.append(f"{action} on a handle that failed")
        try:
            return self._files.call(action, size_bytes)
        except OSError:
            self._failed = True
            raise


class FailingFiles:
    """Fails the call number `at` (from 0): with an errno, or, for "short", by taking half of a write.

    sticky: every later call that changes something fails too (after a short write: with ENOSPC).
    `calls` counts; `harmful`: a change failed; `misuse` lists uses of handles after their failure.
    """

    def __init__(self, files: Files, at: int | None, how: str = "EIO", *, sticky: bool = False) -> None:
        self._files, self._at, self._how, self._sticky = files, at, how, sticky
        self._lock = threading.Lock()
        self.calls, self.failed, self.harmful, self.misuse = 0, False, False, list[str]()

    def call(self, action: str, size_bytes: int = 0) -> int:
        """Count a call, and fail it if it is its turn; how many bytes of a write to take."""
        with self._lock:
            number, self.calls = self.calls, self.calls + 1
            first = number == self._at
            reading = action in ("read", "size", "list", "open_read")
            again = self._sticky and self.failed and not reading
            if not first and not again:
                return size_bytes
            self.failed = True
            self.harmful |= not reading and (self._how != "short" or not first)
            if self._how != "short":
                raise OSError(getattr(errno, self._how), os.strerror(getattr(errno, self._how)), action)
            if again and not first:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), action)
            return max(1, size_bytes // 2) if action == "write" else size_bytes

    def make_folder(self, folder: Path) -> None:
        self.call("make_folder")
        self._files.make_folder(folder)

    def list(self, folder: Path) -> Any:
        self.call("list")
        return self._files.list(folder)

    def create(self, path: Path) -> FailingFile:
        self.call("create")
        return FailingFile(self, self._files.create(path))

    def open_append(self, path: Path) -> FailingFile:
        self.call("open_append")
        return FailingFile(self, self._files.open_append(path))

    def open_update(self, path: Path) -> FailingFile:
        self.call("open_update")
        return FailingFile(self, self._files.open_update(path))

    def open_read(self, path: Path) -> FailingFile:
        self.call("open_read")
        return FailingFile(self, self._files.open_read(path))

    def delete(self, path: Path) -> None:
        self.call("delete")
        self._files.delete(path)

    def link(self, path: Path, to: Path) -> None:
        self.call("link")
        self._files.link(path, to)

    def sync_folder(self, folder: Path) -> None:
        self.call("sync_folder")
        self._files.sync_folder(folder)
