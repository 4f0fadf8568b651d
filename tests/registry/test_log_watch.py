"""The broker is asked anew for a log once its stream says otherwise how long it is kept."""

from collections.abc import Mapping

import pytest

from railgun.catalog.catalog import Catalog, missing_changes
from railgun.catalog.definitions import parse_definitions
from railgun.messaging.transport import TopicPartition
from railgun.registry import log_watch
from railgun.registry.evolution import changed_stream, dropped_stream
from railgun.registry.log_watch import LogWatch
from railgun.registry.topics import Topics
from tests.frontend.serving import until

_STREAMS = """
[streams.s]
partitioners = ["k"]
[streams.s.fields]
k = "string"
[streams.t]
partitioners = ["k"]
[streams.t.fields]
k = "string"
"""


class _Broker:
    """A broker that says what its topics are set to, and counts how often each is asked for. away: those of which it
    does not say where they begin.
    """

    def __init__(self, topics: Topics) -> None:
        self.kept: dict[str, int | None] = {topics.tasks(each, "k"): 5 for each in "st"}
        self.asked: dict[str, int] = dict.fromkeys(self.kept, 0)
        self.away: set[str] = set()

    def bounds_of(self, wheres: list[TopicPartition]) -> Mapping[TopicPartition, tuple[int, int]]:
        return {where: (0, 0) for where in wheres if where.topic not in self.away}

    def retentions(self, topics: list[str]) -> Mapping[str, int | None]:
        for each in topics:
            self.asked[each] += 1
        return {each: self.kept[each] for each in topics}


@pytest.fixture
def catalog() -> Catalog:
    catalog = Catalog()
    for change in missing_changes(catalog, parse_definitions(_STREAMS))[0]:
        catalog.apply(change)
    return catalog


def _keep(catalog: Catalog, text: str | None) -> None:
    for change in changed_stream(catalog, "s", {"log_retention": text}):
        catalog.apply(change)


def _kept(watch: LogWatch) -> list[int | None]:
    return [each.retention_ms for each in watch.bounds.values()]


def test_whoever_asks_is_told_of_a_change_at_once_and_the_others_are_not_asked_for(catalog: Catalog) -> None:
    topics = Topics("p")
    broker, (s, t) = _Broker(topics), (topics.tasks(each, "k") for each in "st")
    watch = LogWatch(broker, topics, lambda: catalog)
    assert watch.up_to_date() == watch.up_to_date()
    assert (_kept(watch), broker.asked) == ([5, 5], {s: 1, t: 1})
    for text, kept_ms in (("2h", 7_200_000), (None, 5)):
        _keep(catalog, text)
        broker.kept[s] = kept_ms
        assert [each.retention_ms for each in watch.up_to_date().values()] == [kept_ms, 5]
    assert broker.asked == {s: 3, t: 1}


def test_a_watch_asks_soon_after_a_change_and_again_where_the_broker_is_late(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_watch, "_SOON_S", 0.02)
    monkeypatch.setattr(log_watch, "_SETTLED_S", 5.0)
    topics = Topics("p")
    broker = _Broker(topics)
    s = topics.tasks("s", "k")
    watch = LogWatch(broker, topics, lambda: catalog)
    watch.start()
    try:
        until(lambda: _kept(watch) == [5, 5])
        _keep(catalog, "2h")
        asked = broker.asked[s]
        until(lambda: broker.asked[s] > asked + 1)
        broker.kept[s] = 7_200_000
        until(lambda: _kept(watch) == [7_200_000, 5])
    finally:
        watch.close()


def test_what_is_known_stays_while_the_broker_is_away(catalog: Catalog) -> None:
    topics = Topics("p")
    broker = _Broker(topics)
    watch = LogWatch(broker, topics, lambda: catalog)
    watch.look()
    assert _kept(watch) == [5, 5]
    broker.kept[topics.tasks("t", "k")] = 6
    broker.away.add(topics.tasks("s", "k"))
    watch.look()
    assert _kept(watch) == [5, 6]
    # What is dropped is forgotten.
    catalog.apply(dropped_stream(catalog, "s"))
    watch.look()
    assert _kept(watch) == [6]
