"""Files of open rows, in which a checkpoint keeps the rows that no chunk holds yet. reservoir/FORMAT.md has the bytes.

`Reservoir` writes them, and a recovery reads them.
"""

import re
import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from reservoir.errors import CorruptionError, ForeignSegmentError, FormatVersionError, StorageFailedError
from reservoir.files import File, Files
from reservoir.open_region.region import OpenRegion, OpenRows

MAGIC = b"RGOPEN\r\n"
VERSION = 1
_HEADER = struct.Struct("<8sHHI16sQ")
_BLOCK = struct.Struct("<IIQQI")
_CRC_BYTES = 4
HEADER_BYTES = _HEADER.size + _CRC_BYTES
BLOCK_HEAD_BYTES = _BLOCK.size + _CRC_BYTES
_BLOCK_ROWS = 8192
# With more files than this, or with more rows in them than twice the open ones, all open rows are written again. So the
# files hold at most as many rows that were sealed since as rows that are open.
FILES_MAX, _ROWS_PER_OPEN_ROW = 16, 2

# Less than the (time, seq) of any row.
_NOTHING = (-(2**63), -(2**63))
_NAME = re.compile(r"(\d{12})\.open")
_CODEC = pa.Codec("lz4")


def saved_rows_path(folder: Path, number: int) -> Path:
    """Return the file of open rows with a number."""
    return folder / f"{number:012d}.open"


@dataclass(frozen=True, slots=True)
class SavedRows:
    """Some open rows in the order of seq: time, seq int64[n], payloads end to end with offsets int64[n + 1]."""

    time: NDArray[np.int64]
    seq: NDArray[np.int64]
    payload: NDArray[np.uint8]
    offsets: NDArray[np.int64]


@dataclass(slots=True)
class _SavedFile:
    """A file of open rows. last: the greatest (time, seq) in it; known once it is written or read."""

    number: int
    rows: int
    last: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Saving:
    """What a checkpoint says of the open rows, and how it makes them durable.

    files: the numbers of the files that hold all open rows, oldest first.
    write: writes the one of them that is new, if one is, and makes it durable. Any thread may call it, once and
        before the next `save`. Raises StorageFailedError.
    """

    files: list[int]
    write: Callable[[], None]


class Writing(Protocol):
    """What else writes files of the reservoir. After a failure nothing is written any more."""

    def check(self) -> None:
        """Raise the StorageFailedError of an earlier failure, if there is one."""

    def fail(self, action: str, error: BaseException) -> StorageFailedError:
        """Note a failure. Returns the error to raise."""

    def delete(self, path: Path) -> None:
        """Delete a file in the background."""


class SavedRowsFiles:
    """The files of open rows of one reservoir. The task's thread uses it, except for `Saving.write`."""

    def __init__(
        self,
        files: Files,
        folder: Path,
        stream_key: bytes,
        region: OpenRegion,
        writing: Writing,
    ) -> None:
        self._files, self._folder, self._key = files, folder, stream_key
        self._region, self._writing = region, writing
        self._held: list[_SavedFile] = []
        self._dropped: list[int] = []
        self._next_number = 1
        # Open rows that arrived before this one are in the files. None: the files do not have all of them.
        self._saved_arrivals: int | None = None
        self._is_writing = False

    @property
    def is_writing(self) -> bool:
        """Whether open rows are being written. Their slots must not be used again meanwhile."""
        return self._is_writing

    def begin_with(self, numbers: Sequence[int] | None) -> None:
        """Keep the files that a checkpoint names, and delete all others. None: the checkpoint keeps no open rows.

        Raises CorruptionError and OSError.
        """
        found = [int(named[1]) for name in self._files.list(self._folder) if (named := _NAME.fullmatch(name))]
        self._next_number = max(found, default=0) + 1
        self._held = [_SavedFile(number, 0, _NOTHING) for number in numbers or ()]
        self._saved_arrivals = None if numbers is None else self._region.arrivals
        kept = {each.number for each in self._held}
        for number in kept.difference(found):
            reason = "the checkpoint names this file of open rows, which is missing"
            raise CorruptionError(str(saved_rows_path(self._folder, number)), 0, reason)
        for number in found:
            if number not in kept:
                self._files.delete(saved_rows_path(self._folder, number))

    def read(self) -> Iterator[SavedRows]:
        """Iterate over the rows of the files that `begin_with` kept, in the order of seq. Some may be sealed already.

        The caller must append all of them to the open region before it takes the next ones.
        Raises CorruptionError, FormatVersionError, ForeignSegmentError and OSError.
        """
        for held in self._held:
            for rows in read_rows(self._files, saved_rows_path(self._folder, held.number), self._key):
                yield rows
                held.rows += len(rows.seq)
                held.last = max(held.last, _greatest(rows.time, rows.seq))
                self._saved_arrivals = self._region.arrivals

    def save(self) -> Saving:
        """Choose the files that a checkpoint of the present rows needs."""
        assert not self._is_writing
        region = self._region
        held = [each for each in self._held if each.last > region.last_sealed]
        new = None if self._saved_arrivals is None else region.rows_since(self._saved_arrivals)
        count = sum(each.rows for each in held) + (0 if new is None else len(new.slots))
        if new is None or len(held) >= FILES_MAX or count > _ROWS_PER_OPEN_ROW * region.rows:
            held, new = [], region.rows_since(0)
        write = _write_nothing
        if len(new.slots):
            made = _SavedFile(self._next_number, len(new.slots), _NOTHING)
            held, write = [*held, made], partial(self._write, made, new)
            self._next_number += 1
            self._is_writing = True
        self._dropped += [each.number for each in self._held if each not in held]
        self._held, self._saved_arrivals = held, region.arrivals
        return Saving([each.number for each in held], write)

    def committed(self) -> None:
        """Delete the files that the last `save` has left out, because its checkpoint is durable."""
        dropped, self._dropped = self._dropped, []
        for number in dropped:
            self._writing.delete(saved_rows_path(self._folder, number))

    def _write(self, made: _SavedFile, rows: OpenRows) -> None:
        try:
            self._writing.check()
            made.last = _greatest(rows.words("time"), rows.words("seq"))
            write_rows(self._files, saved_rows_path(self._folder, made.number), self._key, rows)
            self._files.sync_folder(self._folder)
        except OSError as error:
            raise self._writing.fail("write of open rows", error) from error
        finally:
            self._is_writing = False


def write_rows(files: Files, path: Path, stream_key: bytes, rows: OpenRows) -> None:
    """Write open rows, which are in the order of seq, to a new file, and sync it. Raises OSError."""
    file = files.create(path)
    try:
        _append(file, _sealed_head(_HEADER.pack(MAGIC, VERSION, 0, 0, stream_key, len(rows.slots))))
        for first in range(0, len(rows.slots), _BLOCK_ROWS):
            _append(file, _encode_block(rows.part(first, first + _BLOCK_ROWS)))
        file.sync()
    finally:
        file.close()


def read_rows(files: Files, path: Path, stream_key: bytes | None) -> Iterator[SavedRows]:
    """Iterate over the rows of a file, some thousand at a time.

    stream_key: the key that the file must have; None accepts any.
    Raises CorruptionError, FormatVersionError, ForeignSegmentError and OSError.
    """
    file, place = files.open_read(path), str(path)
    try:
        head = _checked_head(file, place, 0, _HEADER.size)
        magic, version, _, _, key, expected = _HEADER.unpack(head)
        if magic != MAGIC:
            raise CorruptionError(place, 0, "not a file of open rows: the magic bytes are wrong")
        if version > VERSION:
            raise FormatVersionError(place, version, VERSION)
        if stream_key is not None and key != stream_key:
            raise ForeignSegmentError(place, "stream key", key.hex(), stream_key.hex())
        offset, size = HEADER_BYTES, file.size()
        while expected > 0:
            rows, behind = _read_block(file, place, offset)
            expected -= len(rows.seq)
            offset = behind
            yield rows
        if expected < 0 or offset != size:
            raise CorruptionError(place, offset, "it has not as many rows as its header says")
    finally:
        file.close()


def _encode_block(rows: OpenRows) -> bytes:
    payload, offsets = rows.payloads()
    lengths = np.diff(offsets).astype(np.uint32)
    parts = (rows.words("time"), rows.words("seq"), lengths, payload)
    raw = b"".join([part.tobytes() for part in parts])
    body: bytes = _CODEC.compress(raw, asbytes=True)
    head = _BLOCK.pack(len(rows.slots), 0, len(raw), len(body), zlib.crc32(body))
    return _sealed_head(head) + body


def _read_block(file: File, place: str, offset: int) -> tuple[SavedRows, int]:
    """Read the block at an offset of a file. Returns its rows, and the offset behind it."""
    n, _, raw_bytes, body_bytes, crc = _BLOCK.unpack(_checked_head(file, place, offset, _BLOCK.size))
    begin = offset + BLOCK_HEAD_BYTES
    body = file.read(begin, body_bytes)
    if len(body) < body_bytes or zlib.crc32(body) != crc:
        raise CorruptionError(place, begin, "the CRC of open rows does not match")
    raw = np.frombuffer(_CODEC.decompress(body, raw_bytes), np.uint8)
    words, payload_at = raw[: 16 * n].view(np.int64), 20 * n
    offsets = np.zeros(n + 1, np.int64)
    np.cumsum(raw[16 * n : payload_at].view(np.uint32), out=offsets[1:])
    return SavedRows(words[:n], words[n:], raw[payload_at:], offsets), begin + body_bytes


def _sealed_head(head: bytes) -> bytes:
    return head + zlib.crc32(head).to_bytes(_CRC_BYTES, "little")


def _checked_head(file: File, place: str, offset: int, size_bytes: int) -> bytes:
    """Read a head whose CRC follows it. Raises CorruptionError."""
    data = file.read(offset, size_bytes + _CRC_BYTES)
    head, crc = data[:size_bytes], data[size_bytes:]
    if len(crc) < _CRC_BYTES or zlib.crc32(head) != int.from_bytes(crc, "little"):
        raise CorruptionError(place, offset, "the head of open rows is cut short, or its CRC does not match")
    return head


def _append(file: File, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[file.write(rest) :]


def _greatest(time: NDArray[np.int64], seq: NDArray[np.int64]) -> tuple[int, int]:
    """Return the greatest (time, seq) of rows in the order of seq."""
    latest = int(time.max())
    return latest, int(seq[np.flatnonzero(time == latest)[-1]])


def _write_nothing() -> None:
    """Do nothing, because no row is new."""
