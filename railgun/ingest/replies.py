"""Makes replies to many events from columns of results. The caller then encodes the list of them to JSON in one call.

Engines and front-ends call it. Results of one type are converted together. Python code runs for single values only to
make text.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import repeat
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from railgun.ingest.accepted import AcceptedBatch
from railgun.ingest.answers import NOT_SENT, Answers, any_set
from railgun.ingest.derived import DERIVED, NOTHING_DERIVED, DerivedMetrics, Recorded
from railgun.ingest.result_table import LATE_WORDS
from railgun.language.types import STRING, Kind, Type
from railgun.plan.outputs import MetricColumn, is_wide
from railgun.plan.result_block import ResultBlock, ResultForm, slice_or_array
from railgun.wire.columns import REF_LENGTH_BITS, REF_LENGTH_MASK

JsonValue = int | float | bool | str | None
# The n values of each of m metrics, metric after metric, in one list. One list is faster to build and to change than m
# lists.
Values = list[Any]


# Arrow takes as long to convert one string as a loop in Python takes for this many.
_FEW_STRINGS = 16


class _Words(NamedTuple):
    """Results of m metrics of one type, as in ResultBlock. high: has no rows unless the type is wide (128 bits)."""

    low: NDArray[np.uint64]
    high: NDArray[np.uint64]
    nulls: NDArray[np.uint8]
    heap: NDArray[np.uint8]


class _Group(NamedTuple):
    """Metrics of one type.

    rows: their rows in the block's `low` and `nulls`, which are their indexes among all metrics.
    high_rows: their rows in the block's `high`, which are their indexes among wide metrics; none for other types.
    values: converts their words to Python values.
    """

    names: tuple[str, ...]
    rows: NDArray[np.int64] | slice
    high_rows: NDArray[np.int64] | slice
    values: Callable[[_Words], Values]


def values_by_metric(block: ResultBlock, selection: Sequence[str] | None) -> dict[str, list[Any]]:
    """Return n values by metric: exact ints, floats, bools, strings; decimals as plain strings; None for null.

    selection: only these metrics; None selects all.
    """
    found: dict[str, list[Any]] = {}
    n = block.low.shape[1]
    for group in _groups(block.form, None if selection is None else tuple(selection)):
        words = _Words(
            block.low[group.rows], block.high[group.high_rows], block.nulls[group.rows], block.heap
        )
        values = group.values(words)
        if 1 in words.nulls.tobytes():
            for index in np.flatnonzero(words.nulls).tolist():
                values[index] = None
        for metric, name in enumerate(group.names):
            found[name] = values[metric * n : (metric + 1) * n]
    return found


@lru_cache(maxsize=256)
def _groups(form: ResultForm, selection: tuple[str, ...] | None) -> tuple[_Group, ...]:
    by_type: dict[Type, list[int]] = {}
    for metric, (name, type_) in enumerate(zip(form.names, form.types)):
        if selection is None or name in selection:
            by_type.setdefault(type_, []).append(metric)
    high_rows = {metric: row for row, metric in enumerate(form.wide.tolist())}
    return tuple(
        _Group(
            tuple(form.names[metric] for metric in metrics),
            slice_or_array(metrics),
            slice_or_array([high_rows[metric] for metric in metrics if metric in high_rows]),
            _values(type_),
        )
        for type_, metrics in by_type.items()
    )


def _values(type_: Type) -> Callable[[_Words], Values]:
    match type_.kind:
        case Kind.STRING:
            return _strings
        case Kind.DECIMAL:
            return lambda words: _decimals(words, type_.scale)
        case Kind.DOUBLE:
            return lambda words: words.low.view(np.float64).reshape(-1).tolist()
        case Kind.BOOLEAN:
            return lambda words: (words.low != 0).reshape(-1).tolist()
        case _:
            return _wide if is_wide(type_) else lambda words: words.low.view(np.int64).reshape(-1).tolist()


def _wide(words: _Words) -> Values:
    """Convert 128-bit integers. Nearly all of them fit into 64 bits."""
    low, high = words.low.reshape(-1), words.high.view(np.int64).reshape(-1)
    values: Values = low.view(np.int64).tolist()
    longer = np.flatnonzero(high != low.view(np.int64) >> 63)
    for index, upper, lower in zip(longer.tolist(), high[longer].tolist(), low[longer].tolist()):
        values[index] = upper << 64 | lower
    return values


def _strings(words: _Words) -> Values:
    """Read only the strings that these words refer to. The heap may belong to thousands of events."""
    if words.low.size <= _FEW_STRINGS:
        found: Values = []
        for word, null in zip(words.low.reshape(-1).tolist(), words.nulls.reshape(-1).tolist()):
            if null:
                # Its word is no reference.
                found.append(None)
                continue
            start = word >> REF_LENGTH_BITS
            found.append(words.heap[start : start + (word & REF_LENGTH_MASK)].tobytes().decode())
        return found
    column = MetricColumn("", STRING, words.low.reshape(-1, 1), words.nulls.reshape(-1), words.heap)
    return list(column.arrow().to_pylist())


def _decimals(words: _Words, scale: int) -> Values:
    """Convert unscaled integers to text with a decimal point."""
    n = words.low.size
    both = np.empty((n, 2), np.uint64)
    both[:, 0] = words.low.reshape(-1)
    both[:, 1] = (
        words.high.reshape(-1) if words.high.size else (both[:, 0].view(np.int64) >> 63).view(np.uint64)
    )
    valid = pa.py_buffer(np.packbits(words.nulls.reshape(-1) == 0, bitorder="little"))
    unscaled = pa.Array.from_buffers(pa.decimal128(38, 0), n, [valid, pa.py_buffer(both)])
    digits = unscaled.cast(pa.string())
    if scale:
        is_negative = pc.starts_with(digits, "-")
        padded = pc.utf8_lpad(pc.utf8_ltrim(digits, "-"), scale + 1, "0")
        pointed = pc.utf8_replace_slice(padded, -scale, -scale, ".")
        digits = pc.binary_join_element_wise(pc.if_else(is_negative, "-", ""), pointed, "")
    return list(digits.to_pylist())


class Reply(msgspec.Struct, gc=False):
    """The reply to an event. Members from `late` on are set only if they have something to tell.

    metrics: a struct with a member for each metric.
    late: by partitioner, whether a late event was rewritten or discarded.
    duplicate: the partitioners that knew the event already.
    warming: the metrics that do not answer yet.
    partial: for each metric that lacks old events, a time in ms. The metric covers only events after this time.
    missing: the partitioners that have not answered. Their metrics are left out.
    fields: a struct of fields of the event, in the stream's output topic alone; None if they are too large.
    """

    id: str | int
    time: int
    metrics: Any
    late: dict[str, str] | msgspec.UnsetType = msgspec.UNSET
    duplicate: list[str] | msgspec.UnsetType = msgspec.UNSET
    warming: Sequence[str] | msgspec.UnsetType = msgspec.UNSET
    partial: Mapping[str, int] | msgspec.UnsetType = msgspec.UNSET
    missing: Sequence[str] | msgspec.UnsetType = msgspec.UNSET
    fields: Any = msgspec.UNSET


@dataclass(frozen=True, slots=True)
class ScoredBatch:
    """The outcome of events that arrived together.

    accepted: the events that were accepted, and the reasons why others were refused.
    metrics: the names of all metrics, derived ones too, in the order in which they were added.
    answers: to the accepted events, by partitioner. Each metric is in the answers of one partitioner, its home.
    derived: the derived metrics (expressions over metrics and fields), which are computed here.
    recorded: the schemas under which the tasks recorded the events; None if all are that of `accepted`.
    """

    accepted: AcceptedBatch
    metrics: tuple[str, ...]
    answers: Mapping[str, Answers]
    derived: DerivedMetrics = NOTHING_DERIVED
    recorded: Recorded | None = None


def replies_of(scored: ScoredBatch, selection: Sequence[str] | None) -> list[Reply]:
    """Return the replies to the accepted events, in order. selection: only these metrics; None selects all."""
    names = scored.metrics
    if selection is not None:
        names = tuple(name for name in names if name in selection)
    columns: dict[str, list[Any]] = {}
    accepted, all_answers = scored.accepted, scored.answers
    derived = scored.derived.answers(
        accepted.events, accepted.schema, scored.answers, scored.recorded, selection
    )
    if derived is not None:
        all_answers = {**all_answers, DERIVED: derived}
    for answers in all_answers.values():
        columns |= values_by_metric(answers.block(), selection)
    made: Iterable[Any] = (
        map(_metrics_type(names), *(columns[name] for name in names))
        if names
        else (_metrics_type(())() for _ in repeat(None, len(accepted)))
    )
    replies = list(map(Reply, accepted.ids, accepted.times, made))
    _add_notes(replies, all_answers, names)
    return replies


def repeat_fields(replies: Sequence[Any], fields: ResultBlock) -> None:
    """Put fields of events into their replies. What stands in place of a reply stays as it is.

    fields: the values, of as many events.
    """
    names, columns = fields.form.names, values_by_metric(fields, None)
    rows = map(_metrics_type(names), *(columns[name] for name in names))
    for reply, row in zip(replies, rows, strict=True):
        if isinstance(reply, Reply):
            reply.fields = row


def python_replies(scored: ScoredBatch) -> list[dict[str, Any]]:
    """Return the replies as Python dictionaries, with all metrics and the same content as the JSON."""
    found: list[dict[str, Any]] = msgspec.to_builtins(replies_of(scored, None))
    return found


@lru_cache(maxsize=256)
def _metrics_type(names: tuple[str, ...]) -> type[msgspec.Struct]:
    # Names of metrics may be keywords of Python, so the members have names of their own.
    members = [f"m{index}" for index in range(len(names))]
    return msgspec.defstruct(
        "Metrics", [(member, Any) for member in members], rename=dict(zip(members, names)), gc=False
    )


def _add_notes(replies: list[Reply], all_answers: Mapping[str, Answers], names: Sequence[str]) -> None:
    """Add notes to replies. Most events need none."""
    for partitioner, answers in all_answers.items():
        if any_set(answers.late):
            for row in np.flatnonzero((answers.late != 0) & (answers.late != NOT_SENT)).tolist():
                reply = replies[row]
                known = {} if reply.late is msgspec.UNSET else reply.late
                reply.late = known | {partitioner: LATE_WORDS[int(answers.late[row])]}
        if any_set(answers.duplicate):
            for row in np.flatnonzero(answers.duplicate == 1).tolist():
                reply = replies[row]
                reply.duplicate = [
                    *(() if reply.duplicate is msgspec.UNSET else reply.duplicate),
                    partitioner,
                ]
        if len(answers.warming_sets) > 1:
            _put_warming(replies, answers, names)
        if answers.partials:
            _put_partial(replies, answers, names)


def _put_warming(replies: list[Reply], answers: Answers, names: Sequence[str]) -> None:
    chosen = [[name for name in each if name in names] for each in answers.warming_sets]
    for reply, code in zip(replies, answers.warming.tolist()):
        if chosen[code]:
            reply.warming = [*(() if reply.warming is msgspec.UNSET else reply.warming), *chosen[code]]


def _put_partial(replies: list[Reply], answers: Answers, names: Sequence[str]) -> None:
    """Set `partial` of replies. Rows with the same partial metrics and times share one mapping."""
    codes: NDArray[np.int64] = np.zeros(len(replies), np.int64)
    sets: list[dict[str, int]] = [{}]
    for name, bound_ms, rows in answers.partials:
        if name not in names:
            continue
        codes *= 2
        codes[rows] += 1
        found, codes = np.unique(codes, return_inverse=True)
        sets = [sets[code >> 1] | ({name: bound_ms} if code & 1 else {}) for code in found.tolist()]
    for reply, code in zip(replies, codes.tolist()):
        if sets[code]:
            reply.partial = sets[code] if reply.partial is msgspec.UNSET else {**reply.partial, **sets[code]}
