"""Checks rows of files by the rules of the front-end. Returns the events that can be scored, and the refused rows.

`railgun run` and Spark's validation read files by it.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from railgun.catalog.model import StreamDefinition
from railgun.files.errors import FileError
from railgun.files.python_columns import arrow_type
from railgun.files.reading import EventFiles
from railgun.files.source import Block
from railgun.wire.columns import Column, EventColumns
from railgun.wire.schema import Schema
from railgun.wire.table_validator import AdmittedTable, TableValidator, row_number_ids
from railgun.wire.text_values import read_text_array
from railgun.wire.validator import Roles


class RowRefusedError(FileError):
    """A row is refused, as the front-end would refuse it. `field`: None if the error concerns the whole row."""

    def __init__(self, file: str, row: int, field: str | None, reason: str) -> None:
        where = f"{field}: " if field else ""
        super().__init__(file, f"{where}{reason}", row)
        self.field, self.reason = field, reason


@dataclass(slots=True)
class RefusedRows:
    """How many rows are refused for one reason, and the error of the first of them."""

    rows: int
    first: RowRefusedError


@dataclass(slots=True)
class Refusals:
    """The refused rows of some files. Each is counted once, by the first thing that is wrong with it.

    by_reason: by texts such as `amount: no double`, in the order met.
    """

    by_reason: dict[str, RefusedRows] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """The number of refused rows."""
        return sum(each.rows for each in self.by_reason.values())

    @property
    def first(self) -> RowRefusedError | None:
        """The error of the first refused row; None if none is refused."""
        return next((each.first for each in self.by_reason.values()), None)

    def add(self, other: "Refusals") -> None:
        """Count the refused rows of more rows, which come behind."""
        for reason, found in other.by_reason.items():
            self.by_reason.setdefault(reason, RefusedRows(0, found.first)).rows += found.rows

    def as_json(self) -> dict[str, Any]:
        """Return the counts as JSON values."""
        return {
            "refused": self.rows,
            "refused_by_reason": {reason: each.rows for reason, each in self.by_reason.items()},
            "refusals": [str(each.first) for each in self.by_reason.values()],
        }


@dataclass(frozen=True, slots=True)
class CheckedBlock:
    """A block of rows that were checked.

    rows: how many rows the block has.
    events: the events of its good rows, in order.
    bad: bool[rows]; True for rows that are refused.
    bad_ids: the ids of the bad rows, in order; None for a row without a readable id.
    refused: the bad rows by reason; the reason of the first row is the first.
    read_bytes: how many bytes of all files have been read so far.
    """

    rows: int
    events: EventColumns
    bad: NDArray[np.bool_]
    bad_ids: tuple[str | None, ...]
    refused: Refusals
    read_bytes: int


class EventChecks:
    """Checks blocks of one stream's events, in order.

    If the stream has no id field, row numbers serve as ids, counted from 0 over all files. If it has no time field,
    an event gets the time at which its block was read; this time never goes back.

    start_ms: the present time, in ms since 1970.
    """

    def __init__(self, stream: StreamDefinition, schema: Schema, start_ms: int) -> None:
        roles = Roles(schema, stream.time, stream.id, stream.recorded_partitioners)
        self._stream, self._schema = stream, schema
        self._types = {each.place: each.type for each in schema.fields}
        self._latest_ms = start_ms + stream.future_limit_ms
        self._validator = TableValidator(roles)
        self._text_validator = TableValidator(roles, read_text_array)
        self._rows = 0
        self._now_ms = start_ms

    def blocks(self, files: EventFiles) -> Iterator[CheckedBlock]:
        """Check all blocks of the files. Raises FileError and OSError."""
        for block in files.blocks():
            yield self.check(block)

    def none(self) -> EventColumns:
        """Return columns without any event."""
        empty = pa.schema([(each.name, arrow_type(each.type)) for each in self._schema.fields])
        return self._validator.admit(pa.RecordBatch.from_pylist([], empty), None, *self._made(0)).events

    def check(self, block: Block) -> CheckedBlock:
        """Check the rows of a block."""
        n = block.batch.num_rows
        validator = self._text_validator if block.is_text else self._validator
        ids, times = self._made(n)
        admitted = validator.admit(block.batch, self._latest_ms, ids, times)
        bad = admitted.bad.astype(bool)
        bad[[each.row for each in block.refused]] = True
        refused, events = Refusals(), admitted.events
        if bad.any():
            refused, events = self._refusals(block, admitted), events.take(np.flatnonzero(~bad))
        all_ids = admitted.events.ids
        bad_ids = [
            all_ids.string(row) if all_ids.words[row] else None for row in np.flatnonzero(bad).tolist()
        ]
        self._rows += n
        return CheckedBlock(n, events, bad, tuple(bad_ids), refused, block.read_bytes)

    def _refusals(self, block: Block, admitted: AdmittedTable) -> Refusals:
        """Count the bad rows of a block by reason.

        If both the file and the validator refuse a row, the file's error counts: the validator's may be about a value
        that the file left out.
        """
        found: dict[str, RefusedRows] = {}
        seen = np.zeros(block.batch.num_rows, bool)
        for each in block.refused:
            seen[each.row] = True
            type_ = self._types.get(each.field or "")
            what = "unreadable" if type_ is None else f"no {type_}"
            error = RowRefusedError(block.file, block.first_row + each.row + 1, each.field, each.reason)
            found.setdefault(f"{each.field or 'row'}: {what}", RefusedRows(0, error)).rows += 1
        for complaint in admitted.complaints:
            rows = (complaint.rows != 0) & ~seen
            seen |= rows
            if not rows.any():
                continue
            row, place = int(rows.argmax()), complaint.first.field
            error = RowRefusedError(block.file, block.first_row + row + 1, place, self._why(block, row))
            reason = f"{place}: {complaint.what}"
            known = found.setdefault(reason, RefusedRows(0, error))
            known.rows += int(rows.sum())
            known.first = min(known.first, error, key=lambda each: each.row or 0)
        return Refusals(dict(sorted(found.items(), key=lambda each: each[1].first.row or 0)))

    def _why(self, block: Block, row: int) -> str:
        """Return the first thing that is wrong with a row. A batch tells that only of its first bad row."""
        validator = self._text_validator if block.is_text else self._validator
        alone = validator.admit(block.batch.slice(row, 1), self._latest_ms, *self._made(1))
        return alone.complaints[0].first.msg

    def _made(self, n: int) -> tuple[Column | None, NDArray[np.int64] | None]:
        """Return ids and times for streams that have no field for them."""
        ids = row_number_ids(self._rows, n) if self._stream.id is None else None
        if self._stream.time is not None:
            return ids, None
        self._now_ms = max(self._now_ms, time.time_ns() // 1_000_000)
        return ids, np.full(n, self._now_ms, np.int64)
