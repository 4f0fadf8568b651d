"""Streams with history, computed again from what the backfill read: equal before and behind it, and what is wrong in a
reply, or was not installed as it was read, is found."""

import json
import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from railgun.catalog.definitions import parse_definitions
from railgun.cli.main import main
from railgun.messaging.embedded.log import EmbeddedLog
from railgun.registry import evolution
from railgun.spark.backfill.deepening_cluster import DeepeningOfCluster
from railgun.spark.backfill.engine import BackfillOfEngine, DeepeningOfEngine
from railgun.spark.backfill.source import HistorySource
from railgun.spark.backfill.target import BackfillRequest
from railgun.spark.errors import HistoryError, PlaceError
from railgun.spark.validation.history_events import HistoryInput
from railgun.spark.validation.recorded import Recorded, check_recorded
from railgun.spark.validation.report import Report
from railgun.spark.validation.time_range import ALL_TIMES, TimeRange
from railgun.spark.validation.validate_service import validate_service
from railgun.task.settings import TaskSettings
from tests.broker.own_topics import own_prefix
from tests.engine.deepening.deepened import build_deepening
from tests.engine.deepening.test_deepening import CUT_MS as CUT_ROW_MS
from tests.engine.deepening.test_deepening import history_rows, live_rows
from tests.engine.player import EnginePlayer
from tests.engine.test_history import STREAM as CLUSTER_STREAM
from tests.spark.test_service_validation import written
from tests.unit.cluster_player import ClusterPlayer
from tests.unit.local_units import SMALL, local_units, quick_settings

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

KEPT = TaskSettings(checkpoint_interval_s=1e9)
"""The log is trimmed at checkpoints."""
OF_UNITS = replace(SMALL, chunk_events=32, segment_bytes=1 << 13)
START_MS = 1_700_000_000_000
CUT = 120
CUT_MS = START_MS + CUT * 1_000
DEFINITIONS = """
[streams.s]
time = "ts"
id = "id"
partitioners = ["card", "*"]
partitions = 2
lateness = "5s"
late_policy = "{policy}"
retention = "40s"
dedup_events = {dedup}
[streams.s.fields]
id = "{ids}"
ts = "timestamp"
card = "string"
shop = "long"
amount = "double"
price = "decimal(9,2)"
"""
METRICS = """
[[metrics]]
sql = '''SELECT count(*) AS seen, sum(amount) AS total, last(price) AS latest, count_distinct(shop) AS shops,
  stddev(amount) AS spread FROM s GROUP BY card OVER SLIDING 50 SECONDS'''
[[metrics]]
sql = "SELECT avg(price) AS mean, first(amount) AS opening FROM s WHERE amount > 3 GROUP BY shop OVER TUMBLING 1 MINUTE"
[[metrics]]
sql = "SELECT count(*) AS ever, prev(amount) AS before FROM s GROUP BY shop OVER INFINITE DELAYED BY 10 SECONDS"
[[metrics]]
sql = '''SELECT avg(amount) AS usual, last(ts) AS last_ts, count_distinct(shop) AS shops_before,
  count(*) FILTER (WHERE MINUTE(ts IN 'Asia/Kolkata') % 4 = 0) AS fourths
  FROM s GROUP BY card OVER SLIDING 50 SECONDS EXCLUDE CURRENT'''
[[metrics]]
sql = "SELECT count(*) FILTER (WHERE MINUTE(ts IN 'Asia/Kolkata') < 45) AS early FROM s GROUP BY shop OVER INFINITE"
[[metrics]]
sql = "DERIVE amount / usual AS times_usual, ts - last_ts AS gap_ms, fourths + early AS both FROM s"
"""

# Of every kind of window, of fields, filters, zones and derived metrics one: Spark takes seconds for each metric.
OF_EVERY_KIND = """
[[metrics]]
sql = "SELECT count(*) AS seen, sum(amount) AS total FROM s GROUP BY card OVER SLIDING 50 SECONDS"
[[metrics]]
sql = "SELECT avg(price) AS mean FROM s WHERE amount > 3 GROUP BY shop OVER TUMBLING 1 MINUTE"
[[metrics]]
sql = "SELECT count(*) AS ever FROM s GROUP BY shop OVER INFINITE DELAYED BY 10 SECONDS"
[[metrics]]
sql = '''SELECT avg(amount) AS usual, count(*) FILTER (WHERE MINUTE(ts IN 'Asia/Kolkata') % 4 = 0) AS fourths
  FROM s GROUP BY card OVER SLIDING 50 SECONDS EXCLUDE CURRENT'''
[[metrics]]
sql = "DERIVE amount / usual AS times_usual FROM s"
"""
EVER = """
[[metrics]]
sql = "SELECT count(*) AS ever FROM s GROUP BY shop OVER INFINITE DELAYED BY 10 SECONDS"
"""
ONE_METRIC = """
[[metrics]]
sql = "SELECT count(*) AS seen, sum(amount) AS total FROM s GROUP BY card OVER SLIDING 50 SECONDS"
"""


@dataclass
class Feed:
    """Payments a second apart, by number: every call for a number gives the same one."""

    seed: int
    has_long_ids: bool = False
    sent: list[dict[str, Any]] = field(default_factory=list)

    def payment(self, number: int) -> dict[str, Any]:
        source = random.Random(self.seed * 100_000 + number)
        lag = source.choice((0, 0, 0, 1_000, 2_500))
        return {
            # As numbers they sort otherwise than as text.
            "id": number - 60 if self.has_long_ids else f"e{number}",
            "ts": START_MS + number * 1_000 - lag,
            "card": None if source.random() < 0.07 else source.choice("abcde"),
            "shop": source.choice((None, 1, 2)),
            "amount": source.choice((None, 0.1, source.random() * 100)),
            "price": f"{number}.25",
        }

    def live(self, first: int, end: int) -> list[dict[str, Any]]:
        """As they come: some late, some once more."""
        source, made = random.Random(self.seed + first), list[dict[str, Any]]()
        for number in range(first, end):
            event = self.payment(number)
            made.append(event)
            if source.random() < 0.15:
                made.append(source.choice(made[-30:]))
            if source.random() < 0.1:
                at = source.randrange(len(made))
                made.append(made.pop(at))
        return made

    def history(self, end: int) -> list[dict[str, Any]]:
        """In no order, some twice."""
        source = random.Random(self.seed)
        numbers = [*range(end), *(source.randrange(end) for _ in range(end // 8))]
        source.shuffle(numbers)
        return [self.payment(number) for number in numbers]


class Stream:
    """A stream of an engine whose log is kept, what was answered, and what its history was read from."""

    def __init__(self, folder: Path, definitions: str) -> None:
        self.folder, self.definitions = folder, definitions
        self.data, self.source = folder / "data", folder / "history.parquet"
        self.replies: list[dict[str, Any]] = []
        # How many replies came before its history.
        self.before = 0
        self.player = self._open()

    def _open(self) -> EnginePlayer:
        return EnginePlayer(self.data, "s", KEPT)

    def score(self, events: Iterable[dict[str, Any]]) -> None:
        for event in events:
            self.player.set_clock(max(self.player.clock_ms or 0, event["ts"]))
            self.replies.append(self.player.score(event))

    def stop(self) -> None:
        self.player.engine.close(checkpoint=False)

    def write(self, rows: list[dict[str, Any]], place: Path | None = None) -> Path:
        types = {"shop": pa.int64(), "amount": pa.float64(), "ts": pa.int64()}
        fields = {name: types.get(name, pa.string()) for name in rows[0]}
        if isinstance(rows[0]["id"], int):
            fields["id"] = pa.int64()
        pq.write_table(pa.Table.from_pylist(rows, pa.schema(list(fields.items()))), place or self.source)
        return place or self.source

    def request(self) -> BackfillRequest:
        """For what was written last."""
        source = HistorySource.of([str(self.source)])
        return BackfillRequest(
            self.data, parse_definitions(self.definitions), source, {}, CUT_MS, settings=KEPT
        )

    def backfill(self, spark: SparkSession, rows: list[dict[str, Any]], *, deepens: bool = False) -> None:
        """Give it history; it is stopped and goes on."""
        self.stop()
        self.write(rows)
        target = (DeepeningOfEngine if deepens else BackfillOfEngine)(self.request())
        report = target.build(lambda: spark)
        assert report.counts.refused_rows == 0
        target.install()
        self.before = len(self.replies)
        self.player = self._open()

    def validated(
        self,
        spark: SparkSession,
        replies: list[dict[str, Any]] | None = None,
        source: Path | None = None,
        times: TimeRange = ALL_TIMES,
    ) -> Report:
        file = written(self.folder, self.replies if replies is None else replies)
        history = HistoryInput(HistorySource.of([str(source or self.source)]))
        return validate_service(
            spark, Recorded({"path": str(self.data)}, None, (file,), history), times=times
        )


def definitions(
    policy: str = "rewrite", dedup: int = 1_000, ids: str = "string", metrics: str = METRICS
) -> str:
    return DEFINITIONS.format(policy=policy, dedup=dedup, ids=ids) + metrics


def bootstrapped(
    spark: SparkSession, folder: Path, seed: int, text: str, *, has_long_ids: bool = False
) -> Stream:
    """A stream that answered a little, got history, and lived on through changes; it is stopped."""
    feed = Feed(seed, has_long_ids)
    stream = Stream(folder, text)
    stream.player.apply(text)
    stream.score(feed.live(90, 112))
    stream.backfill(spark, feed.history(CUT + 10))
    stream.score(feed.live(112, 150))
    stream.player.add_metrics(
        "SELECT min(price) AS least FROM s GROUP BY card OVER SLIDING 2 MINUTES", warm=False
    )
    stream.score(feed.live(150, 155))
    stream.player.warm("least")
    stream.player.set_lateness("2s")
    stream.score(feed.live(155, 190))
    stream.stop()
    return stream


def deepened(
    spark: SparkSession, folder: Path, seed: int, text: str, *, has_long_ids: bool = False
) -> Stream:
    """A stream that answered for long, and got older history then; it is stopped."""
    feed = Feed(seed, has_long_ids)
    stream = Stream(folder, text)
    stream.player.apply(text)
    stream.score(feed.live(100, 130))
    # What was late for a while stays late.
    stream.player.set_lateness("3s")
    stream.score(feed.live(130, 140))
    stream.player.set_lateness("5s")
    stream.player.add_metrics("SELECT min(price) AS least FROM s GROUP BY card OVER SLIDING 2 MINUTES")
    stream.score(feed.live(140, 165))
    stream.backfill(spark, feed.history(CUT + 10), deepens=True)
    stream.score(feed.live(165, 190))
    stream.player.add_metrics("SELECT max(price) AS most FROM s GROUP BY card OVER SLIDING 3 MINUTES")
    stream.score(feed.live(190, 200))
    stream.stop()
    return stream


def check_complete(report: Report, stream: Stream) -> None:
    assert report.unanswered == 0
    assert report.history is not None
    assert all(check.compared for check in report.checks)
    assert {"late", "duplicate", "partial"} <= {key for each in stream.replies for key in each}


@pytest.fixture(scope="module")
def stream(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Stream:
    """With few metrics, to be looked at."""
    return bootstrapped(spark, tmp_path_factory.mktemp("stream"), 6, definitions(metrics=ONE_METRIC + EVER))


def sole(replies: Iterable[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    """Those to ids that came once, with a value of a metric."""
    ids = Counter(each["id"] for each in replies)
    return [each for each in replies if ids[each["id"]] == 1 and each["metrics"].get(name)]


def test_replies_before_and_behind_a_history_are_equal_but_for_what_is_wrong(
    spark: SparkSession, tmp_path: Path
) -> None:
    stream = bootstrapped(spark, tmp_path, 1, definitions(metrics=OF_EVERY_KIND))
    wrong = json.loads(json.dumps(stream.replies))
    before = next(each for each in sole(wrong, "seen") if each in wrong[: stream.before])
    behind = sole(wrong, "total")[-1]
    assert wrong.index(behind) > stream.before
    before["metrics"]["seen"] += 20
    behind["metrics"]["total"] += 0.01
    report = stream.validated(spark, wrong)
    found = {check.name: (check.mismatches, check.examples) for check in report.checks if check.mismatches}
    assert {name: count for name, (count, _) in found.items()} == {"seen": 1, "total": 1}, report.as_text()
    assert [found[name][1][0].id for name in ("seen", "total")] == [before["id"], behind["id"]]
    assert "offset" in str(found["total"][1][0].place)
    check_complete(report, stream)
    assert any("warming" in each for each in stream.replies)
    compared = {check.name: check.compared for check in report.checks}
    assert (compared["installed_card"], compared["installed_all"]) == (2, 1)


def test_a_range_behind_a_history(spark: SparkSession, stream: Stream) -> None:
    """Its windows reach back into the history, and an infinite one to its beginning; what is wrong elsewhere is not
    looked at."""
    times = TimeRange(START_MS + 125_000, START_MS + 165_000)
    wrong = json.loads(json.dumps(stream.replies))
    inside, outside = list[dict[str, Any]](), list[dict[str, Any]]()
    for each in sole(wrong, "total"):
        (inside if START_MS + 125_000 <= each["time"] < START_MS + 165_000 else outside).append(each)
    assert min(len(inside), len(outside)) > 10
    for each in (inside[5], outside[0], outside[-1]):
        each["metrics"]["total"] += 0.01
    report = stream.validated(spark, wrong, times=times)
    found = {check.name: check.examples for check in report.checks if check.mismatches}
    assert [each.id for each in found.pop("total")] == [inside[5]["id"]], report.as_text()
    assert not found, report.as_text()
    compared = {check.name: check.compared for check in report.checks}
    assert 0 < compared["ever"] < len(stream.replies) / 2
    assert report.in_range == sum(START_MS + 125_000 <= each["time"] < START_MS + 165_000 for each in wrong)
    assert report.unanswered == 0


def test_history_that_was_not_installed_as_it_is_is_found(
    spark: SparkSession, stream: Stream, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is named as its history has a row more than what it was built of."""
    rows = pq.read_table(stream.source).to_pylist()
    rows.insert(7, {**rows[0], "id": "more", "ts": CUT_MS - 5_000, "card": "a"})
    lake = stream.write(rows, tmp_path / "lake.parquet")
    words = ["validate", "--data", str(stream.data), "--replies", written(tmp_path, stream.replies)]
    assert main([*words, "--history", str(lake), "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    found = {each["name"]: each["mismatches"] for each in report["metrics"]}
    assert (found["installed_card"], found["installed_all"]) == (1, 1)
    assert found["seen"] > 0
    assert found["late_card"] == found["duplicate_card"] == 0
    assert report["history"]["events"] == sum(row["ts"] < CUT_MS for row in rows)


def test_what_cannot_be_computed_again_is_said(spark: SparkSession, stream: Stream, tmp_path: Path) -> None:
    file = written(tmp_path, stream.replies)
    with pytest.raises(PlaceError, match="name what the backfill read, --history"):
        check_recorded(Recorded({"path": str(stream.data)}, "s", (file,)))
    feed = Feed(6)
    refused = stream.write([feed.payment(0), {**feed.payment(1), "ts": None}], tmp_path / "bad.parquet")
    with pytest.raises(HistoryError, match=r"1 rows are refused \(ts: null\).* --skip-bad"):
        stream.validated(spark, source=refused)
    alone = EnginePlayer(tmp_path / "alone", "s", KEPT)
    alone.apply(stream.definitions)
    alone.engine.close(checkpoint=False)
    history = HistoryInput(HistorySource.of([str(stream.source)]))
    with pytest.raises(PlaceError, match="has no history: leave out --history"):
        check_recorded(Recorded({"path": str(tmp_path / "alone")}, "s", (file,), history))


@pytest.fixture
def no_trimming(monkeypatch: pytest.MonkeyPatch) -> None:
    """Logs are kept whole, as on a broker with log_retention = "forever"."""
    monkeypatch.setattr(EmbeddedLog, "trim", lambda *_: None)


@pytest.mark.usefixtures("no_trimming")
def test_replies_before_and_behind_a_deepening_are_equal(spark: SparkSession, tmp_path: Path) -> None:
    """Behind a second one nothing can be computed again."""
    text = definitions(ids="long", metrics=ONE_METRIC)
    deep = deepened(spark, tmp_path, 3, text, has_long_ids=True)
    report = deep.validated(spark)
    assert report.mismatches == 0, report.as_text()
    check_complete(report, deep)
    again = DeepeningOfEngine(deep.request())
    build_deepening(again.ready, again.plan(), pq.read_table(deep.source), KEPT)
    again.install()
    with pytest.raises(PlaceError, match="was given history 2 times"):
        deep.validated(spark)


def test_a_deepening_of_a_cluster_is_computed_again(
    spark: SparkSession, kafka: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where it began is said by a record of the log."""
    prefix, node = own_prefix("v"), tmp_path / "node"
    text = CLUSTER_STREAM.format(dedup=10_000) + ONE_METRIC
    place = tmp_path / "history.parquet"
    pq.write_table(history_rows(), place)
    request = BackfillRequest(
        node, parse_definitions(text), HistorySource.of([str(place)]), {}, CUT_ROW_MS, settings=OF_UNITS
    )
    made, player = DeepeningOfCluster(request, quick_settings(kafka), prefix), ClusterPlayer(kafka, prefix)

    def score(table: pa.Table) -> None:
        player.front_end.send(player.registry.snapshot().catalog.entry("s"), table.to_pylist())
        player.front_end.await_all()

    try:
        player.registry.change(lambda known: evolution.missing(known, parse_definitions(text)))
        with local_units(kafka, prefix, node, 1, OF_UNITS):
            score(live_rows(400, 600))
            plan = made.plan()
            score(live_rows(600, 640))
            build_deepening(made.ready, plan, history_rows(), OF_UNITS)
            made.install()
            score(live_rows(640, 700))
        replies = player.front_end.replies()
    finally:
        player.close()
    wrong = next(each for each in reversed(replies) if each["metrics"]["seen"])
    wrong["metrics"]["seen"] -= 1
    words = ["validate", "--broker", kafka, "--topic-prefix", prefix, "--history", str(place), "--replies"]
    assert main([*words, written(tmp_path, replies)]) == 1
    *lines, last = capsys.readouterr().out.splitlines()
    [found] = [line for line in lines if ": recorded " in line]
    assert found.startswith("seen: ")
    assert f", id {wrong['id']}: recorded {wrong['metrics']['seen']}, should be " in found
    assert f"{len(replies)} replies (0 events without one)" in last
    assert last.endswith(" equal, 1 WRONG")


@pytest.mark.torture
@pytest.mark.usefixtures("no_trimming", "as_in_production")
@pytest.mark.parametrize("seed", range(10, 26))
def test_random_streams_are_equal(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    text = definitions(
        ("rewrite", "discard")[seed % 2], (1_000, 100)[seed % 8 == 7], ("string", "long")[seed // 2 % 2]
    )
    made = (bootstrapped, deepened)[seed // 4 % 2]
    stream = made(spark, tmp_path, seed, text, has_long_ids=bool(seed // 2 % 2))
    report = stream.validated(spark)
    assert report.mismatches == 0, report.as_text()
