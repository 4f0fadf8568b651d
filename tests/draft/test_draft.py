"""What a draft says of events: types, paths, roles, lateness, and nothing of their values."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from railgun.draft.draft import ACTIVE_MAX, draft
from railgun.draft.errors import DraftError
from railgun.draft.naming import stream_name, words_of
from railgun.draft.sample import Sample
from railgun.wire.finding import EventRecord
from railgun.wire.values import JsonNumber
from tests.draft.drafts import NOW_MS, changes, drafted, orders, read, stream_of, types_of, uncommented

S = 1_700_000_000


def of_values(name: str, values: list[Any]) -> str:
    """The draft of events that have these values, and something beside them."""
    return drafted([{name: value, "fixed": "x"} for value in values])


@pytest.mark.parametrize(
    ("name", "values", "type_"),
    [
        ("a", ["x", "y"], "string"),
        ("a", [1, 2], "double"),
        ("item_count", [1, 2], "long"),
        ("merchantId", [1, 2], "long"),
        ("a", [1, JsonNumber("2.5")], "double"),
        ("item_count", [1, JsonNumber("2.5")], "double"),
        ("a", [2**53 + 1, 1], "long"),
        ("a", [True, False], "boolean"),
        ("a", [None, True], "boolean"),
        ("a", ["2026-01-31T23:59:59Z"], "timestamp"),
        ("a", ["2026-01-31T23:59:59Z", "never"], "string"),
        ("a", ["2026-01-31T23:59:59"], "string"),
        ("a", [datetime(2026, 1, 31, tzinfo=UTC)], "timestamp"),
        ("created", [S, S + 1], "timestamp"),
        ("created", [S, 12], "double"),
        ("a", [S, S + 1], "double"),
        ("a", [f"{S}.5", str(S)], "string"),
        ("created", [f"{S}.5", "never"], "string"),
        ("created", [str(S), "12"], "string"),
        ("user_id", [10**9 * S, 10**9 * S + 1], "long"),
        ("a", [Decimal("1.50"), Decimal("2.345")], "decimal(18,3)"),
        ("amount", ["1.50", "2.345"], "decimal(18,3)"),
        ("a", ["1.50", "2.345"], "string"),
    ],
)
def test_the_type_of_values(name: str, values: list[Any], type_: str) -> None:
    assert types_of(of_values(name, values))[name] == type_


@pytest.mark.parametrize(
    ("values", "why"),
    [
        (["x", "y", "z", 1], "of mixed kinds: text in 75.0 % and a whole number in 25.0 %"),
        ([True, 1], "of mixed kinds"),
        ([{"b": 1}, "x"], "of mixed kinds: an object in 50.0 % and text in 50.0 %"),
        ([2**64 + 1, 1], "whole numbers beyond 64 bits"),
        ([[1], [2]], "an array; take an element"),
        ([b"\x89PNG"], "bytes"),
        (["\udcff"], "bytes, or text that is no UTF-8"),
        ([float("nan"), 1.0], "of mixed kinds: no finite number"),
        ([JsonNumber("1e999")], "no finite number"),
        (["x" * 65_536], "text of up to 65,536 bytes"),
        ([None, None], "null wherever it is there"),
        ([datetime(2026, 1, 31, tzinfo=UTC).date()], "a date"),
        ([Decimal("1e40")], "decimals of more than 18 digits"),
    ],
)
def test_what_no_field_can_be_is_a_comment(values: list[Any], why: str) -> None:
    text = of_values("a", values)
    assert "a" not in types_of(text)
    assert f"# a: {why}" in text


@pytest.mark.parametrize(
    ("values", "unit"),
    [
        ([S], "s"),
        ([JsonNumber(f"{S}.25"), S], "s"),
        ([1000 * S], ""),
        ([JsonNumber(f"{S}000.5")], "ms"),
        ([10**6 * S], "us"),
        ([10**9 * S], "ns"),
        ([f"{S}.123", str(S)], "s"),
        ([f"{S}000"], "ms"),
        ([f"{S}.123", S, JsonNumber(f"{S}.5")], "s"),
    ],
)
def test_the_unit_of_times(values: list[Any], unit: str) -> None:
    stream = stream_of(of_values("event_time", values))
    assert stream.time == "event_time"
    assert stream.fields[0].unit == unit


def broken(count: int, **more: Any) -> list[dict[str, Any]]:
    """Events with a nested part, and a few of them with other things in places: `more` has these for the first one."""
    events: list[dict[str, Any]] = [
        {"at": f"{S + n}.5" if n % 3 else S + n, "who": {"card": f"c{n % 9}", "amount": n / 2}, "note": "x"}
        for n in range(count)
    ]
    return [{**events[0], **more}, *events[1:]]


@pytest.mark.parametrize("other", ["soon", True, None])
def test_a_time_that_a_few_events_have_in_another_kind(other: Any) -> None:
    made = draft(Sample("a sample", broken(60, at=other)), "s", NOW_MS)
    stream = stream_of(made.text)
    assert (stream.time, stream.fields[0].unit, made.refused) == ("at", "s", 1)
    if other is not None:
        assert "s since 1970, some as text; another kind in 1.7 %: such events are refused" in made.text


def test_a_part_that_a_few_events_lack_an_object_for() -> None:
    text = drafted(broken(60, who="broken"))
    assert stream_of(text).partitioners == ("card",)
    assert types_of(text)["who.amount"] == "double"
    assert "# who: of mixed kinds: an object in 98.3 % and text in 1.7 %" in text
    # One in ten is not few.
    assert "who.card" not in types_of(drafted(broken(10, who="broken")))


def test_a_field_that_would_refuse_events_of_itself_is_a_comment() -> None:
    text = drafted(broken(60, note=5))
    assert "note" not in types_of(text)
    assert '# note = "string"  # text; another kind in 1.7 %: such events are refused; in 98.3 %' in text
    # The same events are refused for their partitioner.
    assert types_of(drafted(broken(60, note=5, who="broken")))["note"] == "string"


def test_what_is_different_in_nearly_all_events_is_no_partitioner() -> None:
    events = [{"trace": f"t{max(n, 1)}", "host_name": f"h{n % 3}"} for n in range(50)]
    assert stream_of(drafted(events)).partitioners == ("host_name",)
    assert stream_of(drafted([{"trace": each["trace"]} for each in events])).partitioners == ("*",)


def test_nanoseconds_are_times_whatever_their_name_is() -> None:
    assert types_of(of_values("a", [10**9 * S, 10**9 * S + 1]))["a"] == "timestamp"


def test_nested_events() -> None:
    text = drafted(orders(), "orders")
    stream = stream_of(text)
    assert types_of(text) == {
        "header.id": "string",
        "header['created-at']": "timestamp",
        "customer.ref": "string",
        "customer.address.zip": "string",
        "payment['total-amount'].value": "double",
        "payment['total-amount'].currency": "string",
        "payment.tries": "long",
        "['it''s']['a \"b\"\n']": "boolean",
    }
    assert (stream.time, stream.id, stream.partitioners) == ("created_at", "id", ("ref",))
    assert stream.lateness_ms == 5_000
    assert 'time = "created_at"  # whole s since 1970; in all' in text
    assert 'id = "id"  # different in all 200 events' in text
    assert 'partitioners = ["ref"]  # 17 different in 200 events' in text
    assert "also possible: zip" in text
    assert '# sku = { type = "string", from = "lines[0].sku" }  # text; in all; 200 different' in text
    assert "# note: of mixed kinds" in text
    assert [metric.name for metric in read(text).metrics] == [
        "ref_orders_10m",
        "ref_value_1d",
        "ref_usual_value",
    ]


def test_no_value_is_in_a_draft() -> None:
    secret = "4111222233334444"
    documents = [
        {"pan": secret, "n": int(secret), "by_card": {secret: 1}, secret: "x", "mixed": [secret, 1][n % 2]}
        for n in range(50)
    ]
    text = drafted(documents)
    assert secret not in text
    assert "seem to be values" in text


def test_a_map_is_not_taken_apart() -> None:
    names = [f"{a}{b}" for a in "abcdefghij" for b in "abcdefghij"]
    text = drafted([{"by_name": {name: 1}, "a": "x"} for name in names])
    assert types_of(text) == {"a": "string"}
    assert "# by_name: an object of 100 different keys" in text
    assert "cj" not in text


def test_at_most_thirty_fields_are_in_force() -> None:
    document = {f"f{chr(97 + n % 26)}{chr(97 + n // 26)}": "x" for n in range(60)} | {
        "id": "1",
        "ts": 1000 * S,
    }
    text = drafted([document])
    stream = stream_of(text)
    assert len(stream.fields) == ACTIVE_MAX == 30
    assert stream.time == "ts"
    assert text.count("# f") == 32
    with pytest.raises(DraftError, match="no field can be made of its 2 events"):
        drafted([{}, {"a": None}])


def test_of_two_times_one_is_taken_and_the_other_named() -> None:
    text = drafted([{"updated_at": 1000 * S + n, "created_at": 1000 * S + n, "id": str(n)} for n in range(9)])
    assert stream_of(text).time == "created_at"
    assert "also possible: updated_at" in text
    later = NOW_MS + 86_400_000
    text = drafted([{"ts": later + n, "time": 1000 * S + n} for n in range(9)])
    assert stream_of(text).time == "time"


ZONED, ZONELESS = "2026-01-31T23:59:59Z", "2026-01-31 23:59:59"


@pytest.mark.parametrize(
    ("values", "note"),
    [
        (
            [ZONELESS] * 3,
            "text: times, which lack an offset in all; each needs one, as in 2026-01-05T10:00:00Z; in all",
        ),
        ([ZONED] * 5 + [ZONELESS], "text: times, which lack an offset in 16.7 %; each needs one, as in"),
        ([ZONED, "2026-01-31T23:59"], "text: times, which lack an offset in 50.0 %; each needs one, as in"),
    ],
)
def test_times_that_lack_an_offset(values: list[str], note: str) -> None:
    text = of_values("booked_at", values)
    assert f'booked_at = "string"  # {note}' in text
    why = "booked_at cannot be it, as times there lack an offset: events have that of their arrival"
    assert f'# time = "..."  # {why}' in text
    # Its values come again, yet events are not grouped by it.
    assert stream_of(text).partitioners == ("*",)


def test_a_record_has_the_time_where_that_of_events_lacks_an_offset() -> None:
    documents = [{"booked_at": ZONELESS, "card": f"c{n % 3}"} for n in range(9)]
    records = [EventRecord(None, None, 1000 * S + n) for n in range(9)]
    text = draft(Sample("t", documents, is_topic=True, records=records), "s", NOW_MS).text
    assert stream_of(text).time == "record_time"
    assert "; booked_at cannot be it, as times there lack an offset" in text


@pytest.mark.parametrize(
    ("values", "note"),
    [
        ([ZONED, ZONED, "never"], "text, but a time as RFC 3339 text in 66.7 %; in all"),
        (
            ["10.50"] * 5 + ["1,200.00"],
            "text, but digits in 83.3 %: others have commas, which no number has; in all",
        ),
        (["10.50"] * 5 + ["none"], "text, but digits in 83.3 %: are others null?; in all"),
        (["10.50"] * 2 + ["x1", "x2"], "text, but digits in 50.0 %; in all"),
        (["10.50", "x1", "x2"], "text; in all"),
    ],
)
def test_text_of_which_much_is_something_else(values: list[str], note: str) -> None:
    assert f'a = "string"  # {note}' in of_values("a", values)


def test_a_time_that_some_lack() -> None:
    documents = [{"ts": 1000 * S + n, "a": "x"} for n in range(9)] + [{"a": "x"}]
    made = draft(Sample("a sample", documents), "s", NOW_MS)
    assert "in 90.0 %; events without it are refused" in made.text
    assert made.refused == 1
    assert "nothing seems to be a time" in drafted([{"a": "x"}])


@pytest.mark.parametrize(
    ("times", "lateness", "note"),
    [
        ([0, 1, 2], "5s", "no event came after a later one"),
        ([0, 20_000, 1], "30s", "1 of 3 came after a later one, by 19 s at most"),
        (
            [5 * 86_400_000, *range(9)],
            "1d",
            "9 of 10 came after a later one, by 5 d at most; they are not in",
        ),
    ],
)
def test_lateness_is_the_disorder(times: list[int], lateness: str, note: str) -> None:
    text = drafted([{"ts": 1000 * S + time} for time in times])
    assert f'lateness = "{lateness}"  # {note}' in text


def test_disorder_is_that_of_a_partition() -> None:
    documents = [{"ts": 1000 * S + time} for time in (0, 900_000, 1, 900_001)]
    sample = Sample("t", documents, is_topic=True, records=[EventRecord()] * 4, lanes=[0, 1, 0, 1])
    assert "# no event came after a later one" in draft(sample, "s", NOW_MS).text


def test_changes_of_rows() -> None:
    for documents, start in (
        (changes(), ""),
        ([{"schema": {"type": "struct"}, "payload": each} for each in changes()], "payload."),
    ):
        text = drafted(documents, "payments")
        assert types_of(text) == {
            f"{start}after.id": "long",
            f"{start}after.card": "string",
            f"{start}after.amount": "double",
            f"{start}source.ts_ms": "timestamp",
            f"{start}op": "string",
            f"{start}ts_ms": "timestamp",
        }
        stream = stream_of(text)
        (time,) = (each for each in stream.fields if each.name == stream.time)
        assert time.path is not None
        assert time.path.text == f"{start}source.ts_ms"
        assert stream.partitioners == ("card",)
        assert "Debezium's changes of rows" in text
        assert ("Connect's envelope" in text) == bool(start)


def of_topic(documents: list[dict[str, Any]], **more: Any) -> str:
    text = draft(Sample("t", documents, is_topic=True, **more), "s", NOW_MS).text
    read(uncommented(text))
    return text


def test_new_rows_are_the_events_of_a_topic_of_changes() -> None:
    rows: list[dict[str, Any]] = changes()
    for at, op in ((3, "u"), (5, "r"), (7, "x")):
        rows[at]["op"] = op
    rows[3]["after"]["late"] = rows[5]["after"]["early"] = "x"
    for documents in (rows, [{"schema": {"type": "struct"}, "payload": each} for each in rows]):
        text = of_topic(documents)
        stream = stream_of(text)
        assert stream.input.where is not None
        assert stream.input.where.text == "op IN ('c', 'r')"
        assert (
            "  # taken: 87 creations (c), 1 snapshot row (r); left out: 1 update (u), 10 deletes (d), "
            "1 change of another kind; an update is the next version of a row that was an event\n"
        ) in text
        assert "from 88 events of t." in text
        assert '# id = "id"  # different in all 88 events; is it so in all of the topic?' in text
        assert ("early" in text, "late =" in text) == (True, False)


def test_updates_are_events_where_no_row_is_new() -> None:
    updates = [each | {"op": "u"} for each in changes() if each["after"]]
    text = of_topic(updates)
    where = stream_of(text).input.where
    assert where is not None
    assert where.text == "op IN ('c', 'r', 'u')"
    assert "# taken: 90 updates (u); updates only as there are no new rows: are they events?" in text
    deletes = [each for each in changes() if not each["after"]]
    with pytest.raises(DraftError) as caught:
        of_topic(deletes)
    assert str(caught.value) == (
        "t: none of its changes has a row: 10 deletes (d); write some, then run this again"
    )


def test_changes_are_in_the_order_of_their_partitions() -> None:
    rows: list[dict[str, Any]] = changes(4)
    for each, time in zip(rows, (9, 8, 0, 1)):
        each["source"]["ts_ms"] = 1000 * S + 1000 * time
    rows[0]["op"] = "d"
    records = [EventRecord(b"%d" % n) for n in range(4)]
    text = of_topic(rows, records=records, lanes=[0, 0, 1, 1])
    assert "# no event came after a later one" in text
    assert 'from = "@key" }  # text; in all; 3 different' in text


def test_of_a_file_all_changes_are_events() -> None:
    text = drafted(changes())
    assert "from 100 events" in text
    assert "metrics of new rows alone have WHERE op IN ('c', 'r')." in text
    numbered = drafted([each | {"op": n} for n, each in enumerate(changes())])
    assert "metrics of new rows" not in numbered


def test_what_is_beside_records() -> None:
    records = [
        EventRecord(b"key %d" % (n % 3), {"origin": b"web", "x-y": b"\xff"}, 1000 * S + n) for n in range(9)
    ]
    documents = [{"ts": 1000 * S, "card": f"c{n % 4}"} for n in range(9)]
    text = draft(Sample("t", documents, is_topic=True, records=records), "s", NOW_MS).text
    stream = stream_of(text)
    assert (stream.time, stream.id, stream.partitioners) == ("ts", None, ("card",))
    assert '# record_key = { type = "string", from = "@key" }  # text; in all; 3 different' in text
    assert '# origin = { type = "string", from = "@header.origin" }' in text
    assert "# @header['x-y']: bytes" in text
    bare = draft(Sample("t", [{"a": 1.5}] * 9, is_topic=True, records=records), "s", NOW_MS).text
    stream = stream_of(bare)
    assert (stream.time, stream.partitioners) == ("record_time", ("record_key",))
    assert "such events come from the topic alone" in bare


def test_an_id_of_a_topic_stays_a_comment() -> None:
    documents = [{"tx_id": f"t{n}", "ts": 1000 * S} for n in range(9)]
    text = draft(Sample("t", documents, is_topic=True), "s", NOW_MS).text
    assert stream_of(text).id is None
    assert '# id = "tx_id"  # different in all 9 events; is it so in all of the topic?' in text


def test_an_id_is_not_that_of_an_entity() -> None:
    text = drafted([{"customer_id": f"c{n}", "ts": 1000 * S} for n in range(9)])
    assert stream_of(text).id is None
    assert stream_of(text).partitioners == ("customer_id",)


@pytest.mark.parametrize(
    "word", ["select", "over", "from", "group", "case", "all", "null", "metrics", "true"]
)
def test_names_that_are_words_of_the_language(word: str) -> None:
    text = drafted([{word: f"c{n % 3}", f"{word}_b": 1.5, "ts": 1000 * S} for n in range(9)], "stream")
    assert len(read(text).metrics) == 3


@pytest.mark.parametrize(
    ("place", "name"),
    [
        ("prod.payments.v2", "payments"),
        ("railgun.payments.in", "payments"),
        ("server1.inventory.orders", "orders"),
        ("2024", "events_2024"),
        ("card-payments", "card_payments"),
        ("replies", "replies_events"),
        ("zahlungen-ä", "zahlungen_a"),
        ("…", "events"),
    ],
)
def test_the_name_of_a_stream(place: str, name: str) -> None:
    assert stream_name(place) == name


def test_words_of_names() -> None:
    assert words_of("merchantID") == words_of("merchant-id") == words_of("MERCHANT_ID") == ["merchant", "id"]
