"""Recorded replies as rows: what is no result of its metric's type is kept as it was recorded, wherever it stands."""

import json
from pathlib import Path
from typing import Any

import pytest

from railgun.language.types import BOOLEAN, DOUBLE, LONG, STRING, Kind, Type
from railgun.spark.errors import ReplyFileError
from railgun.spark.validation.reply_source import ReplyPlace, ResultColumn, _Lines, _Rows
from railgun.spark.validation.task_log_source import place_of_number

TYPES = {
    "whole": LONG, "share": DOUBLE, "text": STRING, "is_on": BOOLEAN, "price": Type(Kind.DECIMAL, 9, 2),
    "at": Type(Kind.TIMESTAMP), "wide": Type(Kind.INTEGER128),
}  # fmt: skip
COLUMNS = tuple(ResultColumn.of(f"r_{at}", name, type_) for at, (name, type_) in enumerate(TYPES.items()))


def row(**said: Any) -> dict[str, Any]:
    """The row of a reply."""
    place = ReplyPlace((), None, "", {}, COLUMNS)
    body = {"id": "e", "time": 1, "metrics": dict.fromkeys(TYPES), **said}
    [made] = _Rows(place).batch([json.dumps(body).encode()], [0], "line").to_pylist()
    return dict(made)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("whole", "5"), ("whole", 5.0), ("whole", True), ("whole", 1 << 63), ("whole", []), ("share", "0.5"),
        ("share", False), ("text", 5), ("text", {}), ("is_on", 0), ("is_on", "true"), ("price", 1.25),
        ("price", "1.5"), ("price", "none"), ("at", "2023-11-14T22:13:20Z"), ("wide", 1.0), ("wide", "7"),
    ],
)  # fmt: skip
def test_what_is_no_result_is_kept_as_it_was_recorded(name: str, value: object) -> None:
    metrics = dict.fromkeys(TYPES) | {name: value}
    column = f"r_{list(TYPES).index(name)}"
    found = row(metrics=metrics)
    assert found["unfit"] == [(column, json.dumps(value))]
    assert found[column] is None


def test_what_fits_is_not_unfit() -> None:
    values = (1, 2, "t", False, "1.25", 3, 1 << 70)
    assert row(metrics=dict(zip(TYPES, values)))["unfit"] is None
    assert row()["unfit"] is None


def test_problems_of_refused_events_are_passed_over(tmp_path: Path) -> None:
    reply = json.dumps({"id": "e", "time": 1, "metrics": {}})
    problem = json.dumps({"type": "about:blank", "title": "Bad event", "status": 422, "detail": "x"})
    file = tmp_path / "replies.ndjson"
    file.write_text(f"{reply}\n{problem}\n\n{reply}\n")
    rows = _Rows(ReplyPlace((str(file),), None, "", {}, ()))
    [batch] = rows.of_lines(_Lines(0, str(file)))
    assert [place_of_number(number)[1] for number in batch.column("reply_n").to_pylist()] == [1, 4]
    file.write_text('{"title": "no problem"}\n')
    with pytest.raises(ReplyFileError, match="line 1: it is no reply"):
        list(rows.of_lines(_Lines(0, str(file))))


def test_names_that_no_metric_had_are_told_wherever_they_stand() -> None:
    assert row(warming=["whole"], partial={"text": 5})["unknown"] is None
    found = row(metrics={"whole": 1, "made_up": 2}, warming=["whole", "x"], partial={"y": 3, "text": 4})
    assert found["unknown"] == [("made_up", "2"), ("(warming)", '["x"]'), ("(partial)", '{"y": 3}')]
