"""Checks RocksDB's files before RocksDB opens them, for damage that it does not report.

Both the state of a task and the embedded log are checked so. At some flipped bits RocksDB waits for ever. Others it
takes for an end that a crash has torn, and drops what follows.

Its write-ahead logs and its MANIFEST are made of blocks of 32 KiB; in each there are records of
CRC-32C of type and body (masked) u32, bytes of the body u16, type u8, body.
"""

from pathlib import Path
from struct import Struct

from railgun.state.errors import StoreCorruptionError
from reservoir.files import Files

_BLOCK_BYTES = 32 * 1024
_HEAD = Struct("<IHB")
_HEAD_BYTES = _HEAD.size
_TYPE_AT = 6
_LENGTH_BITS = 16
_CURRENT = "CURRENT"  # the name of the MANIFEST in force

# The types of records in recycled files. We recycle none. RocksDB 9.8 reads a record of such a type again and again.
# Each of these types differs by one bit from a type that we do write.
_RECYCLED = frozenset((5, 6, 7, 8, 11))

_MASK_DELTA = 0xA282EAD8
_CRC_TABLE = [0] * 256
for _byte in range(256):
    _crc = _byte
    for _ in range(8):
        _crc = _crc >> 1 ^ (0x82F63B78 if _crc & 1 else 0)
    _CRC_TABLE[_byte] = _crc


def check_files(files: Files, folder: Path) -> None:
    """Refuse damage that RocksDB would not report. Changes nothing.

    Raises StoreCorruptionError, naming the file and where in it the record is; OSError.
    """
    names = files.list(folder)
    in_force = _contents(files, folder / _CURRENT).decode("ascii", "replace") if _CURRENT in names else ""
    for name in names:
        if name.endswith(".log") or name.startswith("MANIFEST-"):
            data = _contents(files, folder / name)
            for block in range(0, len(data), _BLOCK_BYTES):
                at = _first_damaged(data, block, has_end=name == in_force.strip())
                if at is not None:
                    raise _damaged(folder, name, at)


def _contents(files: Files, path: Path) -> bytes:
    file = files.open_read(path)
    try:
        return file.read(0, file.size())
    finally:
        file.close()


def _first_damaged(data: bytes, block: int, *, has_end: bool) -> int | None:
    """Return the place of the first damaged record of a block: RocksDB would read it for ever, or take it for a torn
    end.

    has_end: whether a torn record is looked at. In a MANIFEST, RocksDB stops at a record whose head has a flipped bit
        as it does at one that a crash left torn. It would then delete as unknown the files that later records name.
    """
    at, end = block, min(block + _BLOCK_BYTES, len(data))
    while end - at >= _HEAD_BYTES:
        _, length, kind = _HEAD.unpack_from(data, at)
        if kind in _RECYCLED:
            return at
        after = at + _HEAD_BYTES + length
        if after > end or (kind == 0 and length == 0):
            return at if has_end and _is_damaged(data[at:end]) else None
        at = after
    return None


def _damaged(folder: Path, name: str, at: int) -> StoreCorruptionError:
    return StoreCorruptionError(folder, "open", f"the record at byte {at} of {name} is damaged")


def _is_damaged(rest: bytes) -> bool:
    """Whether the record that begins here and is cut off was whole before a bit of its head flipped."""
    crc: int
    crc, length, kind = _HEAD.unpack_from(rest)
    if kind == 0 and length == 0:
        return crc != 0
    lengths = [length ^ 1 << bit for bit in range(_LENGTH_BITS)]
    bodies = [rest[_TYPE_AT : _HEAD_BYTES + each] for each in lengths if _HEAD_BYTES + each <= len(rest)]
    return any(_masked_crc(body) == crc for body in bodies)


def _masked_crc(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ _CRC_TABLE[(crc ^ byte) & 0xFF]
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + _MASK_DELTA) & 0xFFFFFFFF
