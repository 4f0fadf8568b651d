"""One atomic write to RocksDB in the making."""

from rocksdict import WriteBatch

from railgun.state import keys
from railgun.state.rollback import MARK_BYTES, mark_of
from railgun.state.values import (
    ABSENT_LENGTH,
    BODY_FORMAT,
    PACKED_FORMAT,
    TOMBSTONE_FORMAT,
    UNDO_ENTRY,
    VALUE_HEADER,
)

_ENTRY_BYTES = 32  # RocksDB's own of one entry, and some


class ImageBatch:
    """Images, the values they are first in their epoch to overwrite, the keys they make tombstones of."""

    def __init__(self) -> None:
        self._batch = WriteBatch(raw_mode=True)
        self._undo: dict[int, list[bytes]] = {}
        self._graves: dict[int, list[bytes]] = {}
        self._marks: dict[int, list[bytes]] = {}
        self.size_bytes = 0

    @property
    def is_empty(self) -> bool:
        """Nothing was added."""
        return self.size_bytes == 0

    def add(self, key: bytes, body: bytes | None, epoch: int) -> bytes:
        """Put an image, or a tombstone; returns the value."""
        if body is None:
            value = VALUE_HEADER.pack(epoch, TOMBSTONE_FORMAT)
            self._graves.setdefault(epoch, []).append(UNDO_ENTRY.pack(len(key), ABSENT_LENGTH) + key)
            self.size_bytes += 2 * (len(key) + _ENTRY_BYTES)
        else:
            form = PACKED_FORMAT if key.startswith(keys.ROW) else BODY_FORMAT
            value = VALUE_HEADER.pack(epoch, form) + body
            self.size_bytes += len(key) + len(body) + _ENTRY_BYTES
        self._batch.put(key, value)
        marks = self._marks.get(epoch)
        if marks is None:
            marks = self._marks[epoch] = []
        marks.append(mark_of(key))
        self.size_bytes += MARK_BYTES
        return value

    def add_undo(self, epoch: int, key: bytes, old: bytes | None) -> None:
        """Keep the value that a key had before this epoch."""
        entries = self._undo.get(epoch)
        if entries is None:
            entries = self._undo[epoch] = []
        if old is None:
            entries.append(UNDO_ENTRY.pack(len(key), ABSENT_LENGTH) + key)
            self.size_bytes += len(key) + _ENTRY_BYTES
        else:
            entries.append(UNDO_ENTRY.pack(len(key), len(old)) + key + old)
            self.size_bytes += len(key) + len(old) + _ENTRY_BYTES

    def add_entries(self, epoch: int, entries: bytes) -> None:
        """Keep undo entries that are made already."""
        self._undo.setdefault(epoch, []).append(entries)
        self.size_bytes += len(entries)

    def sealed(self, number: int) -> WriteBatch:
        """The batch, with a number that is new in the life of the store."""
        for epoch, entries in self._undo.items():
            self._batch.put(keys.undo_key(epoch, number), b"".join(entries))
        for epoch in self._undo.keys() | self._marks.keys():
            self._batch.put(keys.written_key(epoch, number), b"".join(self._marks.get(epoch, ())))
        for epoch, entries in self._graves.items():
            self._batch.put(keys.graves_key(epoch, number), b"".join(entries))
        return self._batch
