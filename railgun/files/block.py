"""What readers of event files give: blocks of rows, and the rows in them that cannot be events."""

from dataclasses import dataclass

import pyarrow as pa


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
    refused: rows that are no events, whatever the door would say, at most one each; null where they could not
    be read.  read_bytes: of the file, so far.  is_text: all columns are strings as written, for
    `read_text_array`; else they are for `read_array`: as Parquet and Arrow files have them, or read by the
    rules of the door for single events.
    """

    file: str
    batch: pa.RecordBatch
    first_row: int
    refused: tuple[Refusal, ...]
    read_bytes: int
    is_text: bool = False
