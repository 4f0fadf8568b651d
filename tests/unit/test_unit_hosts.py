"""Copies that cannot be opened while the broker is away, or not be opened again behind history, are opened once it is
back.
"""

import logging
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from railgun.catalog.changes import AddHistory, AddMetric, change_to_json
from railgun.catalog.definitions import parse_definitions
from railgun.catalog.task_key import TaskKey
from railgun.cluster.copies import CopyName
from railgun.cluster.donors import Donor, Donors
from railgun.history.build import HistoryBuild, HistoryPlan
from railgun.host import source
from railgun.host.fetcher import FetchEnd, Fetcher, NoFetcher
from railgun.host.lanes import HostLanes
from railgun.host.place import Place
from railgun.messaging.embedded.log import Durability, EmbeddedLog
from railgun.messaging.errors import TopicMissingError, TransportUnavailableError
from railgun.messaging.transport import TopicPartition
from railgun.registry.topics import Topics
from railgun.task.environment import TaskEnvironment
from railgun.unit import hosts as unit_hosts
from railgun.unit.hosting import Hosting
from railgun.unit.hosts import UnitHosts
from railgun.unit.sending import Sending
from railgun.wire.control_records import encode_control
from railgun.wire.records import Records
from tests.task.small_log import IDENTITY, SmallLog
from tests.unit.local_units import SMALL, awaited

_TOPICS = Topics()
_KEY = TaskKey("s", 1, "k", 0)
_WHERE = TopicPartition(_TOPICS.tasks("s", "k"), 0)
_DEFINITIONS = """
[streams.s]
time = "ts"
id = "id"
partitioners = ["k"]
[streams.s.fields]
id = "string"
ts = "timestamp"
k = "string"
[[metrics]]
sql = "SELECT count(*) AS n FROM s GROUP BY k OVER SLIDING 1 HOUR"
"""


class _AwayLog(EmbeddedLog):
    """asked: how often it was asked for its bounds while it is away, or its topic is missing.
    begins: where it begins, at least.
    """

    is_away, is_missing, asked, begins = False, False, 0, 0

    def _answer(self) -> None:
        if self.is_missing:
            self.asked += 1
            raise TopicMissingError(_WHERE.topic)
        if self.is_away:
            self.asked += 1
            raise TransportUnavailableError(str(_WHERE), "it does not answer", "Check the broker")

    def start_offset(self, topic: str, partition: int) -> int:
        self._answer()
        return max(self.begins, super().start_offset(topic, partition))

    def end_offset(self, topic: str, partition: int) -> int:
        self._answer()
        return super().end_offset(topic, partition)

    def release(self, topic: str, partition: int) -> None:
        """Nothing is read ahead here."""


class _Copy:
    """The only copy of a unit, which is told to open. folder: has the built history too."""

    def __init__(self, folder: Path, log: _AwayLog, lanes: HostLanes, fetcher: Fetcher | None = None) -> None:
        hosting = Hosting(log, Sending(log, _TOPICS), TaskEnvironment(), lanes)
        self.hosts = UnitHosts(
            lambda places: [hosting.host(each, SMALL) for each in places],
            lambda host: None,
            fetcher=fetcher,
        )
        self.place = Place(_KEY, IDENTITY, _WHERE, folder / "task", folder / "ready" / "k" / "0")
        self.hosts.assign([self.place])

    def is_open(self) -> bool:
        self.hosts.advance()
        return self.hosts.by_key[_KEY].is_running


@contextmanager
def _copy(folder: Path, log: _AwayLog, fetcher: Fetcher | None = None) -> Iterator[_Copy]:
    lanes = HostLanes(TaskEnvironment().executor, 1)
    made = _Copy(folder, log, lanes, fetcher)
    try:
        yield made
    finally:
        made.hosts.wait()
        made.hosts.by_key[_KEY].close()
        lanes.close()


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[_AwayLog]:
    monkeypatch.setattr(unit_hosts, "_AWAY_S", 0.01)
    opened = _AwayLog(tmp_path / "log", Durability.OS)
    try:
        opened.create_topic(_WHERE.topic, 1)
        yield opened
    finally:
        opened.close()


def test_a_copy_whose_opening_meets_no_broker_is_opened_later(tmp_path: Path, log: _AwayLog) -> None:
    log.is_away = True
    with _copy(tmp_path, log) as copy:
        awaited(lambda: not copy.is_open() and log.asked > 2)
        assert not copy.hosts.are_open
        log.is_away = False
        awaited(copy.is_open)
        assert copy.hosts.are_open


class _NoRoom(NoFetcher):
    """There is a donor, and no fetch succeeds. ended: how many have."""

    ended = 0
    why = "the disk has {} bytes left"

    def donors(self, task: TaskKey) -> Donors:
        return Donors((Donor(CopyName("n2", 0), 9),))

    def look(self, task: TaskKey) -> FetchEnd:
        self.ended += 1
        return FetchEnd(self.why.format(self.ended))


def test_data_that_cannot_be_had_is_logged_once_for_each_cause(
    tmp_path: Path, log: _AwayLog, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(unit_hosts, "_UNSERVED_S", 0.02)
    monkeypatch.setattr(source, "PAUSES_S", (0.01, 0.01, 0.01))
    fetcher, log.begins = _NoRoom(), 1

    def said() -> list[str]:
        return [each.getMessage() for each in caplog.records if each.levelno >= logging.WARNING]

    with _copy(tmp_path, log, fetcher) as copy:
        awaited(lambda: not copy.is_open() and fetcher.ended > 10)
        first, why = said(), "there is no data, and the log begins at offset 1"
        assert [each.partition("the disk has")[0] for each in first] == [
            "s/k/0: its data could not be fetched: ",
            f"s/k/0 is stopped: {copy.place.folder}: {why}. Another node's data could not be fetched: ",
        ]
        fetcher.why = "no donor has given it: n2/0: it has answered {}"
        awaited(lambda: not copy.is_open() and fetcher.ended > 20)
        assert len(said()) == 4
        log.begins = 0
        awaited(lambda: copy.is_open())


def test_a_topic_that_is_missing_for_a_moment_stops_no_task(tmp_path: Path, log: _AwayLog) -> None:
    """A broker that has just started may not know all topics yet."""
    log.is_missing = True
    with _copy(tmp_path, log) as copy:
        awaited(lambda: not copy.is_open() and log.asked > 2)
        log.is_missing = False
        awaited(copy.is_open)


def test_one_that_stays_missing_does(tmp_path: Path, log: _AwayLog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unit_hosts, "GONE_S", 1.0)
    log.is_missing = True
    with _copy(tmp_path, log) as copy:
        host = copy.hosts.by_key[_KEY]
        awaited(lambda: copy.hosts.advance() or host.failure is not None)
        assert log.asked > 2
        assert host.replaced == ""


def test_a_task_takes_records_only_once_its_change_is_over(
    tmp_path: Path, log: _AwayLog, caplog: pytest.LogCaptureFixture
) -> None:
    """The loop gives records to whatever runs: another thread would have the task at the same time."""
    _, history = _with_history(log)
    ran: list[bool] = []

    class Noting(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if "begins anew behind history" in record.getMessage():
                ran.append(host.is_running)

    noting, logger = Noting(), logging.getLogger("railgun.unit")
    with caplog.at_level(logging.INFO, "railgun.unit"), _copy(tmp_path, log) as copy:
        awaited(copy.is_open)
        history(copy.place.history)
        host = copy.hosts.by_key[_KEY]
        logger.addHandler(noting)
        try:
            copy.hosts.run_isolated(host, partial(host.take, log.read(*_WHERE, 0, 64, 1 << 20)))
            awaited(copy.is_open)
        finally:
            logger.removeHandler(noting)
        assert ran == [False]


def test_a_folder_that_was_being_deleted_for_history_at_a_crash_is_opened_again(
    tmp_path: Path, log: _AwayLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    events, history = _with_history(log)

    def cut_off(path: Path, *_: object, **__: object) -> None:
        if Path(path).exists():
            for file in (Path(path) / "state").glob("[!C]*"):
                file.unlink()
            raise KeyboardInterrupt

    with _copy(tmp_path, log) as copy:
        awaited(copy.is_open)
        history(copy.place.history)
        host = copy.hosts.by_key[_KEY]
        host.take(log.read(*_WHERE, 0, 64, 1 << 20))
        with monkeypatch.context() as patch:
            patch.setattr(shutil, "rmtree", cut_off)
            with pytest.raises(KeyboardInterrupt):
                host.change()
        host.open()
        host.take(log.read(*_WHERE, host.position, 64, 1 << 20))
        host.change()
        host.take(log.read(*_WHERE, host.position, 64, 1 << 20))
        assert host.task.history == "h1"
        assert sum(len(rows.seq) for rows in host.task.reservoir.scan()) == len(events)
        assert not copy.place.folder.with_name("task.gone").exists()


def test_nor_does_it_end_the_unit_where_a_copy_begins_anew_behind_history(
    tmp_path: Path, log: _AwayLog
) -> None:
    events, history = _with_history(log)
    with _copy(tmp_path, log) as copy:
        awaited(copy.is_open)
        history(copy.place.history)
        host = copy.hosts.by_key[_KEY]
        fetched = log.read(*_WHERE, 0, 64, 1 << 20)
        log.is_away = True
        copy.hosts.run_isolated(host, partial(host.take, fetched))
        awaited(lambda: not copy.is_open() and log.asked > 2)
        assert not copy.hosts.are_open
        assert host.failure is None
        log.is_away = False
        awaited(copy.is_open)
        host.take(log.read(*_WHERE, host.position, 64, 1 << 20))
        assert host.position == 5
        assert host.task.history == "h1"
        assert sum(len(rows.seq) for rows in host.task.reservoir.scan()) == len(events)


def _with_history(log: _AwayLog) -> tuple[list[bytes], Callable[[Path], None]]:
    """Write definitions, the order of a history and the events after it to the log. Returns all events, and what
    builds the history in a folder.
    """
    small = SmallLog(_DEFINITIONS)
    events = [small.records[small.event(f"e{number}", 1_000 * number)] for number in range(6)]
    added = encode_control(change_to_json(AddHistory(3, "s", "h1", 4_000)))
    log.append(*_WHERE, [*small.records[:2], added, *events[4:]])
    return events, lambda folder: _build(folder, small, events[:4])


def _build(folder: Path, small: SmallLog, history: list[bytes]) -> None:
    """Build the task's history of some events."""
    metrics = [AddMetric(2, metric) for metric in parse_definitions(_DEFINITIONS).metrics]
    plan = HistoryPlan(
        history="h1",
        key=IDENTITY.key,
        created=1,
        schemas={1: small.stream},
        metrics=metrics,
        last_place=2,
        cut_ms=4_000,
        chunk_events=SMALL.chunk_events,
        segment_bytes=SMALL.segment_bytes,
    )
    folder.mkdir(parents=True)
    build = HistoryBuild(folder, plan, "k", 0, SMALL)
    build.take(Records.of(history))
    build.finish()
