"""Keeps the catalogue in a compacted topic of Kafka.

Nodes, units, front-ends and Spark jobs each have one `KafkaRegistry`. One process at a time changes the catalogue, and
all follow it. See FORMAT.md.
"""

import logging
import os
import random
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Self

from railgun.catalog.catalog import Catalog, StreamEntry
from railgun.catalog.changes import AddHistory, Change, Deepen, DropStream, PutStream
from railgun.catalog.model import StreamDefinition
from railgun.catalog.retelling import retold
from railgun.catalog.task_key import TaskKey
from railgun.messaging.errors import TransportUnavailableError, WriterFencedError
from railgun.messaging.kafka.settings import KafkaSettings
from railgun.messaging.kafka.sole_writer import KafkaSoleWriter
from railgun.messaging.kafka.transport import KafkaTransport
from railgun.messaging.transport import TopicPartition, TopicSettings
from railgun.registry.cancellation import CancellationToken
from railgun.registry.catalog_log import read_on
from railgun.registry.change_log import LoggedChange
from railgun.registry.entries import (
    KEY_BYTES,
    CatalogState,
    begin_entry,
    change_stream,
    check,
    done_entry,
    removed_entry,
    topic_entry,
)
from railgun.registry.errors import RegistryBusyError, UnknownNameError
from railgun.registry.follower import Follower, Snapshot
from railgun.registry.input_topics import InputTopic, MappedFrom, numbered
from railgun.registry.origin import UNNAMED, Made, Origin
from railgun.registry.readers import CatalogReaders
from railgun.registry.telling import Telling
from railgun.registry.topic_uses import check_topics
from railgun.registry.topics import PREFIX, Topics

Request = Sequence[Change] | Callable[[Catalog], Sequence[Change]]

_ATTEMPTS = 30
_BACKOFF_S = 0.02
_BACKOFF_MAX_S = 1.0
# A process in the middle of a change gets this long to finish before it is shut out.
_COURTESY_S = 1.0
_COURTESY_STEP_S = 0.02
_APPEARS_S = 0.002
# If a change began this long ago and is not done, any follower finishes it: its author may have lost the broker.
LEFT_BEHIND_S = 10.0

_log = logging.getLogger("railgun.registry")


class KafkaRegistry:
    """The catalogue of a cluster. Any thread may call any method.

    drop_grace_s: how long the topics of a dropped stream stay.
    log_retention_ms: how long the logs of new streams keep records, if their definitions do not say; None: for ever.
    Raises TransportError, RegistryError (after CatalogDamagedError and CatalogVersionError an operator has to act).
    """

    def __init__(
        self,
        settings: KafkaSettings,
        prefix: str = PREFIX,
        *,
        drop_grace_s: float = 60.0,
        log_retention_ms: int | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._settings, self._topics, self._now = settings, Topics(prefix), now
        self._drop_grace_s = drop_grace_s
        self._where = TopicPartition(self._topics.catalog, 0)
        # In this process, one change at a time is made, and one thread at a time reads the topic.
        self._changing, self._reading = threading.Lock(), threading.Lock()
        self._state = CatalogState(f"{settings.broker} {self._where.topic}")
        self._followers: list[Follower] = []
        # The place of the last pending change, and since when this process has seen it.
        self._pending = (0, 0.0)
        self._transport = KafkaTransport(settings)
        try:
            self._transport.create_topic(self._where.topic, 1, TopicSettings(is_compacted=True))
            self._position = self._transport.start_offset(*self._where)
            self._readers = CatalogReaders(settings, self._topics, self._transport)
            self._telling = Telling(self._transport, self._topics, TopicSettings(log_retention_ms))
            self.snapshot()
        except BaseException:
            self._transport.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def topics(self) -> Topics:
        """The names of the cluster's topics."""
        return self._topics

    def snapshot(self) -> Snapshot:
        """Return the catalogue as it is now."""
        with self._reading:
            state = self._read_on()
            done = state.done.copy()
            begun = state.catalog.copy() if state.pending else done
            return Snapshot(done, dict(state.keys), tuple(state.pending), begun)

    def _read_on(self) -> CatalogState:
        self._position = read_on(self._transport, self._where.topic, self._position, self._state)
        return self._state

    def log(self, limit: int, before: int | None = None) -> list[LoggedChange]:
        """Return the newest changes, at most `limit`, the newest first. before: only changes with a smaller number."""
        self.snapshot()
        with self._reading:
            return self._state.log.newest(limit, before)

    def follow(self, callback: Callable[[Snapshot], None]) -> Follower:
        """Call back with the catalogue: once before this returns, then after every change that began or is done.

        The later calls come from a thread of their own, until the follower or the registry is closed. While the broker
        is away, that thread waits for it.
        """
        follower = Follower(self._wait, self.snapshot, callback, self._sweep)
        self._followers.append(follower)
        return follower

    def change(
        self,
        request: Request,
        cancellation: CancellationToken | None = None,
        origin: Origin = UNNAMED,
    ) -> list[Change]:
        """Make changes. Returns them with their places once all tasks have been told.

        request: the changes, whose places are assigned again; or a function that makes them from the catalogue as it is
        then.
        The function may be called several times.
        cancellation: can take the changes back until they begin.
        origin: who asks for the changes.

        Raises what `request` raises, CatalogError, DefinitionsError and ChangeWithdrawnError; nothing has changed then.
        Also raises RegistryBusyError and TransportError; `cancellation.has_begun` tells whether the change may still
        take effect.
        """
        author, cancellation = os.urandom(8).hex(), cancellation or CancellationToken()
        with self._changing:
            for attempt in range(_ATTEMPTS):
                try:
                    return self._attempt(request, author, cancellation, origin)
                except WriterFencedError:
                    self._pause(attempt)
            with self._reading:
                is_made = bool(self._state.made_by(author))
        raise RegistryBusyError(self._where.topic, _ATTEMPTS, is_made)

    def number_topics(
        self,
        created: int,
        found: Collection[tuple[str, str]],
        starts: Callable[[str], Sequence[int]],
        mapped: int = 0,
    ) -> list[InputTopic]:
        """Record the numbers of topics that are to be read for a stream. Returns the topics in the same order.

        created: the place of the stream's creation.
        found: name and id of each topic.
        starts: returns the offsets at which to begin a topic, by partition. It is called if no topic of that name was
            ever read for the stream. May raise TransportError.
        mapped: the place of the mapping by which topics without a number are read.
        Raises what `starts` raises, RegistryBusyError and TransportError.
        """
        self.snapshot()
        known = {each.name for each in self._numbers(created).values()}
        missing = self._without_numbers(created, found)
        # Before other changes wait for this one: a leader may take long to answer.
        begins = {name: tuple(starts(name)) for name, _ in missing if name not in known}

        def new() -> list[InputTopic]:
            # Another front-end may have recorded some meanwhile.
            known = self._numbers(created).values()
            names, earlier = {each.name for each in known}, self._state.earlier_topics(created)
            made = numbered(self._without_numbers(created, missing), known)
            placed = [replace(each, mappings=(MappedFrom(mapped),)) for each in made] if mapped else made
            return [
                replace(each, is_remade=True)
                if each.name in names
                else replace(each, starts=begins[each.name], is_remade=each.name in earlier)
                for each in placed
            ]

        if missing:
            self._record_topics(created, new)
        numbers = self._numbers(created)
        return [numbers[topic_id] for _, topic_id in found]

    def map_topics(
        self, created: int, place: int, ends: Mapping[str, Sequence[int]]
    ) -> dict[str, InputTopic]:
        """Record where a mapping of a stream begins in its topics, of those that have no later one. Returns them by id.

        created: the place of the stream's creation.
        place: that of the mapping.
        ends: by the id of each topic, which has a number, where its partitions end.
        Raises RegistryBusyError and TransportError.
        """

        def new() -> list[InputTopic]:
            known = [self._numbers(created)[each] for each in ends]
            return [each.mapped_from(place, ends[each.id]) for each in known if each.mapped < place]

        self._record_topics(created, new)
        return {each: self._numbers(created)[each] for each in ends}

    def mapped(self) -> dict[int, int]:
        """Return the place of the present mapping of each stream, by the place of its creation."""
        with self._reading:
            self._read_on()
            return {each.created: each.mapped for each in self._state.done.streams.values()}

    def _numbers(self, created: int) -> Mapping[str, InputTopic]:
        return self._state.topics.get(created, {})

    def _without_numbers(self, created: int, found: Collection[tuple[str, str]]) -> list[tuple[str, str]]:
        return [each for each in found if each[1] not in self._numbers(created)]

    def _record_topics(self, created: int, new: Callable[[], Sequence[InputTopic]]) -> None:
        """Record topics of a stream. new: makes them by the catalogue as it is then; it may be called several times."""
        with self._changing:
            for attempt in range(_ATTEMPTS):
                try:
                    self._be_courteous()
                    with KafkaSoleWriter(self._settings, self._where.topic) as writer:
                        self.snapshot()
                        self._finish(writer)
                        if entries := [topic_entry(created, each) for each in new()]:
                            self._append(writer, entries)
                    return
                except WriterFencedError:
                    self._pause(attempt)
        raise RegistryBusyError(self._where.topic, _ATTEMPTS, is_made=False)

    def make_query_topics(self) -> None:
        """Make the missing topics for value queries, for streams that an earlier release created.

        Raises TransportError.
        """
        existing = self._transport.topics()
        for entry in self.snapshot().catalog.streams.values():
            self._telling.make_query_topics(entry.stream, existing)

    def make_task_topic(self, task: TaskKey) -> None:
        """Make the topic of a task's log, if it is missing. Raises UnknownNameError if the stream is not there."""
        self._telling.make_task_topic(_entry(self.snapshot(), task).stream, task.partitioner)

    def tell_anew(self, task: TaskKey) -> int:
        """Write the definitions in force into the log of a task. Return the offset at which a task can begin with them.

        The history of a stream is not among them: its events are from before another log.
        Raises UnknownNameError if the stream is not there.
        """

        def in_force(snapshot: Snapshot) -> list[Change]:
            return [
                change
                for change in snapshot.begun.changes()
                if change_stream(change) == task.stream and not isinstance(change, AddHistory | Deepen)
            ]

        (begin, _), _ = self._told(task, in_force)
        return begin

    def tell_again(self, task: TaskKey) -> tuple[tuple[int, int], int]:
        """Write the definitions into the log of a task that has missed changes of the catalogue (`retold`).

        Returns the offsets of the first and after the last one, and the place of the last change.
        Raises UnknownNameError if the stream is not there.
        """
        return self._told(task, lambda snapshot: retold(_entry(snapshot, task)))

    def _told(
        self, task: TaskKey, changes: Callable[[Snapshot], Sequence[Change]]
    ) -> tuple[tuple[int, int], int]:
        where = TopicPartition(self._topics.tasks(task.stream, task.partitioner), task.partition)
        for _ in range(_ATTEMPTS):
            snapshot = self.snapshot()
            _entry(snapshot, task)
            begin = self._telling.tell_one(where, changes(snapshot))
            end = self._transport.end_offset(*where)
            if self.snapshot().begun.last_place == snapshot.begun.last_place:
                return (begin, end), snapshot.begun.last_place
            # The task may have been told of a change that began meanwhile, before these.
        raise RegistryBusyError(self._where.topic, _ATTEMPTS, is_made=False)

    def close(self) -> None:
        """Stop following, and close the connections to the broker."""
        for follower in self._followers:
            follower.close()
        self._transport.close()

    def _wait(self, timeout_s: float) -> bool:
        return self._transport.wait({self._where: self._position}, timeout_s)

    def _attempt(
        self, request: Request, author: str, cancellation: CancellationToken, origin: Origin
    ) -> list[Change]:
        cancellation.check()
        self._be_courteous()
        with KafkaSoleWriter(self._settings, self._where.topic) as writer:
            self.snapshot()
            self._finish(writer)
            started = self._state.made_by(author)
            if started:
                return started
            self._remove_due(writer)
            catalog = self._state.catalog
            changes = _placed(request(catalog.copy()) if callable(request) else request, catalog)
            if not changes:
                return []
            check(catalog, changes)
            check_topics(changes, catalog.definitions, self._topics)
            self._readers.check(changes, catalog.definitions)
            self._telling.check_there(changes, catalog.definitions)
            self._clear_the_ground(writer, changes)
            cancellation.begin()
            self._begin(writer, changes, author, origin)
            self._finish(writer)
            return changes

    def _be_courteous(self) -> None:
        """Wait a moment, so that another process in the middle of a change can finish it."""
        deadline = time.monotonic() + _COURTESY_S
        while self.snapshot().pending and time.monotonic() < deadline:
            time.sleep(_COURTESY_STEP_S * (0.5 + random.random()))

    def _pause(self, attempt: int) -> None:
        longest_s = min(_BACKOFF_S * 2**attempt, _BACKOFF_MAX_S)
        time.sleep(longest_s * random.random())

    def _clear_the_ground(self, writer: KafkaSoleWriter, changes: Sequence[Change]) -> None:
        """Make sure that nobody else uses the topics of new streams, and that logs are kept as changed ones say."""
        known = self._state.catalog.streams
        new = [
            each.stream for each in changes if isinstance(each, PutStream) and each.stream.name not in known
        ]
        for change in changes:
            if isinstance(change, PutStream) and self._keeps_logs_otherwise(change.stream):
                # Now: if the broker refuses it, nothing has begun yet.
                self._telling.keep_logs(change.stream)
        for stream in new:
            for removal in [each for each in self._state.removals if each.stream.name == stream.name]:
                self._remove(writer, removal.place)
            self._telling.check_free(stream)

    def _keeps_logs_otherwise(self, stream: StreamDefinition) -> bool:
        """Whether a registered stream is to have its logs kept for another time."""
        entry = self._state.catalog.streams.get(stream.name)
        return entry is not None and entry.stream.log_retention_ms != stream.log_retention_ms

    def _begin(self, writer: KafkaSoleWriter, changes: Sequence[Change], author: str, origin: Origin) -> None:
        known, made = self._state.catalog.definitions, Made(int(1000 * self._now()), origin)
        entries: list[tuple[bytes, bytes]] = []
        for change in changes:
            key, due_ms, before = None, None, known.get(change_stream(change))
            if isinstance(change, PutStream) and before is None:
                key = os.urandom(KEY_BYTES)
            elif isinstance(change, DropStream):
                due_ms = int(1000 * (self._now() + self._drop_grace_s))
            entries.append((b"%d" % change.place, begin_entry(change, made, key, author, due_ms, before)))
        self._append(writer, entries)

    def _finish(self, writer: KafkaSoleWriter) -> None:
        """Tell the tasks of pending changes. Tasks that know them skip them."""
        pending = list(self._state.pending)
        if pending:
            streams = {name: entry.stream for name, entry in self._state.catalog.streams.items()}
            dropped = {each.place: each.stream for each in self._state.removals}
            begun = {each.place for each in pending}
            new = {name for name, entry in self._state.catalog.streams.items() if entry.created in begun}
            self._telling.tell(pending, streams, dropped, new)
            self._append(writer, [(b"done", done_entry(pending[-1].place))])

    def _sweep(self) -> None:
        """Delete the topics of streams that were dropped long enough ago, and finish changes that were left behind.

        Every follower tries this; the first one does it.
        """
        with self._reading:
            is_due = bool(self._due_places()) or self._is_left_behind()
        if is_due:
            self.change(())

    def _is_left_behind(self) -> bool:
        """Whether changes have been pending for too long."""
        pending, now_s = self._state.pending, time.monotonic()
        place = pending[-1].place if pending else 0
        if place != self._pending[0]:
            self._pending = place, now_s
        return bool(pending) and now_s - self._pending[1] >= LEFT_BEHIND_S

    def _remove_due(self, writer: KafkaSoleWriter) -> None:
        for place in self._due_places():
            self._remove(writer, place)

    def _due_places(self) -> list[int]:
        now_ms = 1000 * self._now()
        return [each.place for each in self._state.removals if each.due_ms <= now_ms]

    def _remove(self, writer: KafkaSoleWriter, place: int) -> None:
        removal = next(each for each in self._state.removals if each.place == place)
        _log.info("the topics of the dropped stream %s are deleted", removal.stream.name)
        self._telling.delete(removal.stream)
        self._append(writer, [(b"removed %d" % place, removed_entry(place))])

    def _append(self, writer: KafkaSoleWriter, entries: Sequence[tuple[bytes, bytes]]) -> None:
        last = writer.append(self._where, entries)
        deadline = time.monotonic() + self._settings.answer_timeout_s
        self.snapshot()
        while self._position <= last:
            if time.monotonic() > deadline:
                raise TransportUnavailableError(
                    str(self._where), "what was written does not appear", "Check the broker; then try again"
                )
            time.sleep(_APPEARS_S)
            self.snapshot()


def _entry(snapshot: Snapshot, task: TaskKey) -> StreamEntry:
    """Return the entry of a task's stream. Raises UnknownNameError if it was dropped."""
    entry = snapshot.begun.streams.get(task.stream)
    if entry is None or entry.created != task.created:
        raise UnknownNameError(f"there is no stream {task.stream[:80]!r} any more")
    return entry


def _placed(changes: Sequence[Change], catalog: Catalog) -> list[Change]:
    """Return the changes with the next places of a catalogue."""
    return [replace(change, place=place) for place, change in enumerate(changes, catalog.last_place + 1)]
