"""A mark beside a log that says how far it was written, so that a log which has become shorter is recognised.

RocksDB recovers a prefix of its write-ahead log. If a bit has flipped, the prefix is short, and RocksDB does not say
so. The store of a task and the log of an engine have such a mark.
"""

import zlib
from pathlib import Path
from struct import Struct
from typing import NamedTuple

from railgun.state.errors import EndMarkVersionError, StoreCorruptionError
from reservoir.files import File, Files

VERSION = 1

END_MARK = "end.mark"
"""The file name of the mark, in the folder of its log."""

# Version, number of the mark, written, synced, boot; the CRC-32 of these bytes follows. See FORMAT.md.
_MARK = Struct("<IQQQ16s")
_CRC = Struct("<I")
_SLOT_BYTES = 512  # a disk writes at least this much atomically
_SLOTS = 2
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_NO_BOOT = bytes(16)


class EndMark(NamedTuple):
    """A log's end: up to where it was written, and up to where it was synced. Both numbers only grow.

    is_of_this_boot: whether the machine has not restarted since. What was written is then still there, synced or not.
    """

    written: int
    synced: int
    is_of_this_boot: bool

    @property
    def least(self) -> int:
        """The position up to which the log must be found again."""
        return self.written if self.is_of_this_boot else self.synced


class EndMarker:
    """A file of two slots that are overwritten in turn, so that a torn write leaves the previous mark.

    One thread at a time may use it.
    found: the newest mark when the file was opened; None if it was new.
    boot: 16 bytes that change with each restart of the machine.
    Raises StoreCorruptionError if no slot can be read, EndMarkVersionError for a newer version's mark, and OSError.
    """

    def __init__(self, files: Files, path: Path, boot: bytes | None = None) -> None:
        self.path = path
        self._boot = boot_id() if boot is None else boot
        if path.name not in files.list(path.parent):
            _create(files, path)
        self._file: File = files.open_update(path)
        try:
            self._number, self.found = _newest(path, self._file, self._boot)
        except BaseException:
            self._file.close()
            raise

    def note(self, written: int, synced: int) -> None:
        """Overwrite the older slot. The mark survives the end of this process, and after `sync` a loss of power too."""
        self._number += 1
        body = _MARK.pack(VERSION, self._number, written, synced, self._boot)
        self._file.write_at(self._number % _SLOTS * _SLOT_BYTES, body + _CRC.pack(zlib.crc32(body)))

    def sync(self) -> None:
        """Sync the file, so that the mark survives a loss of power."""
        self._file.sync()

    def close(self) -> None:
        """Close the file. The mark stays."""
        self._file.close()


def read_mark(files: Files, path: Path) -> EndMark | None:
    """Return the newest mark, or None if there is none. Changes nothing. Raises what EndMarker raises."""
    if path.name not in files.list(path.parent):
        return None
    file = files.open_read(path)
    try:
        return _newest(path, file, boot_id())[1]
    finally:
        file.close()


def _newest(path: Path, file: File, boot: bytes) -> tuple[int, EndMark | None]:
    """Return the number of the newest mark, and the mark; (0, None) if both slots are empty."""
    stored = file.read(0, _SLOTS * _SLOT_BYTES)
    if not any(stored):
        return 0, None
    slots = [_slot(path, stored[at : at + _SLOT_BYTES], boot) for at in range(0, len(stored), _SLOT_BYTES)]
    marks = [slot for slot in slots if slot is not None]
    if not marks:
        raise StoreCorruptionError(
            path.parent, "open", f"{path.name}, which says where the log ends, is damaged"
        )
    return max(marks)


def _slot(path: Path, slot: bytes, boot_now: bytes) -> tuple[int, EndMark] | None:
    crc_end = _MARK.size + _CRC.size
    if len(slot) < crc_end or zlib.crc32(slot[: _MARK.size]) != _CRC.unpack_from(slot, _MARK.size)[0]:
        return None
    version, number, written, synced, boot = _MARK.unpack_from(slot)
    if version != VERSION:
        raise EndMarkVersionError(path.parent, path.name, version)
    return number, EndMark(written, synced, boot == boot_now and boot != _NO_BOOT)


def boot_id() -> bytes:
    """Return 16 bytes that stay the same until the machine restarts; zeros if the system does not tell them."""
    try:
        return bytes.fromhex(_BOOT_ID.read_text(encoding="ascii").strip().replace("-", ""))
    except (OSError, ValueError):
        return _NO_BOOT


def _create(files: Files, path: Path) -> None:
    """Create a file of zeros. Nothing is acknowledged before this file is durable."""
    file = files.create(path)
    try:
        file.write(bytes(_SLOTS * _SLOT_BYTES))
        file.sync()
    finally:
        file.close()
    files.sync_folder(path.parent)
