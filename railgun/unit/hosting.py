"""Makes the hosts of a unit's tasks, with a sink that sends replies and a writer of `warm` records.

A unit is a process that runs tasks, and a host runs one copy of a task. A `warm` record in a task's log says that a new
metric has read its history and answers from there on. The sink keeps account of replies until they are acknowledged.
The writer writes each `warm` record once; tasks read it from their logs.
"""

import math
import time
from collections.abc import Sequence
from concurrent.futures import Future

import numpy as np

from railgun.catalog.changes import Warm, change_to_json
from railgun.history.request_files import OFFER, read_request
from railgun.host.fetcher import ALWAYS, FetchRule
from railgun.host.lanes import HostLanes
from railgun.host.log_ids import LogIds
from railgun.host.place import Place
from railgun.host.task_host import TaskHost
from railgun.host.task_log import TaskLog
from railgun.messaging.errors import TransportFullError
from railgun.messaging.transport import Entry, Fetched, Transport
from railgun.task.environment import TaskEnvironment
from railgun.task.processor import TaskProcessor
from railgun.task.replies import Replies
from railgun.task.settings import TaskSettings
from railgun.unit.clock import CLOCK, Clock
from railgun.unit.outstanding import Outstanding
from railgun.unit.sending import DeadLetter, Sending
from railgun.wire.control_records import encode_control
from railgun.wire.msgpack import Status
from railgun.wire.records import Records


class WarmRecords:
    """Writes the `warm` records of one host's task. Writes each record once, and again if the write fails or the
    transport had no room.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._written: dict[Warm, Future[list[int]]] = {}

    def __call__(self, place: Place, due: Sequence[Warm]) -> None:
        for warm in due:
            written = self._written.get(warm)
            if written is None or (written.done() and written.exception() is not None):
                records = Records.of([encode_control(change_to_json(warm))])
                try:
                    self._written[warm] = self._transport.submit([Entry(place.where, records)])
                except TransportFullError:
                    # The task asks again in its next round.
                    return


class TaskReplies:
    """A `ReplySink` that sends replies through the unit's producer."""

    def __init__(self, place: Place, sending: Sending, timeout_s: float, clock: Clock) -> None:
        self._place, self._sending, self._timeout_s = place, sending, timeout_s
        self._outstanding = Outstanding(str(place.identity), clock)

    def deliver(self, task: TaskProcessor, replies: Replies) -> None:
        if replies.decoded.exceptions:
            self._send_to_dead_letters(task, replies)
        stream = self._place.key.stream
        self._sending.answer(self._outstanding, stream, replies.first_offset, task.encode(replies))

    def note(self, fetched: Fetched, took_s: float) -> None:
        who = self._place.key
        notes = self._sending.figures.stream(who.stream)
        notes.records[who.partitioner] += len(fetched)
        notes.batches.add(len(fetched))
        notes.stages["process"].add(took_s)
        if fetched.appended_ms:
            waited_s = time.time() - took_s - fetched.appended_ms / 1000
            notes.stages["waiting"].add(max(0.0, waited_s))

    def has_room(self) -> bool:
        return self._sending.has_room_for(self._outstanding)

    def drops_replies(self) -> bool:
        return self._sending.drops_replies

    def replied(self, position: int) -> int:
        self._sending.retry()
        return self._outstanding.replied(position)

    def wait(self, before_offset: int) -> None:
        self._outstanding.wait(before_offset, self._timeout_s, self._sending.retry)

    def give_up(self, at_s: float = -math.inf) -> None:
        self._outstanding.give_up(at_s)

    def _send_to_dead_letters(self, task: TaskProcessor, replies: Replies) -> None:
        decoded = replies.decoded
        letters: list[DeadLetter] = []
        bad = np.flatnonzero(decoded.status[: replies.n] != Status.OK)
        for row in bad.tolist():
            letters.append(DeadLetter(replies.first_offset + row, decoded.record(row), decoded.describe(row)))
        task.unreadable_records += len(letters)
        self._sending.dead_letter(self._outstanding, self._place.key.stream, self._place.where, letters)


class Hosting:
    """Makes hosts.

    environment: clocks, randomness and executor for the tasks.
    lanes: run long operations.
    copy: appended to folder names, so that units which share a folder of built history do not write to the same one.
    rule: when the data of copies is fetched.
    timeout_s: if replies are not acknowledged within this time, the unit gives up and starts again. In operation it
        waits for them until it is asked to stop.
    """

    def __init__(
        self,
        transport: Transport,
        sending: Sending,
        environment: TaskEnvironment,
        lanes: HostLanes,
        copy: str = "",
        timeout_s: float = math.inf,
        clock: Clock = CLOCK,
        rule: FetchRule = ALWAYS,
    ) -> None:
        self._rule = rule
        self._transport, self._sending, self._environment = transport, sending, environment
        self._lanes, self._copy, self._timeout_s, self._clock = lanes, copy, timeout_s, clock
        self._ids = LogIds(transport, clock.now)

    def host(self, place: Place, settings: TaskSettings) -> TaskHost:
        """Return a host for a task. It is not open yet."""
        offer = place.history.parents[2] / OFFER
        return TaskHost(
            place,
            TaskLog(self._transport, place.where, self._environment, ids=self._ids),
            TaskReplies(place, self._sending, self._timeout_s, self._clock),
            settings,
            WarmRecords(self._transport),
            lambda: read_request(offer),
            self._lanes.next(),
            self._copy,
            self._rule,
        )
