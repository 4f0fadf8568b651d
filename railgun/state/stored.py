"""What a state folder holds as of its last commit, read without changing it, even while its owner runs."""

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from rocksdict import AccessType, Options, Rdict

from railgun.state import keys
from railgun.state.commit_record import unpack_commit
from railgun.state.errors import StoreError
from railgun.state.rocks import failures
from railgun.state.undo import undo_entries
from railgun.state.values import BODY_FORMAT, HEADER_BYTES


@dataclass(slots=True)
class Amount:
    """So many items, with so many bytes of keys and values."""

    items: int = 0
    size_bytes: int = 0

    def add(self, key: bytes, value: bytes) -> None:
        """Count one more."""
        self.items += 1
        self.size_bytes += len(key) + len(value)


@dataclass(slots=True)
class StoredAmounts:
    """Rows by group number, pages of trees, and strings that pages refer to."""

    rows: dict[int, Amount] = field(default_factory=dict)
    pages: Amount = field(default_factory=Amount)
    strings: Amount = field(default_factory=Amount)


class StoredState:
    """A folder of the store, opened for reading only. Raises StoreError where it cannot be read.

    Everything read has its CRC checked by RocksDB.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        if not (folder / "CURRENT").is_file():
            remedy = "Name the folder of a task, or the data folder above it"
            raise StoreError(folder, "open", "it holds no state", remedy)
        options = Options(raw_mode=True)
        # RocksDB logs what it does even when it only reads: not into a folder that is not ours.
        self._log = tempfile.TemporaryDirectory(prefix="railgun-")
        options.set_db_log_dir(self._log.name)
        try:
            with failures(folder, "open"):
                self._database = Rdict(str(folder), options, access_type=AccessType.read_only())
        except BaseException:
            self._log.cleanup()
            raise

    def close(self) -> None:
        """Let the folder go."""
        with failures(self._folder, "close"):
            self._database.close()
        self._log.cleanup()

    def commit(self) -> tuple[int, bytes] | None:
        """(epoch, meta) of the last commit; None where there is none. Raises StoreError."""
        with failures(self._folder, "read"):
            value = self._database.get(keys.META)
        return None if value is None else unpack_commit(self._folder, value)

    def amounts(self) -> StoredAmounts:
        """Read everything and count what was there at the last commit. Raises StoreError."""
        committed = self.commit()
        before = self._overwritten_since(0 if committed is None else committed[0])
        found = StoredAmounts()
        for prefix in (keys.ROW, keys.PAGE, keys.STRING):
            for key, value in self._items(prefix):
                self._count(found, key, before.pop(key, value))
        for key, value in before.items():
            self._count(found, key, value)
        return found

    def _overwritten_since(self, committed: int) -> dict[bytes, bytes | None]:
        """The committed values of keys that later epochs have overwritten; None where there was nothing."""
        before: dict[bytes, bytes | None] = {}
        for entry_key, entry in self._items(keys.UNDO):
            if keys.epoch_of(entry_key) > committed:
                for key, old in undo_entries(self._folder, entry):
                    before.setdefault(key, old)
        return before

    def _items(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        with failures(self._folder, "read"):
            for key, value in self._database.items(from_key=prefix):
                if not key.startswith(prefix):
                    break
                yield key, value

    @staticmethod
    def _count(found: StoredAmounts, key: bytes, value: bytes | None) -> None:
        if value is None or value[HEADER_BYTES - 1] != BODY_FORMAT:
            return
        if key.startswith(keys.ROW):
            found.rows.setdefault(keys.row_group(key), Amount()).add(key, value)
        elif key.startswith(keys.PAGE):
            found.pages.add(key, value)
        elif key.startswith(keys.STRING):
            found.strings.add(key, value)
