"""The end of the embedded log: what was acknowledged is found again at the next opening, or missed aloud."""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rocksdict import WriteBatch

from railgun.messaging.embedded.database import END_KEY, LogDatabase
from railgun.messaging.errors import (
    TransportCorruptionError,
    TransportIOError,
    TransportShortenedError,
    TransportVersionError,
)
from railgun.state.end_marker import END_MARK, EndMark, EndMarker
from railgun.state.errors import EndMarkVersionError, StoreCorruptionError
from reservoir.files import Files

_log = logging.getLogger(__name__)


class LogEnd:
    """Numbers the commits of a database, and compares the newest that is found with the mark beside it.

    `lost`: commits that a loss of power took, of those that durability "os" had let be acknowledged.
    Raises TransportError: TransportShortenedError where something is gone that must be there.
    """

    def __init__(self, files: Files, folder: Path, database: LogDatabase) -> None:
        self._folder, self._database = folder, database
        self._lock = threading.Lock()
        self._failed: TransportIOError | None = None
        with self._failures():
            self._marker = EndMarker(files, folder / END_MARK)
        try:
            self.lost = self._missing()
            self._next = self._written = self._synced = found_end(database)
            with self._failures():
                # Recovery has put what it found into tables; what is written from here on is behind that.
                database.sync()
                self._marker.note(self._written, self._synced)
                self._marker.sync()
        except BaseException:
            self._marker.close()
            raise

    def _missing(self) -> int:
        lost = check_end(self._folder, self._marker.found, self._database)
        if lost:
            _log.warning(
                "%s: a loss of power took the last %d commits, which were acknowledged and not synced, as "
                'durability "os" allows; going on without them',
                self._folder,
                lost,
            )
        return lost

    def number(self, batch: WriteBatch) -> None:
        """Put the next commit's number into its last batch: RocksDB has it, or it lacks the commit's end."""
        self._next += 1
        batch.put(END_KEY, self._next.to_bytes(8, "big"))

    def wrote(self, *, synced: bool) -> None:
        """The commit that was numbered last is written, and is about to be acknowledged."""
        self._note(self._next, synced=synced)

    def sync(self) -> None:
        """Sync the database, then the mark that says so. Any thread."""
        written = self._written
        self._database.sync()
        self._note(written, synced=True)
        with self._failures():
            self._marker.sync()

    def _note(self, number: int, *, synced: bool) -> None:
        # Once per commit: the context manager alone would cost as much as the writing.
        if self._failed is not None:
            raise self._failed
        with self._lock:
            if number > self._written:
                self._written = number
            if synced and number > self._synced:
                self._synced = number
            try:
                self._marker.note(self._written, self._synced)
            except OSError as error:
                raise self._failure(error) from error

    @property
    def has_failed(self) -> bool:
        """The mark could not be written: it is not tried again."""
        return self._failed is not None

    def close(self) -> None:
        """Let the mark's file go."""
        self._marker.close()

    @contextmanager
    def _failures(self) -> Iterator[None]:
        if self._failed is not None:
            raise self._failed
        try:
            with as_transport_errors(self._folder):
                yield
        except OSError as error:
            raise self._failure(error) from error

    def _failure(self, error: OSError) -> TransportIOError:
        remedy = "Check the disk and its free space, then start again"
        self._failed = TransportIOError(str(self._folder / END_MARK), str(error), remedy)
        return self._failed


def found_end(database: LogDatabase) -> int:
    """The number of the newest commit that a database holds; all before it are there too."""
    return int.from_bytes(database.get(END_KEY) or b"", "big")


def check_end(folder: Path, mark: EndMark | None, database: LogDatabase) -> int:
    """How many commits a loss of power took. Raises TransportShortenedError where more are gone than it may take."""
    if mark is None:
        return 0
    found = found_end(database)
    if found < mark.least:
        missing = max(mark.written, mark.synced) - found
        raise TransportShortenedError(str(database.folder), missing, str(folder / END_MARK))
    return max(mark.written - found, 0)


@contextmanager
def as_transport_errors(folder: Path) -> Iterator[None]:
    """What the mark raises, as errors of this package."""
    try:
        yield
    except EndMarkVersionError as error:
        raise TransportVersionError(str(folder / END_MARK), error.version) from error
    except StoreCorruptionError as error:
        raise TransportCorruptionError(str(folder), error.reason) from error
