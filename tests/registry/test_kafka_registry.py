"""The catalogue on a real broker: one order of changes, told to every task, finished by successors."""

import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any

import pytest

from railgun.catalog.catalog import Catalog
from railgun.catalog.changes import Change, DropStream
from railgun.catalog.definitions import parse_definitions
from railgun.catalog.task_key import TaskKey
from railgun.catalog.version import CATALOG_VERSION
from railgun.messaging.errors import TransportRefusedError, TransportUnavailableError, WriterFencedError
from railgun.messaging.kafka.settings import KafkaSettings
from railgun.messaging.kafka.sole_writer import KafkaSoleWriter
from railgun.messaging.kafka.transport import KafkaTransport
from railgun.messaging.transport import TopicPartition, TopicSettings
from railgun.registry import kafka_registry
from railgun.registry.cancellation import CancellationToken
from railgun.registry.errors import (
    CatalogDamagedError,
    CatalogVersionError,
    ChangeWithdrawnError,
    DefinitionsError,
    DifferentDefinitionsError,
    TopicGoneError,
    UnknownNameError,
)
from railgun.registry.evolution import changed_stream, dropped_metric, dropped_stream, missing, new_metrics
from railgun.registry.follower import Snapshot
from railgun.registry.kafka_registry import KafkaRegistry, Request
from railgun.registry.origin import Origin
from railgun.registry.task_topics import task_logs
from railgun.registry.telling import Telling
from railgun.registry.topics import Topics
from railgun.wire.control_records import decode_control
from tests.broker.own_topics import own_prefix
from tests.forked import Forked

_STREAM = """
[streams.s]
id = "id"
partitioners = ["card", "*"]
partitions = 2
[streams.s.fields]
id = "string"
card = "string"
"""
_METRIC = "SELECT count(*) AS {} FROM s GROUP BY card OVER SLIDING 1 SECOND"


@pytest.fixture
def prefix() -> str:
    """A cluster of its own on the broker that all tests share."""
    return own_prefix("r")


@pytest.fixture
def opened(kafka: str, prefix: str) -> Iterator[Callable[..., KafkaRegistry]]:
    """Opens registries of one cluster, each as a process of its own would."""
    with ExitStack() as stack:
        yield lambda **settings: stack.enter_context(
            KafkaRegistry(KafkaSettings(kafka, pass_through={"fetch.wait.max.ms": 10}), prefix, **settings)
        )


def create(definitions: str = _STREAM) -> Request:
    return lambda catalog: missing(catalog, parse_definitions(definitions))


def add(name: str) -> Request:
    return lambda catalog: new_metrics(catalog, "s", _METRIC.format(name))


def drop(catalog: Catalog) -> Sequence[Change]:
    return [dropped_stream(catalog, "s")]


def controls(kafka: str, where: TopicPartition) -> list[dict[str, Any]]:
    """What a task is told."""
    found: list[dict[str, Any]] = []
    with KafkaTransport(KafkaSettings(kafka, pass_through={"fetch.wait.max.ms": 10})) as transport:
        offset, end = 0, transport.end_offset(*where)
        while offset < end:
            fetched = transport.read(*where, offset, 1_000, 1 << 20)
            found += map(decode_control, fetched.values())
            offset = fetched.next_offset
    return found


def places(told: Sequence[dict[str, Any]]) -> list[int]:
    """Of what is told for the first time: tasks skip what they know."""
    new: list[int] = []
    for each in told:
        if not new or each["place"] > new[-1]:
            new.append(each["place"])
    return new


def awaited(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_what_one_changes_all_see_and_all_tasks_are_told(
    kafka: str, prefix: str, opened: Callable[..., KafkaRegistry]
) -> None:
    one, other = opened(), opened()
    seen: list[Snapshot] = []
    other.follow(seen.append)
    assert [each.catalog.last_place for each in seen] == [0]
    one.change(create())
    made = one.change(add("a"))
    assert [each.place for each in made] == [2]
    assert one.change(create()) == []
    awaited(lambda: seen[-1].catalog.last_place == 2)
    assert list(seen[-1].catalog.streams["s"].metrics) == ["a"]
    assert seen[-1].keys == one.snapshot().keys == other.snapshot().keys
    assert len(seen[-1].keys["s"]) == 16
    assert seen[-1].pending == ()
    partitions = task_logs(Topics(prefix), seen[-1].catalog.streams["s"].stream)
    assert len(partitions) == 3
    for where in partitions:
        # On a busy machine the other one may have finished what looked left: tasks skip what they know.
        assert list(dict.fromkeys(each["kind"] for each in controls(kafka, where))) == ["stream", "add"]


def test_all_see_who_changed_what(opened: Callable[..., KafkaRegistry]) -> None:
    one, other = opened(now=lambda: 1_700_000_000.5), opened()
    one.change(create(), origin=Origin("deploy", "192.0.2.7"))
    one.change(add("a"))
    # What changes nothing is not in it.
    one.change(create(), origin=Origin("another", "192.0.2.8"))
    found = other.log(10)
    assert [(each.place, each.at_ms, each.who, each.from_) for each in found] == [
        (2, 1_700_000_000_500, None, None),
        (1, 1_700_000_000_500, "deploy", "192.0.2.7"),
    ]
    assert [(each.stream, each.name, each.what) for each in found] == [
        ("s", "a", _METRIC.format("a")),
        ("s", None, "created with 2 fields"),
    ]
    assert [each.place for each in other.log(10, before=2)] == [1]


def test_conflicts_are_the_errors_of_the_engine(opened: Callable[..., KafkaRegistry]) -> None:
    registry = opened()
    registry.change(create())
    registry.change(add("a"))
    with pytest.raises(DifferentDefinitionsError, match="lateness"):
        registry.change(create(_STREAM.replace('id = "id"\n', 'id = "id"\nlateness = "9s"\n')))
    with pytest.raises(DefinitionsError, match="has a metric a already"):
        registry.change(add("a"))
    registry.change(drop)
    with pytest.raises(UnknownNameError):
        registry.change(add("b"))
    assert registry.snapshot().catalog.last_place == 3


def _writer(kafka: str, prefix: str, name: str, count: int) -> Forked:
    words = [kafka, prefix, name, str(count)]
    return Forked("tests.registry.registry_writer", words, stdout=subprocess.PIPE, text=True)


@pytest.mark.timeout(300)
def test_three_writers_at_once_one_of_them_killed(
    kafka: str, prefix: str, opened: Callable[..., KafkaRegistry]
) -> None:
    registry = opened()
    registry.change(create())
    writers = [_writer(kafka, prefix, name, 20) for name in ("a", "b", "c")]
    try:
        outputs = [writer.stdout for writer in writers]
        assert outputs[0] is not None
        said = [outputs[0].readline() for _ in range(8)]
        writers[0].kill()
        said += outputs[0].readlines()
        done = {f"a_{line.strip()}" for line in said if line.endswith("\n") and line != "ready\n"}
        for writer in writers[1:]:
            assert writer.wait(240) == 0
    finally:
        for writer in writers:
            writer.kill()
            writer.communicate()
    registry.change(add("last"))
    snapshot = registry.snapshot()
    assert snapshot.pending == ()
    metrics = snapshot.catalog.streams["s"].metrics
    assert {f"{name}_{number}" for name in "bc" for number in range(20)} | done <= set(metrics)
    # What the killed one had begun is whole.
    assert len([name for name in metrics if name.startswith("a_")]) <= len(done) + 1
    everything = [1, *(each.place for each in metrics.values())]
    for where in task_logs(Topics(prefix), snapshot.catalog.streams["s"].stream):
        assert places(controls(kafka, where)) == everything == list(range(1, len(everything) + 1))


def test_a_successor_finishes_what_was_begun(
    kafka: str, prefix: str, opened: Callable[..., KafkaRegistry], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = opened()
    first.change(create())

    class CutError(Exception):
        pass

    def cut(*_: object) -> None:
        raise CutError

    with monkeypatch.context() as patch:
        patch.setattr(Telling, "tell", cut)
        with pytest.raises(CutError):
            first.change(add("a"))
    second = opened()
    snapshot = second.snapshot()
    assert [each.place for each in snapshot.pending] == [2]
    assert "a" not in snapshot.catalog.streams["s"].metrics
    second.change(add("b"))
    assert list(second.snapshot().catalog.streams["s"].metrics) == ["a", "b"]
    for where in task_logs(Topics(prefix), snapshot.catalog.streams["s"].stream):
        assert places(controls(kafka, where)) == [1, 2, 3]


def test_what_its_author_left_behind_is_finished_by_whoever_follows(
    opened: Callable[..., KafkaRegistry], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = opened()
    first.change(create())

    def cut(*_: object) -> None:
        raise TransportUnavailableError("t", "it does not answer", "Try again")

    cancellation = CancellationToken()
    with monkeypatch.context() as patch:
        patch.setattr(Telling, "tell", cut)
        with pytest.raises(TransportUnavailableError):
            first.change(add("a"), cancellation)
    assert cancellation.has_begun
    assert not cancellation.withdraw()
    monkeypatch.setattr(kafka_registry, "LEFT_BEHIND_S", 0.5)
    seen: list[list[str]] = []
    opened().follow(lambda snapshot: seen.append(list(snapshot.catalog.streams["s"].metrics)))
    deadline = time.monotonic() + 60
    while seen[-1] != ["a"]:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_what_was_taken_back_before_it_began_never_takes_effect(opened: Callable[..., KafkaRegistry]) -> None:
    registry, cancellation = opened(), CancellationToken()
    registry.change(create())

    def taken_back(catalog: Catalog) -> Sequence[Change]:
        assert cancellation.withdraw()
        return new_metrics(catalog, "s", _METRIC.format("a"))

    with pytest.raises(ChangeWithdrawnError):
        registry.change(taken_back, cancellation)
    assert not cancellation.has_begun
    assert not registry.snapshot().catalog.streams["s"].metrics


def test_whoever_is_shut_out_in_the_middle_makes_its_change_once(
    opened: Callable[..., KafkaRegistry], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = opened(), opened()
    first.change(create())
    tell = Telling.tell
    cuts = iter([True])

    def overtaken(self: Telling, *arguments: Any) -> None:
        if next(cuts, False):
            other = threading.Thread(target=second.change, args=[add("b")])
            other.start()
            other.join()
        tell(self, *arguments)

    monkeypatch.setattr(Telling, "tell", overtaken)
    made = first.change(add("a"))
    assert [each.place for each in made] == [2]
    assert list(first.snapshot().catalog.streams["s"].metrics) == ["a", "b"]


def test_a_dropped_streams_topics_go_after_a_while(
    kafka: str, prefix: str, opened: Callable[..., KafkaRegistry]
) -> None:
    now = [1000.0]
    registry = opened(drop_grace_s=60, now=lambda: now[0])
    registry.change(create())
    topics = Topics(prefix).of_tasks(registry.snapshot().catalog.streams["s"].stream)
    partition = TopicPartition(next(iter(topics)), 0)
    registry.change(drop)
    with KafkaTransport(KafkaSettings(kafka)) as transport:
        assert set(topics) <= set(transport.topics())
        assert [each["kind"] for each in controls(kafka, partition)] == ["stream", DropStream.kind]
        registry.close()
        # Whoever follows does it when it is time; nobody has to ask for anything.
        now[0] += 61
        successor = opened(now=lambda: now[0])
        successor.follow(lambda _: None)
        awaited(lambda: not set(topics) & set(transport.topics()))


def test_a_stream_of_the_same_name_begins_with_empty_logs(
    kafka: str, prefix: str, opened: Callable[..., KafkaRegistry]
) -> None:
    registry = opened()
    registry.change(create())
    key = registry.snapshot().keys["s"]
    registry.change(drop)
    registry.change(create())
    assert registry.snapshot().keys["s"] != key
    where = TopicPartition(Topics(prefix).tasks("s", "*"), 0)
    assert [(each["kind"], each["place"]) for each in controls(kafka, where)] == [("stream", 3)]


def test_topics_of_somebody_else_are_left_alone(
    kafka: str, prefix: str, opened: Callable[..., KafkaRegistry]
) -> None:
    registry = opened()
    topic = Topics(prefix).tasks("s", "*")
    with KafkaTransport(KafkaSettings(kafka)) as transport:
        transport.create_topic(topic, 1)
        transport.append(topic, 0, [b"something"])
    with pytest.raises(DefinitionsError, match=topic):
        registry.change(create())
    assert registry.snapshot().catalog.last_place == 0


def test_a_topic_that_is_gone_is_not_made_anew(
    kafka: str, prefix: str, opened: Callable[..., KafkaRegistry]
) -> None:
    registry, topics = opened(), Topics(prefix)
    registry.change(create())
    gone = topics.tasks("s", "card")
    with KafkaTransport(KafkaSettings(kafka)) as transport:
        transport.delete_topic(gone)
        with pytest.raises(DefinitionsError, match=rf"{gone} is gone.*accept-cut s/card/N") as raised:
            registry.change(add("a"))
        assert "nothing was changed" in str(raised.value)
        assert registry.snapshot().begun.last_place == 1
        assert gone not in transport.topics()
        # Others can be changed, and the stream itself can be dropped.
        registry.change(create(_STREAM.replace("streams.s", "streams.other")))
        registry.change(drop)
        assert gone not in transport.topics()
        assert controls(kafka, TopicPartition(topics.tasks("s", "*"), 0))[-1]["kind"] == DropStream.kind
        registry.change(create())
        assert controls(kafka, TopicPartition(gone, 0))[0]["place"] == 4


def test_a_new_streams_topics_are_made_by_whoever_finishes_it(
    kafka: str, prefix: str, opened: Callable[..., KafkaRegistry], monkeypatch: pytest.MonkeyPatch
) -> None:
    def cut(*_: object) -> None:
        raise TransportUnavailableError("t", "it does not answer", "Try again")

    with monkeypatch.context() as patch:
        patch.setattr(Telling, "tell", cut)
        with pytest.raises(TransportUnavailableError):
            opened().change(create(f'{_STREAM}\n[[metrics]]\nsql = "{_METRIC.format("a")}"'))
    second = opened()
    second.change(add("b"))
    for where in task_logs(Topics(prefix), second.snapshot().catalog.streams["s"].stream):
        assert places(controls(kafka, where)) == [1, 2, 3]


def test_a_topic_that_goes_before_a_change_is_told_is_waited_for(
    kafka: str, prefix: str, opened: Callable[..., KafkaRegistry], monkeypatch: pytest.MonkeyPatch
) -> None:
    registry, gone = opened(), Topics(prefix).tasks("s", "card")
    registry.change(create())
    begin = KafkaRegistry._begin

    def deleted(self: KafkaRegistry, *arguments: Any) -> None:
        begin(self, *arguments)
        transport.delete_topic(gone)

    with KafkaTransport(KafkaSettings(kafka)) as transport:
        with monkeypatch.context() as patch:
            patch.setattr(KafkaRegistry, "_begin", deleted)
            with pytest.raises(TopicGoneError, match="is gone"):
                registry.change(add("a"))
        follower = registry.follow(lambda _: None)
        with pytest.raises(TopicGoneError, match="is gone"):
            registry.change(())
        assert follower.error is None
        transport.create_topic(gone, 2)
    registry.change(())
    assert places(controls(kafka, TopicPartition(gone, 1))) == [2]


def test_a_task_is_told_the_definitions_in_force(
    kafka: str, prefix: str, opened: Callable[..., KafkaRegistry]
) -> None:
    registry, topics = opened(log_retention_ms=3_600_000), Topics(prefix)
    registry.change(create())
    for name in "abc":
        registry.change(add(name))
    registry.change(lambda catalog: [dropped_metric(catalog, "s", "b")])
    registry.change(create(_STREAM.replace("streams.s", "streams.other")))
    task = TaskKey("s", 1, "card", 1)
    where = TopicPartition(topics.tasks("s", "card"), 1)
    with KafkaTransport(KafkaSettings(kafka)) as transport:
        transport.delete_topic(where.topic)
        registry.make_task_topic(task)
        assert transport.topics()[where.topic] == 2
        assert registry.tell_anew(task) == 0
        assert [(each["kind"], each["place"]) for each in controls(kafka, where)] == [
            ("stream", 1),
            ("add", 2),
            ("add", 4),
        ]
        assert not controls(kafka, TopicPartition(where.topic, 0)), "that is another task's"
        registry.make_task_topic(task)
    assert registry.tell_anew(task) == 3
    for unknown in (TaskKey("s", 2, "card", 1), TaskKey("t", 1, "card", 1)):
        with pytest.raises(UnknownNameError):
            registry.tell_anew(unknown)


def test_a_change_that_begins_meanwhile_is_among_the_definitions(
    kafka: str, prefix: str, opened: Callable[..., KafkaRegistry], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The task may be told of it before the definitions, where it does not begin."""
    first, second = opened(), opened()
    first.change(create())
    tell, changed = Telling.tell_one, iter([True])

    def overtaken(self: Telling, *arguments: Any) -> int:
        if next(changed, False):
            second.change(add("a"))
        return tell(self, *arguments)

    monkeypatch.setattr(Telling, "tell_one", overtaken)
    begin = first.tell_anew(TaskKey("s", 1, "card", 1))
    told = controls(kafka, TopicPartition(Topics(prefix).tasks("s", "card"), 1))
    assert [each["place"] for each in told[begin:]] == [1, 2]
    assert begin > 1


@pytest.mark.parametrize(
    ("entry", "error"),
    [
        (b"{", CatalogDamagedError),
        (b'{"version": 1}', CatalogDamagedError),
        (b'{"version": 1, "change": {"kind": "drop_stream", "place": 1, "name": "s"}}', CatalogDamagedError),
        (b'{"version": %d}' % (CATALOG_VERSION + 1), CatalogVersionError),
    ],
)
def test_entries_that_cannot_be_read(kafka: str, prefix: str, entry: bytes, error: type[Exception]) -> None:
    topic = Topics(prefix).catalog
    with KafkaTransport(KafkaSettings(kafka)) as transport:
        transport.create_topic(topic, 1, TopicSettings(is_compacted=True))
        with KafkaSoleWriter(KafkaSettings(kafka), topic) as writer:
            writer.append(TopicPartition(topic, 0), [(b"1", entry)])
        awaited(lambda: transport.end_offset(topic, 0) > 0)
    with pytest.raises(error, match="offset 0"):
        KafkaRegistry(KafkaSettings(kafka), prefix)


def test_logs_are_kept_as_the_stream_says_or_the_setting(
    kafka: str, prefix: str, opened: Callable[..., KafkaRegistry]
) -> None:
    """What tasks are told does not have it: it is the broker's affair."""
    registry = opened(log_retention_ms=7_200_000)
    other = opened()
    stated = _STREAM.replace("[streams.s]", '[streams.t]\nlog_retention = "7d"').replace(
        "streams.s", "streams.t"
    )
    registry.change(create())
    registry.change(create(stated))
    names = Topics(prefix)

    def kept() -> list[int | None]:
        with KafkaTransport(KafkaSettings(kafka)) as transport:
            topics = [names.tasks(stream, by) for stream in "st" for by in ("card", "*")]
            found = transport.retentions(topics)
            return [found[topic] for topic in topics]

    assert kept() == [7_200_000, 7_200_000, 604_800_000, 604_800_000]
    # Whichever process changes it, with whatever setting of its own.
    other.change(lambda catalog: changed_stream(catalog, "s", {"log_retention": "2d"}))
    other.change(lambda catalog: changed_stream(catalog, "t", {"log_retention": "forever"}))
    assert kept() == [172_800_000, 172_800_000, None, None]
    assert other.change(lambda catalog: changed_stream(catalog, "s", {"log_retention": "2d"})) == []
    other.change(lambda catalog: changed_stream(catalog, "s", {"lateness": "9s"}))
    assert kept() == [172_800_000, 172_800_000, None, None]
    assert registry.snapshot().catalog.entry("s").stream.log_retention_ms == 172_800_000
    # A null takes it back: the setting of whichever process is asked counts.
    registry.change(lambda catalog: changed_stream(catalog, "s", {"log_retention": None}))
    assert kept() == [7_200_000, 7_200_000, None, None]
    assert other.snapshot().catalog.entry("s").stream.log_retention_ms is None
    told = controls(kafka, TopicPartition(names.tasks("s", "card"), 0))
    assert [each["kind"] for each in told] == ["stream"] * 4
    assert not any("log_retention" in each["stream"] for each in told)


def test_a_broker_that_refuses_how_long_logs_are_kept_changes_nothing(
    kafka: str, prefix: str, opened: Callable[..., KafkaRegistry], monkeypatch: pytest.MonkeyPatch
) -> None:
    registry = opened()
    registry.change(create())

    def refuse(*_: object) -> None:
        raise TransportRefusedError(
            "topic", "Topic authorization failed", "Give this user the right AlterConfigs"
        )

    monkeypatch.setattr(KafkaTransport, "set_retention", refuse)
    with pytest.raises(TransportRefusedError, match="AlterConfigs"):
        registry.change(lambda catalog: changed_stream(catalog, "s", {"log_retention": "2d"}))
    assert registry.snapshot().begun.entry("s").stream.log_retention_ms is None
    registry.change(lambda catalog: changed_stream(catalog, "s", {"lateness": "9s"}))


def test_of_two_writers_of_one_name_the_later_one_writes(kafka: str, prefix: str) -> None:
    settings = KafkaSettings(kafka)
    where = TopicPartition(prefix, 0)
    with KafkaTransport(settings) as transport:
        transport.create_topic(prefix, 1)
        with KafkaSoleWriter(settings, prefix) as first:
            first.append(where, [(b"k", b"1"), (b"k", b"2")])
            with KafkaSoleWriter(settings, prefix) as second:
                with pytest.raises(WriterFencedError):
                    first.append(where, [(b"k", b"lost")])
                second.append(where, [(b"k", b"3")])
        values: list[bytes] = []
        offset = 0
        while len(values) < 3:
            fetched = transport.read(*where, offset, 100, 1 << 20)
            values += fetched.values()
            offset = fetched.next_offset
    assert values == [b"1", b"2", b"3"]


def test_changes_go_on_while_starts_of_topics_are_looked_up(opened: Callable[..., KafkaRegistry]) -> None:
    """A leader may take long to answer."""
    registry = opened()
    registry.change(create())
    created = registry.snapshot().catalog.streams["s"].created

    def starts(topic: str) -> list[int]:
        changing = threading.Thread(target=registry.change, args=(add("n"),), daemon=True)
        changing.start()
        changing.join(20.0)
        assert not changing.is_alive()
        return [4, 5]

    (found,) = registry.number_topics(created, [("t", "id-1")], starts)
    assert (found.name, found.starts, found.is_remade) == ("t", (4, 5), False)
    assert "n" in registry.snapshot().catalog.streams["s"].metrics
    assert opened().number_topics(created, [("t", "id-1")], pytest.fail) == [found]


def test_topics_of_a_stream_that_is_made_anew_begin_by_its_start(
    opened: Callable[..., KafkaRegistry],
) -> None:
    """What its group has committed is of the stream before."""
    registry = opened(drop_grace_s=0.0)
    other = _STREAM.replace("streams.s", "streams.other")
    registry.change(create(_STREAM + other))

    def numbered(stream: str, *topics: tuple[str, str]) -> list[tuple[str, tuple[int, ...], bool]]:
        created = registry.snapshot().catalog.streams[stream].created
        found = opened().number_topics(created, topics, lambda topic: [len(topic)])
        return [(each.name, each.starts, each.is_remade) for each in found]

    assert numbered("s", ("t", "id-1")) == [("t", (1,), False)]
    assert numbered("s", ("t", "id-2")) == [("t", (), True)]
    registry.change(drop)
    registry.change(create())
    assert numbered("s", ("t", "id-2"), ("new", "id-3")) == [("t", (1,), True), ("new", (3,), False)]
    assert numbered("other", ("t", "id-2")) == [("t", (1,), False)]
