"""The tasks of one stream, one for each partition of each partitioner, fed in the order of their logs.

Engines and `railgun run` use it.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol, Self

from railgun.ingest.answers import Answers
from railgun.ingest.routing import Share
from railgun.ingest.taken_records import take_records
from railgun.plan.result_block import ResultForm
from railgun.task.replies import Replies
from railgun.wire.records import Records

# For fewer events, waking a thread costs more than it saves.
_WORTH_A_THREAD = 256


@dataclass(frozen=True, slots=True)
class TaskBatch:
    """The records of a run of events that one task gets."""

    share: Share
    records: Records

    @classmethod
    def of(cls, share: Share, records: Records) -> Self:
        """Take the records of a share out of those of a run. records: the records of all events."""
        return cls(share, take_records(records, share.rows))


class Feed(Protocol):
    """Has a task process the next records of its log."""

    def __call__(self, records: Records, deliver: Callable[[Replies], None], /) -> None: ...


class StreamTasks:
    """The tasks of a stream, by partitioner in its order. Not to be shared between threads.

    Partitioners are independent of each other: long runs use up to `threads` threads, one per partitioner.
    """

    def __init__(self, feeds: Mapping[str, Sequence[Feed]], threads: int = 1) -> None:
        self._feeds = {partitioner: tuple(each) for partitioner, each in feeds.items()}
        workers = min(threads, len(self._feeds))
        self._pool = ThreadPoolExecutor(workers, "partitioner") if workers > 1 else None

    def task_batches(self, records: Records, shares: Sequence[Sequence[Share]]) -> list[list[TaskBatch]]:
        """Return the records that each task gets, by partitioner. records: those of a run of events."""
        return [[TaskBatch.of(share, records) for share in each] for each in shares]

    def process(
        self, task_batches: Sequence[Sequence[TaskBatch]], forms: Mapping[str, ResultForm], n: int
    ) -> dict[str, Answers]:
        """Process a run of n events, and return the answers by partitioner.

        forms: those of the stream's metrics, from `answers.forms_of`.
        Raises the errors of tasks. After an error no task may be used any more.
        """
        answers = {partitioner: Answers(n, forms[partitioner]) for partitioner in self._feeds}
        homes = list(zip(task_batches, answers.values()))
        if self._pool is None or n < _WORTH_A_THREAD:
            for each, into in homes:
                self._process(each, into)
            return answers
        futures = [self._pool.submit(self._process, each, into) for each, into in homes]
        errors = [future.exception() for future in futures]
        for error in errors:
            if error is not None:
                raise error
        return answers

    def _process(self, task_batches: Sequence[TaskBatch], into: Answers) -> None:
        for task_batch in task_batches:
            share = task_batch.share
            self._feeds[share.partitioner][share.partition](task_batch.records, _delivery(share, into))

    def close(self) -> None:
        """Stop the threads. The caller must close the tasks."""
        if self._pool is not None:
            self._pool.shutdown()


def _delivery(share: Share, into: Answers) -> Callable[[Replies], None]:
    """Return a callback that copies a task's replies to the rows of their events."""
    done = 0

    def deliver(replies: Replies) -> None:
        nonlocal done
        after = done + replies.n
        into.take(replies, slice(done, after) if share.rows is None else share.rows[done:after])
        done = after

    return deliver
