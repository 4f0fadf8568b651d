"""Writes events to an input topic when they are due, and notes when their replies are in the output topic."""

import threading
import time
from itertools import pairwise

import numpy as np
from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition

from bench.load.due import due_together
from bench.load.lines import Lines
from bench.load.outcome import Trace

_ID_PREFIX_BYTES = 1
_READ_RECORDS = 5_000
_POLL_S, _ANSWER_S = 0.05, 30.0
# The reader wakes so often at most, as the sender does (`due_together`).
_TICK_NS = 1_000_000
# What is due goes out together, by `flush`, and what becomes due meanwhile after that: where records wait behind others
# that are under way, the client turns in circles until those are answered.
_SENDING = {
    "linger.ms": 1_000,
    "batch.size": 16 << 20,
    "batch.num.messages": 100_000,
    "message.max.bytes": 17 << 20,
}
_UNBOUNDED = {"queue.buffering.max.messages": 0, "queue.buffering.max.kbytes": 2_097_151}
_GOOD = 200


class KafkaDriver:
    """Writes to `stem`.in, and reads `stem`.out from its end on. Raises KafkaException if no broker answers."""

    def __init__(self, broker: str, stem: str, first_event: int) -> None:
        self._input, self._first_event = f"{stem}.in", first_event
        common = {"bootstrap.servers": broker}
        self._producer = Producer(
            {**common, **_SENDING, **_UNBOUNDED, "acks": "all", "enable.idempotence": True}
        )
        self._consumer = Consumer(
            {
                **common,
                "group.id": "bench",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "fetch.wait.max.ms": 100,
                "fetch.queue.backoff.ms": 5,
            }
        )
        output = f"{stem}.out"
        partitions = self._consumer.list_topics(output, _ANSWER_S).topics[output].partitions
        places = [TopicPartition(output, each) for each in partitions]
        for each in places:
            each.offset = self._end(each)
        self._consumer.assign(places)
        # The first fetch is slower than those that follow.
        self._consumer.poll(_POLL_S)

    def run(self, lines: Lines, trace: Trace, end_ns: int) -> None:
        """Write line i at `trace.due_ns[i]`, its newline left out; note in `trace` when its reply came. Ends once all
        are answered, or at `end_ns`."""
        sender = threading.Thread(target=self._send, args=(lines, trace, end_ns))
        sender.start()
        left = len(lines)
        while left and time.monotonic_ns() < end_ns:
            left -= self._receive(trace)
        sender.join()
        self._consumer.close()
        self._producer.purge()
        self._producer.close()

    def _end(self, place: TopicPartition) -> int:
        """Return the end of a partition. It is asked for again while the partition has no leader."""
        deadline_s = time.monotonic() + _ANSWER_S
        while True:
            try:
                return int(self._consumer.get_watermark_offsets(place, _ANSWER_S)[1])
            except KafkaException:
                if time.monotonic() > deadline_s:
                    raise
                time.sleep(_POLL_S)

    def _send(self, lines: Lines, trace: Trace, end_ns: int) -> None:
        buffer, offsets = lines.buffer, lines.offsets.tolist()
        for place, after, now_ns in due_together(trace.due_ns, _READ_RECORDS, end_ns):
            messages = [
                {"value": buffer[first : next_first - 1]}
                for first, next_first in pairwise(offsets[place : after + 1])
            ]
            self._producer.produce_batch(self._input, messages)
            trace.sent_ns[place:after] = now_ns
            self._producer.flush(max(0.0, (end_ns - now_ns) / 1e9))

    def _receive(self, trace: Trace) -> int:
        """Note the replies that have come. Returns how many requests got their first answer by them."""
        first = self._consumer.poll(_POLL_S)
        if first is None:
            return 0
        messages = [first, *self._consumer.consume(_READ_RECORDS, 0)]
        now_ns = time.monotonic_ns()
        keys = [key for key in map(Message.key, messages) if key is not None]
        places = np.fromiter((int(key[_ID_PREFIX_BYTES:]) for key in keys), np.int64, len(keys))
        places -= self._first_event
        places = np.unique(places[(places >= 0) & (places < len(trace.due_ns))])
        fresh = places[trace.done_ns[places] == 0]
        trace.done_ns[fresh], trace.status[fresh], trace.good[fresh] = now_ns, _GOOD, 1
        if len(messages) < _READ_RECORDS:
            time.sleep(_TICK_NS / 1e9)
        return len(fresh)
