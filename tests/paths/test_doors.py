"""One table of cases: types, where a field is, and what is there; through every door. Equal events, equal errors."""

import json
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Message

from railgun.catalog.model import StreamDefinition
from railgun.catalog.stream_reading import stream_from_json
from tests.oracle.definitions import parse_definitions
from tests.oracle.paths import unscaled_fields
from tests.paths.doors import LATEST_MS, OF_JSON, TYPED, NotExpressedError, Refused, intake_of, of_record

# By type: values that it takes, and values that it does not.
VALUES: dict[str, tuple[list[Any], list[Any]]] = {
    "string": (["x", "", "ü💳\u0000"], [5, 1.5, True, {"a": 1}, ["x"]]),
    "long": ([0, -5, 2**63 - 1], ["5", 1.5, True, {}, [1], 2**63]),
    "double": ([1.5, 3, -2.25e300], ["1.5", True, {}, [], 2**53 + 1]),
    "boolean": ([True, False], [0, "true", {}, [True]]),
    "decimal(9,2)": (["12.50", "-0.01", 7], ["1.001", "x", True, {}, "12345678.00"]),
    "timestamp": ([1_700_000_000_123, "2026-01-31T23:59:59.5Z", -1], ["yesterday", True, {}, [1]]),
}
UNITS = {
    "s": (
        [
            1_700_000_000,
            1_700_000_000.001,
            1.5e9,
            -0.5,
            "2026-01-31T23:59:59.5Z",
            "1700000000.12399999999999999999",
            "-0.0001",
            "0005",
        ],
        [
            True,
            2**62,
            {},
            1e300,
            "5 ",
            "1e9",
            "+5",
            ".5",
            "5.",
            "",
            "9" * 40,
            "9223372036854775.808",
            "\u0665",
        ],
    ),
    "ms": ([1_700_000_000_123, 1_700_000_000_123.75, -0.25, "5", "-1.5"], [False, [], "1 5"]),
    "us": ([1_700_000_000_123_999, -1, 0.5, 2**63 - 1, "1700000000123999"], ["x", {}]),
    "ns": ([1_700_000_000_123_456_789, -1_000_001, "1700000000123456789.5"], ["x", {"a": 1}]),
}
# The path of the field x; a document with a value there; documents in which the path meets nothing; documents in which
# something is in its way.
Place = tuple[str, str, list[str], list[str]]
PLACES: list[Place] = [
    ("y", '{"y": %s}', ['{"x": %s}'], []),
    (
        "a.b",
        '{"a": {"b": %s, "c": 1}, "b": 2}',
        ['{"b": 3}', '{"a": {}}', '{"a": null}'],
        ['{"a": 5}', '{"a": "b"}', '{"a": [1]}'],
    ),
    ("a[0]", '{"a": [%s]}', ['{"a": []}', '{"a": null}', "{}"], ['{"a": {"0": 1}}', '{"a": true}']),
    (
        "a[2].b",
        '{"a": [null, null, {"b": %s}]}',
        ['{"a": [null, null]}', '{"a": [null, null, null]}'],
        ['{"a": [null, null, 5]}'],
    ),
    ("a[15]", '{"a": [' + "null, " * 15 + "%s, null]}", ['{"a": [null, null]}'], []),
    (
        "a.b.c.d.e",
        '{"a": {"b": {"c": {"d": {"e": %s}}}}}',
        ['{"a": {"b": {"c": {"d": null}}}}', '{"a": {"b": {"x": 1}}}'],
        ['{"a": {"b": {"c": 1}}}'],
    ),
    ("a[0][1].b", '{"a": [[null, {"b": %s}]]}', ['{"a": [[null]]}', '{"a": [null]}'], ['{"a": [{"b": 1}]}']),
    ("['a b'].c", '{"a b": {"c": %s}}', ['{"a b": {}}'], ['{"a b": 1.5}']),
    ("['it''s']['']", '{"it\'s": {"": %s}}', ['{"it\'s": {}}'], []),
    ("['\"'].b", '{"\\"": {"b": %s}}', ["{}"], ['{"\\"": 5}']),
    ("['ü\\']", '{"ü\\\\": %s}', ["{}"], []),
]
AVRO = {"Kafka Avro", "Kafka plain Avro", "Avro"}
PROTOBUF = {"Kafka Protobuf", "Kafka plain Protobuf", "Kafka proto3"}
ARROW = {"Parquet", "Arrow", "table"}
# By place, the doors of formats that have none such: arrays with nulls or arrays, names of other characters.
GAPS = {
    "a[2].b": PROTOBUF,
    "a[15]": PROTOBUF,
    "a[0][1].b": PROTOBUF,
    "['a b'].c": AVRO | PROTOBUF,
    "['it''s']['']": AVRO | PROTOBUF,
    "['\"'].b": AVRO | PROTOBUF,
    "['ü\\']": AVRO | PROTOBUF,
}
JUNK = json.dumps({f"k{at}": ["x" * 40, at, {"deep": [at, 1.5, None]}, True] for at in range(1_000)})
# Of kinds that all formats have.
PLAIN_JUNK = json.dumps(
    {f"k{at}": {"text": "x" * 200, "deep": {"n": at, "all": [at, 2]}, "ok": True} for at in range(250)}
)
assert min(len(JUNK), len(PLAIN_JUNK)) > 65_536


def stream_at(type_: str, path: str, unit: str | None = None) -> tuple[StreamDefinition, Any]:
    """A stream with the field x at a path and the field `other`, for the product and for the oracle."""
    said = {"type": type_, "from": path} | ({} if unit is None else {"unit": unit})
    fields: dict[str, dict[str, str]] = {
        "x": said,
        "other": {"type": "long", "from": "z.other"},
        "again": said,
    }
    stream = stream_from_json({"name": "s", "fields": fields})
    lines = ["[streams.s.fields]"]
    for name, of in fields.items():
        inline = ", ".join(f"{key} = {json.dumps(each)}" for key, each in of.items())
        lines.append(f"{name} = {{ {inline} }}")
    return stream, parse_definitions("\n".join(lines)).streams["s"]


def expected_of(stream: Any, text: str) -> list[Any] | None:
    """The values by the oracle, decimals unscaled; None if it refuses the event."""
    return unscaled_fields(
        json.loads(text), {name: (declared, stream.source(name)) for name, declared in stream.fields.items()}
    )


def _check(stream: StreamDefinition, oracle: Any, path: str, text: str, folder: Path) -> set[str]:
    """Take a document through every door. Return the doors that could not express it."""
    expected, gaps = expected_of(oracle, text), set[str]()
    first = OF_JSON["single"](stream, text, folder)
    for name, door in {**OF_JSON, **TYPED}.items():
        try:
            found = door(stream, text, folder)
        except NotExpressedError:
            assert name in TYPED
            gaps.add(name)
            continue
        where = f"{name}: {path} of {text[:200]}"
        if expected is None:
            assert isinstance(found, Refused), where
            assert path in str(found), f"{where}: {found}"
            if name in OF_JSON and name != "NDJSON":
                assert found == first, where
            elif name == "NDJSON":
                # Files tell the first error of a row alone.
                assert isinstance(first, Refused)
                assert found.errors[0] == first.errors[0], where
        else:
            assert found == expected, where
            assert list(map(type, found)) == list(map(type, expected)), where
    return gaps


def texts_at(place: Place, good: list[Any], bad: list[Any]) -> list[str]:
    _, template, unmet, in_the_way = place
    values = [json.dumps(value) for value in (*good, *bad, None)]
    return [template % value for value in values] + [
        each.replace("%s", "1") for each in (*unmet, *in_the_way)
    ]


@pytest.mark.parametrize("type_", VALUES)
@pytest.mark.parametrize("place", PLACES, ids=lambda place: place[0])
def test_types_at_places(type_: str, place: Place, tmp_path: Path) -> None:
    stream, oracle = stream_at(type_, place[0])
    for text in texts_at(place, *VALUES[type_]):
        _check(stream, oracle, place[0], text, tmp_path)


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place[0])
def test_what_a_format_cannot_express(place: Place, tmp_path: Path) -> None:
    stream, oracle = stream_at("long", place[0])
    assert _check(stream, oracle, place[0], place[1] % "5", tmp_path) == GAPS.get(place[0], set())


def test_a_plain_field_that_is_missing(tmp_path: Path) -> None:
    """It is null, but where files and tables have columns: there it is an error, and null only for a path."""
    plain = stream_from_json({"name": "s", "fields": {"x": "long", "y": "long"}})
    paths = stream_from_json({"name": "s", "fields": {"x": "long", "z": {"type": "long", "from": "y"}}})
    for name, door in {**OF_JSON, **TYPED}.items():
        assert door(paths, '{"x": 5}', tmp_path) == [5, None], name
        found = door(plain, '{"x": 5}', tmp_path)
        if name in ARROW | {"Avro"}:
            assert isinstance(found, Refused), name
            assert re.search(r"\by\b", str(found)), found
        else:
            assert found == [5, None], name


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("place", PLACES[:3], ids=lambda place: place[0])
def test_units_at_places(unit: str, place: Place, tmp_path: Path) -> None:
    stream, oracle = stream_at("timestamp", place[0], unit)
    for text in texts_at(place, *UNITS[unit]):
        _check(stream, oracle, place[0], text, tmp_path)


@pytest.mark.parametrize("place", PLACES[0:5:2], ids=lambda place: place[0])
def test_unknown_keys_of_64_kib(place: Place, tmp_path: Path) -> None:
    stream, oracle = stream_at("long", place[0])
    for value in ("5", "null", '"x"'):
        text = place[1] % value
        for junk in (f'{{"junk": {JUNK}, {text[1:]}', f'{text[:-1]}, "junk": {JUNK}}}'):
            _check(stream, oracle, place[0], junk, tmp_path)
        plain = f'{text[:-1]}, "junk": {PLAIN_JUNK}}}'
        if value != "null":
            assert _check(stream, oracle, place[0], plain, tmp_path) == GAPS.get(place[0], set())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a": {"b": 1}, "a": {"b": 2}}', 2),
        ('{"a": {"b": 1, "b": 2}}', 2),
        ('{"a": {"b": 1}, "a": {}}', None),
        ('{"a": "x", "a": {"b": 2}}', 2),
        ('{"a": {"b": "x", "b": 2}}', 2),
        ('{"a": {"b": 1}, "a": null}', None),
    ],
)
def test_of_a_key_that_is_repeated_the_last_counts(text: str, expected: int | None, tmp_path: Path) -> None:
    stream, _ = stream_at("long", "a.b")
    for name, door in OF_JSON.items():
        assert door(stream, text, tmp_path) == [expected, None, expected], name


@pytest.mark.parametrize("more", [b'"\\ud800"', b'"\xff"', b"[1,]", b"01", b"nul", b"{1: 2}"])
def test_what_is_no_json_is_refused_also_in_unknown_keys(more: bytes) -> None:
    stream, _ = stream_at("long", "a.b")
    text = b'{"a": {"b": 1, "more": ' + more + b"}}"
    for many in (1, 100):
        accepted = intake_of(stream).take([text] * many, LATEST_MS)
        assert len(accepted.refused) == many


def test_numbers_of_very_many_digits_in_unknown_keys_are_skipped(tmp_path: Path) -> None:
    stream, _ = stream_at("double", "a.b")
    for value, expected in (("1.5", 1.5), ("4611686018427387904", 2.0**62)):
        text = f'{{"a": {{"b": {value}, "more": {"1" * 5_000}}}}}'
        for name, door in OF_JSON.items():
            assert door(stream, text, tmp_path) == [expected, None, expected], name


def test_a_decimal_is_read_as_it_is_written(tmp_path: Path) -> None:
    stream, _ = stream_at("decimal(9,2)", "a.b")
    for name, door in OF_JSON.items():
        assert door(stream, '{"a": {"b": 12.50}}', tmp_path) == [1250, None, 1250], name
        assert isinstance(door(stream, '{"a": {"b": 12.505}}', tmp_path), Refused), name


def test_a_time_is_the_decimal_that_is_written(tmp_path: Path) -> None:
    """1700000000.00099999999999 is 1700000000.001 as a double."""
    stream, _ = stream_at("timestamp", "a.b", "s")
    for name, door in OF_JSON.items():
        found = door(stream, '{"a": {"b": 1700000000.00099999999999}}', tmp_path)
        assert found == [1_700_000_000_000, None, 1_700_000_000_000], name
        assert isinstance(door(stream, '{"a": {"b": 1e999999999}}', tmp_path), Refused), name
        assert door(stream, '{"a": {"b": -1e-999999999}}', tmp_path) == [-1, None, -1], name


def test_python_has_decimals_and_datetimes() -> None:
    from datetime import UTC, datetime

    from railgun.ingest.intake import ParsedEvent
    from tests.paths.doors import _taken

    stream, _ = stream_at("timestamp", "a[1]", "us")
    for value, expected in (
        (Decimal("1500.9"), 1),
        (datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), 1_000),
        (2_000.5, 2),
    ):
        assert _taken(stream, [ParsedEvent({"a": (0, value)}, 0)]) == [expected, None, expected]


def test_the_error_says_what_is_in_the_way() -> None:
    stream, _ = stream_at("long", "a['b-c'][2].d")
    found = OF_JSON["single"](stream, '{"a": {"b-c": "x"}}', Path())
    assert found == Refused((("a['b-c'][2].d", "the string 'x' is not an array, at a['b-c']"),) * 2)


def test_two_types_at_one_place(tmp_path: Path) -> None:
    fields = {
        "t": {"type": "timestamp", "from": "a.b"},
        "n": {"type": "long", "from": "a.b"},
        "d": {"type": "decimal(18,0)", "from": "a.b"},
    }
    stream = stream_from_json({"name": "s", "fields": fields})
    for name, door in {**OF_JSON, **TYPED}.items():
        assert door(stream, '{"a": {"b": 7}}', tmp_path) == [7, 7, 7], name


def test_a_place_that_is_read_as_a_value_and_as_an_object(tmp_path: Path) -> None:
    fields = {
        "x": {"type": "long", "from": "a"},
        "y": {"type": "long", "from": "a.b"},
        "z": {"type": "long", "from": "a[0]"},
    }
    stream = stream_from_json({"name": "s", "fields": fields})
    for name, door in OF_JSON.items():
        assert door(stream, '{"a": null}', tmp_path) == [None, None, None], name
        assert isinstance(door(stream, '{"a": 1}', tmp_path), Refused), name


def test_what_a_record_has_beside_its_value(tmp_path: Path) -> None:
    fields = {
        "key": {"type": "string", "from": "@key"},
        "number": {"type": "long", "from": "@key"},
        "at": {"type": "timestamp", "from": "@timestamp", "unit": "s"},
        "origin": {"type": "decimal(9,2)", "from": "@header['or igin']"},
        "sent": {"type": "timestamp", "from": "@header.sent", "unit": "s"},
        "x": {"type": "long", "from": "a.b"},
    }
    stream = stream_from_json({"name": "s", "fields": fields})
    value = b'{"a": {"b": 5}, "@key": "no", "key": "no"}'
    headers: list[tuple[str, str | bytes | None]] = [
        ("or igin", b"1"),
        ("sent", b"1700000000.5"),
        ("or igin", b"2.50"),
    ]
    for text in (value, value.replace(b"5}", b"5.0}")):
        found = of_record(
            stream, Message(value=text, key=b"7", headers=headers, timestamp=(1, 1_700_000_000_123))
        )
        if text is value:
            assert found == ["7", 7, 1_700_000_000_123, 250, 1_700_000_000_500, 5]
        else:
            assert found == Refused((("a.b", "the number 5.0 is not a long"),))
    assert of_record(stream, Message(value=b"{}", timestamp=(0, 0))) == [None] * 6
    assert of_record(stream, Message(value=b"{}", key=b"", timestamp=(2, 5))) == Refused(
        (("@key", "'' is not a long"),)
    )
    assert of_record(stream, Message(value=b"[]", key=b"7")) == Refused((("", "an event is a JSON object"),))
    # Events that come another way have no record.
    for name, door in {**OF_JSON, "Python": TYPED["Python"]}.items():
        if not name.startswith("Kafka"):
            assert door(stream, value.decode(), tmp_path) == [None] * 5 + [5], name
