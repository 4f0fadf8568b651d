"""Logs on a broker as tables: what an embedded log would give, ranges looked at first, what is wrong said in time."""

import pickle
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from railgun.messaging.kafka.settings import KafkaSettings
from railgun.messaging.kafka.sole_writer import KafkaSoleWriter
from railgun.messaging.transport import TopicPartition
from railgun.spark.errors import OptionError, PlaceError, SparkSideError
from railgun.spark.tables.following import FollowingReader
from railgun.spark.tables.source import RailgunSource
from tests.spark.folders import START_MS, STEP_MS, filled, payments
from tests.spark.topics import CopiedTopics

N = 300
CARD = "railgun.payments.by.card"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("broker") / "data"
    filled(folder, N).close()
    return folder


@pytest.fixture
def topics(kafka: str, data: Path) -> Iterator[CopiedTopics]:
    with CopiedTopics(kafka, data) as made:
        yield made


def table(**options: str) -> pa.Table:
    source = RailgunSource(options)
    reader = pickle.loads(pickle.dumps(source.reader(source.schema())))
    batches = [batch for each in reader.partitions() for batch in reader.read(each)]
    return pa.Table.from_batches(batches) if batches else pa.table({})


def on(kafka: str, topics: CopiedTopics, **more: str) -> dict[str, str]:
    return {"broker": kafka, "topicPrefix": topics.prefix, "partitioner": "card", **more}


@pytest.mark.parametrize("piece", ["37", "1000000"])
def test_a_topic_gives_what_the_embedded_log_gives(
    kafka: str, topics: CopiedTopics, data: Path, piece: str
) -> None:
    wanted = table(path=str(data), partitioner="card")
    assert len(wanted) == N
    assert table(**on(kafka, topics, recordsPerPartition=piece)).equals(wanted)
    some = {"columns": "amount,offset", "startTime": str(START_MS + 50 * STEP_MS), "partitions": "1"}
    assert table(**on(kafka, topics, **some)).equals(table(path=str(data), partitioner="card", **some))


def test_marks_of_transactions_are_no_records(kafka: str, topics: CopiedTopics) -> None:
    where = TopicPartition(topics.topic(CARD), 0)
    end = topics.transport.end_offset(*where)
    record = topics.transport.read(*where, end - 1, 1, 1 << 20).values()[0]
    with KafkaSoleWriter(KafkaSettings(kafka), topics.prefix) as writer:
        for _ in range(3):
            writer.append(where, [(b"k", record)])
    offsets = table(**on(kafka, topics, partitions="0", recordsPerPartition="1"))["offset"].to_pylist()
    assert offsets[-4:] == [end - 1, end, end + 2, end + 4]


def test_ranges_by_offset_and_by_the_time_of_appending(kafka: str, topics: CopiedTopics) -> None:
    time.sleep(0.02)
    between_ms = time.time_ns() // 1_000_000
    time.sleep(0.02)
    where = TopicPartition(topics.topic(CARD), 1)
    end = topics.transport.end_offset(*where)
    record = topics.transport.read(*where, end - 1, 1, 1 << 20).values()[0]
    topics.transport.append(*where, [record])
    assert table(**on(kafka, topics, columns="offset", startAppended=str(between_ms)))[
        "offset"
    ].to_pylist() == [end]
    assert len(table(**on(kafka, topics, columns="offset", endAppended=str(between_ms)))) == N
    topics.transport.trim(*where, 50)
    got = table(**on(kafka, topics, columns="offset", startOffset='{"1": 52}', endOffset='{"0": 0, "1": 55}'))
    assert got["offset"].to_pylist() == [52, 53, 54]
    for options, said in (
        ({"startOffset": '{"1": 49}'}, "startOffset: 49 is out of the log"),
        ({"endOffset": f'{{"1": {end + 2}}}'}, f"endOffset: {end + 2} is out of the log; what is there"),
        ({"startOffset": "100000"}, "100000 is out of the log"),
        ({"partitions": "0,7"}, "there is no partition 7; the topic has 0 to 1"),
    ):
        with pytest.raises(OptionError, match=re.escape(said)):
            table(**on(kafka, topics, **options))


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"stream": "payment"}, OptionError, "did you mean payments?"),
        ({"partitioner": "crad"}, OptionError, "did you mean card?"),
        ({"topicPrefix": "nobody"}, PlaceError, "there is no topic nobody.catalog"),
        ({"kafka.security.protocl": "ssl"}, OptionError, "did you mean security.protocol?"),
        ({"kafka.isolation.level": "read_uncommitted"}, OptionError, "relies on 'read_committed'"),
        ({"path": "data"}, OptionError, "the one or the other"),
        ({"source": "reservoir"}, OptionError, "reservoirs are read from folders"),
    ],
)
def test_wrong_options_are_said(
    kafka: str, topics: CopiedTopics, options: dict[str, str], error: type[SparkSideError], said: str
) -> None:
    with pytest.raises(error, match=re.escape(said)):
        RailgunSource({**on(kafka, topics), **options}).schema()


def test_a_broker_that_is_away_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("railgun.spark.tables.broker_place._ANSWER_S", 1.0)
    with pytest.raises(PlaceError, match=r"127\.0\.0\.1:1: .*Check that the broker runs"):
        RailgunSource({"broker": "127.0.0.1:1"}).schema()
    with pytest.raises(OptionError, match="name one: option broker"):
        RailgunSource({"path": "data", "kafka.client.id": "x"}).schema()


def test_a_topic_is_followed_in_parts(kafka: str, topics: CopiedTopics) -> None:
    source = RailgunSource(on(kafka, topics, columns="id", recordsPerTrigger="70"))
    following = source.streamReader(source.schema())
    assert isinstance(following, FollowingReader)
    try:
        at, seen = following.initialOffset(), []
        assert following.getDefaultReadLimit() == ReadMaxRows(70)
        while (end := following.latestOffset(at, ReadMaxRows(70))) != at:
            assert 0 < sum(end.values()) - sum(at.values()) <= 70
            made = pickle.loads(pickle.dumps(following))
            found = [
                row["id"]
                for each in made.partitions(at, end)
                for batch in made.read(each)
                for row in batch.to_pylist()
            ]
            made.stop()
            seen.append(len(found))
            at = end
        assert (sum(seen), len(seen)) == (N, 5)
        following.prepareForTriggerAvailableNow()
        record = topics.transport.read(topics.topic(CARD), 0, 5, 1, 1 << 20).values()[0]
        topics.transport.append(topics.topic(CARD), 0, [record])
        assert following.latestOffset(at, ReadAllAvailable()) == at
        topics.transport.trim(topics.topic(CARD), 1, 20)
        with pytest.raises(PlaceError, match="those before 20 are gone"):
            following.partitions({"0": 0, "1": 0}, at)
    finally:
        following.stop()


@pytest.mark.spark
@pytest.mark.timeout(900)
def test_a_topic_is_a_table_and_a_stream(spark: SparkSession, kafka: str, tmp_path: Path) -> None:
    engine = filled(tmp_path / "data", 200)
    try:
        with CopiedTopics(kafka, tmp_path / "data") as topics:
            read = spark.read.format("railgun").options(**on(kafka, topics))
            late = read.load().where(
                F.col("event_time") >= F.timestamp_millis(F.lit(START_MS + 150 * STEP_MS))
            )
            assert {row["card"]: row["count"] for row in late.groupBy("card").count().collect()} == {
                f"c{n}": 10 for n in range(5)
            }
            with pytest.raises(PySparkException, match="did you mean payments"):
                read.option("stream", "paymetns").load()
            following = spark.readStream.format("railgun").options(**on(kafka, topics, columns="id,offset"))
            checkpoint = str(tmp_path / "checkpoint")
            for expected in (200, 230):
                writing = (
                    following.load().writeStream.format("parquet").option("checkpointLocation", checkpoint)
                )
                query = writing.trigger(availableNow=True).start(str(tmp_path / "out"))
                try:
                    assert query.awaitTermination(300)
                finally:
                    query.stop()
                found = spark.read.parquet(str(tmp_path / "out"))
                assert (found.count(), found.select("id").distinct().count()) == (expected, expected)
                engine.score_table("payments", payments(200, 30))
                topics.copy()
    finally:
        engine.close()
