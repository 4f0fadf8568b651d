"""The bytes of an undo entry: the keys that a write batch was first to write in an epoch, and old values."""

from collections.abc import Iterator
from pathlib import Path
from struct import Struct

from railgun.state.errors import StoreCorruptionError

# Length of the key, length of the old value; both follow.
UNDO_ENTRY = Struct("<HI")
ABSENT_LENGTH = 0xFFFFFFFF


def undo_entries(folder: Path, value: bytes) -> Iterator[tuple[bytes, bytes | None]]:
    """(key, old value as stored, or None where there was none) for each key. Raises StoreCorruptionError."""
    at = 0
    while at < len(value):
        key, old, at = undo_entry(folder, value, at)
        yield key, old


def undo_entry(folder: Path, value: bytes, at: int) -> tuple[bytes, bytes | None, int]:
    """The entry at an offset, and the offset behind it. Raises StoreCorruptionError."""
    if at + UNDO_ENTRY.size > len(value):
        raise StoreCorruptionError(folder, "recover", f"an undo entry is cut short at byte {at}")
    key_bytes, old_bytes = UNDO_ENTRY.unpack_from(value, at)
    at += UNDO_ENTRY.size
    end = at + key_bytes + (0 if old_bytes == ABSENT_LENGTH else old_bytes)
    if end > len(value):
        raise StoreCorruptionError(folder, "recover", f"an undo entry is cut short at byte {at}")
    key = value[at : at + key_bytes]
    return key, None if old_bytes == ABSENT_LENGTH else value[at + key_bytes : end], end
