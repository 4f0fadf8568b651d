"""The thread that scores the events of all requests. It takes those that have arrived together: one or thousands.

Both backends have one.
"""

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Protocol, Self

from railgun.ingest.intake import JsonText

_log = logging.getLogger("railgun.frontend")
BATCH_EVENTS_MAX = 2_048
BATCH_BYTES_MAX = 8 << 20
SMALL_EVENTS_MAX = 16
"""Submissions of at most this many events do not wait behind larger ones, unless these are of the same request."""


@dataclass(slots=True, eq=False)
class InOrder:
    """Shared by the submissions of one request, so that they are scored in the order in which they come.

    waiting: how many of them are not taken yet. They are all in one queue.
    is_small: whether that is the queue of small submissions.
    """

    waiting: int = 0
    is_small: bool = False


class Waiter(Protocol):
    """Gets the outcome of a submission in the event loop's thread. A future of asyncio is one."""

    def done(self) -> bool:
        """Whether there is an outcome already."""

    def set_result(self, result: object, /) -> None:
        """Take the answers; None if the time was over first."""

    def set_exception(self, exception: BaseException, /) -> None:
        """Take the exception that came instead of answers."""


@dataclass(slots=True, eq=False)
class Submission:
    """Events of one request, or of a part of it.

    stream: the name of their stream.
    texts: the events as JSON.
    size_bytes: the size of all texts.
    metrics: only these are in replies; None selects all.
    reply: whether replies are wanted.
    answered: gets the outcome, or None once `timeout_ms` have passed.
    taken: whether the scoring thread has taken it.
    arrived_s: when it arrived, by perf_counter.
    abandoned: no caller waits any more. The submission is not scored, unless it was taken before.
    in_order: shared by the parts of one request.
    takes_partial: whether the results of some partitioners are an answer, once `timeout_ms` have passed.
    """

    stream: str
    texts: Sequence[JsonText]
    size_bytes: int
    metrics: tuple[str, ...] | None
    reply: bool
    timeout_ms: int
    answered: Waiter
    taken: bool = False
    arrived_s: float = field(default_factory=perf_counter)
    abandoned: bool = False
    in_order: InOrder = field(default_factory=InOrder)
    takes_partial: bool = False

    @classmethod
    def of(
        cls,
        stream: str,
        texts: Sequence[JsonText],
        metrics: Sequence[str] | None,
        timeout_ms: int,
        *,
        reply: bool,
        takes_partial: bool = False,
        answered: Waiter | None = None,
        in_order: InOrder | None = None,
    ) -> Self:
        """Make a submission. answered: None makes it a future of the running event loop."""
        chosen = None if metrics is None else tuple(metrics)
        return cls(
            stream,
            texts,
            sum(map(len, texts)),
            chosen,
            reply,
            timeout_ms,
            answered or asyncio.get_running_loop().create_future(),
            in_order=in_order or InOrder(),
            takes_partial=takes_partial,
        )


@dataclass(slots=True)
class _Queue:
    """The submissions that wait, by the queue that each request uses: see `InOrder`."""

    small: deque[Submission] = field(default_factory=deque)
    large: deque[Submission] = field(default_factory=deque)

    def __bool__(self) -> bool:
        return bool(self.small or self.large)


Outcome = tuple[Submission, object]


class ScoringThread:
    """Takes submissions in a thread and has them scored. `submit` and `close` belong to the event loop's thread.

    score: is called with the submissions that are taken together. It returns outcomes: answers or an exception for each
    submission. A submission without an outcome gets it later, by `deliver`. The outcomes of a batch reach the event
    loop in one call.
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, score: Callable[[list[Submission]], list[Outcome]]
    ) -> None:
        self._loop, self._score = loop, score
        self._arrived = threading.Condition()
        self._queue = _Queue()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="scoring", daemon=True)
        self._thread.start()

    def submit(self, submission: Submission) -> None:
        """Have a submission scored."""
        order = submission.in_order
        with self._arrived:
            if not order.waiting:
                order.is_small = len(submission.texts) <= SMALL_EVENTS_MAX
            order.waiting += 1
            queue = self._queue.small if order.is_small else self._queue.large
            queue.append(submission)
            self._arrived.notify()

    def close(self) -> None:
        """Score the submissions that wait, then end. Blocks until then."""
        with self._arrived:
            self._closed = True
            self._arrived.notify()
        self._thread.join()

    def _run(self) -> None:
        while True:
            with self._arrived:
                while not self._queue and not self._closed:
                    self._arrived.wait()
                batch = self._take()
            if batch:
                outcomes = self._score(batch)
                if outcomes:
                    self._loop.call_soon_threadsafe(deliver, outcomes)
            elif self._closed and not self._queue:
                return

    def _take(self) -> list[Submission]:
        """Take submissions for a batch: small ones first, and at least one large one if any waits."""
        batch: list[Submission] = []
        events = size_bytes = 0
        for waiting in (self._queue.small, self._queue.large):
            has_one = False
            while waiting:
                first = waiting[0]
                fits = (
                    events + len(first.texts) <= BATCH_EVENTS_MAX
                    and size_bytes + first.size_bytes <= BATCH_BYTES_MAX
                )
                if has_one and not fits:
                    break
                waiting.popleft()
                first.in_order.waiting -= 1
                if first.abandoned:
                    continue
                has_one = first.taken = True
                events, size_bytes = events + len(first.texts), size_bytes + first.size_bytes
                batch.append(first)
        return batch


def deliver(outcomes: list[Outcome]) -> None:
    """Give outcomes to the waiters of their submissions. To be called in the event loop's thread."""
    for submission, outcome in outcomes:
        if submission.answered.done():
            continue
        try:
            if isinstance(outcome, BaseException):
                submission.answered.set_exception(outcome)
            else:
                submission.answered.set_result(outcome)
        except Exception:  # noqa: BLE001 - the others are told all the same
            _log.exception("an answer cannot be given")
