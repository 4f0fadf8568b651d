"""Gives up the replies to front-ends whose partition takes none for a while, though the broker takes other records.

`Sending` has one `ReplyPartitions`. A partition that takes no records has no leader, or its leader cannot be reached.
Its front-end then counts as gone until the partition takes a record again. Without this rule, its replies would use up
the room of a unit, and hold up every task.
"""

import contextlib
import logging
import threading
from collections import deque
from collections.abc import Callable, Set
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass, field

from railgun.cluster.silence import REPLIES_STUCK_S
from railgun.messaging.transport import Entry, TopicPartition
from railgun.unit.clock import CLOCK, Clock
from railgun.wording import counted

Sent = Future[list[int]]

# A partition that has taken nothing for this long is slow: it uses up no room of tasks that have sent it nothing.
_SLOW_S = 0.5

_log = logging.getLogger("railgun.unit")


class RepliesGivenUpError(Exception):
    """A reply was given up: its front-end's partition takes none."""


class _Reply(Future[list[int]]):
    """The outcome of a reply that was handed to a transport: the one of the transport's future `sent`, unless the reply
    is given up before.
    """

    def __init__(self, sent: Sent) -> None:
        super().__init__()
        self.sent = sent
        sent.add_done_callback(self._end)

    def result(self, timeout: float | None = None) -> list[int]:
        # Wait for the transport's future: a transport without threads may work only while a caller waits for it.
        if not self.done():
            with contextlib.suppress(Exception):
                self.sent.result(timeout)
        return super().result(0.0 if not self.sent.done() else timeout)

    def give_up(self) -> None:
        """Let the reply fail, unless it has an outcome."""
        with contextlib.suppress(InvalidStateError):
            self.set_exception(RepliesGivenUpError("its partition takes none"))

    def _end(self, sent: Sent) -> None:
        error = sent.exception()
        with contextlib.suppress(InvalidStateError):
            if error is None:
                self.set_result(sent.result())
            else:
                self.set_exception(error)


@dataclass(slots=True)
class _Partition:
    """A partition of a front-end's topic of replies.

    on_way: the replies on their way, in order, each with its bytes.
    size_bytes: the bytes of all of them.
    is_given_up: whether it has taken none for so long that its replies are given up.
    taken_s: when the partition took a record last, or when the oldest was sent, if that is later.
    """

    taken_s: float
    on_way: deque[tuple[_Reply, int]] = field(default_factory=deque)
    size_bytes: int = 0
    is_given_up: bool = False


class ReplyPartitions:
    """The replies on their way, by partition. Any thread may call `send`; one thread calls everything else.

    submit: sends an entry, as `Transport.submit` does.
    dropped: is called with the number of replies that were given up.
    """

    def __init__(
        self, submit: Callable[[Entry], Sent], dropped: Callable[[int], object], clock: Clock = CLOCK
    ) -> None:
        self._submit, self._dropped, self._clock = submit, dropped, clock
        self._lock = threading.Lock()
        self._partitions: dict[TopicPartition, _Partition] = {}
        self.slow: Set[TopicPartition] = frozenset()

    def send(self, entry: Entry) -> Sent:
        """Send a reply. The future fails with RepliesGivenUpError if it is given up. Raises TransportError.

        Calls for one partition come one after the other.
        """
        where, size_bytes = entry.where, entry.records.size_bytes
        with self._lock:
            partition = self._partitions.get(where)
            is_given_up = partition is not None and partition.is_given_up
        if is_given_up:
            dropped = Sent()
            dropped.set_exception(RepliesGivenUpError(str(where)))
            self._dropped(1)
            return dropped
        reply = _Reply(self._submit(entry))
        with self._lock:
            partition = self._partitions.setdefault(where, _Partition(self._clock.now()))
            partition.on_way.append((reply, size_bytes))
            partition.size_bytes += size_bytes
        return reply

    @property
    def slow_bytes(self) -> int:
        """The bytes on their way to slow partitions."""
        with self._lock:
            return sum(each.size_bytes for where, each in self._partitions.items() if where in self.slow)

    @property
    def drops_replies(self) -> bool:
        """Whether replies to some partition are given up, and it has taken none since."""
        with self._lock:
            return any(each.is_given_up for each in self._partitions.values())

    def look(self, reached_since_s: float) -> None:
        """Note which partitions have taken records, and give up the replies to those that have taken none for too long.

        reached_since_s: since when the broker has taken other records without a pause; infinity if it does not now.
        """
        if not self._partitions:
            self.slow = frozenset()
            return
        now_s, slow, stuck = self._clock.now(), set[TopicPartition](), list[_Reply]()
        with self._lock:
            for where, partition in list(self._partitions.items()):
                _settle(where, partition, now_s)
                waited_s = now_s - max(partition.taken_s, reached_since_s)
                if not partition.on_way:
                    del self._partitions[where]
                elif not partition.is_given_up:
                    if waited_s > _SLOW_S:
                        slow.add(where)
                    if waited_s > REPLIES_STUCK_S:
                        stuck += _give_up(where, partition)
        self.slow = slow
        for reply in stuck:
            reply.give_up()
        if stuck:
            self._dropped(len(stuck))


def _settle(where: TopicPartition, partition: _Partition, now_s: float) -> None:
    """Forget the replies that have ended. They end in the order in which they were sent."""
    while partition.on_way and partition.on_way[0][0].sent.done():
        reply, size_bytes = partition.on_way.popleft()
        partition.size_bytes -= size_bytes
        partition.taken_s = now_s
        if partition.is_given_up and reply.sent.exception() is None:
            partition.is_given_up = False
            _log.info("%s takes replies again", where)


def _give_up(where: TopicPartition, partition: _Partition) -> list[_Reply]:
    partition.is_given_up, partition.size_bytes = True, 0
    stuck = [reply for reply, _ in partition.on_way]
    # The transport still has them, and sends them once it can. They use up no room here.
    partition.on_way = deque((reply, 0) for reply in stuck)
    _log.warning(
        "%s has taken no reply for %g s, and the broker takes other records: %s given up, and those to come until it "
        "takes one",
        where,
        REPLIES_STUCK_S,
        counted(len(stuck), "reply record"),
    )
    return stuck
