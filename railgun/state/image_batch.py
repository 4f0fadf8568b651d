"""Collects what one atomic write to RocksDB will contain. `Store` makes such batches."""

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

_ENTRY_BYTES = 32  # about what RocksDB adds to one entry


class ImageBatch:
    """Holds images, the old values that they are the first of their epoch to overwrite, and the keys of tombstones."""

    def __init__(self) -> None:
        self._batch = WriteBatch(raw_mode=True)
        self._undo: dict[int, list[bytes]] = {}
        self._graves: dict[int, list[bytes]] = {}
        self._marks: dict[int, list[bytes]] = {}
        self.size_bytes = 0

    @property
    def is_empty(self) -> bool:
        """Whether nothing was added."""
        return self.size_bytes == 0

    def add(self, key: bytes, body: bytes | None, epoch: int) -> bytes:
        """Add an image, or a tombstone if body is None. Returns the value as it will be stored."""
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
        """Add the value that a key had before this epoch, to be restored if the epoch does not commit."""
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
        """Add undo entries that are already encoded."""
        self._undo.setdefault(epoch, []).append(entries)
        self.size_bytes += len(entries)

    def sealed(self, number: int) -> WriteBatch:
        """Return the finished batch. number: one that the store has never used before."""
        for epoch, entries in self._undo.items():
            self._batch.put(keys.undo_key(epoch, number), b"".join(entries))
        for epoch in self._undo.keys() | self._marks.keys():
            self._batch.put(keys.written_key(epoch, number), b"".join(self._marks.get(epoch, ())))
        for epoch, entries in self._graves.items():
            self._batch.put(keys.graves_key(epoch, number), b"".join(entries))
        return self._batch
