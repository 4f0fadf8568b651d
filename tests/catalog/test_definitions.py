"""Definitions files: what they say, what is refused, and that each error names its place and a remedy."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from railgun.catalog.definitions import load_definitions, parse_definitions
from railgun.catalog.errors import DefinitionError
from railgun.catalog.model import (
    LOGS_FOREVER,
    FieldDefinition,
    LatePolicy,
    StreamDefinition,
    home_partitioner,
)
from railgun.catalog.names import column_name
from railgun.catalog.stream_reading import definition_to_json, stream_from_json, stream_to_json
from railgun.language.types import DOUBLE, LONG, STRING, TIMESTAMP, decimal
from tests.catalog.metrics_of_query import metrics_from_sql

PAYMENTS = """
[streams.payments]
time = "ts"
id = "tx_id"
partitioners = ["card", "merchant"]
lateness = "5s"
late_policy = "rewrite"
max_future = "1s"
retention = "30d"
partitions = 1
record_replies = false
dedup_events = 1000000

[streams.payments.fields]
tx_id = "string"
ts = "timestamp"
card = "string"
merchant = "string"
amount = "double"
price = "decimal(12,2)"
n = "long"

[[metrics]]
sql = \"\"\"SELECT count(*) AS card_count_7d, sum(amount) AS card_sum_7d FROM payments
         WHERE amount > 0 GROUP BY card OVER SLIDING 7 DAYS\"\"\"

[[metrics]]
sql = "SELECT count(*) FROM payments GROUP BY merchant OVER TUMBLING 1 HOUR"
"""


def test_the_documented_file() -> None:
    definitions = parse_definitions(PAYMENTS)
    stream = definitions.streams["payments"]
    assert stream == StreamDefinition(
        name="payments",
        fields=(
            FieldDefinition("tx_id", STRING),
            FieldDefinition("ts", TIMESTAMP),
            FieldDefinition("card", STRING),
            FieldDefinition("merchant", STRING),
            FieldDefinition("amount", DOUBLE),
            FieldDefinition("price", decimal(12, 2)),
            FieldDefinition("n", LONG),
        ),
        time="ts",
        id="tx_id",
        partitioners=("card", "merchant"),
        lateness_ms=5_000,
        late_policy=LatePolicy.REWRITE,
        max_future_ms=1_000,
        retention_ms=30 * 86_400_000,
        partitions=1,
        record_replies=False,
        dedup_events=1_000_000,
    )
    named = [(metric.name, metric.home, metric.stream) for metric in definitions.metrics]
    assert named[:2] == [("card_count_7d", "card", "payments"), ("card_sum_7d", "card", "payments")]
    assert named[2][1] == "merchant"
    assert definitions.metrics_of("payments") == definitions.metrics
    assert definitions.metrics_of("other") == ()
    schema = stream.schema(4)
    assert [str(field.type) for field in schema.fields] == [str(each.type) for each in stream.fields]
    assert schema.version == 4


def test_defaults() -> None:
    stream = parse_definitions("[streams.s]\n[streams.s.fields]\na = 'long'\n").streams["s"]
    assert stream == StreamDefinition("s", (FieldDefinition("a", LONG),))
    assert (stream.partitioners, stream.lateness_ms, stream.future_limit_ms) == (("*",), 5_000, 1_000)
    assert (stream.retention_ms, stream.dedup_events) == (30 * 86_400_000, 1_000_000)
    short = parse_definitions("[streams.s]\nlateness = '300ms'\nretention = 'forever'").streams["s"]
    assert (short.future_limit_ms, short.retention_ms) == (300, None)
    assert parse_definitions("").streams == {}


def test_one_partition_for_all() -> None:
    stream = parse_definitions(PAYMENTS.replace('["card", "merchant"]', '["card", "*"]')).streams["payments"]
    wide = StreamDefinition("s", stream.fields, partitioners=stream.partitioners, partitions=7)
    assert (wide.partitions_of("card"), wide.partitions_of("*")) == (7, 1)


def test_metrics_stand_alone_in_their_sql() -> None:
    definitions = parse_definitions(PAYMENTS)
    for metric in definitions.metrics:
        assert metrics_from_sql(metric.sql, definitions.streams) == [metric]


@pytest.mark.parametrize(
    ("partitioners", "group_by", "home"),
    [
        (("card", "merchant"), ("card",), "card"),
        (("card", "merchant"), ("merchant",), "merchant"),
        (("card", "merchant"), ("card", "merchant"), "card"),
        (("merchant", "card"), ("card", "merchant"), "merchant"),
        (("*", "card"), ("card",), "card"),
        (("card", "*"), ("country",), "*"),
        (("card", "*"), (), "*"),
        (("card",), (), None),
        (("card",), ("country",), None),
    ],
)
def test_home(partitioners: tuple[str, ...], group_by: tuple[str, ...], home: str | None) -> None:
    assert home_partitioner(partitioners, group_by) == home


LONG_NAME = "x" * 64
METRIC = "[[metrics]]\nsql = "
# What is changed in the file, the place of the error, and words that it says.
REFUSED = [
    ("lateness =", "latenes =", "streams.payments.latenes", "unknown key; did you mean lateness?"),
    ("[streams.payments]", "[stream.payments]", "stream", "unknown key; did you mean streams?"),
    ('tx_id = "string"', 'tx_id = "strin"', "streams.payments.fields.tx_id", "did you mean string?"),
    ('tx_id = "string"', "tx_id = 5", "streams.payments.fields.tx_id", "a field's type is text"),
    ("(12,2)", "(19,2)", "streams.payments.fields.price", "precision"),
    ("(12,2)", "(12,13)", "streams.payments.fields.price", "scale"),
    ('lateness = "5s"', "lateness = 5", "streams.payments.lateness", 'as in "250ms"'),
    ('lateness = "5s"', 'lateness = "5 secs"', "streams.payments.lateness", "no unit of time"),
    ('lateness = "5s"', 'lateness = "-5s"', "streams.payments.lateness", "no duration"),
    ('"rewrite"', '"rewrit"', "streams.payments.late_policy", "did you mean rewrite?"),
    ('"rewrite"', "true", "streams.payments.late_policy", "text belongs here, not true or false"),
    ('max_future = "1s"', 'max_future = "6s"', "streams.payments.max_future", "longer than the lateness, 5s"),
    ('retention = "30d"', 'retention = "4s"', "streams.payments.retention", "shorter than the lateness, 5s"),
    ('retention = "30d"', 'retention = "for ever"', "streams.payments.retention", "no duration"),
    ("partitions = 1", "partitions = 0", "streams.payments.partitions", "0 is not in 1..4096"),
    ("partitions = 1", "partitions = 1.5", "streams.payments.partitions", "a whole number"),
    ("partitions = 1", "partitions = true", "streams.payments.partitions", "a whole number"),
    ("= false", "= 0", "streams.payments.record_replies", "true or false belongs here"),
    ("1000000", "0", "streams.payments.dedup_events", "0 is not in"),
    ('time = "ts"', 'time = "tss"', "streams.payments.time", "did you mean ts?"),
    ('time = "ts"', 'time = "card"', "streams.payments.time", "card is string; the time of events"),
    ('id = "tx_id"', 'id = "amount"', "streams.payments.id", "an id is string or long"),
    ('["card", "merchant"]', '["card", "price"]', "streams.payments.partitioners", "price is decimal(12,2)"),
    ('["card", "merchant"]', '["card", "card"]', "streams.payments.partitioners", "twice"),
    ('["card", "merchant"]', "[]", "streams.payments.partitioners", "at least one"),
    ('["card", "merchant"]', '"card"', "streams.payments.partitioners", "a list of names"),
    ("card =", '"1card" =', "streams.payments.fields.1card", "cannot name a field"),
    ("\nn = ", f"\n{LONG_NAME} = ", f"streams.payments.fields.{LONG_NAME}", "at most 63"),
    ("sql", "query", "metrics.0.query", "unknown key; known here: sql"),
    ("AS card_sum_7d", "AS late_card", "metrics.0.sql", "late_"),
    ("AS card_sum_7d", "AS duplicate_x", "metrics.0.sql", "duplicate_"),
    ("AS card_sum_7d", "AS tx_id", "metrics.0.sql", "the column of the id"),
    ("AS card_sum_7d", "AS card_count_7d", "metrics.0.sql", "card_count_7d"),
    ("sum(amount)", "sum(amout)", "metrics.0.sql", "line 1, column 39"),
    (
        "FROM payments G",
        "FROM payment G",
        "metrics.1.sql",
        "no stream 'payment'; did you mean payments? Otherwise the file needs [streams.payment], also if a server has",
    ),
    (
        "FROM payments G",
        "FROM x G",
        "metrics.1.sql",
        "no stream 'x'; known here: payments; otherwise the file needs [streams.x], also if a server has",
    ),
    ("GROUP BY merchant", "", "metrics.1.sql", "add card or merchant to its GROUP BY"),
    ("GROUP BY merchant", "GROUP BY n", "metrics.1.sql", "has no home"),
    ("count(*) FROM", "count(*) AS card_sum_7d FROM", "metrics.1.sql", "of metrics.0 too"),
    ("[streams.payments]", "[streams.replies]\n[streams.payments]", "streams.replies", "own topics"),
    ("[streams.payments]", "[streams.a-b]\n[streams.payments]", "streams.a-b", "cannot name a stream"),
    ("[streams.payments]", "[streams.payments", "", "no TOML"),
    ("[streams.payments]", "[streams.größe]\n[streams.payments]", "", "put the name with 'ö' in quotes"),
    ("[streams.payments]", "[streams.payments]\nübrig = 1", "", "put the name with 'ü' in quotes"),
    ("[streams.payments]", "metrics = 5\n[streams.payments]", "", "no TOML"),
]


@pytest.mark.parametrize(("old", "new", "place", "words"), REFUSED)
def test_errors_have_a_place_and_a_remedy(old: str, new: str, place: str, words: str) -> None:
    assert old in PAYMENTS
    with pytest.raises(DefinitionError) as caught:
        parse_definitions(PAYMENTS.replace(old, new, 1))
    assert ".".join(map(str, caught.value.loc)) == place
    assert words in str(caught.value)
    if place.startswith("metrics.") and place.endswith(".sql"):
        assert re.search(r"\.sql: line [0-9]+, column [0-9]+: ", str(caught.value))
    assert "\n" not in str(caught.value)


WITH_ALL = "[streams.s]\npartitioners = {}\nfields = {{all = 'string', card = 'string'}}\n"


@pytest.mark.parametrize("partitioners", ["['all', '*']", "['*', 'card', 'all']"])
def test_a_field_named_as_all_events_are(partitioners: str) -> None:
    """Tasks of both would have one folder, and replies two columns of one name."""
    with pytest.raises(DefinitionError) as caught:
        parse_definitions(WITH_ALL.format(partitioners))
    assert caught.value.loc == ("streams", "s", "partitioners")
    assert "rename the field, or leave out *" in str(caught.value)


@pytest.mark.parametrize("partitioners", ["['all']", "['all', 'card']", "['*', 'card']"])
def test_a_field_named_as_all_events_are_alone(partitioners: str) -> None:
    stream = parse_definitions(WITH_ALL.format(partitioners)).streams["s"]
    assert "all" in stream.types
    assert len({column_name(each) for each in stream.partitioners}) == len(stream.partitioners)


def test_metrics_alone_are_no_definitions() -> None:
    with pytest.raises(
        DefinitionError, match=r"metrics.0.sql.*no stream 'pay'; the file needs \[streams.pay\], also if"
    ):
        parse_definitions('[[metrics]]\nsql = "SELECT count(*) AS n FROM pay OVER SLIDING 1 HOUR"')


@pytest.mark.parametrize(
    "text",
    [
        "streams = 5",
        "streams.a = 5",
        "metrics = 5",
        "metrics = [5]",
        "[[metrics]]",
        "[[metrics]]\nsql = 5",
        "[streams.s]\nfields = 5",
        "[streams.s]\nfields.a = 5",
        "a = " + "[" * 100_000,
        "[streams]\n[streams.id]\nid = 5",
    ],
)
def test_shapes_that_are_no_definitions(text: str) -> None:
    with pytest.raises(DefinitionError):
        parse_definitions(text)


def test_a_byte_order_mark_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "d.toml").write_bytes(b"\xef\xbb\xbf" + PAYMENTS.encode())
    assert load_definitions(tmp_path / "d.toml") == parse_definitions(PAYMENTS)


def test_a_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "payments.toml"
    path.write_text(PAYMENTS)
    assert load_definitions(path) == parse_definitions(PAYMENTS)
    path.write_text(PAYMENTS.replace("lateness", "latenes"))
    with pytest.raises(DefinitionError, match=r"payments\.toml: streams\.payments\.latenes: unknown key"):
        load_definitions(path)
    path.write_bytes(b"\xff")
    with pytest.raises(DefinitionError, match=r"payments\.toml: no UTF-8 at byte 0"):
        load_definitions(path)


def test_json_is_read_back() -> None:
    stream = parse_definitions(PAYMENTS).streams["payments"]
    body = json.loads(json.dumps(stream_to_json(stream)))
    assert stream_from_json(body) == stream
    assert body["lateness"] == "5s"
    assert list(body["fields"].items())[:2] == [("tx_id", "string"), ("ts", "timestamp")]


def test_json_null_is_a_key_left_out() -> None:
    body = {"name": "s", "time": None, "id": None, "max_future": None, "fields": {"a": "long"}}
    assert stream_from_json(body) == StreamDefinition("s", (FieldDefinition("a", LONG),))


@pytest.mark.parametrize("body", [None, [], "s", {}, {"name": 5}, {"name": "s", "stream": 1}, {"name": ""}])
def test_json_that_is_no_stream(body: object) -> None:
    with pytest.raises(DefinitionError):
        stream_from_json(body)


DURATIONS = st.integers(0, 10**10)


@given(
    lateness=DURATIONS,
    extra=DURATIONS | st.none(),
    future=DURATIONS | st.none(),
    partitions=st.integers(1, 4096),
    policy=st.sampled_from(LatePolicy),
)
def test_any_stream_survives_json(
    lateness: int, extra: int | None, future: int | None, partitions: int, policy: LatePolicy
) -> None:
    stream = StreamDefinition(
        "s",
        (FieldDefinition("a", LONG), FieldDefinition("b", decimal(9, 3))),
        lateness_ms=lateness,
        retention_ms=None if extra is None else lateness + extra,
        max_future_ms=None if future is None else min(future, lateness),
        partitions=partitions,
        late_policy=policy,
    )
    assert stream_from_json(json.loads(json.dumps(stream_to_json(stream)))) == stream


@pytest.mark.parametrize(
    ("text", "kept_ms"), [("7d", 604_800_000), ("1h", 3_600_000), ("forever", LOGS_FOREVER), (None, None)]
)
def test_how_long_logs_are_kept(text: str | None, kept_ms: int | None) -> None:
    line = "" if text is None else f'log_retention = "{text}"'
    stream = parse_definitions(f"[streams.s]\n{line}\nfields = {{a = 'long'}}").streams["s"]
    assert stream.log_retention_ms == kept_ms
    body = definition_to_json(stream)
    assert body.get("log_retention") == text
    assert stream_from_json(body) == stream
    # Tasks do not know it, so that releases that would refuse it read their logs and checkpoints.
    assert stream_to_json(stream) == stream_to_json(replace(stream, log_retention_ms=None))
    assert "log_retention" not in stream_to_json(stream)


@pytest.mark.parametrize("text", ["59m", "never", ""])
def test_how_long_logs_are_not_kept(text: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        stream_from_json({"name": "s", "log_retention": text, "fields": {"a": "long"}})
    assert caught.value.loc == ("log_retention",)
