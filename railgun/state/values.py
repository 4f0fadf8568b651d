"""The bytes of the store's values (epoch, format, body), of undo entries, and of the commit record.

`Store` writes and reads them; the kernels that load rows read values too. An undo entry holds the keys that a write
batch was first to write in an epoch, with their old values. The commit record holds the last committed epoch, and what
the task keeps with it.
"""

from collections.abc import Iterator
from pathlib import Path
from struct import Struct

from railgun.state.errors import StoreCorruptionError, StoreVersionError

# Version, epoch, length of the meta that follows.
_HEAD = Struct("<HIQ")
_VERSION = 1


def pack_commit(epoch: int, meta: bytes) -> bytes:
    """Return the commit record, the value under `keys.META`."""
    return _HEAD.pack(_VERSION, epoch, len(meta)) + meta


def unpack_commit(folder: Path, value: bytes) -> tuple[int, bytes]:
    """(epoch, meta) of a commit record. Raises StoreCorruptionError, StoreVersionError, naming the folder."""
    if len(value) < _HEAD.size:
        raise StoreCorruptionError(folder, "recover", "the commit record is cut short")
    version, epoch, length = _HEAD.unpack_from(value)
    if version != _VERSION:
        raise StoreVersionError(folder, f"the commit record has version {version}")
    if len(value) != _HEAD.size + length:
        raise StoreCorruptionError(folder, "recover", "the commit record has the wrong length")
    return epoch, value[_HEAD.size :]


# Length of the key, and length of the old value. Key and value follow.
UNDO_ENTRY = Struct("<HI")
ABSENT_LENGTH = 0xFFFFFFFF


def undo_entries(folder: Path, value: bytes) -> Iterator[tuple[bytes, bytes | None]]:
    """Iterate over (key, old value as stored; None if there was none) of each entry. Raises StoreCorruptionError."""
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


VALUE_HEADER = Struct("<IB")
HEADER_BYTES = VALUE_HEADER.size

TOMBSTONE_FORMAT = 0
BODY_FORMAT = 1
PACKED_FORMAT = 2  # a row's cells without the bytes that are zero
