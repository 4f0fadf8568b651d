"""Validates many events at once, as Arrow columns, by the rules of the validator of single events.

The intake of engines and front-ends, readers of files and backfills call it. It does no I/O.
"""

from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from railgun.wire.arrow_paths import PathTypeError, field_types
from railgun.wire.arrow_types import column_type_errors
from railgun.wire.arrow_values import Typed, read_array
from railgun.wire.columns import Column, EventColumns
from railgun.wire.finding import steps_of
from railgun.wire.long_text import longs_as_text
from railgun.wire.schema import EVENT_TIME_MIN_MS, LONG, FieldType, WireKind
from railgun.wire.validator import NO_ID, NO_TIME, Roles, time_error


class TableError(ValueError):
    """The table lacks a column of its stream, has one twice, or has one whose type cannot hold its field's values."""


class BadRow(NamedTuple):
    """A row that is refused: its index in the batch, the field, and the reason."""

    row: int
    field: str
    msg: str

    def __str__(self) -> str:
        return f"row {self.row}: {self.field}: {self.msg}"


class Complaint(NamedTuple):
    """An error that some rows have in the same field.

    rows: uint8[n], 1 where a row has it.
    first: the first of these rows.
    """

    what: str
    rows: NDArray[np.uint8]
    first: BadRow


@dataclass(frozen=True, slots=True)
class AdmittedTable:
    """The result of validating n rows.

    events: one event for each row, also for bad ones.
    bad: uint8[n], 1 where a row is refused.
    mistyped: uint8[n], 1 where a value does not fit its field.
    first_bad: the first bad row; None if all are good.
    complaints: all errors, in the order of fields. A row may be in several.
    """

    events: EventColumns
    bad: NDArray[np.uint8]
    mistyped: NDArray[np.uint8]
    first_bad: BadRow | None
    complaints: tuple[Complaint, ...] = ()


class TableValidator:
    """Validates batches of events of one stream under one schema.

    read: the function that reads a column: `read_array`; or `read_text_array` for files in which all values are text
        (CSV).
    """

    def __init__(self, roles: Roles, read: Callable[[pa.Array, FieldType], Typed] = read_array) -> None:
        self.roles = roles
        self._read = read

    def check_types(self, found: pa.Schema) -> None:
        """Raise TableError if a column is missing, is there twice, or has a type that cannot hold its
        field's values. A column in which a path begins may be missing.
        """
        schema = self.roles.schema
        for field in schema.fields:
            for name in map(str, steps_of(field)[:1]):
                if field.path is None or name in found.names:
                    _place(found, name)
        try:
            wrong = column_type_errors(field_types(found, schema), schema)
        except PathTypeError as error:
            raise TableError(str(error)) from None
        if wrong is not None:
            raise TableError(wrong)

    def admit(
        self,
        batch: pa.RecordBatch,
        latest_ms: int | None = None,
        ids: Column | None = None,
        times: NDArray[np.int64] | None = None,
    ) -> AdmittedTable:
        """Validate n rows, with a column for each field (`field_columns`). Others are ignored.

        ids: a string column without nulls (`row_number_ids`), if the stream has no id field.
        times: int64[n] in ms, if the stream has no time field.
        latest_ms: the latest time that is accepted; None for no limit.
        Raises TableError for a column that is missing or there twice.
        """
        schema, roles = self.roles.schema, self.roles
        columns = [self._read(_column(batch, field.name), field.type) for field in schema.fields]
        bad, mistyped = np.zeros(batch.num_rows, np.uint8), np.zeros(batch.num_rows, np.uint8)
        found: list[Complaint] = []
        for field, typed in zip(schema.fields, columns):
            if typed.bad.any():
                mistyped |= typed.bad
                row = int(typed.bad.argmax())
                found.append(
                    Complaint(f"no {field.type}", typed.bad, BadRow(row, field.place, typed.explain(row)))
                )
            if typed.has_nulls and field.name in (roles.id, roles.time):
                why = NO_TIME if field.name == roles.time else NO_ID
                found.append(
                    Complaint("null", typed.nulls, BadRow(int(typed.nulls.argmax()), field.place, why))
                )
        for complaint in found:
            bad |= complaint.rows
        if roles.time is not None:
            times = columns[schema.index(roles.time)].words.view(np.int64)
            ahead = self._ahead(times, bad, latest_ms)
            if ahead is not None:
                found.append(ahead)
        if roles.id is not None:
            ids = _id_column(columns[schema.index(roles.id)])
        if ids is None or times is None:
            raise TypeError("a stream without an id or time field needs ids or times from the caller")
        events = EventColumns(ids, times, tuple(typed.column() for typed in columns))
        first = min((each.first for each in found), key=lambda each: each.row) if found else None
        return AdmittedTable(events, bad, mistyped, first, tuple(found))

    def _ahead(
        self, times: NDArray[np.int64], bad: NDArray[np.uint8], latest_ms: int | None
    ) -> Complaint | None:
        """Mark the rows whose time is after `latest_ms` or below the least time of an event. Returns a complaint;
        None if all are good.
        """
        latest = np.iinfo(np.int64).max if latest_ms is None else latest_ms
        if not len(times) or (int(times.max()) <= latest and int(times.min()) >= EVENT_TIME_MIN_MS):
            return None
        ahead = ((times > latest) | (times < EVENT_TIME_MIN_MS)) & (bad == 0)
        if not ahead.any():
            return None
        bad |= ahead.view(np.uint8)
        row = int(ahead.argmax())
        assert self.roles.time is not None
        schema, why = self.roles.schema, time_error(int(times[row]), latest_ms)
        place = schema.fields[schema.index(self.roles.time)].place
        return Complaint("out of range", ahead.view(np.uint8), BadRow(row, place, why))


def row_number_ids(first: int, n: int) -> Column:
    """Return ids for n rows that have none: their numbers, counted from `first`."""
    return longs_as_text(Column(LONG, np.arange(first, first + n, dtype=np.int64).view(np.uint64)))


def _id_column(typed: Typed) -> Column:
    column = longs_as_text(typed.column()) if typed.type.kind is WireKind.LONG else typed.column()
    return Column(column.type, column.words, None, column.heap)


def _column(batch: pa.RecordBatch, name: str) -> pa.Array:
    return batch.column(_place(batch.schema, name))


def _place(schema: pa.Schema, name: str) -> int:
    places = schema.get_all_field_indices(name)
    if len(places) == 1:
        return int(places[0])
    if places:
        raise TableError(f"column {name} is there {len(places)} times")
    near = get_close_matches(name, schema.names, n=1)
    hint = f"; did you mean its {near[0]}?" if near else ""
    raise TableError(f"column {name} is missing{hint}")
