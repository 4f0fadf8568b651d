"""Replies by columns: what tasks said of many events, as objects that are encoded in one call."""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import repeat
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from frontend.scoring.result_values import values_by_metric
from railgun.ingest.answers import NOT_SENT, Answers
from railgun.ingest.result_table import LATE_WORDS
from railgun.ingest.scored import Scored


class Reply(msgspec.Struct, gc=False):
    """What a client gets for an event. metrics: a struct with a member for each.

    Only where there is something to say: late, what became of it, by partitioner; duplicate: which partitioners knew
    it; warming: metrics that do not answer yet; partial: by metric the time (ms) that it covers what is later than.
    """

    id: str | int
    time: int
    metrics: Any
    late: dict[str, str] | msgspec.UnsetType = msgspec.UNSET
    duplicate: list[str] | msgspec.UnsetType = msgspec.UNSET
    warming: Sequence[str] | msgspec.UnsetType = msgspec.UNSET
    partial: Mapping[str, int] | msgspec.UnsetType = msgspec.UNSET


def replies_of(scored: Scored, selection: Sequence[str] | None) -> list[Reply]:
    """The replies to the events that were taken, in order. selection: only these metrics; None: all."""
    names = scored.metrics
    if selection is not None:
        names = tuple(name for name in names if name in selection)
    columns: dict[str, list[Any]] = {}
    for answers in scored.answers.values():
        columns |= values_by_metric(answers.block(), selection)
    taken = scored.taken
    made: Iterable[Any] = (
        map(_metrics_type(names), *(columns[name] for name in names))
        if names
        else (_metrics_type(())() for _ in repeat(None, len(taken)))
    )
    replies = list(map(Reply, taken.ids, taken.times, made))
    _put_life(replies, scored.answers, names)
    return replies


@lru_cache(maxsize=256)
def _metrics_type(names: tuple[str, ...]) -> type[msgspec.Struct]:
    # Names of metrics may be words of Python's.
    members = [f"m{place}" for place in range(len(names))]
    return msgspec.defstruct(
        "Metrics", [(member, Any) for member in members], rename=dict(zip(members, names)), gc=False
    )


def _put_life(replies: list[Reply], all_answers: Mapping[str, Answers], names: Sequence[str]) -> None:
    """What there is to say beside results: of most events nothing."""
    for partitioner, answers in all_answers.items():
        for row in np.flatnonzero((answers.late != 0) & (answers.late != NOT_SENT)).tolist():
            reply = replies[row]
            said = {} if reply.late is msgspec.UNSET else reply.late
            reply.late = said | {partitioner: LATE_WORDS[int(answers.late[row])]}
        for row in np.flatnonzero(answers.duplicate == 1).tolist():
            reply = replies[row]
            reply.duplicate = [*(() if reply.duplicate is msgspec.UNSET else reply.duplicate), partitioner]
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
    """Rows that are partial alike share what is said of them."""
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
