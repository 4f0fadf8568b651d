"""Copies of a unit whose data is fetched: they do not wait in vain, and nothing is fetched for those that run."""

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest

from railgun.catalog.task_key import TaskKey
from railgun.cluster.copies import CopyName
from railgun.cluster.donors import Donor, Donors
from railgun.cluster.reports import Fetching
from railgun.host.fetcher import FetchEnd, FetchOrder, FetchRule
from railgun.host.host_state import HostState
from railgun.host.lanes import HostLanes
from railgun.host.place import Place
from railgun.messaging.embedded.log import Durability, EmbeddedLog
from railgun.task.environment import TaskEnvironment
from railgun.task.settings import TaskSettings
from railgun.unit.clock import Clock
from railgun.unit.hosting import Hosting
from railgun.unit.hosts import UnitHosts
from railgun.unit.sending import Sending
from tests.task.small_log import IDENTITY, SmallLog
from tests.unit.local_units import SMALL, awaited
from tests.unit.test_unit_hosts import _DEFINITIONS, _KEY, _TOPICS, _WHERE, _AwayLog

_DONOR = Donors((Donor(CopyName("there", 0), 40),), last=Donor(CopyName("there", 0), 40))


class _Fetcher:
    """found: how far the fetch is.  begun: how many were begun.  stopped: the tasks whose fetch was stopped."""

    def __init__(self) -> None:
        self.known, self.found, self.begun = _DONOR, Fetching(), 0
        self.ended: FetchEnd | None = None
        self.order: FetchOrder | None = None
        self.stopped = list[TaskKey]()
        self.names = set[str]()

    def donors(self, task: TaskKey) -> Donors:
        return self.known

    def begin(self, place: Place, order: FetchOrder) -> None:
        self.begun += 1
        self.order = order

    def look(self, task: TaskKey) -> Fetching | FetchEnd:
        return self.ended or self.found

    def stop(self, task: TaskKey) -> None:
        self.stopped.append(task)

    def unordered(self) -> Collection[str]:
        found, self.names = self.names, set()
        return found


class _Unit:
    """A unit with one copy. now_s: its time."""

    def __init__(
        self, folder: Path, log: EmbeddedLog, lanes: HostLanes, after_records: int, settings: TaskSettings
    ) -> None:
        self.now_s, self.fetcher, self.log = 0.0, _Fetcher(), log
        environment = TaskEnvironment(now=lambda: self.now_s)
        hosting = Hosting(log, Sending(log, _TOPICS), environment, lanes, rule=FetchRule(after_records))
        self.hosts = UnitHosts(
            lambda places: [hosting.host(each, settings) for each in places],
            lambda host: None,
            Clock(lambda: self.now_s),
            self.fetcher,
        )
        self.place = Place(_KEY, IDENTITY, _WHERE, folder / "task", folder / "ready")
        self.hosts.assign([self.place])

    @property
    def state(self) -> HostState:
        self.hosts.advance()
        return self.hosts.by_key[_KEY].state

    def passes(self, seconds: float) -> HostState:
        """Let time pass, and what is due be done."""
        for _ in range(round(10 * seconds)):
            self.now_s += 0.1
            self.hosts.advance()
            self.hosts.wait()
        return self.state

    def is_open(self) -> bool:
        self.hosts.advance()
        return self.hosts.by_key[_KEY].is_running

    def reads(self) -> HostState:
        """Let the copy process what its log has."""
        if self.is_open():
            host = self.hosts.by_key[_KEY]
            fetched = self.log.read(*_WHERE, host.position, 64, 1 << 20)
            self.hosts.run_isolated(host, partial(host.take, fetched))
        return self.state


def _many_events(log: _AwayLog) -> None:
    small = SmallLog(_DEFINITIONS)
    events = [small.records[small.event(f"e{number}", 1_000 * number)] for number in range(40)]
    log.append(*_WHERE, [*small.records[:2], *events])


@contextmanager
def _unit(
    folder: Path,
    after_records: int = 5,
    write: Callable[[_AwayLog], object] = _many_events,
    settings: TaskSettings = SMALL,
) -> Iterator[_Unit]:
    log, lanes = _AwayLog(folder / "log", Durability.OS), HostLanes(TaskEnvironment().executor, 1)
    log.create_topic(_WHERE.topic, 1)
    write(log)
    made = _Unit(folder, log, lanes, after_records, settings)
    try:
        yield made
    finally:
        made.hosts.wait()
        made.hosts.by_key[_KEY].close()
        lanes.close()
        log.close()


def test_one_that_waits_for_its_turn_goes_on_if_no_donor_lives(tmp_path: Path) -> None:
    with _unit(tmp_path) as unit:
        awaited(lambda: unit.state is HostState.FETCHING and unit.fetcher.begun == 1)
        assert unit.passes(60.0) is HostState.FETCHING
        unit.fetcher.known = Donors()
        assert unit.passes(8.0) is HostState.FETCHING
        # It was just a moment.
        unit.fetcher.known = _DONOR
        unit.passes(2.0)
        unit.fetcher.known = Donors()
        assert unit.passes(8.0) is HostState.FETCHING
        assert unit.fetcher.stopped == []
        unit.passes(4.0)
        assert unit.fetcher.stopped[0] == _KEY
        awaited(unit.is_open)


def test_one_that_has_begun_is_not_stopped(tmp_path: Path) -> None:
    """Its donor may have left the cluster, and still serve."""
    with _unit(tmp_path) as unit:
        awaited(lambda: unit.fetcher.begun == 0 and unit.state is HostState.FETCHING)
        unit.fetcher.found, unit.fetcher.known = Fetching(donor="there/0", fetched=1, total=9), Donors()
        assert unit.passes(30.0) is HostState.FETCHING
        assert unit.fetcher.stopped == []


def test_a_fetch_of_an_earlier_run_is_stopped_once_the_task_runs(tmp_path: Path) -> None:
    """It may wait for its turn, and have no folder yet."""
    with _unit(tmp_path, 1_000) as unit:
        unit.fetcher.names = {_KEY.full_name}
        unit.hosts.advance()
        # What comes may be what the task needs.
        assert unit.fetcher.stopped == []
        awaited(unit.is_open)
        assert unit.fetcher.stopped == [_KEY]
        # That message was lost.
        unit.fetcher.names = {_KEY.full_name, "other"}
        unit.hosts.advance()
        assert unit.fetcher.stopped == [_KEY, _KEY]


def test_fetches_that_fail_are_begun_less_and_less_often(tmp_path: Path) -> None:
    with _unit(tmp_path) as unit:
        awaited(lambda: unit.state is HostState.FETCHING and unit.fetcher.begun == 1)
        unit.fetcher.ended = FetchEnd("there is no room")
        begun = list[float]()
        while not unit.is_open():
            before = unit.fetcher.begun
            unit.passes(0.1)
            begun += [unit.now_s] * (unit.fetcher.begun - before)
        assert [round(each) for each in begun] == [1, 6, 31]


def test_a_copy_that_nothing_serves_is_begun_again_less_and_less_often(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with _unit(tmp_path) as unit:
        awaited(lambda: unit.state is HostState.FETCHING and unit.fetcher.begun == 1)
        unit.log.trim(*_WHERE, 30)
        unit.fetcher.ended = FetchEnd("nobody serves", is_final=True)
        begun = list[float]()
        while unit.now_s < 800.0:
            before = unit.fetcher.begun
            unit.passes(0.5)
            begun += [unit.now_s] * (unit.fetcher.begun - before)
        # A pass takes half a second, and each host's own work some time besides.
        pauses = [later - earlier for earlier, later in pairwise(begun)]
        assert pauses == pytest.approx([10, 20, 40, 80, 160, 300], abs=2.0)
