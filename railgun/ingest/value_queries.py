"""Reads value queries and puts their answers together (docs/semantics.md, Values without an event). It does no I/O.

Engines and front-ends call it. A key is some fields with their values. It determines the metrics that group by no other
fields.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import islice
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from railgun.catalog.catalog import StreamEntry
from railgun.catalog.errors import meant, no_metric
from railgun.ingest.accepted import AcceptedBatch, Row
from railgun.ingest.answers import Answers, Rows
from railgun.ingest.derived import DERIVED, DerivedMetrics
from railgun.ingest.replies import values_by_metric
from railgun.ingest.routing import Router, Share
from railgun.language.derive import ResolvedDerived
from railgun.plan.program import TIME_MIN
from railgun.wire.columns import EventColumns
from railgun.wire.encode import encode_values
from railgun.wire.partition import NOT_SENT
from railgun.wire.schema import Field, WireKind
from railgun.wire.text_values import text_reader
from railgun.wire.validator import FieldError
from railgun.wire.values import MisfitError, reader

_NOT_ASKED = -1
# How many errors of a query are told.
_ERRORS_MAX = 20


class QueryRefusedError(ValueError):
    """A value query is refused, with all of its keys.

    errors: each at the place (index of the key, field), (index of the key,) or ("metrics",).
    """

    def __init__(self, errors: Sequence[FieldError]) -> None:
        self.errors = tuple(errors)
        super().__init__(self.errors)

    def __str__(self) -> str:
        return "; ".join(f"{_shown_place(loc)}: {msg}" for loc, msg in self.errors)


def _list(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))


def _shown_place(loc: Sequence[str | int]) -> str:
    return " ".join(f"key {each}" if isinstance(each, int) else each for each in loc)


class ValueRequest(NamedTuple):
    """A value query as a client sends it.

    keys: mappings of field names to JSON values or their Python equivalents; with `are_texts` to texts.
    metrics: the names of the metrics that are wanted; None asks for all that each key determines.
    """

    keys: Sequence[Mapping[str, Any]]
    metrics: Sequence[str] | None = None
    are_texts: bool = False


@dataclass(frozen=True, slots=True)
class ValueQuery:
    """A value query that was checked.

    keys: as in JSON.  names: for each key the wanted metrics, in the order in which they were added.
    batch: a record for each key, and the tasks that get it.
    place: the number of the stream's last change in the catalogue when the query was read.
    is_named: whether the request named the metrics.
    """

    keys: Sequence[Mapping[str, Any]]
    names: Sequence[tuple[str, ...]]
    batch: AcceptedBatch
    place: int
    is_named: bool

    def some(self, rows: NDArray[np.int64], names: Collection[str]) -> "ValueQuery":
        """Return the query for some of its keys and metrics. It serves to make answers; it cannot be sent."""
        assert not isinstance(self.batch.events, EventColumns)
        chosen = rows.tolist()
        kept = [tuple(name for name in self.names[row] if name in names) for row in chosen]
        events = [self.batch.events[row] for row in chosen]
        batch = replace(self.batch, ids=[""] * len(chosen), times=[0] * len(chosen), shares=(), events=events)
        return replace(self, keys=[self.keys[row] for row in chosen], names=kept, batch=batch)


class QueryReader:
    """Reads the value queries of one stream. When the stream or its metrics change, a new reader is needed."""

    def __init__(self, entry: StreamEntry, router: Router) -> None:
        self._stream, self._router = entry.stream.name, router
        self._schema = entry.stream.of_queries(entry.schema.version)
        self._names = entry.names
        self._place = max([entry.created, *(each.dropped or each.added for each in entry.registered)])
        self._groups = {name: frozenset(add.metric.resolved.group_by) for name, add in entry.metrics.items()}
        self._homes = {name: add.metric.home for name, add in entry.metrics.items()}
        self._derived = entry.derived
        self._grouping = {field: None for each in self._groups.values() for field in sorted(each)}
        names = [field.name for field in self._schema.fields]
        self._routed = [names.index(name) if name in names else -1 for name in router.partitioners]
        self._fields = {
            field.name: (place, field, (reader(field.type), text_reader(field.type)))
            for place, field in enumerate(self._schema.fields)
        }

    def read(self, request: ValueRequest, first: int = 0) -> ValueQuery:
        """Read a query. Raises QueryRefusedError. first: the index of its first key in the client's query."""
        keys, metrics, are_texts = request
        errors = list(islice(self._unknown_metrics(metrics or ()), _ERRORS_MAX))
        wanted = None if metrics is None else tuple(dict.fromkeys(metrics))
        names: list[tuple[str, ...]] = []
        shown: list[dict[str, Any]] = []
        rows: list[Row] = []
        sent: dict[tuple[int, int], list[int]] = {}
        by_fields: dict[frozenset[str], tuple[tuple[str, ...], set[str]]] = {}
        for row, key in enumerate(keys):
            values, found = self._values(row, key, are_texts=are_texts)
            errors += found
            if len(errors) >= _ERRORS_MAX:
                break
            if errors:
                continue
            given = frozenset(key)
            if given not in by_fields:
                errors += self._refusals(row, given, wanted)
                determined = self._determined(given, wanted)
                by_fields[given] = determined, self._homes_of(determined)
            determined, homes = by_fields[given]
            names.append(determined)
            shown.append({name: _json(values[self._fields[name][0]], self._fields[name][1]) for name in key})
            routed = [None if place < 0 else values[place] for place in self._routed]
            rows.append(Row("", 0, len(values), encode_values(values), routed))
            for home, partition in enumerate(self._router.partitions(routed)):
                if partition != NOT_SENT and self._router.partitioners[home] in homes:
                    sent.setdefault((home, partition), []).append(row)
        if errors:
            raise QueryRefusedError([_moved(each, first) for each in errors])
        shares: list[list[Share]] = [[] for _ in self._router.partitioners]
        for (home, partition), places in sorted(sent.items()):
            shares[home].append(Share(self._router.partitioners[home], partition, np.array(places, np.int64)))
        n = len(rows)
        batch = AcceptedBatch(None, [""] * n, [0] * n, shares, rows, self._schema)
        return ValueQuery(shown, names, batch, self._place, metrics is not None)

    # --- one key

    def _values(self, row: int, key: Any, *, are_texts: bool) -> tuple[list[Any], list[FieldError]]:
        """Return the values of all fields of the schema, and the errors of the key."""
        values: list[Any] = [None] * len(self._fields)
        if not isinstance(key, Mapping):
            return values, [FieldError((row,), "a key is an object of fields and their values")]
        errors: list[FieldError] = []
        for name, value in key.items():
            if len(errors) >= _ERRORS_MAX:
                break
            if name not in self._grouping:
                errors.append(FieldError((row, str(name)[:80]), self._no_key_field(str(name))))
                continue
            place, _, readers = self._fields[name]
            try:
                values[place] = None if value is None else readers[are_texts](value)
            except MisfitError as error:
                errors.append(FieldError((row, name), str(error)))
        return values, errors

    def _no_key_field(self, name: str) -> str:
        if name in self._fields:
            return f"no metric of {self._stream} groups by it; {self._groupings()}"
        hint = meant(name, self._grouping)
        return f"{self._stream} has no such field; {hint or self._groupings()}"

    def _groupings(self) -> str:
        if not self._groups:
            return "it has no metrics"
        kinds = sorted({", ".join(sorted(each)) or "nothing" for each in self._groups.values()})
        return f"its metrics group by {'; by '.join(kinds[:10])}{'; …' if len(kinds) > 10 else ''}"

    def _refusals(
        self, row: int, given: frozenset[str], wanted: tuple[str, ...] | None
    ) -> Iterator[FieldError]:
        """Yield the errors of the set of fields that a key has."""
        if not any(each <= given for each in self._groups.values()):
            fields = _list(given) or "no field"
            yield FieldError(
                (row,), f"a key of {fields} determines no metric of {self._stream}; {self._groupings()}"
            )
            return
        for name in wanted or ():
            reads, needed = self._needs(name)
            if reads:
                yield FieldError(
                    ("metrics",),
                    f"{name} reads {_list(reads)} of an event, which a query does not have; ask for its "
                    "operands, or send the event",
                )
            elif needed - given:
                yield FieldError(
                    (row,), f"{name} groups by {_list(needed)}; the key lacks {_list(needed - given)}"
                )

    def _unknown_metrics(self, wanted: Sequence[str]) -> Iterator[FieldError]:
        for name in wanted:
            if name not in self._names:
                yield FieldError(("metrics",), no_metric(self._stream, name, self._names))

    # --- metrics

    def _needs(self, name: str) -> tuple[frozenset[str], frozenset[str]]:
        """Return the fields of an event that a metric reads at the reply, and those that a key needs for the metric."""
        if name in self._groups:
            return frozenset(), self._groups[name]
        derived = self._derived[name]
        needed = frozenset[str]().union(*(self._groups[operand] for operand in derived.operands))
        return derived.event_fields, needed

    def _determined(self, given: frozenset[str], wanted: tuple[str, ...] | None) -> tuple[str, ...]:
        found = []
        for name in self._names if wanted is None else [each for each in self._names if each in wanted]:
            reads, needed = self._needs(name)
            if not reads and needed <= given:
                found.append(name)
        return tuple(found)

    def _homes_of(self, names: Sequence[str]) -> set[str]:
        """Return the partitioners whose tasks have these metrics, or the operands of derived ones."""
        derived: list[ResolvedDerived] = [self._derived[name] for name in names if name in self._derived]
        metrics = {name for name in names if name in self._homes}.union(*(each.operands for each in derived))
        return {self._homes[name] for name in metrics}


def _moved(error: FieldError, first: int) -> FieldError:
    """Return an error of a key with the key's index in the client's query. first: the index of the first key here."""
    row, *rest = error.loc
    return error if isinstance(row, str) else FieldError((first + row, *rest), error.msg)


class Places:
    """The places in their logs at which the tasks of each partitioner answered n keys.

    time: int64[partitioners, n]; the task's clock.
    offset: int64[partitioners, n]; of the last record that was included; -1 if no task was asked.
    """

    def __init__(self, partitioners: Sequence[str], n: int) -> None:
        self._index = {name: place for place, name in enumerate(partitioners)}
        self.time: NDArray[np.int64] = np.zeros((len(partitioners), n), np.int64)
        self.offset: NDArray[np.int64] = np.full((len(partitioners), n), _NOT_ASKED)

    def note(self, partitioner: str, rows: Rows, times: Any, offsets: Any) -> None:
        """Note the clocks and the offsets of a partitioner's tasks that answered some keys."""
        place = self._index[partitioner]
        self.time[place, rows], self.offset[place, rows] = times, offsets

    def some(self, rows: NDArray[np.int64]) -> "Places":
        """Return the places of some of the keys."""
        made = Places(tuple(self._index), 0)
        made.time, made.offset = self.time[:, rows], self.offset[:, rows]
        return made

    def of(self, row: int) -> dict[str, "Place"]:
        """Return the places of one key, by partitioner."""
        return {
            name: Place(None if time == TIME_MIN else time, offset)
            for name, time, offset in zip(
                self._index, self.time[:, row].tolist(), self.offset[:, row].tolist()
            )
            if offset != _NOT_ASKED
        }


class Place(msgspec.Struct, frozen=True, gc=False):
    """The clock of a task, None before its first event, and the offset of the last record that is included."""

    time: int | None
    offset: int


class KeyValues(msgspec.Struct, gc=False):
    """The answer for one key. warming, partial: as in a `Reply`, set only if they have something to tell."""

    key: Mapping[str, Any]
    metrics: dict[str, Any]
    as_of: dict[str, Place]
    warming: Sequence[str] | msgspec.UnsetType = msgspec.UNSET
    partial: Mapping[str, int] | msgspec.UnsetType = msgspec.UNSET


def key_values(
    query: ValueQuery, answers: Mapping[str, Answers], derived: DerivedMetrics, places: Places
) -> list[KeyValues]:
    """Put the answers of tasks together. Returns a KeyValues for each key.

    answers: by partitioner.  derived: the derived metrics.
    """
    batch, all_answers = query.batch, dict(answers)
    wanted = {name for names in query.names for name in names}
    made = derived.answers(batch.events, batch.schema, answers, selection=[*wanted])
    if made is not None:
        all_answers[DERIVED] = made
    columns: dict[str, list[Any]] = {}
    for each in all_answers.values():
        columns |= values_by_metric(
            each.block(), [name for name in each.block().form.names if name in wanted]
        )
    found = [
        KeyValues(key, {name: columns[name][row] for name in names}, places.of(row))
        for row, (key, names) in enumerate(zip(query.keys, query.names))
    ]
    for each in all_answers.values():
        _note(found, each)
    return found


def _note(found: Sequence[KeyValues], answers: Answers) -> None:
    """Set `warming` and `partial` of answers, for the metrics that they have."""
    if len(answers.warming_sets) > 1:
        for each, code in zip(found, answers.warming.tolist()):
            warming = [name for name in answers.warming_sets[code] if name in each.metrics]
            if warming:
                each.warming = [*(() if each.warming is msgspec.UNSET else each.warming), *warming]
    for name, bound_ms, rows in answers.partials:
        for row in rows.tolist():
            each = found[row]
            if name in each.metrics:
                known = {} if each.partial is msgspec.UNSET else each.partial
                each.partial = {**known, name: bound_ms}


def _json(value: Any, field: Field) -> Any:
    """Return a field's value as replies write it."""
    if value is None or field.type.kind is not WireKind.DECIMAL:
        return value
    return format(Decimal(value).scaleb(-field.type.scale), "f")
