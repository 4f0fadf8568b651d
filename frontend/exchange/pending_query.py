"""A value query that was sent to tasks and waits for their answers.

`QuerySender` makes it; the collector hands it the answers.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from frontend.exchange.gathered import Gathered
from frontend.exchange.pending import PendingRequest, by_codes
from frontend.problems import Problem, problem
from railgun.ingest.routing import Share
from railgun.ingest.value_queries import KeyValues, Places, ValueQuery, key_values
from railgun.wire.reply import ReplyBatch


class PlacedAnswers(Gathered):
    """The answers of one partitioner's tasks to keys. places: notes the time and offset that each task had come to."""

    def __init__(self, partitioner: str, n: int, places: Places) -> None:
        super().__init__(n)
        self._partitioner, self._places = partitioner, places

    def _note_place(
        self, batch: ReplyBatch, accepted: slice | NDArray[np.int64], rows: NDArray[np.int64]
    ) -> None:
        self._places.note(self._partitioner, rows, batch.time[accepted], batch.offset[accepted])


@dataclass(slots=True, eq=False, kw_only=True)
class PendingQuery(PendingRequest):
    """A query of n keys.

    places: notes the time and offset that each task had come to.
    after: the offset that a task must have processed before it answers, by partitioner and partition; -1 if any.
    again_s: when the query is sent again to the tasks that have not answered, by the monotonic clock.
    """

    query: ValueQuery
    places: Places
    after: dict[tuple[str, int], int]
    again_s: float

    def _gathering(self, partitioner: str, n: int) -> Gathered:
        return PlacedAnswers(partitioner, n, self.places)

    def fail(self, why: str) -> None:
        self.error = problem(503, f"{why}; nothing is changed, and the query can be sent again")

    def fail_as_dropped(self) -> None:
        self.error = problem(404, f"the stream {self.stream[:80]!r} was dropped")

    def refuse(self, detail: str) -> None:
        """Note that a task cannot answer."""
        self.error = problem(500, detail)

    def unanswered(self) -> Iterator[tuple[Share, list[int]]]:
        """Yield the tasks that have not answered, each with the indices of its unanswered keys."""
        for shares in self.accepted.shares:
            for share in shares:
                assert share.rows is not None
                rows = share.rows[self.gathered[share.partitioner].waiting[share.rows]]
                if len(rows):
                    yield share, rows.tolist()

    def values(self) -> list[KeyValues] | Problem:
        """Return the answer to each key, in order, or why there are none."""
        if self.error is not None:
            return self.error
        if self.left or not self.is_readable:
            who = sorted({share.partitioner for share, _ in self.unanswered()})
            timed_out = problem(504, f"no answer within {self.timeout_ms} ms; a query can be sent again")
            timed_out.partitioners = tuple(who)
            return timed_out
        if not len(self):
            return []
        found: list[KeyValues | None] = [None] * len(self)
        codes = np.stack([each.codes for each in self.gathered.values()], axis=1)
        for rows, codes_of_rows in by_codes(np.arange(len(self)), codes):
            for row, each in zip(rows.tolist(), self._of_one_kind(rows, codes_of_rows)):
                found[row] = each
        if self.query.is_named:
            for names, answer in zip(self.query.names, found):
                gone = [name for name in names if answer is not None and name not in answer.metrics]
                if gone:
                    return problem(409, f"{', '.join(gone)} of {self.stream} changed meanwhile; ask again")
        return [each for each in found if each is not None]

    def _of_one_kind(self, rows: NDArray[np.int64], codes: list[int]) -> list[KeyValues]:
        """Return the values of keys whose answers have the same metrics.

        codes: by partitioner, the code of the set of these metrics.
        """
        answers, answered = self._chosen(rows, codes)
        timeline = self.homes.timeline
        named = timeline.named(answered, (), self.query.place)
        places = [each.place for each in answered if each.place is not None]
        names = timeline.unchanged(self.query.place, places).intersection(named.names)
        return key_values(self.query.some(rows, names), answers, named.derived, self.places.some(rows))
