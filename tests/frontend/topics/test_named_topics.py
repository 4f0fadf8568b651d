"""Input topics that somebody else has named: any number of them, shared by streams, grown, deleted and made anew."""

import json
import logging
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Message
from confluent_kafka import TopicPartition as KafkaTopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.broker.own_topics import own_prefix
from tests.frontend.kafka.cluster import LocalCluster, RunningFrontEnd
from tests.frontend.serving import PATIENCE_S, until
from tests.frontend.topics.input_topic import InputTopic, headers_of
from tests.frontend.topics.test_input_topic import define

STREAMS = """
[streams.one]
id = "tx"
partitioners = ["card"]
[streams.one.fields]
tx = "string"
card = "string"
[streams.two]
partitioners = ["card"]
[streams.two.fields]
card = "string"
[[metrics]]
sql = "SELECT count(*) AS n FROM one GROUP BY card OVER INFINITE"
[[metrics]]
sql = "SELECT count(*) AS n FROM two GROUP BY card OVER INFINITE"
"""


@pytest.fixture
def cluster(kafka: str, tmp_path: Path) -> Iterator[LocalCluster]:
    with LocalCluster(kafka, tmp_path) as made:
        define(made, STREAMS)
        made.start_units(1)
        yield made


@pytest.fixture
def names() -> list[str]:
    prefix = own_prefix("prod")
    return [f"{prefix}.payments", f"{prefix}.refunds"]


def events(n: int, card: str = "c", first: int = 0) -> list[dict[str, Any]]:
    return [{"tx": f"{card}-{i}", "card": card} for i in range(first, first + n)]


def reads(served: RunningFrontEnd, stream: str, said: dict[str, Any] | None) -> None:
    """Have a stream's events come from these topics."""
    answer = served.client.patch(f"/v1/streams/{stream}", json={"input": said})
    assert answer.status_code == 200, answer.text
    assert answer.json().get("input") == said


def await_reading(served: RunningFrontEnd, stream: str, *topics: str) -> None:
    inputs = served.backend.inputs
    assert inputs is not None

    def reading() -> bool:
        running = inputs.running.get(stream)
        return running is not None and running.topics == list(topics) and bool(running.windows.all())

    until(reading)


def place_of(message: Message) -> tuple[str, ...]:
    """The topic, the partition and the offset that the headers of a reply or a letter say."""
    said = headers_of(message)
    return tuple(said[each] for each in ("topic", "partition", "offset"))


def scraped(served: RunningFrontEnd, sample: str) -> str:
    lines = served.client.get("/metrics").text.splitlines()
    return next((line.split()[1] for line in lines if line.startswith(sample)), "")


def test_two_streams_from_one_topic_and_one_from_two(cluster: LocalCluster, names: list[str]) -> None:
    served = cluster.serve()
    with (
        InputTopic(cluster.broker, cluster.prefix, "one", 2, names[0]) as payments,
        InputTopic(cluster.broker, cluster.prefix, "two", 1, names[1]) as refunds,
    ):
        reads(served, "one", {"topics": [names[0]]})
        await_reading(served, "one", names[0])
        payments.send(events(30), 0)
        payments.send([*events(20, "d"), "bad"], 1)
        refunds.send(events(10))
        # All is there, so records of both topics are read together.
        reads(served, "two", {"topics": names})
        await_reading(served, "two", *names)
        one, two = payments.await_replies(50), refunds.await_replies(60)
        for card, n in (("c", 30), ("d", 20)):
            assert sorted(each["metrics"]["n"] for each in one if each["id"][0] == card) == list(
                range(1, n + 1)
            )
        # Keyed by their ids they lie in two partitions, in each of which they are in the order of the events.
        for partition in range(2):
            own = [
                json.loads(each.value() or b"") for each in payments.written if each.partition() == partition
            ]
            for card in "cd":
                counts = [each["metrics"]["n"] for each in own if each["id"][0] == card]
                assert counts == sorted(counts)
        # Those of a stream without an id are of its topics' positions.
        assert len({each["id"] for each in two}) == 60
        assert sorted(each["metrics"]["n"] for each in two) == sorted([*range(1, 41), *range(1, 21)])
        # A reply says which record of which topic it answers, and so does a letter.
        of_payments = [(names[0], str(each), str(i)) for each, n in ((0, 30), (1, 20)) for i in range(n)]
        assert sorted(map(place_of, payments.written)) == sorted(of_payments)
        of_refunds = [(names[1], "0", str(i)) for i in range(10)]
        assert sorted(map(place_of, refunds.written)) == sorted(of_payments + of_refunds)
        for topic in (payments, refunds):
            (letter,) = topic.await_letters(1)
            assert place_of(letter) == (names[0], "1", "20")
        shown = served.client.get("/v1/status").json()["streams"]
        by_name = {each["name"]: each["input"] for each in shown}
        assert [each["topic"] for each in by_name["two"]] == names
        assert [each["partitions"] for each in by_name["two"]] == [2, 1]
        until(
            lambda: (
                scraped(served, f'railgun_input_lag_records{{partition="1",stream="one",topic="{names[0]}"}}')
                == "0.0"
            )
        )


def test_topics_come_and_go_from_a_definition(cluster: LocalCluster, names: list[str]) -> None:
    """Positions of a topic that is named again go on."""
    served = cluster.serve()
    with (
        InputTopic(cluster.broker, cluster.prefix, "one", 1, names[0]) as payments,
        InputTopic(cluster.broker, cluster.prefix, "one", 1, names[1]) as refunds,
    ):
        for topics, answered in ((names[:1], 5), (names, 20), (names[1:], 25), (names[:1], 35)):
            reads(served, "one", {"topics": topics})
            await_reading(served, "one", *topics)
            payments.send(events(5, "p"))
            refunds.send(events(5, "r"))
            payments.await_replies(answered)
        time.sleep(0.5)
        replies = payments.replies
        # Of the refunds those after its last time are not read.
        assert len([each for each in replies if each["id"][0] == "p"]) == 20
        assert len([each for each in replies if each["id"][0] == "r"]) == 15


def test_a_topic_that_does_not_exist_is_told_of_once(
    cluster: LocalCluster, names: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    served = cluster.serve()
    with caplog.at_level(logging.WARNING, "railgun.frontend"):
        reads(served, "one", {"topics": names})
        with InputTopic(cluster.broker, cluster.prefix, "one", 1, names[0]) as payments:
            payments.send(events(3))
            assert len(payments.await_replies(3)) == 3
            time.sleep(2.0)
        shown = served.client.get("/v1/status").json()["streams"][0]["input"]
        assert shown[0]["topic"] == names[0]
        assert shown[1:] == [{"topic": names[1], "not_read": "it does not exist"}]
    texts = [each.getMessage() for each in caplog.records if "is not read" in each.getMessage()]
    assert texts.count(f"one: the topic {names[1]} is not read: it does not exist") == 1


@pytest.mark.parametrize("topic", ["{}.one.out", "{}.two.dead", "{}.catalog", "{}.two.by.card"])
def test_topics_of_the_cluster_itself_are_refused(cluster: LocalCluster, topic: str) -> None:
    served = cluster.serve()
    name = topic.format(cluster.prefix)
    answer = served.client.patch("/v1/streams/one", json={"input": {"topics": [name]}})
    assert (answer.status_code, f"{name} cannot be an input topic" in answer.text) == (409, True)
    assert "input" not in served.client.get("/v1/streams/one").json()


def test_partitions_that_come_later_are_read_from_their_oldest_record(
    cluster: LocalCluster, names: list[str]
) -> None:
    with InputTopic(cluster.broker, cluster.prefix, "one", 1, names[0]) as payments:
        payments.send(events(5, "before"))
        served = cluster.serve()
        reads(served, "one", {"topics": names[:1], "start": "latest"})
        await_reading(served, "one", names[0])
        payments.send(events(5, "after"))
        payments.await_replies(5)
        payments.grow(3)
        payments.send(events(5, "new"), 2)
        replies = payments.await_replies(10)
        assert [each["id"] for each in replies[:5]] == [each["tx"] for each in events(5, "after")]
        assert [each["id"] for each in replies[5:]] == [each["tx"] for each in events(5, "new")]


def test_a_start_that_is_a_time(cluster: LocalCluster, names: list[str]) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.broker})
    own = NewTopic(names[0], 2, 1, config={"message.timestamp.type": "CreateTime"})
    admin.create_topics([own])[names[0]].result(PATIENCE_S)
    now_ms, hour_ms = time.time_ns() // 1_000_000, 3_600_000
    with InputTopic(cluster.broker, cluster.prefix, "one", 2, names[0], makes=False) as payments:
        for hours in (4, 3, 2, 1):
            payments.send(events(1, f"h{hours}"), 0, timestamp=now_ms - hours * hour_ms)
        served = cluster.serve()
        start = datetime.fromtimestamp((now_ms - 5 * hour_ms // 2) / 1000, UTC)
        said = start.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        reads(served, "one", {"topics": names[:1], "start": said})
        payments.send(events(1, "live"), 1)
        assert {each["id"] for each in payments.await_replies(3)} == {"h2-0", "h1-0", "live-0"}


def test_a_topic_deleted_and_made_anew_under_load(cluster: LocalCluster, names: list[str]) -> None:
    """Each event that is in a topic of the name is answered, and none is taken for one of the old topic."""
    served = cluster.serve()
    with InputTopic(cluster.broker, cluster.prefix, "one", 2, names[0]) as payments:
        reads(served, "one", {"topics": names[:1], "start": "latest"})
        await_reading(served, "one", names[0])
        payments.send(events(50, "old"), 0)
        payments.send(events(50, "old", 50), 1)
        payments.await_replies(100)
        payments.delete()
        payments.make()
        # Before any front-end has seen it.
        payments.send(events(40, "new"), 0)
        payments.send(events(40, "new", 40), 1)
        replies = payments.await_replies(180, 2 * PATIENCE_S)
        new = [each for each in replies if each["id"].startswith("new")]
        assert sorted(each["metrics"]["n"] for each in new) == list(range(1, 81))
        assert not any("duplicate" in each for each in replies)


def test_many_records_without_a_value(cluster: LocalCluster, names: list[str]) -> None:
    served = cluster.serve()
    with InputTopic(cluster.broker, cluster.prefix, "one", 1, names[0]) as payments:
        payments.send([None] * 20_000, key=b"k")
        payments.send(events(1))
        payments.send([*events(2, first=1), None, *events(1, first=3)], key=b"k")
        reads(served, "one", {"topics": names[:1]})
        assert [each["metrics"]["n"] for each in payments.await_replies(4)] == [1, 2, 3, 4]
        sample = f'railgun_input_skipped_total{{stream="one",topic="{names[0]}"}}'
        assert scraped(served, sample) == "20001.0"
        until(lambda: committed(cluster, names[0])[0] == 20_005)
        assert payments.letters == []


def test_records_that_the_condition_leaves_out(cluster: LocalCluster, names: list[str]) -> None:
    served = cluster.serve()
    with InputTopic(cluster.broker, cluster.prefix, "one", 1, names[0]) as payments:
        left_out: list[Any] = [{"tx": "1", "card": "test"}, {"tx": "2"}, {"card": "test"}]
        refused: list[Any] = [{"card": "c"}, {"tx": 5, "card": "test"}, "no event"]
        payments.send([*left_out, *refused, *events(2), *left_out, *events(1, first=2)])
        reads(served, "one", {"topics": names[:1], "where": "card <> 'test'"})
        assert [each["metrics"]["n"] for each in payments.await_replies(3)] == [1, 2, 3]
        assert [headers_of(each)["offset"] for each in payments.await_letters(3)] == ["3", "4", "5"]
        assert scraped(served, f'railgun_input_skipped_total{{stream="one",topic="{names[0]}"}}') == "6.0"
        # Over HTTP nobody asks for it.
        assert served.score("one", {"tx": "9", "card": "test"})["metrics"]["n"] == 1


def group_of(cluster: LocalCluster) -> str:
    return f"{cluster.prefix}.one.in"


def committed(cluster: LocalCluster, topic: str, partitions: int = 1) -> list[int]:
    """The group's positions; negative if it has none."""
    consumer = Consumer({"bootstrap.servers": cluster.broker, "group.id": group_of(cluster)})
    try:
        found = consumer.committed(
            [KafkaTopicPartition(topic, each) for each in range(partitions)], PATIENCE_S
        )
        return [each.offset for each in found]
    finally:
        consumer.close()


def rested(
    cluster: LocalCluster, topic: InputTopic, change: Callable[[AdminClient], object]
) -> RunningFrontEnd:
    """A front-end that reads three events, stops, and runs again after the group's positions were changed."""
    first = cluster.serve()
    reads(first, "one", {"topics": [topic.input], "start": "latest"})
    await_reading(first, "one", topic.input)
    topic.send(events(3))
    topic.await_replies(3)
    until(lambda: committed(cluster, topic.input) == [5])
    first.service.stop()
    until(lambda: first.code is not None)
    admin = AdminClient({"bootstrap.servers": cluster.broker})
    until(lambda: change(admin) is not None)
    return cluster.serve()


def test_positions_that_the_broker_forgot(cluster: LocalCluster, names: list[str]) -> None:
    with InputTopic(cluster.broker, cluster.prefix, "one", 1, names[0]) as payments:
        payments.send(events(2, "older"))

        def forget(admin: AdminClient) -> object:
            group = group_of(cluster)
            try:
                admin.delete_consumer_groups([group])[group].result(PATIENCE_S)
            except Exception:  # noqa: BLE001 - the member has not left yet
                return None
            return group

        rested(cluster, payments, forget)
        payments.send(events(2, first=3))
        replies = payments.await_replies(5)
        time.sleep(0.5)
        assert [each["id"] for each in payments.replies] == [each["tx"] for each in events(5)]
        assert [each["metrics"]["n"] for each in replies] == [1, 2, 3, 4, 5]


def test_a_group_that_is_set_back(
    cluster: LocalCluster, names: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    with InputTopic(cluster.broker, cluster.prefix, "one", 1, names[0]) as payments:
        payments.send(events(2, "older"))

        def set_back(admin: AdminClient) -> object:
            group = group_of(cluster)
            wanted = ConsumerGroupTopicPartitions(group, [KafkaTopicPartition(names[0], 0, 3)])
            try:
                return admin.alter_consumer_group_offsets([wanted])[group].result(PATIENCE_S)
            except Exception:  # noqa: BLE001 - the member has not left yet
                return None

        with caplog.at_level(logging.WARNING, "railgun.frontend"):
            rested(cluster, payments, set_back)
            replies = payments.await_replies(5)
        assert [each["id"] for each in replies] == ["c-0", "c-1", "c-2", "c-1", "c-2"]
        # They are the first replies again: the tasks have not heard yet that these were settled.
        assert [each["metrics"]["n"] for each in replies] == [1, 2, 3, 2, 3]
        assert any(
            f"in {names[0]}-0 was set back from 5 to 3" in each.getMessage() for each in caplog.records
        )


def test_a_stream_that_is_made_anew_has_read_nothing(cluster: LocalCluster, names: list[str]) -> None:
    """Its group has positions of the stream before."""
    served = cluster.serve()
    definition = served.client.get("/v1/streams/one").json()
    with InputTopic(cluster.broker, cluster.prefix, "one", 1, names[0]) as payments:
        reads(served, "one", {"topics": names[:1]})
        payments.send(events(3))
        payments.await_replies(3)
        until(lambda: committed(cluster, names[0]) == [3])

        def made_anew(start: str) -> None:
            assert served.client.delete("/v1/streams/one").is_success
            payments.send(events(2, "between"))
            body = {**definition, "input": {"topics": names[:1], "start": start}}
            assert served.client.post("/v1/streams", json=body).is_success
            await_reading(served, "one", names[0])

        made_anew("earliest")
        all_ids = [each["tx"] for each in (*events(3), *events(2, "between"))]
        assert [each["id"] for each in payments.await_replies(8)[3:]] == all_ids
        until(lambda: committed(cluster, names[0]) == [5])
        made_anew("latest")
        payments.send(events(1, "after"))
        payments.await_replies(9)
        time.sleep(0.3)
        assert [each["id"] for each in payments.replies[8:]] == ["after-0"]


def test_what_a_quiet_partition_lags_behind_after_a_start(cluster: LocalCluster, names: list[str]) -> None:
    with InputTopic(cluster.broker, cluster.prefix, "one", 1, names[0]) as payments:
        payments.send(events(2, "older"))
        served = rested(cluster, payments, lambda admin: admin)
        lag = f'railgun_input_lag_records{{partition="0",stream="one",topic="{names[0]}"}}'
        until(lambda: scraped(served, lag) != "")
        assert scraped(served, lag) == "0.0"
