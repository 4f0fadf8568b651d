"""A unit orders data from its node's transfer process, asks again if it hears nothing, and notes how a fetch ends."""

from pathlib import Path

import pytest

from railgun.catalog.task_key import TaskKey
from railgun.cluster.copies import CopyName
from railgun.cluster.donors import Donors
from railgun.cluster.reports import Fetching
from railgun.host.fetcher import FetchEnd, FetchOrder
from railgun.host.place import Place
from railgun.messaging.transport import TopicPartition
from railgun.node import relay
from railgun.unit.clock import Clock
from railgun.unit.fetching import UnitFetcher
from tests.task.small_log import IDENTITY

_KEY = TaskKey("s", 1, "k", 0)
_NAME = "s.1/k/0"
_ORDER = FetchOrder((CopyName("a", 0), CopyName("b", 1)), "topic", 7)


class _Unit:
    def __init__(self, folder: Path) -> None:
        self.now_s = 0.0
        self.sent: list[relay.Fetch | relay.StopFetch] = []
        self.fetcher = UnitFetcher(lambda key: Donors(), self.sent.append, Clock(lambda: self.now_s))
        place = Place(_KEY, IDENTITY, TopicPartition("t", 0), folder / "0", folder / "ready")
        self.fetcher.begin(place, _ORDER)


@pytest.fixture
def unit(tmp_path: Path) -> _Unit:
    return _Unit(tmp_path)


def test_it_says_from_whom_and_from_where_on(unit: _Unit, tmp_path: Path) -> None:
    [fetch] = unit.sent
    assert isinstance(fetch, relay.Fetch)
    assert (fetch.task, fetch.donors) == (_NAME, [("a", 0), ("b", 1)])
    assert (fetch.topic_id, fetch.log_start, fetch.folder) == ("topic", 7, str(tmp_path / "0"))


def test_the_progress_and_the_end_are_noted(unit: _Unit) -> None:
    assert unit.fetcher.look(_KEY) == Fetching()
    unit.fetcher.hear(relay.Fetching(_NAME, "a/0", hashed=5))
    assert unit.fetcher.look(_KEY) == Fetching(donor="a/0", hashed=5)
    unit.fetcher.hear(relay.Fetching(_NAME, "a/0", 3, 9))
    unit.fetcher.hear(relay.Fetching("other", "b/0", 1, 1))
    assert unit.fetcher.look(_KEY) == Fetching(donor="a/0", fetched=3, total=9)
    unit.fetcher.hear(relay.Fetched(_NAME, "no donor gives it"))
    assert unit.fetcher.look(_KEY) == FetchEnd("no donor gives it")


def test_an_end_with_the_data_is_logged_with_all_that_there_is_to_say(
    unit: _Unit, caplog: pytest.LogCaptureFixture
) -> None:
    unit.now_s = 2.5
    unit.fetcher.hear(relay.Fetched(_NAME, "", 700, "a/0", 90, 10))
    with caplog.at_level("INFO", "railgun.unit"):
        assert unit.fetcher.look(_KEY) == FetchEnd()
    assert caplog.messages == [
        f"{_NAME}: its data up to offset 700 has come from a/0 in 2.5 s: 90 bytes, and 10 were here already"
    ]


def test_it_asks_again_only_if_it_hears_nothing(unit: _Unit) -> None:
    unit.now_s = 9.0
    unit.fetcher.hear(relay.Fetching(_NAME))
    unit.fetcher.look(_KEY)
    unit.now_s = 18.0
    unit.fetcher.look(_KEY)
    assert len(unit.sent) == 1
    unit.now_s = 19.0
    unit.fetcher.look(_KEY)
    assert unit.sent == [unit.sent[0]] * 2


def test_a_process_that_says_nothing_is_given_up_after_a_minute(unit: _Unit) -> None:
    for unit.now_s in range(10, 60, 10):
        assert unit.fetcher.look(_KEY) == Fetching()
    unit.now_s = 60.0
    assert unit.fetcher.look(_KEY) == FetchEnd("the node's transfer process does not answer", is_final=True)
    assert unit.sent == [unit.sent[0]] * 6 + [relay.StopFetch(_NAME)]


def test_not_after_a_minute_in_which_the_unit_itself_stood_still(unit: _Unit) -> None:
    unit.now_s = 100.0
    assert unit.fetcher.look(_KEY) == Fetching()
    for unit.now_s in range(110, 150, 10):
        unit.fetcher.look(_KEY)
    unit.fetcher.hear(relay.Fetching(_NAME))
    for unit.now_s in range(150, 210, 10):
        assert unit.fetcher.look(_KEY) == Fetching()


def test_an_end_may_be_final(unit: _Unit) -> None:
    unit.fetcher.hear(relay.Fetched(_NAME, "nobody serves", is_final=True))
    assert unit.fetcher.look(_KEY) == FetchEnd("nobody serves", is_final=True)


def test_a_fetch_that_was_not_ordered_is_noticed(unit: _Unit) -> None:
    unit.fetcher.hear(relay.Fetching(_NAME))
    unit.fetcher.hear(relay.Fetching("other"))
    assert unit.fetcher.unordered() == {"other"}
    assert unit.fetcher.unordered() == set()
    unit.fetcher.stop(_KEY)
    unit.fetcher.hear(relay.Fetching(_NAME))
    assert unit.fetcher.unordered() == {_NAME}


def test_a_fetch_that_is_stopped_is_taken_back(unit: _Unit) -> None:
    unit.fetcher.stop(_KEY)
    unit.fetcher.hear(relay.Fetched(_NAME))
    assert unit.sent[1:] == [relay.StopFetch(_NAME)]
