"""Takes events as JSON texts, and accepts or refuses each by itself.

Engines and front-ends have one `Intake` for each stream. It does no I/O. Many texts are checked together, column by
column. Few are checked one by one.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard

import msgspec
import numpy as np
from numpy.typing import NDArray

from railgun.catalog.model import StreamDefinition
from railgun.files.ndjson_source import FastReader
from railgun.ingest.accepted import AcceptedBatch, Correlation, Row, encode_row
from railgun.ingest.ids import Ids
from railgun.ingest.routing import Router, Share
from railgun.ingest.selection import Selection
from railgun.language.computed import ComputedField
from railgun.messaging.limits import RECORD_LIMIT_BYTES
from railgun.wire.columns import REF_LENGTH_BITS, REF_LENGTH_MASK, Column
from railgun.wire.encode import encode_values
from railgun.wire.finding import NO_RECORD, EventRecord
from railgun.wire.json_error import json_error
from railgun.wire.partition import NOT_SENT
from railgun.wire.table_validator import TableValidator
from railgun.wire.typed_validator import TypedValidator
from railgun.wire.validator import (
    EventRefusedError,
    FieldError,
    Roles,
    ValidatedEvent,
    event_validator,
)
from railgun.wire.values import decode_any_json

JsonText = bytes | msgspec.Raw


class ParsedEvent:
    """An event that did not come as JSON: its fields as Python values.

    size_bytes: the size of the bytes that it was read from. 0: not known; the size of its record is not checked then.
    """

    __slots__ = ("event", "size_bytes")

    def __init__(self, event: Mapping[str, Any], size_bytes: int) -> None:
        self.event, self.size_bytes = event, size_bytes

    def __len__(self) -> int:
        return self.size_bytes


class RecordEvent:
    """An event that a record of a topic has, where fields of the stream are in the record beside its value."""

    __slots__ = ("record", "text")

    def __init__(self, text: JsonText | ParsedEvent, record: EventRecord) -> None:
        self.text, self.record = text, record

    def __len__(self) -> int:
        return len(self.text)


EventText = JsonText | ParsedEvent | RecordEvent

# With fewer texts than this for each field, columns cost more than checking one text after another.
_WORTH_A_COLUMN = 24
# A record may be larger than its event's text by this much: by its head, and by numbers that are shorter as text.
HEAD_BYTES, VALUE_BYTES = 256, 16
_LARGEST = Correlation((1 << 31) - 1, 1 << 62, 1 << 62, [((1 << 31) - 1, 1 << 62, 1 << 62)])


class MalformedEventError(EventRefusedError):
    """A text is not JSON, or is nested too deeply. The message says where."""


class SingleTexts:
    """Checks texts of one stream one by one. Not thread-safe. roles: with the schema of what comes in."""

    def __init__(self, roles: Roles) -> None:
        self._validator, self._typed_validator = event_validator(roles), TypedValidator(roles)

    def admit(
        self, text: EventText, latest_ms: int, record: EventRecord = NO_RECORD
    ) -> ValidatedEvent | EventRefusedError:
        """Return the event of a text, or why it is refused."""
        if isinstance(text, RecordEvent):
            self._typed_validator.record = text.record
            return self.admit(text.text, latest_ms, text.record)
        if not isinstance(text, ParsedEvent):
            admitted = self._typed_validator.admit(text, latest_ms)
            if admitted is not None:
                return admitted
        try:
            event = text.event if isinstance(text, ParsedEvent) else decode_any_json(text)
        except json.JSONDecodeError as error:
            return MalformedEventError([FieldError((), f"no JSON that can be read: {error}")])
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            assert not isinstance(text, ParsedEvent)
            return MalformedEventError([json_error(text, error)])
        except RecursionError:
            return MalformedEventError([FieldError((), "no JSON that can be read: nested too deep")])
        try:
            return self._validator.admit(event, latest_ms, record)
        except EventRefusedError as error:
            return error


class Intake:
    """Accepts texts of one stream under one schema. Not thread-safe.

    roles: with the schema of what comes in, which has the places of the fields. Its version is that of records.
    where: a condition. Texts whose values are of the right types and do not satisfy it are left out: they are neither
        accepted nor refused.
    """

    def __init__(
        self, stream: StreamDefinition, roles: Roles, router: Router, where: ComputedField | None = None
    ) -> None:
        schema = roles.schema
        self._stream, self._schema, self._router = stream, stream.schema(schema.version), router
        self._single, self._table_validator = SingleTexts(roles), TableValidator(roles)
        self._selection = None if where is None else Selection(where, stream)
        # For texts that are refused: whether that is for their types, which comes before the condition.
        self._types_alone = None if where is None else SingleTexts(Roles(schema))
        self._fast = FastReader(schema)
        self._id_place = -1 if stream.id is None else schema.index(stream.id)

    def take(self, texts: Sequence[EventText], ids: Ids, now_ms: int, arrival_ms: int) -> AcceptedBatch:
        """Check texts, and return the events that can be recorded, and the errors of those that cannot.

        ids: makes the ids of events, if the stream has no id field.
        now_ms: the present time, against which `max_future` is checked, in ms since 1970.
        arrival_ms: the time of the events, if the stream has no time field.
        """
        latest_ms = now_ms + self._stream.future_limit_ms
        if len(texts) >= max(1, _WORTH_A_COLUMN * len(self._schema.fields)) and _all_json(texts):
            accepted = self._by_columns(texts, ids, now_ms, latest_ms, arrival_ms)
            if accepted is not None:
                return accepted
        return self._one_by_one(texts, ids, now_ms, latest_ms, arrival_ms)

    @property
    def _sure_bytes(self) -> int:
        """The size of a text whose record is certainly not too large. It allows for an id that the record holds
        twice.
        """
        return (RECORD_LIMIT_BYTES - HEAD_BYTES - VALUE_BYTES * len(self._schema.fields)) // 2

    # --- many at once ------------------------------------------------------------------------------

    def _by_columns(
        self, texts: Sequence[JsonText], ids: Ids, now_ms: int, latest_ms: int, arrival_ms: int
    ) -> AcceptedBatch | None:
        """Check texts together. Returns None if some text has to be checked by itself."""
        if max(map(len, texts)) > self._sure_bytes:
            return None
        batch = self._fast.read(texts)
        if batch is None:
            return None
        n = len(texts)
        made = ids.column(max(0, now_ms), n) if self._stream.id is None else None
        times = np.full(n, arrival_ms, np.int64) if self._stream.time is None else None
        admitted = self._table_validator.admit(batch, latest_ms, made, times)
        if self._selection is None:
            rows = None if admitted.first_bad is None else np.flatnonzero(admitted.bad == 0)
            bad = np.flatnonzero(admitted.bad)
        else:
            left_out = self._selection.left_out(admitted)
            rows = np.flatnonzero((admitted.bad | left_out) == 0)
            bad = np.flatnonzero(admitted.bad & (1 - left_out))
        good = admitted.events if rows is None else admitted.events.take(rows)
        refused = self._why(texts, bad, latest_ms)
        if refused is None:
            return None
        routed = self._router.columns(good)
        shares = self._router.shares(good, routed)
        if made is not None:
            known: list[str | int] = list(_made_texts(good.ids))
        else:
            column = batch.column(self._id_place)
            known = (column if rows is None else column.take(rows)).to_pylist()
        times_ms = good.times.tolist()
        return AcceptedBatch(rows, known, times_ms, shares, good, self._schema, routed, refused)

    def _why(
        self, texts: Sequence[JsonText], bad: NDArray[np.int64], latest_ms: int
    ) -> dict[int, EventRefusedError] | None:
        """Return all errors of each bad row; None if the validator of single events accepts such a row."""
        refused: dict[int, EventRefusedError] = {}
        for row in bad.tolist():
            found = self._single.admit(texts[row], latest_ms)
            if not isinstance(found, EventRefusedError):
                return None
            refused[row] = found
        return refused

    # --- one by one --------------------------------------------------------------------------------

    def _one_by_one(
        self, texts: Sequence[EventText], ids: Ids, now_ms: int, latest_ms: int, arrival_ms: int
    ) -> AcceptedBatch:
        rows: list[int] = []
        known: list[str | int] = []
        times: list[int] = []
        refused: dict[int, EventRefusedError] = {}
        events: list[Row] = []
        sent: dict[tuple[int, int], list[int]] = {}
        for row, text in enumerate(texts):
            found = self._single.admit(text, latest_ms)
            if self._selection is not None and self._is_left_out(self._selection, text, found, latest_ms):
                continue
            if isinstance(found, EventRefusedError):
                refused[row] = found
                continue
            event_id = ids.next(max(0, now_ms), row) if found.id is None else found.id
            time_ms = arrival_ms if found.time_ms is None else found.time_ms
            values = found.values
            routed = self._router.routed(values)
            event = Row(event_id, time_ms, len(values), encode_values(values), routed)
            if len(text) > self._sure_bytes:
                size_bytes = len(encode_row(self._schema.version, event, _LARGEST))
                if size_bytes > RECORD_LIMIT_BYTES:
                    refused[row] = _too_large(size_bytes)
                    continue
            for home, partition in enumerate(self._router.partitions(routed)):
                if partition != NOT_SENT:
                    sent.setdefault((home, partition), []).append(len(known))
            rows.append(row)
            known.append(event_id if self._stream.id is None else values[self._id_place])
            times.append(time_ms)
            events.append(event)
        some = None if len(rows) == len(texts) else np.array(rows, np.int64)
        return self._taken(some, known, times, sent, events, refused)

    def _is_left_out(
        self,
        selection: Selection,
        text: EventText,
        found: ValidatedEvent | EventRefusedError,
        latest_ms: int,
    ) -> bool:
        """Return whether a text is left out by the condition, be it accepted or refused otherwise."""
        if isinstance(found, EventRefusedError):
            assert self._types_alone is not None
            found = self._types_alone.admit(text, latest_ms)
        return not isinstance(found, EventRefusedError) and selection.leaves_out(found.values)

    def _taken(
        self,
        rows: NDArray[np.int64] | None,
        known: list[str | int],
        times: list[int],
        sent: dict[tuple[int, int], list[int]],
        events: list[Row],
        refused: dict[int, EventRefusedError],
    ) -> AcceptedBatch:
        shares: list[list[Share]] = [[] for _ in self._router.partitioners]
        for (home, partition), places in sorted(sent.items()):
            own = None if len(places) == len(known) else np.array(places, np.int64)
            shares[home].append(Share(self._router.partitioners[home], partition, own))
        return AcceptedBatch(rows, known, times, shares, events, self._schema, refused=refused)


def _all_json(texts: Sequence[EventText]) -> TypeGuard[Sequence[JsonText]]:
    return {ParsedEvent, RecordEvent}.isdisjoint(map(type, texts))


def _too_large(size_bytes: int) -> EventRefusedError:
    message = f"a record of {size_bytes} bytes; at most {RECORD_LIMIT_BYTES} are taken"
    return EventRefusedError([FieldError((), message)])


def _made_texts(column: Column) -> list[str]:
    """Return the texts of a column of generated ids. These are ASCII."""
    assert column.heap is not None
    heap = column.heap.tobytes().decode("ascii")
    lengths = (column.words & np.uint64(REF_LENGTH_MASK)).tolist()
    starts = (column.words >> np.uint64(REF_LENGTH_BITS)).tolist()
    return [heap[start : start + length] for start, length in zip(starts, lengths)]
