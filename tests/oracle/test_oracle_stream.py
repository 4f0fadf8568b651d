"""Definitions, routing, homes, the front-end's refusals, and the form of replies."""

from typing import Any

import pytest

from tests.oracle.compare import differences, same_value
from tests.oracle.definitions import parse_definitions
from tests.oracle.errors import DefinitionRefused, EventRefused, OracleError, QueryRefused
from tests.oracle.murmur2 import partition
from tests.oracle.stream import Oracle, StreamOracle

FIELDS = """
[streams.s.fields]
id = "string"
ts = "timestamp"
card = "string"
shop = "long"
amount = "decimal(10,2)"
"""


def stream(settings: str = "", queries: str = "") -> StreamOracle:
    text = f'[streams.s]\nid = "id"\ntime = "ts"\n{settings}\n{FIELDS}'
    text += "".join(f'[[metrics]]\nsql = """{sql}"""\n' for sql in queries.split(";") if sql)
    return Oracle(text).streams["s"]


def event(identity: str, ts: int, **fields: Any) -> dict[str, Any]:
    return {"id": identity, "ts": ts, **fields}


CARD = "SELECT count(*) AS n, sum(amount) AS total FROM s GROUP BY card OVER SLIDING 1 DAY"


def test_defaults_are_those_of_the_interface() -> None:
    found = parse_definitions(f"[streams.s]\n{FIELDS}").streams["s"]
    assert (found.partitioners, found.lateness_ms, found.late_policy) == (("*",), 5_000, "rewrite")
    assert (found.retention_ms, found.partitions, found.dedup_events) == (2_592_000_000, 1, 1_000_000)
    assert found.future_limit_ms == 1_000
    short = parse_definitions(f'[streams.s]\nlateness = "500ms"\n{FIELDS}').streams["s"]
    assert short.future_limit_ms == 500


@pytest.mark.parametrize(
    "settings",
    [
        'lateness = "5"',
        'late_policy = "drop"',
        'max_future = "6s"',
        'retention = "4s"',
        "partitions = 0",
        "dedup_events = 0",
        'partitioners = ["amount"]',
        'partitioners = ["card", "card"]',
        "partitioners = []",
        'window = "1d"',
    ],
)
def test_definitions_that_are_refused(settings: str) -> None:
    with pytest.raises(DefinitionRefused):
        stream(settings)


def test_replies_have_the_public_form() -> None:
    oracle = stream('partitioners = ["card"]', CARD)
    expected = {"id": "a", "time": 1000, "metrics": {"n": 1, "total": "12.50"}}
    assert oracle.score({"id": "a", "ts": "1970-01-01T00:00:01Z", "card": "c", "amount": "12.5"}) == expected
    again = oracle.score(event("a", 2000, card="c"))
    assert again == {"id": "a", "time": 2000, "metrics": {"n": 1, "total": "12.50"}, "duplicate": ["card"]}


def test_home_is_the_first_partitioner_of_the_stream_that_the_grouping_names() -> None:
    oracle = stream('partitioners = ["card", "shop", "*"]')
    oracle.add_metrics("SELECT count(*) AS a FROM s GROUP BY shop, card OVER INFINITE")
    oracle.add_metrics("SELECT count(*) AS b FROM s GROUP BY shop OVER INFINITE")
    oracle.add_metrics("SELECT count(*) AS c FROM s GROUP BY amount OVER INFINITE")
    homes = {name: list(tasks[0].metrics) for name, tasks in oracle.tasks.items()}
    assert homes == {"card": ["a"], "shop": ["b"], "*": ["c"]}
    with pytest.raises(QueryRefused):
        stream('partitioners = ["card"]').add_metrics(
            "SELECT count(*) AS a FROM s GROUP BY shop OVER INFINITE"
        )


def test_a_null_partitioner_field() -> None:
    oracle = stream('partitioners = ["card", "shop"]', CARD)
    oracle.add_metrics("SELECT count(*) AS shops FROM s GROUP BY shop OVER INFINITE")
    reply = oracle.score(event("a", 0, shop=1))
    assert reply == {"id": "a", "time": 0, "metrics": {"n": None, "total": None, "shops": 1}}
    for _ in range(2):
        nowhere = oracle.score(event("b", 0))
        assert nowhere["metrics"] == {"n": None, "total": None, "shops": None}
        assert "duplicate" not in nowhere


def test_each_partition_has_its_own_clock_and_memory() -> None:
    oracle = stream('partitioners = ["card"]\npartitions = 4', CARD)
    here = "a"
    there = next(c for c in "bcdefgh" if partition(c, 4) != partition(here, 4))
    oracle.score(event("1", 10**9, card=here))
    early = oracle.score(event("1", 0, card=there))
    assert early["metrics"]["n"] == 1
    assert "late" not in early
    assert "duplicate" not in early
    assert oracle.score(event("2", 0, card=here))["late"] == {"card": "rewritten"}


def test_the_star_is_one_partition() -> None:
    assert len(stream("partitions = 7").tasks["*"]) == 1


def test_arrival_stamps_never_go_back() -> None:
    oracle = Oracle(f'[streams.s]\nid = "id"\n{FIELDS}').streams["s"]
    for clock_ms, time in ((1000, 1000), (900, 1000), (1001, 1001)):
        oracle.set_clock(clock_ms)
        assert oracle.score({"id": str(clock_ms)})["time"] == time


def test_the_door_refuses_what_is_too_far_ahead() -> None:
    oracle = stream('max_future = "2s"')
    oracle.set_clock(10_000)
    oracle.score(event("a", 12_000))
    with pytest.raises(EventRefused):
        oracle.score(event("b", 12_001))


@pytest.mark.parametrize(
    "bad", [{"ts": 0}, {"id": None, "ts": 0}, {"id": "a"}, {"id": "a", "ts": 0, "shop": "x"}]
)
def test_the_door_refuses_without_id_or_time_or_type(bad: dict[str, Any]) -> None:
    oracle = stream()
    with pytest.raises(EventRefused):
        oracle.score(bad)
    assert not oracle.tasks["*"][0].log


def test_a_field_sent_before_it_was_known_stays_null() -> None:
    oracle = stream()
    oracle.score(event("a", 0, extra=5))
    oracle.add_field("extra", "long")
    oracle.add_metrics("SELECT sum(extra) AS total FROM s OVER INFINITE")
    assert oracle.score(event("b", 0, extra=7))["metrics"] == {"total": 7}


def test_changes_reach_every_partition() -> None:
    oracle = stream('partitioners = ["card"]\npartitions = 3', CARD)
    oracle.set_lateness("1m")
    oracle.set_retention("forever")
    assert {(task.lateness_ms, task.retention_ms) for task in oracle.tasks["card"]} == {(60_000, None)}
    oracle.drop_metric("n")
    assert oracle.score(event("a", 0, card="c"))["metrics"] == {"total": None}


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*) AS id FROM s OVER INFINITE",
        "SELECT count(*) AS late_card FROM s OVER INFINITE",
        "SELECT count(*) AS duplicate_x FROM s OVER INFINITE",
        "SELECT count(*) AS n, sum(shop) AS n FROM s OVER INFINITE",
        "SELECT count(*) AS n FROM other OVER INFINITE",
        "SELECT count(*) AS n FROM s WHERE shop OVER INFINITE",
        "SELECT count(*) AS n FROM s GROUP BY nowhere OVER INFINITE",
        "SELECT sum(card) AS n FROM s OVER INFINITE",
        "SELECT count(NULL) AS n FROM s OVER INFINITE",
    ],
)
def test_a_refused_query_registers_nothing(sql: str) -> None:
    oracle = stream()
    with pytest.raises(OracleError):
        oracle.add_metrics(sql)
    assert not oracle.catalogue.metrics
    assert not oracle.tasks["*"][0].log


def test_values_are_told_apart_by_type_and_bits() -> None:
    assert same_value(0.1, 0.1)
    for expected, got in ((1, 1.0), (1, True), (0.0, -0.0), (None, 0), ("1", 1), (0.1, 0.1 + 1e-17 * 2)):
        assert not same_value(expected, got)


REPLY: dict[str, Any] = {"id": "a", "time": 1, "metrics": {"n": 1, "x": 2.0}, "partial": {"x": 5}}


@pytest.mark.parametrize(
    "got",
    [
        {**REPLY, "id": "b"},
        {**REPLY, "time": 2},
        {**REPLY, "metrics": {"n": 1}},
        {**REPLY, "metrics": {"n": 1, "x": 2}},
        {**REPLY, "metrics": {"n": 1, "x": 2.0, "y": None}},
        {**REPLY, "late": {"card": "rewritten"}},
        {**REPLY, "duplicate": ["card"]},
        {**REPLY, "duplicate": []},
        {**REPLY, "warming": ["n"]},
        {**REPLY, "partial": {}},
        {**REPLY, "partial": {"x": 4}},
        {**REPLY, "extra": 1},
    ],
)
def test_differences_are_told(got: dict[str, Any]) -> None:
    assert differences(REPLY, got)
    assert not differences(REPLY, REPLY)


def test_a_metric_may_be_excused_while_it_warms() -> None:
    warming = {"id": "a", "time": 1, "metrics": {"n": 1, "x": None}, "warming": ["x"]}
    assert differences(REPLY, warming)
    assert not differences(REPLY, warming, any_warming=True)
    assert differences(REPLY, {**warming, "metrics": {"n": 1, "x": 2.0}}, any_warming=True)
    assert differences(REPLY, {**REPLY, "warming": ["z"]}, any_warming=True)
