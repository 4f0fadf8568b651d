"""Deepening a stream whose log is Kafka: put aside by its units, built in a node's data folder, taken up there."""

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from railgun.catalog.catalog import Catalog, StreamEntry
from railgun.catalog.changes import BeginDeepening, Change, Deepen
from railgun.catalog.names import column_name
from railgun.engine.history import check_identified, deepening_plan
from railgun.messaging.kafka import KafkaTransport
from railgun.messaging.kafka_settings import KafkaSettings
from railgun.messaging.transport import TopicPartition
from railgun.registry.kafka_registry import KafkaRegistry
from railgun.registry.topics import PREFIX, Topics
from railgun.spark.backfill import new_history_id
from railgun.spark.backfill_target import BackfillRequest, BackfillTarget
from railgun.spark.errors import HistoryError
from railgun.task.deepening_plan import OWN, deepening_folder, read_own, read_plan, write_offer, write_plan
from railgun.task.history_build import HistoryPlan
from railgun.task.own_events import OwnEvents
from railgun.task.settings import TaskSettings

_ASK_S, _PUT_ASIDE_S = 0.1, 120.0
_NEAR_RECORDS = 2_000
_READ_RECORDS, _READ_BYTES = 1_000, 1 << 20

Standing = dict[tuple[str, int], dict[str, Any]]


class DeepeningOfCluster(BackfillTarget):
    """kafka, prefix: where the cluster is. The request's data folder is that of the node that runs the stream's tasks.

    Raises EngineError, TransportError, RegistryError, TaskError, HistoryError.
    """

    def __init__(self, request: BackfillRequest, kafka: KafkaSettings, prefix: str = PREFIX) -> None:
        super().__init__(request)
        self._kafka, self._prefix = kafka, prefix

    @property
    def _folder(self) -> Path:
        return deepening_folder(self.request.data, self.request.stream)

    def plan(self) -> HistoryPlan:
        request, known = self.request, read_plan(self._folder)
        with KafkaRegistry(self._kafka, self._prefix) as registry:
            entry = registry.snapshot().catalog.entry(request.stream)
        check_identified(entry)
        if known is not None and known.created == entry.created:
            if request.cut_ms not in (None, known.cut_ms):
                raise HistoryError(
                    f"{request.stream}: a deepening until {known.cut_ms} ms is under way; let it come to its end, or "
                    "give it up (railgun backfill --deepen --give-up)"
                )
            return known
        history = new_history_id()
        shutil.rmtree(self._folder / OWN, ignore_errors=True)
        with KafkaRegistry(self._kafka, self._prefix) as registry:
            made = registry.change(
                lambda known: [BeginDeepening(known.last_place + 1, request.stream, history)]
            )
            snapshot, place = registry.snapshot(), made[-1].place
        if snapshot.catalog.last_place != place:
            raise HistoryError(f"{request.stream}: its catalogue was changed meanwhile; run this again")
        entry = snapshot.catalog.entry(request.stream)
        settings, key = request.settings or TaskSettings(), snapshot.keys[request.stream]
        try:
            own = self._put_aside(entry, history)
            plan = deepening_plan(entry, key, settings, own, history, request.cut_ms, place)
            write_plan(self._folder, plan)
        except BaseException:
            shutil.rmtree(self._folder / OWN, ignore_errors=True)
            raise
        return read_plan(self._folder) or plan

    def offer(self) -> HistoryPlan:
        """All is built: the units may take it. Its plan."""
        plan = read_plan(self._folder)
        if plan is None:
            raise HistoryError(f"{self._folder}: no deepening has begun there")
        write_offer(self._folder, plan.history)
        return plan

    def install(self) -> None:
        self.bring()
        plan, stream = self.offer(), self.request.stream
        with KafkaRegistry(self._kafka, self._prefix) as registry, KafkaTransport(self._kafka) as transport:
            tasks = _Tasks(transport, registry.topics, stream, plan)
            if not _is_deepened(registry.snapshot().catalog, stream, plan):
                tasks.wait(lambda standing: _is_near(standing, plan.history))

                def deepened(catalog: Catalog) -> list[Change]:
                    return [Deepen(catalog.last_place + 1, stream, plan.history, plan.cut_ms)]

                registry.change(deepened)
            tasks.wait(lambda standing: standing.get("history") == plan.history)
        shutil.rmtree(self._folder, ignore_errors=True)

    def give_up(self) -> bool:
        """Let go of what there is; units let go of it when they see that. False where none is under way."""
        plan = read_plan(self._folder)
        if plan is None:
            return False
        with KafkaRegistry(self._kafka, self._prefix) as registry:
            if _is_deepened(registry.snapshot().catalog, self.request.stream, plan):
                raise HistoryError(
                    f"{self.request.stream}: its tasks have been told to take over; let it end"
                )
        shutil.rmtree(self._folder)
        return True

    def _put_aside(self, entry: StreamEntry, history: str) -> dict[tuple[str, int], OwnEvents]:
        """What the units have put aside, once all have."""
        stream, deadline_s = entry.stream, time.monotonic() + _PUT_ASIDE_S
        found: dict[tuple[str, int], OwnEvents] = {}
        tasks = [(name, at) for name in stream.partitioners for at in range(stream.partitions_of(name))]
        while True:
            for name, at in tasks:
                own = read_own(self._folder / OWN / column_name(name) / str(at), history)
                if own is not None:
                    found[name, at] = own
            if len(found) == len(tasks):
                return found
            if time.monotonic() > deadline_s:
                lacking = ", ".join(f"{name}/{at}" for name, at in tasks if (name, at) not in found)
                raise HistoryError(
                    f"{self.request.data}: tasks have not put aside there what they accepted: {lacking}; is this the "
                    "data folder of the node that runs them, and does it run?"
                )
            time.sleep(_ASK_S)


class _Tasks:
    """How a stream's tasks stand, as the topic of positions tells it."""

    def __init__(self, transport: KafkaTransport, topics: Topics, stream: str, plan: HistoryPlan) -> None:
        self._transport, self._where = transport, TopicPartition(topics.positions, 0)
        self._stream, self._plan = stream, plan
        self._next = transport.start_offset(*self._where)
        self._standing: Standing = {}

    def wait(self, is_so: Callable[[dict[str, Any]], bool]) -> None:
        """Until something is so of all of them. Raises HistoryError for one that says why it cannot be."""
        while not all(is_so(self._standing.get(task, {})) for task in self._plan.tasks):
            if not self._read():
                time.sleep(_ASK_S)
            for (name, at), standing in self._standing.items():
                following = standing.get("following") or {}
                failure = following.get("failure") or _failure(standing)
                if failure:
                    raise HistoryError(f"{self._stream}/{name}/{at} cannot be deepened: {failure}")

    def _read(self) -> bool:
        if self._transport.end_offset(*self._where) <= self._next:
            return False
        fetched = self._transport.read(*self._where, self._next, _READ_RECORDS, _READ_BYTES)
        for value in fetched.values():
            said = msgspec.json.decode(value)
            if (said["stream"], said["created"]) == (self._stream, self._plan.created):
                self._standing[said["partitioner"], said["partition"]] = said
        self._next = fetched.next_offset
        return True


def _failure(standing: dict[str, Any]) -> str:
    state = str(standing.get("state", ""))
    return state if state.startswith("failed") else ""


def _is_near(standing: dict[str, Any], history: str) -> bool:
    following = standing.get("following") or {}
    return following.get("history") == history and following["behind"] <= _NEAR_RECORDS


def _is_deepened(catalog: Catalog, stream: str, plan: HistoryPlan) -> bool:
    known = catalog.entry(stream).history
    return known is not None and known.history == plan.history
