"""Reads what a state folder held at its last commit, for `railgun inspect`. Changes nothing, and works even while the
folder's owner runs.
"""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from rocksdict import AccessType, DBRecoveryMode, Options, Rdict

from railgun.state import keys
from railgun.state.end_marker import END_MARK, read_mark
from railgun.state.errors import StoreCorruptionError, StoreError
from railgun.state.rocks import failure, items
from railgun.state.rocks_files import check_files
from railgun.state.values import HEADER_BYTES, TOMBSTONE_FORMAT, undo_entries, unpack_commit
from reservoir.files import DiskFiles

_CURRENT = "CURRENT"


@dataclass(slots=True)
class Amount:
    """A number of items, and the bytes of their keys and values."""

    items: int = 0
    size_bytes: int = 0

    def add(self, key: bytes, value: bytes) -> None:
        """Count one more item."""
        self.items += 1
        self.size_bytes += len(key) + len(value)


@dataclass(slots=True)
class StoredAmounts:
    """The amounts of rows by group number, of pages of trees, and of strings."""

    rows: dict[int, Amount] = field(default_factory=dict)
    pages: Amount = field(default_factory=Amount)
    strings: Amount = field(default_factory=Amount)


class StoredState:
    """A folder of the store, opened for reading only. Raises StoreError if it cannot be read.

    RocksDB opens another folder, with links to the files. So what RocksDB or its binding writes beside them (its own
    logs, settings) stays out of a folder that is not ours. The CRC of everything that is read is checked.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        if not (folder / _CURRENT).is_file():
            raise StoreCorruptionError(folder, "open", "its file CURRENT is missing")
        check_files(DiskFiles(), folder)
        # The mark is read before the database is opened, because the owner may go on and mark later commits.
        self._end = read_mark(DiskFiles(), folder / END_MARK)
        self._links = tempfile.TemporaryDirectory(prefix="railgun-")
        options = Options(raw_mode=True)
        # The owner recovers what is whole before any damage. Here damage is to be found.
        options.set_wal_recovery_mode(DBRecoveryMode.tolerate_corrupted_tail_records())
        try:
            _link(folder, Path(self._links.name))
            with self._failures("open"):
                self._database = Rdict(self._links.name, options, access_type=AccessType.read_only())
        except BaseException:
            self._links.cleanup()
            raise

    def close(self) -> None:
        """Close the folder."""
        with self._failures("close"):
            self._database.close()
        self._links.cleanup()

    def commit(self) -> tuple[int, bytes] | None:
        """Return (epoch, meta) of the last commit; None if there is none. Raises StoreError."""
        with self._failures("read"):
            value = self._database.get(keys.META)
        found = None if value is None else unpack_commit(self._folder, value)
        newest = 0 if found is None else found[0]
        if self._end is not None and newest < self._end.synced:
            reason = f"checkpoint {self._end.synced} is gone, {newest} is the newest"
            raise StoreCorruptionError(self._folder, "read", reason)
        return found

    def amounts(self) -> StoredAmounts:
        """Read everything, and count what was there at the last commit. Raises StoreError."""
        committed = self.commit()
        before = self._overwritten_since(0 if committed is None else committed[0])
        found = StoredAmounts()
        for prefix in (keys.ROW, keys.PAGE, keys.STRING):
            for key, value in self._items(prefix):
                self._count(found, key, before.pop(key, value))
        for key, old in before.items():
            self._count(found, key, old)
        return found

    def _overwritten_since(self, committed: int) -> dict[bytes, bytes | None]:
        """Return the committed values of keys that later epochs have overwritten; None for a key that was not there."""
        before: dict[bytes, bytes | None] = {}
        for entry_key, entry in self._items(keys.UNDO):
            if keys.epoch_of(entry_key) > committed:
                for key, old in undo_entries(self._folder, entry):
                    before.setdefault(key, old)
        return before

    def _items(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        with self._failures("read"):
            yield from items(self._database, self._folder, prefix, keys.after(prefix))

    @contextmanager
    def _failures(self, doing: str) -> Iterator[None]:
        """Raise typed errors that name the folder's own files, not the links to them."""
        try:
            yield
        except Exception as error:
            message = error.reason if isinstance(error, StoreError) else str(error)
            own = message.replace(self._links.name, str(self._folder))
            raise failure(self._folder, doing, RuntimeError(own)) from error

    @staticmethod
    def _count(found: StoredAmounts, key: bytes, value: bytes | None) -> None:
        if value is None or value[HEADER_BYTES - 1] == TOMBSTONE_FORMAT:
            return
        if key.startswith(keys.ROW):
            found.rows.setdefault(keys.row_group(key), Amount()).add(key, value)
        elif key.startswith(keys.PAGE):
            found.pages.add(key, value)
        elif key.startswith(keys.STRING):
            found.strings.add(key, value)


def _link(folder: Path, target: Path) -> None:
    """Link to the database's files as they are now. CURRENT says which of them count, so it is copied first."""
    (target / _CURRENT).write_bytes((folder / _CURRENT).read_bytes())
    for name in sorted(os.listdir(folder)):
        if name.startswith("MANIFEST-") or name.endswith((".sst", ".log")):
            (target / name).symlink_to((folder / name).resolve())
