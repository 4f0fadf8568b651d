"""The replies of one task of a unit: sent to front-ends, counted until they are acknowledged; dead letters kept."""

import math
import time

import numpy as np

from railgun.host.place import Place
from railgun.messaging.transport import Fetched
from railgun.task.processor import TaskProcessor
from railgun.task.replies import Replies
from railgun.unit.outstanding import Outstanding
from railgun.unit.sending import DeadLetter, Sending
from railgun.wire.msgpack import Status

# Replies that are not acknowledged for so long are given up: the unit starts again.
ACKNOWLEDGED_S = 180.0


class TaskReplies:
    """A `ReplySink` over the unit's producer."""

    def __init__(self, place: Place, sending: Sending) -> None:
        self._place, self._sending = place, sending
        self._outstanding = Outstanding(str(place.identity))

    def deliver(self, task: TaskProcessor, replies: Replies) -> None:
        if replies.decoded.exceptions:
            self._keep_unreadable(task, replies)
        stream = self._place.key.stream
        self._sending.answer(self._outstanding, stream, replies.first_offset, task.encode(replies))

    def note(self, fetched: Fetched, took_s: float) -> None:
        who = self._place.key
        notes = self._sending.noted.stream(who.stream)
        notes.records[who.partitioner] += len(fetched)
        notes.batches.add(len(fetched))
        notes.stages["process"].add(took_s)
        if fetched.appended_ms:
            waited_s = time.time() - took_s - fetched.appended_ms / 1000
            notes.stages["waiting"].add(max(0.0, waited_s))

    def replied(self, position: int) -> int:
        return self._outstanding.replied(position)

    def wait(self, before_offset: int) -> None:
        self._outstanding.wait(before_offset, ACKNOWLEDGED_S)

    def give_up(self, at_s: float = -math.inf) -> None:
        self._outstanding.give_up(at_s)

    def _keep_unreadable(self, task: TaskProcessor, replies: Replies) -> None:
        decoded = replies.decoded
        letters: list[DeadLetter] = []
        bad = np.flatnonzero(decoded.status[: replies.n] != Status.OK)
        for row in bad.tolist():
            start, end = decoded.offsets[row : row + 2].tolist()
            record = decoded.buffer[start:end].tobytes()
            letters.append(DeadLetter(replies.first_offset + row, record, decoded.describe(row)))
        task.unreadable_records += len(letters)
        self._sending.dead_letter(self._outstanding, self._place.key.stream, self._place.where, letters)
