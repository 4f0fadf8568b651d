"""Makes an Arrow table of answers: one row for each event, with the documented columns.

`Engine.score_table` and `railgun run` return it.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from railgun.catalog.model import StreamDefinition
from railgun.catalog.names import column_name
from railgun.ingest.answers import NOT_SENT, Answers
from railgun.language.types import STRING
from railgun.plan.outputs import MetricColumn
from railgun.wire.columns import EventColumns

WARMING, PARTIAL = "warming", "partial"
LATE_WORDS = {1: "rewritten", 2: "discarded"}
"""The words in replies for a late event, by railgun.task.admission.LATE_..."""

_EMPTY = np.zeros(0, np.uint8)


def result_table(
    stream: StreamDefinition,
    metrics: Sequence[str],
    events: EventColumns,
    answers: Mapping[str, Answers],
    *,
    with_life: bool,
    derived: Answers | None = None,
) -> pa.Table:
    """Return a table with the id, the metrics in their order, and `late_<p>` and `duplicate_<p>` for each partitioner
    p.

    `late_<p>` is a string: null, "rewritten" or "discarded". `duplicate_<p>` is a boolean. Both are null if the event
    was not sent to p.

    metrics: names, those of derived metrics too.  derived: the answers of the derived metrics.
    with_life: adds `warming`, a list of names of metrics, and `partial`, a map from names of metrics to their bounds
        in ms.
    """
    names: list[str] = [stream.id or "id"]
    arrays: list[pa.Array] = [_ids(stream, events)]
    columns: dict[str, MetricColumn] = {}
    everything = list(answers.values()) if derived is None else [*answers.values(), derived]
    for each in everything:
        columns |= each.block().columns()
    for name in metrics:
        names.append(name)
        arrays.append(columns[name].arrow())
    for partitioner, each in answers.items():
        names += [f"late_{column_name(partitioner)}", f"duplicate_{column_name(partitioner)}"]
        not_sent = each.late == NOT_SENT
        arrays.append(_late_words().take(pa.array(np.where(not_sent, 0, each.late).astype(np.int32))))
        arrays.append(pa.array(each.duplicate == 1, pa.bool_(), mask=not_sent))
    if with_life:
        names += [WARMING, PARTIAL]
        arrays += [_warming(len(events), everything), _partial(len(events), everything)]
    return pa.Table.from_arrays(arrays, names)


@cache
def _late_words() -> pa.Array:
    # Not made at import: if pandas is installed, Arrow imports it with the first array of Python objects.
    return pa.array([None, *LATE_WORDS.values()], pa.string())


def _ids(stream: StreamDefinition, events: EventColumns) -> pa.Array:
    """Return the ids in the type of the id field; as text if there is none."""
    if stream.id is None:
        column, type_ = events.ids, STRING
    else:
        column = events.fields[list(stream.types).index(stream.id)]
        type_ = stream.types[stream.id]
    heap = _EMPTY if column.heap is None else column.heap
    no_nulls = np.zeros(len(events), np.uint8)
    return MetricColumn("id", type_, column.words.reshape(-1, 1), no_nulls, heap).arrow()


def _warming(n: int, answers: Iterable[Answers]) -> pa.Array:
    """Return the names that each event's answer lists as warming, over all partitioners."""
    codes = np.zeros(n, np.int64)
    sets: list[tuple[str, ...]] = [()]
    for each in answers:
        if len(each.warming_sets) == 1:
            continue
        pairs, codes = np.unique(codes * len(each.warming_sets) + each.warming, return_inverse=True)
        split = [divmod(int(pair), len(each.warming_sets)) for pair in pairs]
        sets = [sets[before] + each.warming_sets[own] for before, own in split]
    return pa.array([list(names) for names in sets], pa.list_(pa.string())).take(pa.array(codes))


def _partial(n: int, answers: Iterable[Answers]) -> pa.Array:
    """Return a map for each event, from the metrics that are partial to their bounds."""
    names: list[str] = []
    rows: list[NDArray[np.int64]] = [np.zeros(0, np.int64)]
    keys: list[NDArray[np.int32]] = [np.zeros(0, np.int32)]
    bounds: list[NDArray[np.int64]] = [np.zeros(0, np.int64)]
    for each in answers:
        for name, bound_ms, within in each.partials:
            names.append(name)
            rows.append(within)
            keys.append(np.full(len(within), len(names) - 1, np.int32))
            bounds.append(np.full(len(within), bound_ms, np.int64))
    order = np.argsort(np.concatenate(rows), kind="stable")
    offsets = np.zeros(n + 1, np.int32)
    np.cumsum(np.bincount(np.concatenate(rows), minlength=n), out=offsets[1:])
    bound_names = pa.array(names, pa.string()).take(pa.array(np.concatenate(keys)[order]))
    return pa.MapArray.from_arrays(pa.array(offsets), bound_names, pa.array(np.concatenate(bounds)[order]))
