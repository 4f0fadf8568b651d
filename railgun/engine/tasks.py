"""The tasks of one stream, one for each partition of each partitioner, fed in the order of their logs."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Self

from railgun.engine.answers import Answers
from railgun.engine.routing import Share, take_records
from railgun.plan.result_block import ResultForm
from railgun.task.processor import TaskProcessor
from railgun.task.replies import Replies
from railgun.wire.encode import Records

# Fewer events are processed sooner than another thread is woken.
_WORTH_A_THREAD = 256


@dataclass(frozen=True, slots=True)
class Portion:
    """What one task gets of a run of events."""

    share: Share
    records: Records | list[bytes]

    @classmethod
    def of(cls, share: Share, records: Records) -> Self:
        """What a share of a run of events gets of their records."""
        return cls(share, take_records(records, share.rows))


class StreamTasks:
    """Owns the tasks, by partitioner in the stream's order. Not to be shared between threads.

    Partitioners are independent of each other: with `threads` above 1 long runs use one thread for each.
    """

    def __init__(self, tasks: Mapping[str, Sequence[TaskProcessor]], threads: int = 1) -> None:
        self._tasks = {partitioner: tuple(each) for partitioner, each in tasks.items()}
        workers = min(threads, len(self._tasks))
        self._pool = ThreadPoolExecutor(workers, "partitioner") if workers > 1 else None

    def __iter__(self) -> Iterator[TaskProcessor]:
        for each in self._tasks.values():
            yield from each

    def task(self, partitioner: str, partition: int) -> TaskProcessor:
        """One task."""
        return self._tasks[partitioner][partition]

    def portions(self, records: Records, shares: Sequence[Sequence[Share]]) -> list[list[Portion]]:
        """What each task gets of a run of events, whose records are `records`."""
        return [[Portion.of(share, records) for share in each] for each in shares]

    def process(
        self, portions: Sequence[Sequence[Portion]], forms: Mapping[str, ResultForm], n: int
    ) -> dict[str, Answers]:
        """Process a run of n events; the answers by partitioner.

        forms: of the stream's metrics, see `answers.forms_of`.  Raises what tasks raise; after an error no task may be
        used any more.
        """
        answers = {partitioner: Answers(n, forms[partitioner]) for partitioner in self._tasks}
        homes = list(zip(portions, answers.values()))
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

    def _process(self, portions: Sequence[Portion], into: Answers) -> None:
        for portion in portions:
            task = self.task(portion.share.partitioner, portion.share.partition)
            task.process(portion.records, task.position, _delivery(portion.share, into))

    def close(self) -> None:
        """Let every task go, whatever fails. Raises the first failure."""
        if self._pool is not None:
            self._pool.shutdown()
        failures: list[Exception] = []
        for task in self:
            try:
                task.close()
            except Exception as error:  # noqa: BLE001 - the other tasks are closed too before it is raised
                failures.append(error)
        if failures:
            raise failures[0]


def _delivery(share: Share, into: Answers) -> Callable[[Replies], None]:
    """Takes a task's replies, in order, to where their events stand."""
    done = 0

    def deliver(replies: Replies) -> None:
        nonlocal done
        after = done + replies.n
        into.take(replies, slice(done, after) if share.rows is None else share.rows[done:after])
        done = after

    return deliver
