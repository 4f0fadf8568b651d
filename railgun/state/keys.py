"""The keys of the state in RocksDB: one letter for the kind, then fixed-width big-endian numbers.

The store, the entity table and the page pool make keys here alone.
"""

import struct

META = b"m"
ROW = b"r"
PAGE = b"p"
STRING = b"s"
LAYOUT = b"l"
UNDO = b"u"
WRITTEN = b"w"
GRAVES = b"d"

ROW_KEY_BYTES = 19

_ROW = struct.Struct(">cHQQ")
_PAGE = struct.Struct(">cQQ")
_LAYOUT = struct.Struct(">cHI")
_IN_EPOCH = struct.Struct(">cIQ")


def row_key(group: int, hi: int, lo: int) -> bytes:
    """Key of the row of an entity: group index and the 128-bit hash of the entity."""
    return _ROW.pack(ROW, group, hi, lo)


def row_key_parts(key: bytes) -> tuple[int, int, int]:
    """(group, hi, lo) of a row key."""
    _, group, hi, lo = _ROW.unpack(key)
    return group, hi, lo


def row_group(key: bytes) -> int:
    """The group of a row key."""
    return int.from_bytes(key[1:3], "big")


def group_range(group: int) -> tuple[bytes, bytes]:
    """[from, to) of the keys of all rows of a group."""
    start = ROW + struct.pack(">H", group)
    return start, after(start)


def page_key(hi: int, lo: int) -> bytes:
    """Key of a page of a tree: its 128-bit number."""
    return _PAGE.pack(PAGE, hi, lo)


def string_key(hi: int, lo: int) -> bytes:
    """Key of a string item: the 128-bit hash of the string."""
    return _PAGE.pack(STRING, hi, lo)


def layout_key(group: int, version: int) -> bytes:
    """Key of one version of the row layout of a group."""
    return _LAYOUT.pack(LAYOUT, group, version)


def layout_key_parts(key: bytes) -> tuple[int, int]:
    """(group, version) of a layout key."""
    _, group, version = _LAYOUT.unpack(key)
    return group, version


def layout_range(group: int) -> tuple[bytes, bytes]:
    """[from, to) of the keys of all layouts of a group."""
    start = LAYOUT + struct.pack(">H", group)
    return start, after(start)


def undo_key(epoch: int, number: int) -> bytes:
    """Key of the undo entries of one write batch: the values that it was the first of its epoch to overwrite."""
    return _IN_EPOCH.pack(UNDO, epoch, number)


def written_key(epoch: int, number: int) -> bytes:
    """Key of the marks of the keys that one write batch wrote in an epoch."""
    return _IN_EPOCH.pack(WRITTEN, epoch, number)


def graves_key(epoch: int, number: int) -> bytes:
    """Key of the list of keys that one write batch replaced by tombstones."""
    return _IN_EPOCH.pack(GRAVES, epoch, number)


def epoch_of(key: bytes) -> int:
    """The epoch in an undo, written or graves key."""
    _, epoch, _ = _IN_EPOCH.unpack(key)
    return int(epoch)


def after(prefix: bytes) -> bytes:
    """The least key above all keys that begin with the prefix. The bytes of the prefix must not all be 255."""
    stripped = prefix.rstrip(b"\xff")
    return stripped[:-1] + bytes([stripped[-1] + 1])
