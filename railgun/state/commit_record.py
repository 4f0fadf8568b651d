"""The bytes of the commit record: the last committed epoch, and what the task keeps with it."""

from pathlib import Path
from struct import Struct

from railgun.state.errors import StoreCorruptionError, StoreVersionError

# Version, epoch, length of the meta that follows.
_HEAD = Struct("<HIQ")
_VERSION = 1


def pack_commit(epoch: int, meta: bytes) -> bytes:
    """The value under `keys.META`."""
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
