"""Detects at opening that the embedded log lacks acknowledged commits.

railgun/messaging/FORMAT.md describes the mark that it compares the log with.
"""

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

_log = logging.getLogger("railgun.messaging.log_end")


class CommitMarker:
    """Numbers the commits of a database, and keeps the newest number in a mark beside it.

    lost: how many acknowledged commits a loss of power took, as durability "os" allows.
    Threads: one at a time commits (`number`, `wrote`); any may call `sync`.
    Raises TransportError; TransportShortenedError if commits are missing that a loss of power cannot explain.
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
                # Recovery has put the commits that it found into tables. The sync makes them durable.
                database.sync()
                self._marker.note(self._written, self._synced)
                self._marker.sync()
        except BaseException:
            self._marker.close()
            raise

    def _missing(self) -> int:
        """Return how many acknowledged commits are gone. Logs a warning if any are."""
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
        """Add the next commit's number to the last batch of the commit.

        So a database that has the number has all of the commit.
        """
        self._next += 1
        batch.put(END_KEY, self._next.to_bytes(8, "big"))

    def wrote(self, *, synced: bool) -> None:
        """Put the last numbered commit, which is written and about to be acknowledged, into the mark."""
        self._note(self._next, synced=synced)

    def sync(self) -> None:
        """Sync the database, and then the mark. Any thread may call this."""
        written = self._written
        self._database.sync()
        self._note(written, synced=True)
        with self._failures():
            self._marker.sync()

    def _note(self, number: int, *, synced: bool) -> None:
        """Write into the mark that a commit is written, and whether it is synced."""
        # Without `_failures`: this runs once per commit, and the context manager would cost as much as the write.
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
        """Whether writing the mark has failed. Every later attempt fails with the same error."""
        return self._failed is not None

    def close(self) -> None:
        """Close the mark's file."""
        self._marker.close()

    @contextmanager
    def _failures(self) -> Iterator[None]:
        """Raise TransportError for an error of the mark's file. After an OSError every later block raises it too."""
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
    """Return the number of the newest commit in a database, which then has all earlier ones; 0 if it has none."""
    return int.from_bytes(database.get(END_KEY) or b"", "big")


def check_end(folder: Path, mark: EndMark | None, database: LogDatabase) -> int:
    """Return how many acknowledged commits a loss of power took.

    mark: the mark beside the database; None if there is none.
    Raises TransportShortenedError if commits are missing that must have survived.
    """
    if mark is None:
        return 0
    found = found_end(database)
    if found < mark.least:
        missing = max(mark.written, mark.synced) - found
        raise TransportShortenedError(str(database.folder), missing, str(folder / END_MARK))
    return max(mark.written - found, 0)


@contextmanager
def as_transport_errors(folder: Path) -> Iterator[None]:
    """Map the errors of the mark's file to errors of this package."""
    try:
        yield
    except EndMarkVersionError as error:
        raise TransportVersionError(str(folder / END_MARK), error.version) from error
    except StoreCorruptionError as error:
        raise TransportCorruptionError(str(folder), error.reason) from error
