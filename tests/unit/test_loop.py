"""When a unit's loop says that it is ready (nothing is left to open or to catch up with), and when it waits."""

import time
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future
from itertools import count, pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from railgun.catalog.catalog import Catalog
from railgun.catalog.changes import AddMetric, Change, PutStream
from railgun.catalog.definitions import parse_definitions
from railgun.catalog.task_key import TaskKey
from railgun.cluster.copies import CopyName
from railgun.cluster.donors import Donors
from railgun.history.request_files import REQUEST, DeepeningRequest, write_request
from railgun.host.data_folder import SNAPSHOTS
from railgun.host.host_state import HostState
from railgun.host.memory import MemoryShares, cache_bytes
from railgun.host.place import Place
from railgun.host.task_host import TaskHost
from railgun.messaging.errors import TopicMissingError, TransportFullError
from railgun.messaging.transport import Entry, Fetched, TopicPartition, Transport
from railgun.registry.follower import Snapshot
from railgun.registry.topics import Topics
from railgun.task.settings import TaskSettings
from railgun.unit.clock import CLOCK, Clock, IdleMeter
from railgun.unit.hosts import UnitHosts
from railgun.unit.loop import ROUND_RECORDS, ROUND_S, UnitLoop
from railgun.unit.outstanding import Outstanding
from railgun.unit.positions import Positions
from railgun.unit.query_server import QueryServer
from railgun.unit.sending import Sending
from railgun.unit.snapshots import UnitSnapshots
from railgun.wire.records import Records
from reservoir.executor import run_job
from tests.unit.fixed_plan import FixedSpread
from tests.unit.kept_lane import KeptLane
from tests.unit.local_units import awaited
from tests.unit.lone_copies import lone_copies

_DEFINITIONS = """
[streams.{name}]
time = "ts"
id = "id"
partitioners = ["card"]
[streams.{name}.fields]
id = "string"
ts = "timestamp"
card = "string"
[[metrics]]
sql = "SELECT count(*) AS n FROM {name} GROUP BY card OVER SLIDING 1 MINUTE"
"""


class StillHost:
    """A task that has caught up and does nothing more."""

    is_ready, is_running, is_changing, is_filling = True, False, False, False
    failure, limit, state, position = None, None, HostState.ANSWERING, 0
    take_over = SimpleNamespace(step=lambda: False)
    sink: Any = SimpleNamespace(has_room=lambda: True)
    lane = property(lambda host: AtOnce())

    def __init__(self, place: Place) -> None:
        self.place = place

    def open(self, donors: Donors, needed: int, damage: str) -> None:
        """At once."""

    def close(self) -> None:
        """Nothing is open."""


class AtOnce:
    """A lane that runs what is submitted before it returns."""

    def submit(self, work: Callable[[], Any], *, at_leisure: bool = False) -> Any:
        job: Future[Any] = Future()
        run_job(job, work)
        return job


class SilentPositions:
    """Tells nobody. noted_s: when it was asked to, by a clock."""

    def __init__(self, clock: Clock = CLOCK) -> None:
        self._clock = clock
        self.noted_s: list[float] = []

    def note(self, hosts: Any) -> None:
        self.noted_s.append(self._clock.now())


def _snapshot(*changes: Change) -> Snapshot:
    catalog = Catalog()
    for change in changes:
        catalog.apply(change)
    return Snapshot(catalog, dict.fromkeys(catalog.streams, bytes(16)), (), catalog)


class RunningHost(StillHost):
    """A task that reads its log, and has more to do or not."""

    is_running, position, has_more = True, 0, False
    task: Any = SimpleNamespace(topic_id="")

    def work(self) -> bool:
        return self.has_more


class LogWithoutQueries:
    """It has no topics of value queries."""

    def end_offset(self, topic: str, partition: int) -> int:
        raise TopicMissingError(f"{topic}-{partition}")

    def topic_ids(self, topics: Collection[str]) -> dict[str, str]:
        return dict.fromkeys(topics, "")

    def release(self, topic: str, partition: int) -> None:
        """Nothing is held."""


class EmptyLog(LogWithoutQueries):
    """Nothing comes."""

    def fetch(self, positions: Any, records: int, size: int, timeout_s: float) -> list[Any]:
        time.sleep(timeout_s)
        return []


class DeepLog(LogWithoutQueries):
    """A log whose partitions have many records each, all there to be fetched, but for partition 0: each fetch finds one
    new record in it. Records are their offsets.
    """

    def __init__(self) -> None:
        self.asked: list[dict[TopicPartition, int]] = []

    def fetch(self, positions: dict[TopicPartition, int], records: int, size: int, timeout_s: float) -> Any:
        self.asked.append(positions)
        return [
            self._records(where, first, records if where.partition else 1)
            for where, first in positions.items()
        ]

    def _records(self, where: TopicPartition, first: int, n: int) -> Fetched:
        values = [b"%d" % number for number in range(first, first + n)]
        return Fetched(where, np.arange(first, first + n), Records.of(values), first + n)


class SlowHost(RunningHost):
    """A task that takes 10 µs of a clock for each record, and wants each once, in order."""

    def __init__(self, place: Place, time_s: list[float]) -> None:
        super().__init__(place)
        self._time_s = time_s

    def take(self, fetched: Fetched) -> None:
        assert fetched.values()[0] == b"%d" % self.position
        self._time_s[0] += 10e-6 * len(fetched)
        self.position = fetched.next_offset


def _loop(
    folder: Path,
    *,
    removes: bool = False,
    host_of: Callable[[Place], StillHost] = StillHost,
    waiting: IdleMeter | None = None,
    log: object = EmptyLog(),
    clock: Clock = CLOCK,
    sending: Sending | None = None,
) -> UnitLoop:
    hosts = cast(
        Callable[[Sequence[Place]], list[TaskHost]], lambda places: [host_of(each) for each in places]
    )
    return UnitLoop(
        cast(Transport, log),
        Topics(),
        FixedSpread(0, 1, CopyName("node-1", 0)),
        cast(Positions, SilentPositions(clock)),
        sending or Sending(cast(Transport, log), Topics()),
        lone_copies(),
        UnitHosts(hosts, lambda closed: None),
        folder,
        QueryServer(cast(Transport, log), Topics(), lambda front_end, record: None),
        UnitSnapshots(folder / SNAPSHOTS, lambda name, error: None),
        KeptLane(),
        removes=removes,
        grace_s=0.0,
        waiting=waiting or IdleMeter(),
        clock=clock,
    )


def test_ready_once_all_that_the_newest_catalogue_wants_is_there(tmp_path: Path) -> None:
    first, second = (parse_definitions(_DEFINITIONS.format(name=name)) for name in ("a", "b"))
    stream, metric = PutStream(1, first.streams["a"], 1), AddMetric(2, first.metrics[0])
    loop = _loop(tmp_path)
    assert not loop.is_ready
    loop.follow(_snapshot(stream))
    assert not loop.is_ready
    loop.round()
    assert loop.is_ready
    loop.follow(_snapshot(stream, metric))
    assert loop.is_ready, "a metric makes no task"
    loop.round()
    assert loop.is_ready
    loop.follow(_snapshot(stream, metric, PutStream(3, second.streams["b"], 1)))
    assert not loop.is_ready, "a stream does"
    loop.round()
    assert loop.is_ready


def test_what_was_prepared_for_a_dropped_stream_is_deleted(tmp_path: Path) -> None:
    """Not what is prepared for another one of that name, nor a history for a stream that is still to come."""
    stream = parse_definitions(_DEFINITIONS.format(name="a")).streams["a"]
    prepared, to_come = tmp_path / "backfill" / "a", tmp_path / "backfill" / "b" / "tasks"
    prepared.mkdir(parents=True)
    to_come.mkdir(parents=True)
    loop = _loop(tmp_path, removes=True)
    write_request(prepared / REQUEST, DeepeningRequest("h", 1))
    loop.follow(_snapshot(PutStream(1, stream, 1)))
    loop.round()
    assert prepared.is_dir()
    loop.follow(_snapshot(PutStream(5, stream, 1)))
    awaited(lambda: loop.round() or not prepared.exists())
    prepared.mkdir()
    write_request(prepared / REQUEST, DeepeningRequest("g", 5))
    loop.follow(_snapshot(PutStream(5, stream, 1)))
    loop.round()
    assert prepared.is_dir()
    loop.follow(_snapshot())
    awaited(lambda: loop.round() or not prepared.exists())
    assert to_come.is_dir()


def test_what_it_waits_for_records_is_told_and_only_that(tmp_path: Path) -> None:
    """Early checkpoints are paid from it."""
    made: list[RunningHost] = []

    def host_of(place: Place) -> RunningHost:
        made.append(RunningHost(place))
        return made[-1]

    waiting = IdleMeter()
    loop = _loop(tmp_path, host_of=host_of, waiting=waiting)
    stream = parse_definitions(_DEFINITIONS.format(name="a")).streams["a"]
    loop.follow(_snapshot(PutStream(1, stream, 1)))
    loop.round()
    waited_s = waiting.waited_s
    assert waited_s > 0
    for host in made:
        host.has_more = True
    loop.round()
    assert waiting.waited_s == waited_s, "there was more to do"
    for host in made:
        host.has_more = False
    loop.round()
    assert waiting.waited_s > waited_s


def test_hosts_that_begin_together_share_the_memory_evenly(tmp_path: Path) -> None:
    memory, most = MemoryShares(TaskSettings(), 2 << 30), TaskSettings()
    given: dict[TaskKey, TaskSettings] = {}

    def make(places: Sequence[Place]) -> list[TaskHost]:
        given.update(dict.fromkeys((place.key for place in places), memory.take(len(places))))
        return [cast(TaskHost, StillHost(place)) for place in places]

    def places(first: int, after: int) -> list[Place]:
        keys = [TaskKey("s", 1, "card", number) for number in range(first, after)]
        return [cast(Place, SimpleNamespace(key=key, cut=None, gap=None)) for key in keys]

    hosts = UnitHosts(make, lambda closed: None)
    assert hosts.assign(places(0, 10))
    assert not hosts.assign(places(0, 10))
    assert list(hosts.by_key) == list(given)
    (each,) = {cache_bytes(settings) for settings in given.values()}
    assert each < cache_bytes(most)
    assert 2 << 30 > 10 * each > 1 << 30
    assert hosts.assign(places(0, 11))
    assert 0 < cache_bytes(given[TaskKey("s", 1, "card", 10)]) < 2 << 29


def _busy(folder: Path, log: DeepLog, time_s: list[float]) -> tuple[UnitLoop, list[SlowHost]]:
    """A loop with 13 tasks, and their hosts once it has made them."""
    made: list[SlowHost] = []

    def host_of(place: Place) -> SlowHost:
        made.append(SlowHost(place, time_s))
        return made[-1]

    loop = _loop(folder, host_of=host_of, log=log, clock=Clock(lambda: time_s[0], lambda _: None))
    definitions = _DEFINITIONS.format(name="a").replace("partitioners", "partitions = 13\npartitioners")
    loop.follow(_snapshot(PutStream(1, parse_definitions(definitions).streams["a"], 1)))
    return loop, made


def _noted_s(loop: UnitLoop) -> list[float]:
    return cast(SilentPositions, loop._positions).noted_s


def test_between_two_batches_the_unit_may_report(tmp_path: Path) -> None:
    time_s = [0.0]
    loop, _ = _busy(tmp_path, DeepLog(), time_s)
    for _ in range(20):
        loop.round()
    noted_s = _noted_s(loop)
    assert time_s[0] > 20 * 0.04
    assert max(after_s - before_s for before_s, after_s in pairwise(noted_s)) < 1.01 * 10e-6 * ROUND_RECORDS


class BusyHost(RunningHost):
    """A task that never has done all its background work. Each slice takes 20 ms of a clock."""

    SLICE_S = 0.02

    def __init__(self, place: Place, time_s: list[float]) -> None:
        super().__init__(place)
        self._time_s = time_s
        self.slices = 0

    def work(self) -> bool:
        self._time_s[0] += self.SLICE_S
        self.slices += 1
        return True


def test_background_work_of_many_tasks_ends_by_time_and_comes_to_each_in_turn(tmp_path: Path) -> None:
    time_s, made = [0.0], list[BusyHost]()

    def host_of(place: Place) -> BusyHost:
        made.append(BusyHost(place, time_s))
        return made[-1]

    loop = _loop(tmp_path, host_of=host_of, clock=Clock(lambda: time_s[0], lambda _: None))
    definitions = _DEFINITIONS.format(name="a").replace("partitioners", "partitions = 100\npartitioners")
    loop.follow(_snapshot(PutStream(1, parse_definitions(definitions).streams["a"], 1)))
    for _ in range(120):
        begun_s = time_s[0]
        loop.round()
        assert time_s[0] - begun_s < ROUND_S + BusyHost.SLICE_S
    assert len(made) == 100
    slices = [host.slices for host in made]
    assert min(slices) > 2
    assert max(slices) - min(slices) <= 1
    noted_s = _noted_s(loop)
    assert max(after_s - before_s for before_s, after_s in pairwise(noted_s)) < 1.01 * BusyHost.SLICE_S


def test_tasks_with_much_to_do_take_turns_and_the_newest_events_wait_for_one_round(tmp_path: Path) -> None:
    """Nothing is fetched twice, and nothing is fetched for a task while something waits for it."""
    log, time_s = DeepLog(), [0.0]
    loop, made = _busy(tmp_path, log, time_s)
    loop.round()
    (live,) = (host for host in made if host.place.where.partition == 0)
    behind = [host for host in made if host is not live]
    for number in count(live.position):
        assert live.position == number
        begun_s, before = time_s[0], {host.place.where: host.position for host in made}
        loop.round()
        assert time_s[0] - begun_s < 0.05 + 2 * 10e-6 * ROUND_RECORDS
        assert all(host.position - before[host.place.where] <= ROUND_RECORDS for host in made)
        if number == 100:
            break
    turns = [host.position // ROUND_RECORDS for host in behind]
    assert min(turns) > 10
    assert max(turns) - min(turns) <= 1
    for host in made:
        asked = [each[host.place.where] for each in log.asked if host.place.where in each]
        assert asked == sorted(set(asked))


def test_what_waits_for_a_task_that_begins_anew_is_fetched_again(tmp_path: Path) -> None:
    loop, made = _busy(tmp_path, DeepLog(), [0.0])
    for _ in range(12):
        loop.round()
    waiting = next(host for host in made if host.place.where in loop._fetched and host.position)
    waiting.position = 0
    while not waiting.position:
        loop.round()
    assert waiting.position == ROUND_RECORDS


class FullTransport:
    """Takes so much, and acknowledges it when it is told to."""

    LIMIT_BYTES = 64 << 20

    def __init__(self) -> None:
        self.sent: list[tuple[Future[list[int]], int]] = []

    @property
    def pending_bytes(self) -> int:
        return sum(size_bytes for _, size_bytes in self.sent)

    def submit(self, entries: Sequence[Entry]) -> "Future[list[int]]":
        size_bytes = sum(entry.records.size_bytes for entry in entries)
        if self.pending_bytes + size_bytes > self.LIMIT_BYTES:
            raise TransportFullError("here", self.pending_bytes)
        self.sent.append((Future(), size_bytes))
        return self.sent[-1][0]

    def acknowledge(self) -> None:
        sent, self.sent = self.sent, []
        for future, _ in sent:
            future.set_result([0])


class TalkingHost(SlowHost):
    """A task whose replies to each batch are a megabyte."""

    def __init__(self, place: Place, time_s: list[float], sending: Sending) -> None:
        super().__init__(place, time_s)
        self._sending, self._outstanding = sending, Outstanding("here")
        self.sink = SimpleNamespace(has_room=lambda: sending.has_room_for(self._outstanding))

    def take(self, fetched: Fetched) -> None:
        position = self.position
        super().take(fetched)
        self._sending.answer(self._outstanding, "a", position, [(1, bytes(1 << 20))])


def test_while_there_is_no_room_for_replies_the_unit_goes_on_reporting(tmp_path: Path) -> None:
    transport, time_s, made = FullTransport(), [0.0], list[TalkingHost]()
    clock = Clock(lambda: time_s[0], lambda seconds: time_s.__setitem__(0, time_s[0] + seconds))
    sending = Sending(cast(Transport, transport), Topics(), clock)

    def host_of(place: Place) -> TalkingHost:
        made.append(TalkingHost(place, time_s, sending))
        return made[-1]

    loop = _loop(tmp_path, host_of=host_of, log=DeepLog(), clock=clock, sending=sending)
    stream = parse_definitions(_DEFINITIONS.format(name="a")).streams["a"]
    loop.follow(_snapshot(PutStream(1, stream, 1)))
    for _ in range(100):
        loop.round()
    before = [host.position for host in made]
    noted = len(_noted_s(loop))
    loop.round()
    assert [host.position for host in made] == before
    assert 0 < transport.pending_bytes < FullTransport.LIMIT_BYTES
    assert len(_noted_s(loop)) > noted
    transport.acknowledge()
    loop.round()
    assert all(host.position > position for host, position in zip(made, before, strict=True))


def test_value_queries_are_answered_while_a_partition_takes_no_replies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Slow(Sending):
        """All that is not acknowledged is of one partition."""

        has_room = False  # type: ignore[assignment]
        has_room_beside_slow = True  # type: ignore[assignment]

    answered: list[object] = []
    monkeypatch.setattr(QueryServer, "answer", lambda self, run: answered.append(run))
    loop = _loop(tmp_path, sending=Slow(cast(Transport, EmptyLog()), Topics()))
    loop.round()
    assert answered
