"""The table of cases through Spark: history with nested columns, taken apart by SQL."""

import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from railgun.catalog.model import StreamDefinition
from railgun.catalog.stream_reading import stream_from_json
from railgun.spark.backfill.columns import fields_of
from railgun.spark.backfill.source import HistorySource
from railgun.spark.errors import ColumnError
from railgun.wire.table_validator import TableValidator
from railgun.wire.validator import Roles
from tests.oracle.errors import EventRefused
from tests.oracle.paths import parse_field, unscaled_fields
from tests.oracle.types import parse_type
from tests.paths.doors import LATEST_MS, values_of
from tests.paths.test_doors import PLACES, VALUES, Place

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

# By kind of value as Spark's columns have one each: the type of the field, and the values.
COLUMNS = [
    (type_, [value for value in (*good, *bad) if type(value) is kind and value != 2**63])
    for type_, (good, bad) in VALUES.items()
    for kind in (str, int, float, bool)
    if any(type(value) is kind for value in good)
]


def sql_of(place: str, column: str) -> str:
    """What `--column` says of a path."""
    found = stream_from_json({"name": "s", "fields": {"x": {"type": "long", "from": place}}}).fields[0].path
    assert found is not None
    sql = column
    for step in found.steps:
        sql = f"get({sql}, {step})" if isinstance(step, int) else f"{sql}.`{step}`"
    return sql


def stream_of(types: list[str]) -> StreamDefinition:
    fields = {"id": "string", "ts": "timestamp"} | {f"x{n}": type_ for n, type_ in enumerate(types)}
    return stream_from_json({"name": "s", "id": "id", "time": "ts", "fields": fields})


def expected_of(type_: str, place: str, document: Any) -> Any:
    """The value by the oracle, decimals unscaled; the class of the error if it is refused."""
    declared, source = parse_field("x", {"type": type_, "from": place})
    found = unscaled_fields(document, {"x": (parse_type(declared), source)})
    return EventRefused if found is None else found[0]


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place[0])
def test_the_table(spark: SparkSession, tmp_path: Path, place: Place) -> None:
    path, template, unmet, _ = place
    documents = [
        [json.loads(template % json.dumps(value)) for value in (*values, None)]
        + [json.loads(each.replace("%s", "1")) for each in unmet]
        for _, values in COLUMNS
    ]
    rows = max(map(len, documents))
    table: dict[str, Any] = {"id": [f"e{row}" for row in range(rows)], "ts": list(range(rows))}
    for n, column in enumerate(documents):
        table[f"d{n}"] = [*column, *[None] * (rows - len(column))]
    pq.write_table(pa.table(table), tmp_path / "h.parquet")
    stream = stream_of([type_ for type_, _ in COLUMNS])
    mapping = {f"x{n}": sql_of(path, f"d{n}") for n in range(len(COLUMNS))}
    source = HistorySource.of([str(tmp_path / "h.parquet")])
    frame = fields_of(source.read(spark, stream.schema(1), mapping), source, stream, mapping)
    found = frame.orderBy("ts").toArrow()
    for n, (type_, _) in enumerate(COLUMNS):
        own = found.select(["id", "ts", f"x{n}"]).rename_columns(["id", "ts", "x0"])
        (batch,) = own.combine_chunks().to_batches()
        admitted = TableValidator(Roles(stream_of([type_]).schema(1), "ts", "id")).admit(batch, LATEST_MS)
        for row, document in enumerate(table[f"d{n}"]):
            wanted, is_bad = expected_of(type_, path, document), bool(admitted.bad[row])
            where = f"{type_} at {path} of {document}"
            assert is_bad == (wanted is EventRefused), where
            if not is_bad:
                assert values_of(admitted.events, row)[2] == wanted, where


@pytest.mark.parametrize("type_", VALUES)
def test_what_is_of_another_type_is_told_before_work_starts(
    spark: SparkSession, tmp_path: Path, type_: str
) -> None:
    stream = stream_of([type_])
    taken = {type(value) for each, values in COLUMNS if each == type_ for value in values}
    # No column has objects without keys, nor numbers as long as that.
    wrong = [value for value in VALUES[type_][1] if type(value) not in taken and value not in ({}, 2**63)]
    assert wrong
    for n, value in enumerate(wrong):
        file = tmp_path / f"{n}.parquet"
        pq.write_table(pa.table({"id": ["e"], "ts": [0], "d": [{"a": {"b": value}}]}), file)
        source = HistorySource.of([str(file)])
        for sql, why in (("d.a.b", f"{type_} takes"), ("d.a.c", "the mapping of columns")):
            frame = source.read(spark, stream.schema(1), {"x0": sql})
            with pytest.raises(ColumnError, match=re.escape(why)):
                fields_of(frame, source, stream, {"x0": sql})
