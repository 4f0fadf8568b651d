"""A request: events that were published together and wait for the answers of all their partitioners. It does no I/O.

`Exchange` makes it and keeps it in the pending table; the collector hands it the answers.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from frontend.exchange.gathered import Gathered
from frontend.exchange.timeline import Answered, Timeline
from frontend.problems import Problem, problem
from frontend.scoring.answers_in_time import late_answer, may_count
from railgun.catalog.catalog import StreamEntry
from railgun.ingest.accepted import AcceptedBatch, Row
from railgun.ingest.answers import Answers, forms_of
from railgun.ingest.derived import Recorded
from railgun.ingest.replies import Reply, ScoredBatch, replies_of
from railgun.plan.result_block import ResultForm
from railgun.wire.columns import EventColumns
from railgun.wire.reply import ReplyBatch

# The memory of an event that waits, beside its text: Python objects, and its row in the columns of answers.
EVENT_OVERHEAD_BYTES = 1_000
_NOBODY: tuple[str, ...] = ()
# The code of an event that was sent to a partitioner and not answered. -1 is that of an event that was not sent to it.
_WAITING = -2

OnAnswered = Callable[[list["PendingRequest"]], None]


@dataclass(frozen=True, slots=True)
class Homes:
    """The metrics of a stream when its events were published, by the partitioner whose tasks compute them.

    metrics: by partitioner, the names and types of its metrics.
    timeline: the metrics at other times too.
    place: the number of the last change of the catalogue that was read by then.
    has_id: whether the events have an id field.
    created: the number of the change that created the stream, which tells it from others of its name.
    """

    metrics: dict[str, ResultForm]
    timeline: Timeline
    place: int
    has_id: bool = True
    created: int = 0

    @classmethod
    def of(cls, entry: StreamEntry, timeline: Timeline, place: int) -> "Homes":
        """Make them from a stream's entry, as the catalogue has it at a place."""
        metrics = (add.metric for add in entry.metrics.values())
        forms = forms_of(entry.stream.partitioners, metrics)
        return cls(forms, timeline, place, entry.stream.id is not None, entry.created)


@dataclass(slots=True, eq=False)
class PendingRequest:
    """n events of one stream, published and waiting for answers.

    number: identifies the request in the table of those that wait.
    accepted: the events.
    homes: the stream's metrics when the events were published.
    timeout_ms: how long it waits for answers.
    size_bytes: the memory that the table counts for it.
    begun_s: when it began to wait, by the monotonic clock.
    gathered: by partitioner, the answers that have come.
    on_answered: is called in the collector's thread with the requests that are finished.
    context: anything by which the caller recognises the request.
    left: how many answers are still to come, over all events and partitioners.
    error: why none will come.
    logged_s: when the broker had acknowledged all events, by perf_counter; 0 before that.
    place: the number of the catalogue's latest change that an answering task knew.
    """

    number: int
    stream: str
    accepted: AcceptedBatch
    homes: Homes
    on_answered: OnAnswered
    timeout_ms: int
    context: Any = None
    size_bytes: int = 0
    error: Problem | None = None
    left: int = 0
    place: int = 0
    logged_s: float = 0.0
    begun_s: float = field(default_factory=monotonic)
    gathered: dict[str, Gathered] = field(default_factory=dict)

    def __post_init__(self) -> None:
        n = len(self.accepted)
        for name, shares in zip(self.homes.metrics, self.accepted.shares):
            into = self.gathered[name] = self._gathering(name, n)
            self.left += sum(into.expect(share.rows) for share in shares)

    def __len__(self) -> int:
        return len(self.accepted)

    def _gathering(self, partitioner: str, n: int) -> Gathered:
        """Return the object that takes the answers of one partitioner's tasks."""
        return Gathered(n)

    def fail(self, why: str) -> None:
        """Note that no answers will come."""
        self.error = problem(503, f"{why}; the event {may_count(has_id=self.homes.has_id)}")

    def fail_as_dropped(self) -> None:
        """Note that no answers will come, because the stream was dropped."""
        self.error = problem(404, f"the stream {self.stream[:80]!r} was dropped, and the event with it")

    def gather(self, batch: ReplyBatch, first: int, after: int, rows: NDArray[np.int64]) -> int:
        """Take the answers first..after - 1 of a reply record. Return how many of them were waited for."""
        into = self.gathered.get(batch.source.partitioner)
        if into is None or not len(rows) or int(rows.max()) >= len(self):
            return 0
        count = into.gather(batch, first, after, rows)
        self.left -= count
        self.place = max(self.place, batch.place)
        return count

    @property
    def is_readable(self) -> bool:
        """Whether the catalogue was read as far as the tasks that have answered have read it."""
        return self.place <= self.homes.timeline.place

    def answers(
        self, selection: Sequence[str] | None = None, *, takes_partial: bool = False
    ) -> list[Reply | Problem]:
        """Return the reply to each event, or its problem, by the answers that are there now.

        selection: only these metrics; None selects all.
        takes_partial: an event that only some of its partitioners have answered gets a reply with their metrics, which
            names the others. Otherwise it gets a problem, as does an event without any answer.
        """
        if self.error is not None:
            return [msgspec.structs.replace(self.error, id=each) for each in self.accepted.ids]
        if not self.is_readable:
            return [self._unanswered(row) for row in range(len(self))]
        if not self.left and self._is_uniform():
            codes = [int(each.codes[0]) for each in self.gathered.values()] if len(self) else []
            return list(self._replies(None, codes, selection)) if len(self) else []
        return self._one_set_at_a_time(selection, takes_partial=takes_partial)

    def missing(self, row: int) -> tuple[str, ...]:
        """Return the partitioners that have not answered an event."""
        if not self.left:
            return _NOBODY
        return tuple(name for name, each in self.gathered.items() if each.waiting[row])

    def _is_uniform(self) -> bool:
        return all(
            len(each.codes) == 0 or bool((each.codes == each.codes[0]).all())
            for each in self.gathered.values()
        )

    def _one_set_at_a_time(
        self, selection: Sequence[str] | None, *, takes_partial: bool
    ) -> list[Reply | Problem]:
        found: list[Reply | Problem | None] = [None] * len(self)
        waiting = np.stack([each.waiting for each in self.gathered.values()], axis=1)
        codes_of_rows = np.stack([each.codes for each in self.gathered.values()], axis=1)
        is_answered = ~waiting.any(axis=1)
        if takes_partial:
            is_answered |= (codes_of_rows >= 0).any(axis=1)
            codes_of_rows = np.where(waiting, _WAITING, codes_of_rows)
        for row in np.flatnonzero(~is_answered).tolist():
            found[row] = self._unanswered(row)
        for rows, codes in by_codes(np.flatnonzero(is_answered), codes_of_rows):
            for row, reply in zip(rows.tolist(), self._replies(rows, codes, selection)):
                found[row] = reply
        return [each for each in found if each is not None]

    def _unanswered(self, row: int) -> Problem:
        timed_out = problem(504, late_answer(self.timeout_ms, may_count(has_id=self.homes.has_id)))
        return msgspec.structs.replace(timed_out, id=self.accepted.ids[row], partitioners=self.missing(row))

    def _replies(
        self, rows: NDArray[np.int64] | None, codes: Sequence[int], selection: Sequence[str] | None
    ) -> list[Reply]:
        """Return the replies to events whose answers have the same metrics.

        codes: by partitioner, the code of the set of these metrics.
        """
        answers, answered = self._chosen(rows, codes)
        missing = sorted(name for name in self.gathered if name not in answers)
        named = self.homes.timeline.named(answered, missing, self.homes.place)
        recorded = self._recorded(rows) if named.derived else None
        accepted = _some(self.accepted, rows, with_events=bool(named.derived))
        replies = replies_of(ScoredBatch(accepted, named.names, answers, named.derived, recorded), selection)
        if missing:
            for reply in replies:
                reply.missing = missing
        return replies

    def _chosen(
        self, rows: NDArray[np.int64] | None, codes: Sequence[int]
    ) -> tuple[dict[str, Answers], list[Answered]]:
        """Return the answers to events whose answers have the same metrics, by partitioner that has answered.

        codes: by partitioner, the code of the set of these metrics.
        """
        answers: dict[str, Answers] = {}
        answered: list[Answered] = []
        for (partitioner, each), code in zip(self.gathered.items(), codes):
            if code == _WAITING:
                continue
            absent = self.homes.metrics[partitioner]
            answers[partitioner] = each.chosen(rows, code, absent)
            answered.append(Answered(absent, None) if code < 0 else each.sets[code])
        return answers, answered

    def _recorded(self, rows: NDArray[np.int64] | None) -> Recorded | None:
        """Return the schemas of the tasks' records; None if all have the schema that accepted the events.

        The records of one event may differ if it was delivered again. Then the oldest schema counts, whose fields all
        of them have.
        """
        unknown = self.accepted.schema.version
        versions = [np.where(each.schema < 0, unknown, each.schema) for each in self.gathered.values()]
        least = np.minimum.reduce(versions)
        least = least if rows is None else least[rows]
        return None if (least == unknown).all() else Recorded(least, self.homes.timeline.schemas)


def by_codes(
    rows: NDArray[np.int64], codes_of_rows: NDArray[np.int32]
) -> Iterator[tuple[NDArray[np.int64], list[int]]]:
    """Group rows by their codes. Yields each group with its codes. codes_of_rows: int32[n, partitioners]."""
    kinds, which = np.unique(codes_of_rows[rows], axis=0, return_inverse=True)
    for kind, codes in enumerate(kinds.tolist()):
        yield rows[which.reshape(-1) == kind], codes


def _some(accepted: AcceptedBatch, rows: NDArray[np.int64] | None, *, with_events: bool) -> AcceptedBatch:
    """Return the ids and times of some of the events, and with `with_events` the events too."""
    if rows is None:
        return accepted
    ids, times = ([column[row] for row in rows.tolist()] for column in (accepted.ids, accepted.times))
    events: EventColumns | Sequence[Row] = accepted.events if with_events else ()
    if isinstance(events, EventColumns):
        events = events.take(rows)
    elif with_events:
        events = [events[row] for row in rows.tolist()]
    return AcceptedBatch(None, ids, times, (), events, accepted.schema)
