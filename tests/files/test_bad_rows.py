"""Rows that cannot be events: each is found with its place, and none harms another, whatever the format."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from railgun.catalog.model import FieldDefinition, StreamDefinition
from railgun.files import csv_source, ndjson_source
from railgun.language.types import STRING, TIMESTAMP
from railgun.wire.validator import EventRefusedError, EventValidator, Roles
from tests.counts import examples
from tests.files.event_files import NAMES, SCHEMA, events_of, read_back

HEADER = ",".join(NAMES) + "\n"
GOOD = {"id": "a", "ts": 1, "count": 2, "amount": 1.5, "fee": "1.25", "online": True, "from": "x"}

# A field and a JSON value that it refuses, and its like in CSV, None where there is none.
BAD_VALUES: list[tuple[str, Any, str | None]] = [
    ("id", None, ""),
    ("id", 5, None),
    ("ts", None, ""),
    ("ts", "2024-01-01", "2024-01-01"),
    ("ts", "2024-01-01T00:00:00", "2024-01-01T00:00:00"),
    ("ts", 1.5, "1.5"),
    ("count", 1.0, "1.0"),
    ("count", "7", None),
    ("count", True, "true"),
    ("count", 2**63, str(2**63)),
    ("count", -(10**30), str(-(10**30))),
    ("amount", "1.5", "one"),
    ("amount", 2**53 + 1, None),
    ("amount", [1], "NaN"),
    ("amount", {}, "inf"),
    ("amount", False, "1e999"),
    ("fee", "1e3", "1e3"),
    ("fee", "1.23456", "1.23456"),
    ("fee", "123456789012345.0", "123456789012345.0"),
    ("fee", "+1", "+1"),
    ("online", 1, "1"),
    ("online", "true", "yes"),
    ("from", ["x"], None),
    ("from", "x" * 70_000, "x" * 70_000),
]


@pytest.mark.parametrize(("field", "value", "_"), BAD_VALUES)
def test_json_values_that_a_field_refuses(field: str, value: Any, _: str | None, tmp_path: Path) -> None:
    path = tmp_path / "events.ndjson"
    events = [GOOD, {**GOOD, field: value}, {**GOOD, "id": "c"}]
    path.write_text("".join(json.dumps(event) + "\n" for event in events))
    [block] = read_back([path])
    assert block.bad.tolist() == [False, True, False]
    assert block.refused.first is not None
    assert str(block.refused.first).startswith(f"{path}, row 2: {field}: ")
    assert [values[0] for values in events_of([block])] == ["a", "c"]


def test_what_is_no_json_is_told_with_its_field(tmp_path: Path) -> None:
    path = tmp_path / "events.ndjson"
    path.write_text(json.dumps({**GOOD, "amount": float("nan")}) + "\n")
    [block] = read_back([path])
    assert (
        str(block.refused.first)
        == f"{path}, row 1: amount: NaN is no JSON; send null, or leave the field out"
    )


@pytest.mark.parametrize(
    ("field", "text"), [(field, text) for field, _, text in BAD_VALUES if text is not None]
)
def test_csv_values_that_a_field_refuses(field: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / "events.csv"
    good = ["a", "1", "2", "1.5", "1.25", "true", "x"]
    bad = [text if name == field else value for name, value in zip(NAMES, good)]
    path.write_text(HEADER + "".join(",".join(row) + "\n" for row in (good, bad, ["c", *good[1:]])))
    [block] = read_back([path])
    assert block.bad.tolist() == [False, True, False]
    assert block.refused.first is not None
    assert str(block.refused.first).startswith(f"{path}, row 2: {field}: ")
    assert [values[0] for values in events_of([block])] == ["a", "c"]


@pytest.mark.parametrize(
    "line", ["{", "[]", "7", "null", '"x"', "{}{}", '{"id": "\\ud800"}', "[" * 20_000, '{"id": nan}']
)
def test_lines_that_are_no_events(line: str, tmp_path: Path) -> None:
    path = tmp_path / "events.ndjson"
    path.write_text(f"{json.dumps(GOOD)}\n\n{line}\n \r\n{json.dumps(GOOD)}")
    blocks = read_back([path])
    assert [bad for block in blocks for bad in block.bad.tolist()] == [False, True, False]
    [refused] = [block.refused.first for block in blocks if block.refused.first is not None]
    assert str(refused).startswith(f"{path}, row 2: ")


def test_bytes_that_are_no_utf8_are_the_fault_of_their_row(tmp_path: Path) -> None:
    csv, ndjson = tmp_path / "a.csv", tmp_path / "b.ndjson"
    csv.write_bytes(HEADER.encode() + b"a,1,,,,,\xfc\nb,2,,,,,\xc3\xbc\n")
    ndjson.write_bytes(b'{"id":"a","ts":1,"from":"\xfc"}\n{"id":"b","ts":2,"from":"\xc3\xbc"}\n')
    for path in (csv, ndjson):
        [block] = read_back([path])
        assert block.bad.tolist() == [True, False]
        assert events_of([block])[0][-1] == "ü"


def test_a_time_too_far_ahead_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "events.ndjson"
    path.write_text('{"id":"a","ts":1}\n{"id":"b","ts":9000000000000000000}\n')
    [block] = read_back([path])
    assert block.bad.tolist() == [False, True]
    assert "further ahead than the stream's max_future allows" in str(block.refused.first)


def test_ids_of_bad_rows_are_known_where_they_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "events.csv"
    path.write_text(HEADER + "a,x,,,,,\n,1,,,,,\nb,1,,,,,\n1,2\nc,1,x,,,,\n")
    [block] = read_back([path])
    assert block.bad.tolist() == [True, True, False, True, True]
    assert block.bad_ids == ("a", None, None, "c")


def test_without_an_id_field_ids_are_row_numbers_over_all_files(tmp_path: Path) -> None:
    stream = StreamDefinition("s", (FieldDefinition("ts", TIMESTAMP),), time="ts")
    first, second = tmp_path / "a.csv", tmp_path / "b.csv"
    first.write_text("ts\n1\nx\n3\n")
    second.write_text("ts\n4\n")
    blocks = read_back([first, second], stream)
    assert [block.events.ids.string(row) for block in blocks for row in range(len(block.events))] == [
        "0",
        "2",
        "3",
    ]
    assert blocks[0].bad_ids == ("1",)


def test_without_a_time_field_time_is_now_and_never_goes_back(tmp_path: Path) -> None:
    stream = StreamDefinition("s", (FieldDefinition("x", STRING),))
    path = tmp_path / "a.csv"
    path.write_text("x\na\nb\n")
    [block] = read_back([path], stream)
    assert block.events.times.tolist() == [1 << 60] * 2


_SHAPES = st.lists(st.sampled_from(["ok", "short", "long", "blank", "multi"]), max_size=40)


@settings(max_examples=examples(30, 80))
@given(shapes=_SHAPES, block_bytes=st.integers(120, 400))
def test_misshapen_rows_of_csv_keep_their_places(
    shapes: list[str], block_bytes: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    texts = {
        "ok": "{0},1,,,,,x",
        "short": "{0},1",
        "long": "{0},1,,,,,x,y",
        "blank": "",
        "multi": '{0},1,,,,,"a\nb"',
    }
    path = tmp_path_factory.mktemp("rows") / "events.csv"
    path.write_text(HEADER + "".join(texts[shape].format(n) + "\n" for n, shape in enumerate(shapes)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_source, "TEXT_BLOCK_BYTES", block_bytes)
        blocks = read_back([path])
    rows = [(n, shape) for n, shape in enumerate(shapes) if shape != "blank"]
    assert [bad for block in blocks for bad in block.bad.tolist()] == [
        s in ("short", "long") for _, s in rows
    ]
    assert [values[0] for values in events_of(blocks)] == [str(n) for n, s in rows if s in ("ok", "multi")]


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**66), 2**66) | st.floats() | st.text(max_size=6)
    | st.sampled_from(["2024-01-01T00:00:00Z", "12.5", "-0.00001", "1e3", 2**53 + 1, 2**60, -0.0]),
    lambda inner: st.lists(inner, max_size=2),
    max_leaves=3,
)  # fmt: skip


@settings(max_examples=examples(50, 150))
@given(
    events=st.lists(st.dictionaries(st.sampled_from([*NAMES, "other"]), _JSON, max_size=8), max_size=6),
    block_bytes=st.sampled_from([64, 1 << 20]),
)
def test_lines_are_taken_and_refused_as_at_the_front_end(
    events: list[dict[str, Any]], block_bytes: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    lines = [json.dumps(event).encode() for event in events]
    path = tmp_path_factory.mktemp("lines") / "events.ndjson"
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ndjson_source, "TEXT_BLOCK_BYTES", block_bytes)
        blocks = read_back([path])
    validator, expected, bad = EventValidator(Roles(SCHEMA, "ts", "id")), [], []
    for line in lines:
        try:
            expected.append(validator.admit_json(line, (1 << 60) + 1000).values)
            bad.append(False)
        except EventRefusedError:
            bad.append(True)
    assert [each for block in blocks for each in block.bad.tolist()] == bad
    assert events_of(blocks) == expected
