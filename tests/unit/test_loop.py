"""When a unit's loop says that it is ready (nothing is left to open or to catch up with), and when it waits."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from railgun.catalog.catalog import Catalog
from railgun.catalog.changes import AddMetric, Change, PutStream
from railgun.catalog.definitions import parse_definitions
from railgun.catalog.task_key import TaskKey
from railgun.cluster.copies import CopyName
from railgun.history.request_files import REQUEST, BackfillRequestFile, write_request
from railgun.host.memory import MemoryShares, cache_bytes
from railgun.host.place import Place
from railgun.host.task_host import TaskHost
from railgun.messaging.transport import Transport
from railgun.registry.follower import Snapshot
from railgun.registry.topics import Topics
from railgun.task.settings import TaskSettings
from railgun.unit.clock import IdleMeter
from railgun.unit.figures import UnitFigures
from railgun.unit.hosts import UnitHosts
from railgun.unit.loop import UnitLoop
from railgun.unit.positions import Positions
from reservoir.executor import run_job
from tests.unit.fixed_plan import FixedSpread
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

    is_ready, is_running, failure, limit = True, False, None, None
    take_over = SimpleNamespace(step=lambda: False)
    lane = property(lambda host: AtOnce())

    def __init__(self, place: Place) -> None:
        self.place = place

    def open(self) -> None:
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
    """Tells nobody."""

    def note(self, hosts: Any, *, now: bool = False) -> None:
        """Nobody listens."""


def _snapshot(*changes: Change) -> Snapshot:
    catalog = Catalog()
    for change in changes:
        catalog.apply(change)
    return Snapshot(catalog, dict.fromkeys(catalog.streams, bytes(16)), ())


class RunningHost(StillHost):
    """A task that reads its log, and has more to do or not."""

    is_running, position, has_more = True, 0, False

    def work(self) -> bool:
        return self.has_more


class EmptyLog:
    """Nothing comes."""

    def fetch(self, positions: Any, records: int, size: int, timeout_s: float) -> list[Any]:
        time.sleep(timeout_s)
        return []


def _loop(
    folder: Path,
    *,
    removes: bool = False,
    host_of: Callable[[Place], StillHost] = StillHost,
    waiting: IdleMeter | None = None,
) -> UnitLoop:
    hosts = cast(
        Callable[[Sequence[Place]], list[TaskHost]], lambda places: [host_of(each) for each in places]
    )
    return UnitLoop(
        cast(Transport, EmptyLog()),
        Topics(),
        FixedSpread(0, 1, CopyName("node-1", 0)),
        cast(Positions, SilentPositions()),
        UnitFigures(),
        lone_copies(),
        UnitHosts(hosts, lambda closed: None),
        folder,
        removes=removes,
        grace_s=0.0,
        waiting=waiting or IdleMeter(),
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
    write_request(prepared / REQUEST, BackfillRequestFile("h", 1))
    loop.follow(_snapshot(PutStream(1, stream, 1)))
    loop.round()
    assert prepared.is_dir()
    loop.follow(_snapshot(PutStream(5, stream, 1)))
    loop.round()
    assert not prepared.exists()
    prepared.mkdir()
    write_request(prepared / REQUEST, BackfillRequestFile("g", 5))
    loop.follow(_snapshot(PutStream(5, stream, 1)))
    loop.round()
    assert prepared.is_dir()
    loop.follow(_snapshot())
    loop.round()
    assert not prepared.exists()
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
        return [cast(Place, SimpleNamespace(key=key)) for key in keys]

    hosts = UnitHosts(make, lambda closed: None)
    assert hosts.assign(places(0, 10))
    assert not hosts.assign(places(0, 10))
    assert list(hosts.by_key) == list(given)
    (each,) = {cache_bytes(settings) for settings in given.values()}
    assert each < cache_bytes(most)
    assert 2 << 30 > 10 * each > 1 << 30
    assert hosts.assign(places(0, 11))
    assert 0 < cache_bytes(given[TaskKey("s", 1, "card", 10)]) < 2 << 29
