"""The contract of a reader of one file: blocks of rows of a bounded size, and the rows that cannot be events."""

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
    """Rows of a block with that many columns."""
    return max(_ROWS_MIN, min(ROWS_MAX, _VALUES_MAX // max(fields, 1)))


@dataclass(frozen=True, slots=True)
class Refusal:
    """A row that cannot be an event. row: in its block, from 0.  field: None for the row as a whole."""

    row: int
    field: str | None
    reason: str


@dataclass(frozen=True, slots=True)
class Block:
    """Consecutive rows of one file.

    batch: one column for each field of the schema, in its order.  first_row: the place of its first row in
    the file, from 0.
    refused: rows that are no events, whatever the validator would say, at most one each; null where they could not
    be read.  read_bytes: of the file, so far.  is_text: all columns are strings as written, for
    `read_text_array`; else they are for `read_array`: as Parquet and Arrow files have them, or read by the
    rules of the validator of single events.
    """

    file: str
    batch: pa.RecordBatch
    first_row: int
    refused: tuple[Refusal, ...]
    read_bytes: int
    is_text: bool = False


class Source(Protocol):
    """One file, opened and its columns checked. Raises FileError where it cannot be read on, OSError."""

    @property
    def file(self) -> str:
        """The file as it was named."""

    @property
    def size_bytes(self) -> int:
        """Length of the file."""

    @property
    def rows(self) -> int | None:
        """How many rows it holds, where the file says so before it is read."""

    @property
    def ignored(self) -> tuple[str, ...]:
        """Columns that are no fields, in the file's order; known in full once all blocks have been read."""

    def blocks(self) -> Iterator[Block]:
        """Its rows, in order, in blocks of bounded size. Read once."""

    def close(self) -> None:
        """Give the file back."""
