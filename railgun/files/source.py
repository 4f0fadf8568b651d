"""The contract of a reader of one file: blocks of rows of bounded size, and the rows that cannot be events."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

ROWS_MAX = 65_536
_ROWS_MIN = 4_096
_VALUES_MAX = 1 << 20
TEXT_BLOCK_BYTES = 8 << 20
LINE_BYTES_MAX = 64 << 20


def block_rows(fields: int) -> int:
    """Return the number of rows of a block with this many columns."""
    return max(_ROWS_MIN, min(ROWS_MAX, _VALUES_MAX // max(fields, 1)))


@dataclass(frozen=True, slots=True)
class Refusal:
    """A row that cannot be an event. row: its index in the block. field: the wrong field; None for the whole row."""

    row: int
    field: str | None
    reason: str


@dataclass(frozen=True, slots=True)
class Block:
    """Consecutive rows of one file.

    batch: one column for each field of the schema, in its order.
    first_row: the index in the file of the block's first row.
    refused: rows that cannot be events whatever the validator would say, at most one entry for each. They are null in
    the batch if they could not be read.
    read_bytes: how many bytes of the file have been read so far.
    is_text: all columns are strings as written, for `read_text_array`. Otherwise they are for `read_array`: as in
    Parquet and Arrow files, or read by the rules of the validator of single events.
    """

    file: str
    batch: pa.RecordBatch
    first_row: int
    refused: tuple[Refusal, ...]
    read_bytes: int
    is_text: bool = False


class Source(Protocol):
    """One file, opened, with its columns checked. Raises FileError if it cannot be read further, and OSError."""

    @property
    def file(self) -> str:
        """The name of the file as it was given."""

    @property
    def size_bytes(self) -> int:
        """The size of the file."""

    @property
    def rows(self) -> int | None:
        """The number of rows; None if the file does not say it before it is read."""

    @property
    def ignored(self) -> tuple[str, ...]:
        """The columns that are not fields, in the file's order. Complete once all blocks have been read."""

    def blocks(self) -> Iterator[Block]:
        """Yield the rows in order, in blocks of bounded size. They can be read once."""

    def close(self) -> None:
        """Close the file."""
