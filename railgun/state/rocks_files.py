"""What is looked at in RocksDB's files before it opens them, so that it sees damage as damage.

On some flipped bits it waits for ever. Others it takes for an end that a crash has torn, and drops what follows.

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

# Types of records in recycled files. We recycle none, and on meeting one RocksDB 9.8 reads it again and again.
# They are 4 above those of other files (and 11): one flipped bit.
_RECYCLED = frozenset((5, 6, 7, 8, 11))
_FULL = 1

_MASK_DELTA = 0xA282EAD8
_CRC_TABLE = [0] * 256
for _byte in range(256):
    _crc = _byte
    for _ in range(8):
        _crc = _crc >> 1 ^ (0x82F63B78 if _crc & 1 else 0)
    _CRC_TABLE[_byte] = _crc


def check_files(files: Files, folder: Path, *, settle: bool = True) -> None:
    """Make RocksDB see damage as damage.

    settle: types of records that it would never get past are overwritten; else they are an error too.
    Raises StoreCorruptionError, naming the file, where RocksDB would not see it; OSError.
    """
    names = files.list(folder)
    for name in names:
        if name.endswith(".log") or name.startswith("MANIFEST-"):
            _settle_types(files, folder / name, settle=settle)
    if _CURRENT in names:
        manifest = _contents(files, folder / _CURRENT).decode("ascii", "replace").strip()
        if manifest in names:
            _check_end(folder, manifest, _contents(files, folder / manifest))


def _contents(files: Files, path: Path) -> bytes:
    file = files.open_read(path)
    try:
        return file.read(0, file.size())
    finally:
        file.close()


def _settle_types(files: Files, path: Path, *, settle: bool) -> None:
    """Give records of recycled files the type that one bit less makes: the checksum then tells which it was."""
    data = _contents(files, path)
    found: list[int] = []
    for block in range(0, len(data), _BLOCK_BYTES):
        _walk(data, block, min(block + _BLOCK_BYTES, len(data)), found)
    if not found:
        return
    if not settle:
        raise _damaged(path.parent, path.name, found[0])
    file = files.open_update(path)
    try:
        for at in found:
            kind = data[at + _TYPE_AT]
            file.write_at(at + _TYPE_AT, bytes([kind - 4 if kind <= 8 else _FULL]))
        file.sync()
    finally:
        file.close()


def _walk(data: bytes, at: int, end: int, recycled: list[int]) -> int:
    """Pass over the records of a block; returns where there is no whole one any more, and notes recycled ones."""
    unpack = _HEAD.unpack_from
    while end - at >= _HEAD_BYTES:
        _, length, kind = unpack(data, at)
        if kind in _RECYCLED:
            recycled.append(at)
        after = at + _HEAD_BYTES + length
        if after > end or (kind == 0 and length == 0):
            return at
        at = after
    return at


def _check_end(folder: Path, name: str, data: bytes) -> None:
    """A torn record at the end is what a crash leaves; a whole one whose head has a flipped bit is not.

    In a MANIFEST, RocksDB ends at either: files that later records name would be deleted as unknown.
    """
    for block in range(0, len(data), _BLOCK_BYTES):
        end = min(block + _BLOCK_BYTES, len(data))
        at = _walk(data, block, end, [])
        if end - at >= _HEAD_BYTES and _is_damaged(data[at:end]):
            raise _damaged(folder, name, at)


def _damaged(folder: Path, name: str, at: int) -> StoreCorruptionError:
    return StoreCorruptionError(folder, "open", f"the record at byte {at} of {name} is damaged")


def _is_damaged(rest: bytes) -> bool:
    """Was the record that begins here, and does not end here, whole before a bit of its head flipped?"""
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
