"""A ring of the last events of one stream: bounded in number and in bytes, and in how many it takes a second."""

import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace

import msgspec

from frontend.access.masks import Mask
from frontend.problems import Problem
from railgun.ingest.replies import Reply
from railgun.messaging.transport import TopicPartition

PER_SECOND_MAX = 20
"""How many events a ring takes in a second, and as many again that are refused, late or duplicate."""
LOOKED_MAX = 256
"""How many events of one batch are looked at: the last ones."""
OVERHEAD_BYTES = 512
"""What an event costs in memory beside its texts."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One event and its answer.

    at_ms: when it was answered.
    answer: the reply or the problem as JSON; None if no reply was wanted.
    status: 200, or that of the problem.
    text: the event as it came over HTTP; None if it came from a topic, or is not kept.
    fields: the fields of an event from a topic, as a JSON object; None for others.
    size_bytes: the size of the event as it came; of one from a topic, that of its fields.
    where, offset: its partition and its offset in the input topic; None and −1 for others.
    mask: that of its stream when it was answered.
    mapped: the place of the stream's mapping then, by which the text is read.
    number: counts the events of a ring from 1.
    """

    at_ms: int
    answer: bytes | None
    status: int
    text: bytes | None
    fields: bytes | None
    size_bytes: int
    mask: Mask
    mapped: int
    where: TopicPartition | None = None
    offset: int = -1
    number: int = 0

    @property
    def held_bytes(self) -> int:
        """The memory that it takes."""
        return OVERHEAD_BYTES + sum(len(each or b"") for each in (self.answer, self.text, self.fields))


class Ring:
    """The last events of one stream. Any thread may call it.

    created: the place of the stream's creation, which tells it from others of its name.
    limit: how many events it holds.
    limit_bytes: how much memory they may take.
    """

    def __init__(self, created: int, limit: int, limit_bytes: int) -> None:
        self.created = created
        self._limit, self._limit_bytes = limit, limit_bytes
        self._held: deque[Sample] = deque()
        self._held_bytes = self._last = self._answered = 0
        self._since_s = float("-inf")
        self._plain_left = self._marked_left = 0
        self._lock = threading.Lock()

    def choose(self, answers: Sequence[object], now_s: float) -> list[int]:
        """Return which events of a batch are taken, in order: the last ones that there is room for in this second.

        answers: the replies and problems of the batch; None for an event without a reply.
        """
        with self._lock:
            self._answered += len(answers)
            if now_s - self._since_s >= 1:
                self._since_s = now_s
                self._plain_left = self._marked_left = PER_SECOND_MAX
            if not (self._plain_left or self._marked_left):
                return []
            chosen = []
            for row in range(len(answers) - 1, max(-1, len(answers) - 1 - LOOKED_MAX), -1):
                if is_marked(answers[row]):
                    if self._marked_left:
                        self._marked_left -= 1
                        chosen.append(row)
                elif self._plain_left:
                    self._plain_left -= 1
                    chosen.append(row)
                elif not self._marked_left:
                    break
            return chosen[::-1]

    def put(self, samples: Sequence[Sample]) -> None:
        """Hold events, and let go of the oldest ones for which there is no room any more."""
        with self._lock:
            for each in samples:
                self._last += 1
                self._held.append(replace(each, number=self._last))
                self._held_bytes += each.held_bytes
            while len(self._held) > self._limit or self._held_bytes > self._limit_bytes:
                self._held_bytes -= self._held.popleft().held_bytes

    @property
    def last(self) -> int:
        """The number of the event that was put last; 0 before the first one."""
        return self._last

    @property
    def answered(self) -> int:
        """How many events there were to choose from."""
        return self._answered

    def newest(self, limit: int, after: int) -> list[Sample]:
        """Return the newest events, at most `limit`, the newest first: those with a number above `after`."""
        with self._lock:
            held = list(self._held)
        return [each for each in held[: -limit - 1 : -1] if each.number > after]


def is_marked(answer: object) -> bool:
    """Whether an answer is a problem, or the reply to a late or duplicate event, or lacks results."""
    if isinstance(answer, Reply):
        unset = msgspec.UNSET
        return answer.late is not unset or answer.duplicate is not unset or answer.missing is not unset
    return isinstance(answer, Problem)
