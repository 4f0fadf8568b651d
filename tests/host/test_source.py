"""Where a copy's data comes from: its own folder, another node, or the log from its beginning."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from railgun.catalog.task_key import TaskKey
from railgun.cluster.copies import CopyName, Cut
from railgun.cluster.donors import Donor, Donors
from railgun.host.data_folder import fetching_folder
from railgun.host.fetcher import FetchEnd, FetchOrder, FetchRule
from railgun.host.log_ids import LogIds
from railgun.host.place import Place
from railgun.host.source import MOST_FETCHES, PAUSES_S, DataSource
from railgun.host.stored_meta import has_state
from railgun.host.task_log import TaskLog
from railgun.messaging.embedded.log import Durability, EmbeddedLog
from railgun.messaging.transport import TopicPartition
from railgun.task.environment import TaskEnvironment
from railgun.task.errors import DataDamagedError, LogGapError, LogReplacedError
from railgun.task.settings import TaskSettings
from tests.host.fetched_folder import mark_verified
from tests.task.small_log import IDENTITY, SmallLog
from tests.unit.local_units import SMALL
from tests.unit.test_unit_hosts import _DEFINITIONS

_WHERE = TopicPartition("t", 0)
_DONOR = CopyName("there", 0)
_RECORDS, _FEW, _MANY = 42, 5, 1_000
_WAIT_S = 100.0


def _no_replies(before_offset: int) -> None:
    """None is owed."""


@dataclass
class _Copy:
    log: EmbeddedLog
    place: Place
    now_s: float = 0.0
    settings: TaskSettings = SMALL

    def source(self, after_records: int = _MANY) -> DataSource:
        log = TaskLog(self.log, _WHERE, TaskEnvironment(now=lambda: self.now_s))
        return DataSource(self.place, log, self.settings, FetchRule(after_records, _WAIT_S))

    def opened(self, source: DataSource, donors: Donors | None, needed: int = 0) -> int | None:
        """The position of the task; None if it is to be fetched."""
        task = source.open(donors, _no_replies, needed)
        if task is None:
            return None
        position = task.position
        task.close()
        return position

    def processed(self, end: int, folder: Path | None = None) -> None:
        """Process the log up to an offset, take a checkpoint, and move the folder elsewhere."""
        task = self.source().open(None, _no_replies)
        assert task is not None
        fetched = self.log.read(*_WHERE, task.position, end - task.position, 1 << 20)
        task.process(fetched.records, task.position, lambda replies: None)
        task.checkpoints.take()
        task.close()
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
            self.place.folder.rename(folder)


@pytest.fixture
def copy(tmp_path: Path) -> Iterator[_Copy]:
    log = EmbeddedLog(tmp_path / "log", Durability.OS)
    try:
        log.create_topic(_WHERE.topic, 1)
        small = SmallLog(_DEFINITIONS)
        events = [small.records[small.event(f"e{number}", 1_000 * number)] for number in range(40)]
        log.append(*_WHERE, [*small.records[:2], *events])
        key = TaskKey("s", 1, "k", 0)
        yield _Copy(log, Place(key, IDENTITY, _WHERE, tmp_path / "k" / "0", tmp_path / "ready"))
    finally:
        log.close()


def _donors(*positions: int, may_come: bool = False) -> Donors:
    return Donors(tuple(Donor(_DONOR, position) for position in positions), may_come)


def test_the_own_folder_comes_first(copy: _Copy) -> None:
    copy.processed(20)
    assert copy.opened(copy.source(), _donors(40)) == 20


def test_one_that_lacks_much_is_fetched_if_anybody_gives_it(copy: _Copy) -> None:
    copy.processed(20)
    source = copy.source(_FEW)
    assert copy.opened(source, _donors(40)) is None
    assert source.order == FetchOrder((_DONOR,), "", 20), "older data than the own is of no use"
    assert copy.opened(copy.source(_FEW), _donors(may_come=True)) == 20


@pytest.mark.parametrize("position", [10, 20, 25])
def test_what_no_copy_has_processed_is_no_reason_to_fetch(copy: _Copy, position: int) -> None:
    """All copies are as far behind their log."""
    copy.processed(20)
    assert copy.opened(copy.source(_FEW), _donors(position)) == 20


def test_nor_does_a_copy_without_data_wait_then(copy: _Copy) -> None:
    assert copy.opened(copy.source(_FEW), _donors(_FEW, may_come=True)) == 0


def test_only_donors_that_are_far_ahead_are_asked(copy: _Copy) -> None:
    copy.processed(20)
    source, ahead = copy.source(_FEW), Donor(CopyName("ahead", 0), 40)
    assert copy.opened(source, Donors((Donor(_DONOR, 25), ahead))) is None
    assert source.order is not None
    assert source.order.donors == (ahead.copy,)


def test_data_that_will_not_do_is_fetched_however_little_is_missing(copy: _Copy) -> None:
    copy.processed(20)
    source = copy.source()
    for donors in (_donors(), _donors(20)):
        assert copy.opened(source, donors, needed=21) == 20
    assert copy.opened(source, _donors(20, 21), needed=21) is None
    assert source.order == FetchOrder((_DONOR,), "", 21)
    source.note(FetchEnd("nobody serves", is_final=True))
    assert copy.opened(source, _donors(21), needed=21) == 20


def test_a_short_log_is_read_from_its_beginning(copy: _Copy) -> None:
    assert copy.opened(copy.source(), _donors(40)) == 0


def test_a_copy_without_data_waits_for_donors_only_while_some_may_come(copy: _Copy) -> None:
    source = copy.source(_FEW)
    assert copy.opened(source, _donors(may_come=True)) is None
    assert source.order is None
    assert not copy.place.folder.exists()
    assert copy.opened(source, _donors()) == 0


def test_if_the_log_has_lost_what_it_needs_it_is_fetched(copy: _Copy) -> None:
    copy.processed(20)
    copy.log.trim(*_WHERE, 30)
    source = copy.source()
    assert copy.opened(source, _donors(25, 35)) is None
    assert source.order == FetchOrder((_DONOR,), "", 30)


def test_nothing_serves(copy: _Copy) -> None:
    copy.log.trim(*_WHERE, 30)
    last = Donor(CopyName("away", 1), 33)
    with pytest.raises(LogGapError, match=r"away/1 had it last, up to offset 33: .* accept-gap s/k/0"):
        copy.source().open(Donors((Donor(_DONOR, 25),), last=last), _no_replies)
    last = Donor(CopyName("old", 1), 33, gives=False)
    with pytest.raises(
        LogGapError, match=r"old/1 has the data, up to offset 33, and runs an earlier release, .*: upgrade"
    ):
        copy.source().open(Donors(last=last), _no_replies)


def test_what_was_fetched_is_opened_and_not_fetched_again(copy: _Copy) -> None:
    fetching = fetching_folder(copy.place.folder)
    copy.processed(20, fetching)
    source = copy.source(_FEW)
    assert copy.opened(source, _donors(40)) is None
    mark_verified(fetching)
    assert copy.opened(source, _donors(40)) == 20


@pytest.mark.parametrize(("fetched", "own", "position"), [(10, 20, 20), (20, 20, 20), (30, 20, 30)])
def test_of_what_an_earlier_start_has_left_and_the_own_the_newer_is_kept(
    copy: _Copy, fetched: int, own: int, position: int
) -> None:
    """The transfer process may have finished it after the copy had gone on from its own data."""
    fetching = fetching_folder(copy.place.folder)
    copy.processed(fetched, fetching)
    copy.processed(own)
    mark_verified(fetching)
    assert copy.opened(copy.source(), _donors()) == position
    assert fetching.exists() is (position != fetched or fetched == own)


def test_own_data_that_is_damaged_is_not_replaced_by_what_an_earlier_start_has_left(copy: _Copy) -> None:
    fetching = fetching_folder(copy.place.folder)
    copy.processed(30, fetching)
    copy.processed(20)
    mark_verified(fetching)
    (copy.place.folder / "state" / "end.mark").write_bytes(b"x" * 1_024)
    with pytest.raises(DataDamagedError):
        copy.source().open(_donors(), _no_replies)
    assert fetching.exists()
    assert copy.opened(copy.source(), _donors(40)) is None
    assert fetching.exists()


def test_the_older_is_taken_where_the_own_will_not_do(copy: _Copy) -> None:
    fetching, cut = fetching_folder(copy.place.folder), Cut(15, 1)
    copy.processed(10, fetching)
    copy.processed(20)
    mark_verified(fetching)
    copy.log.trim(*_WHERE, 5)
    copy.place = replace(copy.place, cut=cut)
    source = copy.source()
    # Its own data has records that are lost. The transfer process finds that the other data is there already.
    assert copy.opened(source, _donors(12)) is None
    source.note(FetchEnd())
    assert copy.opened(source, _donors(12)) == 10
    # The own data is gone by then, and nothing else is there.
    assert not fetching.exists()


def test_what_the_log_has_overtaken_is_fetched_thrice(copy: _Copy) -> None:
    kept = copy.place.folder.parent / "kept"
    copy.processed(20, kept)
    copy.log.trim(*_WHERE, 30)
    source = copy.source()
    for _ in range(MOST_FETCHES):
        assert copy.opened(source, _donors(40)) is None
        shutil.copytree(kept, fetching_folder(copy.place.folder))
        mark_verified(fetching_folder(copy.place.folder))
        source.note(FetchEnd())
    with pytest.raises(LogGapError, match="log_retention"):
        source.open(_donors(40), _no_replies)


def test_a_copy_without_data_waits_a_while_for_one_that_had_it(copy: _Copy) -> None:
    """Its node starts again, just now."""
    source, away = copy.source(_FEW), Donors(last=Donor(_DONOR, 30))
    for copy.now_s in (5.0, 80.0):
        assert copy.opened(source, away) is None
        assert source.order is None
    assert copy.opened(source, _donors(40)) is None
    assert source.order is not None
    source.note(FetchEnd("it has gone again"))
    for copy.now_s in (90.0, 80.0 + _WAIT_S):
        assert copy.opened(source, away) is None
    copy.now_s = 90.0 + _WAIT_S
    assert copy.opened(source, away) == 0


def test_it_does_not_wait_for_one_whose_data_would_not_do(copy: _Copy) -> None:
    assert copy.opened(copy.source(_FEW), Donors(last=Donor(_DONOR, 30, "another topic"))) == 0
    copy.processed(20)
    assert copy.opened(copy.source(_FEW), Donors(last=Donor(_DONOR, 30))) == 20


def test_an_end_that_is_final_is_not_tried_again(copy: _Copy) -> None:
    copy.processed(20)
    source = copy.source(_FEW)
    assert copy.opened(source, _donors(40)) is None
    assert source.note(FetchEnd("nobody serves", is_final=True)) == 0.0
    assert copy.opened(source, _donors(40)) == 20


def test_after_vain_fetches_it_does_with_what_it_has(copy: _Copy) -> None:
    copy.processed(20)
    source = copy.source(_FEW)
    for pause_s in (*PAUSES_S, 0.0):
        assert copy.opened(source, _donors(40)) is None
        assert source.note(FetchEnd("there is no room")) == pause_s
    # The address of a donor that was started again is known by then.
    assert sum(PAUSES_S) >= 30.0
    assert copy.opened(source, _donors(40)) == 20
    copy.log.trim(*_WHERE, 30)
    with pytest.raises(LogGapError, match="there is no room"):
        source.open(_donors(40), _no_replies)


class _Ids(LogIds):
    """The topic has this id."""

    def __init__(self, topic_id: str) -> None:
        self._topic_id = topic_id

    def of(self, topic: str) -> str:
        return self._topic_id

    ask = of


@pytest.mark.parametrize("has_empty_folder", [False, True])
@pytest.mark.parametrize(
    ("made_of", "cut", "stops"),
    [
        ({"before"}, None, True),
        ({"before", "now"}, Cut(9, 1), True),
        ({"now"}, None, False),
        ({"before"}, Cut(0, -1, "now", 0), False),
        (set(), None, False),
    ],
)
def test_a_copy_without_data_does_not_begin_in_another_topic_than_others_have_data_of(
    copy: _Copy, made_of: set[str], cut: Cut | None, stops: bool, has_empty_folder: bool
) -> None:
    if has_empty_folder:
        begun = copy.source().open(None, _no_replies)
        assert begun is not None
        begun.checkpoints.take()
        begun.close()
    assert has_state(copy.place.folder) is has_empty_folder
    place = replace(copy.place, cut=cut)
    log = TaskLog(copy.log, _WHERE, TaskEnvironment(), ids=_Ids("now"))
    source, donors = (
        DataSource(place, log, SMALL, FetchRule(_MANY, _WAIT_S)),
        Donors(made_of=frozenset(made_of)),
    )
    if stops:
        with pytest.raises(
            LogReplacedError, match=r"id before.* than the one that has its name now"
        ) as raised:
            source.open(donors, _no_replies)
        assert raised.value.topic_id == "before"
        return
    task = source.open(donors, _no_replies)
    assert task is not None
    task.close()
