"""Recorded replies of services, computed again from their logs: equal through all that a stream can live through, and
whatever is wrong in one of them is found."""

import json
import random
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from pyspark.sql import SparkSession

from railgun.catalog.model import ALL
from railgun.cli.main import main
from railgun.messaging.embedded.log import EmbeddedLog
from railgun.spark.errors import OptionError, PlaceError, ReplyFileError
from railgun.spark.validation.recorded import Recorded, check_recorded
from railgun.spark.validation.report import Report
from railgun.spark.validation.validate_service import validate_service
from railgun.task.settings import TaskSettings
from tests.engine.player import EnginePlayer
from tests.frontend.kafka.cluster import LocalCluster
from tests.frontend.topics.input_topic import InputTopic
from tests.frontend.topics.test_input_topic import define
from tests.oracle.steps import Score, perform
from tests.oracle.stream import StreamOracle
from tests.spark.runs import partitioners_in_spark
from tests.strategies.case import STREAM, oracle
from tests.strategies.generate import Profile
from tests.strategies.seeded import case

SPARK = [pytest.mark.spark, pytest.mark.timeout(900)]
DEFINITIONS = """
[streams.s]
time = "ts"
id = "id"
partitioners = ["card"]
partitions = 2
lateness = "5s"
retention = "20s"
dedup_events = 30
record_replies = true
[streams.s.fields]
id = "string"
ts = "timestamp"
card = "string"
amount = "double"
price = "decimal(9,2)"
n = "long"
[[metrics]]
sql = '''SELECT sum(amount) AS total, avg(price) AS mean, sum(n) AS whole, last(price) AS latest
         FROM s GROUP BY card OVER SLIDING 30 SECONDS'''
[[metrics]]
sql = '''SELECT count(*) AS n_before, sum(n) AS whole_before, last(price) AS price_before
         FROM s GROUP BY card OVER SLIDING 30 SECONDS EXCLUDE CURRENT'''
[[metrics]]
sql = '''SELECT sum(price) FILTER (WHERE MINUTE(ts IN 'Asia/Kolkata') % 2 = 1) AS in_odd_minutes
         FROM s GROUP BY card OVER SLIDING 30 SECONDS'''
"""
EVENT = b"\x01"
START_MS = 1_700_000_000_000
KEPT = TaskSettings(checkpoint_interval_s=1e9)
"""The log is trimmed at checkpoints."""


class Feed:
    """Payments a second apart, a few late, out of order, and sent again."""

    def __init__(self, seed: int) -> None:
        self._source, self._number, self._sent = random.Random(seed), 0, list[dict[str, Any]]()

    def next(self) -> dict[str, Any]:
        source = self._source
        if self._sent and source.random() < 0.1:
            return source.choice(self._sent[-45:])
        self._number += 1
        event = {
            "id": f"e{self._number}",
            "ts": START_MS + 1_000 * self._number - source.choice((0, 0, 0, 3_000, 9_000)),
            "card": None if source.random() < 0.05 else source.choice("abcde"),
            "amount": source.choice((None, 0.1, source.random() * 100)),
            "price": f"{self._number}.25",
            "n": source.choice((None, (1 << 62) + self._number)),
        }
        self._sent.append(event)
        return event

    def play(self, player: EnginePlayer, count: int) -> list[dict[str, Any]]:
        """Score so many events, each as it happens. Returns the replies."""
        replies = []
        for _ in range(count):
            event = self.next()
            player.set_clock(max(player.clock_ms or 0, event["ts"]))
            replies.append(player.score(event))
        return replies


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[dict[str, Any]]]:
    """A data folder whose stream has lived through all sorts of changes, and its replies."""
    folder, feed = tmp_path_factory.mktemp("lived") / "data", Feed(1)
    player, replies = EnginePlayer(folder, "s", KEPT), list[dict[str, Any]]()

    try:
        player.apply(DEFINITIONS)
        replies += feed.play(player, 60)
        player.add_metrics(
            "SELECT count(*) AS seen FROM s GROUP BY card OVER SLIDING 1 MINUTE DELAYED BY 2 SECONDS",
            warm=False,
        )
        replies += feed.play(player, 10)
        player.set_lateness("2s")
        replies += feed.play(player, 10)
        player.warm("seen")
        replies += feed.play(player, 30)
        player.drop_metric("seen")
        replies += feed.play(player, 5)
        player.set_retention("10s")
        player.add_field("shop", "string")
        player.add_metrics("SELECT min(price) AS seen FROM s GROUP BY card OVER INFINITE")
        replies += feed.play(player, 30)
    finally:
        player.engine.close(checkpoint=False)
    return folder, replies


ELSEWHERE = """
[streams.s]
time = "ts"
id = "id"
partitioners = ["card", "*"]
[streams.s.fields]
id = "string"
ts = "timestamp"
card = "string"
n = "long"
[[metrics]]
sql = "SELECT sum(n) AS own FROM s GROUP BY card OVER SLIDING 1 MINUTE"
[[metrics]]
sql = "SELECT sum(n) AS whole FROM s OVER SLIDING 1 MINUTE"
"""


def written(folder: Path, replies: list[dict[str, Any]]) -> str:
    path = folder / "replies.ndjson"
    path.write_text("".join(json.dumps(each) + "\n" for each in replies))
    return str(path)


def of_folder(spark: SparkSession, folder: Path, file: str) -> Report:
    return validate_service(spark, Recorded({"path": str(folder)}, None, (file,)))


@contextmanager
def elsewhere(folder: Path, clock_ms: int) -> Iterator[EnginePlayer]:
    """A player whose one stream has events that do not go to every partitioner; closed as a kill leaves it."""
    player = EnginePlayer(folder / "data", "s", KEPT)
    try:
        player.apply(ELSEWHERE)
        player.set_clock(clock_ms)
        yield player
    finally:
        player.engine.close(checkpoint=False)


class TestEmbedded:
    pytestmark = SPARK

    def test_an_id_that_comes_again_where_it_was_not_sent_before(
        self, spark: SparkSession, tmp_path: Path
    ) -> None:
        """What is said of that partitioner is not compared; everything else is, and of the other ids all."""
        with elsewhere(tmp_path, START_MS + 9_000) as player:
            sent = [("0", "a"), ("1", "b"), ("2", None), ("2", "a"), ("3", None), ("1", "b"), ("2", "b")]
            replies = [
                player.score({"id": id_, "ts": START_MS + at * 1_000, "card": card, "n": at + 1})
                for at, (id_, card) in enumerate(sent)
            ]
        assert [each["metrics"]["own"] for each in replies] == [1, 2, None, 5, None, 2, 2]
        assert [each.get("duplicate") for each in replies] == [None] * 3 + [
            ["*"],
            None,
            ["card", "*"],
            ["card", "*"],
        ]
        wrong = json.loads(json.dumps(replies))
        for place, name, value in (
            (1, "own", 7),
            (4, "own", 7),
            (5, "own", None),
            (3, "whole", 7),
            (6, "whole", 7),
        ):
            wrong[place]["metrics"][name] = value
        wrong[2]["time"] += 1
        del wrong[3]["duplicate"]
        report = of_folder(spark, tmp_path / "data", written(tmp_path, wrong))
        found = {check.name: check.mismatches for check in report.checks if check.mismatches}
        assert found == {"time": 1, "own": 3, "whole": 2, "duplicate_all": 1}, report.as_text()
        assert report.unanswered == 0
        reason = "their ids came with card and without it, and nothing tells which of these a reply is to"
        assert report.as_json()["not_compared"] == [{"partitioner": "card", "replies": 3, "reason": reason}]
        *_, said, last = report.as_text().splitlines()
        assert said == f"card: 3 replies were not compared: {reason}"
        assert last.endswith(" equal, 7 WRONG; 3 replies not compared at card")
        compared = {check.name: check.compared for check in report.checks}
        assert compared == {
            "(other metrics)": 7, "time": 7, "late_card": 4, "duplicate_card": 4, "own": 4,
            "late_all": 7, "duplicate_all": 7, "whole": 7,
        }  # fmt: skip

    def test_a_reply_is_right_whose_other_one_was_not_recorded(
        self, spark: SparkSession, tmp_path: Path
    ) -> None:
        """Of ids that came again either reply may be there alone, and is held against the records of its time."""
        with elsewhere(tmp_path, START_MS + 11_000) as player:
            sent = [("0", "a"), ("1", "b"), ("1", "a"), ("2", "b"), ("2", "b"), ("3", "a"), ("3", None)]
            replies = [
                player.score({"id": id_, "ts": START_MS + at * 1_000, "card": card, "n": at + 1})
                for at, (id_, card) in enumerate(sent)
            ]
        values = [each["metrics"]["own"] for each in replies]
        assert values == [1, 2, 1, 6, 6, 7, None]
        replies[2]["metrics"]["own"] = 2
        replies[4]["metrics"]["own"] = 2
        report = of_folder(spark, tmp_path / "data", written(tmp_path, [replies[at] for at in (0, 2, 4, 5)]))
        found = {check.name: check.mismatches for check in report.checks if check.mismatches}
        assert found == {"own": 2}, report.as_text()
        assert "id 1: recorded 2, should be 1" in report.as_text()
        assert "id 2: recorded 2, should be 6" in report.as_text()
        # The first of 1 and of 2 at both partitioners, the second of 3 at `*`.
        assert report.unanswered == 5

    def test_a_wrong_value_where_nothing_was_due_is_shown(self, spark: SparkSession, tmp_path: Path) -> None:
        """Not of a metric whose name came back at another partitioner: its replies are right."""
        with elsewhere(tmp_path, START_MS + 9_000) as player:
            player.add_metrics("SELECT max(n) AS moved FROM s GROUP BY card OVER SLIDING 1 MINUTE")
            replies = [player.score({"id": "0", "ts": START_MS, "card": "a", "n": 1})]
            player.drop_metric("moved")
            player.add_metrics("SELECT max(n) AS moved FROM s OVER SLIDING 1 MINUTE")
            cards = [None, None, None, None, "a"]
            replies += [
                player.score({"id": str(at), "ts": START_MS + at, "card": card, "n": 1})
                for at, card in enumerate(cards, 1)
            ]
        assert [each["metrics"]["moved"] for each in replies] == [1] * 6
        replies[0]["metrics"]["made_up"] = [7]
        replies[1]["metrics"]["own"] = 5
        replies[1]["duplicate"] = ["card"]
        replies[1]["warming"] = ["own"]
        replies[2]["metrics"]["own"] = "5"
        replies[3]["warming"] = ["own", "whole", "made_up"]
        replies[4]["partial"] = {"own": 7}
        file = written(tmp_path, [*replies, {"id": "nobody", "time": 1, "metrics": {"whole": 6}}])
        report = of_folder(spark, tmp_path / "data", file)
        text = report.as_text()
        for wrong in (
            f"(other metrics): {file} line 1, id 0: recorded made_up = [7], should be nothing: there never was",
            f"own: {file} line 2, id 1: recorded 5, should be null: its event was not sent to partitioner card",
            f"duplicate_card: {file} line 2, id 1: recorded true, should be null: its event was not sent",
            f"whole: {file} line 7, id nobody: recorded 6, should be null: its event was not sent to",
            f'own: {file} line 3, id 2: recorded "5", should be null: its event was not sent to partitioner card',
            f"own: {file} line 4, id 3: recorded null, warming, should be null: its event was not sent",
            f"own: {file} line 5, id 4: recorded null, partial: 7, should be null: its event was not sent",
            f'(other metrics): {file} line 4, id 3: recorded (warming) = ["made_up"], should be nothing',
            "id 3: recorded 4 (its absence, or what is said of warming or partial, is wrong), should be 4",
        ):
            assert wrong in text, text
        assert [check.mismatches for check in report.checks if check.name.startswith("moved")] == [0, 0], text

    def test_metrics_that_come_and_go_are_equal_but_for_what_is_wrong(
        self, spark: SparkSession, lived: tuple[Path, list[dict[str, Any]]], tmp_path: Path
    ) -> None:
        """A time is the event's own, of a late one too; an id that comes again may show any of its own."""
        folder, replies = lived
        assert {"warming", "partial", "late", "duplicate"} <= {key for each in replies for key in each}
        wrong = json.loads(json.dumps(replies))
        sole = [
            place
            for place, each in enumerate(replies)
            if sum(other["id"] == each["id"] for other in replies) == 1
            and each["metrics"]["total"] is not None
        ]
        again, shifted, *_ = {
            each["id"]: place
            for place, each in enumerate(replies)
            if "duplicate" in each and each["metrics"]["total"]
        }.values()
        late = next(place for place in sole if "late" in replies[place])
        sole.remove(late)
        partial = next(place for place in sole if "partial" in replies[place])
        warming = next(place for place in sole if "warming" in replies[place])
        wrong[late]["time"] += 1
        wrong[shifted]["time"] -= 1
        wrong[sole[5]]["metrics"]["total"] += 0.01
        wrong[again]["metrics"]["total"] += 0.01
        wrong[sole[7]]["metrics"]["mean"] = "1.250000"
        wrong[sole[8]]["metrics"]["whole"] = 1.0
        wrong[sole[9]]["metrics"]["made_up"] = 1
        wrong[sole[10]]["metrics"]["seen"] = 1
        wrong[sole[14]]["warming"] = ["seen"]
        wrong[sole[15]]["partial"] = {"seen": 1}
        del wrong[sole[11]]["metrics"]["latest"]
        del wrong[partial]["partial"]
        wrong[warming]["warming"] = []
        wrong[sole[12]]["duplicate"] = ["card"]
        wrong[sole[13]]["late"] = {"card": "discarded"}
        file = written(tmp_path, [*wrong, {"id": "nobody", "time": 1, "metrics": {"total": 1.5}}])
        report = of_folder(spark, folder, file)
        found = {check.name: check.mismatches for check in report.checks if check.mismatches}
        assert found == {
            "time": 2,
            "total": 3,
            "mean": 1,
            "whole": 1,
            "latest": 1,
            "duplicate_card": 1,
            "late_card": 1,
            "(other metrics)": 1,
            # The warming one, the partial one, and three from before there was such a metric.
            "seen (added at 10)": 5,
        }, report.as_text()  # fmt: skip
        assert (report.events, report.unanswered) == (len(replies) + 1, 0)
        compared = {check.name: check.compared for check in report.checks}
        assert compared.keys() == {
            "(other metrics)", "time", "late_card", "duplicate_card", "total", "mean", "whole", "latest",
            *("n_before", "whole_before", "price_before", "in_odd_minutes", "seen (added at 10)", "seen (added at 15)"),
        }  # fmt: skip
        assert all(compared.values())
        # Those to events without a card are in no log.
        assert 100 < compared["time"] < len(replies)
        times = {each.place: each for each in report.checks[1].examples}
        assert times.keys() == {f"{file} line {at + 1}" for at in (late, shifted)}
        first = times[f"{file} line {late + 1}"]
        assert (first.id, int(first.got), int(first.expected)) == (
            replies[late]["id"], replies[late]["time"] + 1, replies[late]["time"],
        )  # fmt: skip
        examples = next(check.examples for check in report.checks if check.name == "total")
        assert {each.id for each in examples} == {replies[sole[5]]["id"], replies[again]["id"], "nobody"}
        assert all("card, partition" in (each.place or "") for each in examples if each.id != "nobody")

    def test_a_duplicate_that_leaves_out_its_first_coming_is_found(
        self, spark: SparkSession, lived: tuple[Path, list[dict[str, Any]]], tmp_path: Path
    ) -> None:
        folder, replies = lived
        wrong = json.loads(json.dumps(replies))
        said: dict[str, set[int]] = defaultdict(set)
        for each in replies:
            said[each["id"]].add(each["metrics"]["n_before"])
        found = next(
            each
            for each in wrong
            if "duplicate" in each and each["metrics"]["n_before"] - 1 not in said[each["id"]]
        )
        found["metrics"]["n_before"] -= 1
        report = of_folder(spark, folder, written(tmp_path, wrong))
        examples = {check.name: check.examples for check in report.checks if check.mismatches}
        assert {name: [each.id for each in of] for name, of in examples.items()} == {
            "n_before": [found["id"]]
        }


@pytest.mark.spark
@pytest.mark.timeout(900)
def test_a_clusters_replies_are_equal_but_for_the_one_that_is_wrong(
    spark: SparkSession, kafka: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    feed = Feed(2)
    with LocalCluster(kafka, tmp_path / "data") as cluster:
        define(cluster, DEFINITIONS)
        cluster.start_units(1)
        with InputTopic(kafka, cluster.prefix, "s", 2) as topic:
            served = cluster.serve(now_ms=lambda: START_MS + 10**9)
            sent = [feed.next() for _ in range(60)]
            for place, event in enumerate(sent):
                topic.send([event], place % 2)
            topic.await_replies(60)
            replies = served.score("s", [feed.next() for _ in range(30)])
            unasked = redeliver(topic)
            replies += [served.score("s", feed.next()) for _ in range(20)]
            wrong = next(each["id"] for each in topic.await_replies(110) if each["metrics"]["total"])
            plant(topic, wrong)
        assert main(["validate", "--broker", kafka, "--topic-prefix", cluster.prefix]) == 1
        *lines, last = capsys.readouterr().out.splitlines()
        [found] = [line for line in lines if ": recorded " in line]
        assert found.startswith("total: ")
        assert f", id {wrong}: recorded " in found
        assert unasked >= 4
        assert f"110 replies ({unasked} events without one)" in last
        assert last.endswith(" equal, 1 WRONG")


def values(topic: InputTopic, name: str, partition: int) -> list[bytes]:
    """All records of a partition."""
    found, at = list[bytes](), 0
    while at < topic._transport.end_offset(name, partition):
        fetched = topic._transport.read(name, partition, at, 10_000, 1 << 20)
        found += fetched.values()
        at = fetched.next_offset
    return found


def plant(topic: InputTopic, wrong: str) -> None:
    """Have the replies in the output topic once more in the place of those there, with another total in one."""
    out, transport = topic.topics.output("s"), topic._transport
    for partition in range(transport.topics()[out]):
        replies = values(topic, out, partition)
        for place, each in enumerate(map(json.loads, replies)):
            if each["id"] == wrong and each["metrics"]["total"]:
                each["metrics"]["total"] += 0.01
                replies[place], wrong = json.dumps(each).encode(), ""
        transport.trim(out, partition, transport.end_offset(out, partition))
        transport.append(out, partition, replies)
    assert not wrong


def redeliver(topic: InputTopic) -> int:
    """Have some records in the tasks' logs again, as a front-end that took over would. Nobody asked for replies to some
    of them: how many. They cannot be told from events of their own: those that came over HTTP, and those that were
    committed to be answered before the end of the task's log.
    """
    tasks, unasked = topic.topics.tasks("s", "card"), 0
    for partition in range(2):
        events = [value for value in values(topic, tasks, partition) if value[:1] == EVENT]
        positions = [msgspec.msgpack.decode(record[1:])[6] for record in events]
        committed: dict[int, int] = defaultdict(int)
        for position in positions:
            if position is not None:
                committed[position[0]] = max(committed[position[0]], position[2])
        again = [0, -1, -1]
        topic._transport.append(tasks, partition, [events[place] for place in again])
        for position in (positions[place] for place in again):
            unasked += position is None or position[1] < committed[position[0]]
    return unasked


def test_what_cannot_be_validated_is_said_first(kafka: str, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    player = EnginePlayer(folder, "s", KEPT)
    try:
        player.apply(DEFINITIONS)
        player.set_clock(START_MS)
        player.score({"id": "e", "ts": START_MS, "card": "a"})
    finally:
        player.engine.close(checkpoint=False)
    with pytest.raises(OptionError, match="in no topic: name the files"):
        check_recorded(Recorded({"path": str(folder)}))
    with pytest.raises(ReplyFileError, match="there is no such file"):
        check_recorded(Recorded({"path": str(folder)}, "s", (str(tmp_path / "gone"),)))
    file = written(tmp_path, [])
    check_recorded(Recorded({"path": str(folder)}, "s", (file,)))
    with EmbeddedLog(folder / "log") as log:
        for partition in range(2):
            log.trim("railgun.s.by.card", partition, 1)
    with pytest.raises(PlaceError, match="its log begins at offset 1"):
        check_recorded(Recorded({"path": str(folder)}, "s", (file,)))
    with pytest.raises(PlaceError, match=r"there is no topic nobody\.catalog"):
        check_recorded(Recorded({"broker": kafka, "topicPrefix": "nobody"}))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["d.toml", "e.csv"], "say what to validate"),
        (["d.toml", "e.csv", "--data", "x"], "--data is for a service, definitions for a run"),
        (["--data", "x", "--broker", "y"], "the one or the other"),
        (["--replies", "x"], "say where the log of events is"),
    ],
)
def test_what_is_to_be_validated_must_be_plain(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["validate", *words]) == 2
    assert said in capsys.readouterr().err


def sent_to(event: Mapping[str, Any], model: StreamOracle) -> list[str]:
    fields = model.stream.row(model.read(event, "made").fields)
    return [name for name in model.stream.partitioners if name == ALL or fields.get(name) is not None]


@pytest.mark.torture
@pytest.mark.spark
@pytest.mark.usefixtures("as_in_production")
@pytest.mark.parametrize("seed", range(20))
def test_random_lives_are_equal(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    drawn = case(
        seed, 90, Profile(explicit_warm=bool(seed % 2), control_percent=12, queries_max=2, derives=True)
    )
    player, replies = EnginePlayer(tmp_path / "data", STREAM, KEPT), []
    model = oracle(drawn)
    try:
        player.apply(drawn.definitions)
        for step in drawn.steps:
            # Without `*`, no log tells of an event that is sent nowhere: its reply is taken for that of a record.
            if isinstance(step, Score) and not sent_to(step.event, model):
                continue
            reply = perform(player, step)
            if isinstance(step, Score):
                replies.append(reply)
    finally:
        player.engine.close(checkpoint=False)
    with partitioners_in_spark():
        report = of_folder(spark, tmp_path / "data", written(tmp_path, replies))
        assert report.mismatches == 0, report.as_text()
