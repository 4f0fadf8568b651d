"""The data folder of an engine: its layout, its version, and whether it may be used. FORMAT.md describes the files."""

import logging
import shutil
from contextlib import suppress
from pathlib import Path

from railgun.catalog.names import column_name
from railgun.engine.errors import FolderError, FolderVersionError
from railgun.private_folder import exposure, make_private
from railgun.state.lock import FolderLock
from reservoir.files import Files

VERSION = 1
LOG = "log"
VERSION_FILE, STREAMS = "VERSION", "streams"
_UNFINISHED = ".VERSION"
# An empty folder may hold these: the remains of a start that was cut off, and what file systems put into their roots.
_NOTHING = (_UNFINISHED, "lost+found")
_LIMIT_BYTES = 64
_log = logging.getLogger("railgun.engine")


class DataFolder:
    """The data folder of an engine. An empty folder becomes one.

    Raises FolderVersionError if a newer version has written it, FolderError if it holds something else, and OSError.
    """

    def __init__(self, path: Path, files: Files) -> None:
        self.path, self.files = path, files
        try:
            make_private(path)
            files.make_folder(path)
            names = [name for name in files.list(path) if name not in _NOTHING]
        except OSError as error:
            raise FolderError(
                f"{path}: no data folder can be made here: {error.strerror or error}; name a folder on a disk that can "
                "be written to"
            ) from error
        if VERSION_FILE in names:
            self._check()
            if self.has_tasks and not (self.log / LOG / "CURRENT").is_file():
                raise without_log(path)
        elif {LOG, STREAMS} & set(names):
            raise FolderError(f"{path}: {VERSION_FILE} is gone; restore the whole folder from a copy")
        elif names:
            raise FolderError(
                f"{path}: it holds {names[0]} and other things, but no data of Railgun; name an empty folder, or a "
                "new one"
            )
        else:
            self._begin()
        for each in (self.log, path / STREAMS):
            make_private(each)
        exposed = exposure(path)
        if exposed is not None:
            _log.warning("%s", exposed)

    @property
    def log(self) -> Path:
        """The folder of the embedded log."""
        return self.path / LOG

    @property
    def has_tasks(self) -> bool:
        """Whether there are folders of streams."""
        return bool(self.streams())

    def streams(self) -> set[str]:
        """Return the names of the streams that have folders here."""
        folder = self.path / STREAMS
        return set(self.files.list(folder)) if folder.is_dir() else set()

    def place(self, stream: str, partitioner: str, partition: int) -> Path:
        """Return the folder of a task (`railgun.history.task_folder`), and create it if it is missing."""
        folder = self.path / STREAMS / stream / column_name(partitioner) / str(partition)
        if not folder.is_dir():
            self.files.make_folder(folder)
            for made in (folder, *folder.parents):
                self.files.sync_folder(made)
                if made == self.path:
                    break
        return folder

    def remove_stream(self, stream: str) -> None:
        """Delete the folders of a stream's tasks, if there are any."""
        folder = self.path / STREAMS / stream
        if folder.is_dir():
            shutil.rmtree(folder)
            self.files.sync_folder(folder.parent)

    def _begin(self) -> None:
        # A whole file gets its name at once: a crash leaves a folder that counts as empty, or a finished one.
        unfinished = self.path / _UNFINISHED
        unfinished.unlink(missing_ok=True)
        file = self.files.create(unfinished)
        try:
            file.write(f"{VERSION}\n".encode())
            file.sync()
        finally:
            file.close()
        unfinished.rename(self.path / VERSION_FILE)
        self.files.sync_folder(self.path)

    def _check(self) -> None:
        place = self.path / VERSION_FILE
        file = self.files.open_read(place)
        try:
            text = file.read(0, _LIMIT_BYTES)
        finally:
            file.close()
        if not text.strip().isdigit():
            raise FolderError(f"{place}: {text[:20]!r} is no version; restore the folder from a copy")
        if int(text) > VERSION:
            raise FolderVersionError(
                f"{place}: the folder has version {int(text)}, this program reads up to {VERSION}; run the version "
                "that wrote it, or a newer one"
            )


def check_not_in_use(path: Path) -> None:
    """Raise StoreLockedError if another process has the data folder open. Other errors are raised when it is opened."""
    with suppress(OSError):
        FolderLock(path / LOG).release()


def of_another_log(folder: Path, stream: str) -> FolderError:
    """Return the error for task folders of a stream that the log does not know: the folder was put together from two
    copies.
    """
    return FolderError(
        f"{folder}: {STREAMS}/{stream} holds tasks of a stream that {LOG}/ does not know of; restore the whole folder "
        "from one copy"
    )


def without_log(folder: Path) -> FolderError:
    """Return the error for task folders without a log or a catalogue: the tasks cannot continue without them."""
    return FolderError(
        f"{folder}: it holds the tasks of streams in {STREAMS}/, but {LOG}/ is gone or does not know of them; "
        "restore the whole folder from one copy"
    )
