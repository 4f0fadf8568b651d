"""Expressions in Spark: the same values as the oracle's, on random ones of every type."""

from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import (
    BooleanType,
    DataType,
    DecimalType,
    DoubleType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from railgun.language.parser import parse_query
from railgun.language.resolve import resolve
from railgun.language.types import parse_type
from railgun.language.zones import zone_of
from railgun.spark.sessions import own_session
from railgun.spark.validation.translate import FIELD_PREFIX, InexpressibleError, sql_of
from tests.oracle.expressions import evaluate
from tests.oracle.inference import infer
from tests.oracle.query import parse_query as oracle_query
from tests.oracle.values import to_decimal
from tests.strategies import function_arguments
from tests.strategies.seeded import expression_case

CASES = 60
_TYPES: dict[str, DataType] = {
    "string": StringType(),
    "long": LongType(),
    "double": DoubleType(),
    "boolean": BooleanType(),
    "timestamp": LongType(),
}


def spark_type(text: str) -> DataType:
    declared = parse_type(text)
    return _TYPES.get(text) or DecimalType(declared.precision, declared.scale)


def plain(value: Any) -> Any:
    if isinstance(value, Fraction):
        return to_decimal(value, 18)
    return value


@pytest.mark.spark
@pytest.mark.parametrize("first", [0, pytest.param(1_000, marks=pytest.mark.torture)])
def test_expressions_are_the_oracles(spark: SparkSession, first: int) -> None:
    session = own_session(spark)
    drawn = [expression_case(first + seed) for seed in range(CASES)]
    fields = drawn[0].fields
    rows = [row for each in drawn for row in each.typed_rows()[:3]]
    schema = StructType([StructField(FIELD_PREFIX + name, spark_type(text)) for name, text in fields.items()])
    data = [[_as_spark(row.get(name), fields[name]) for name in fields] for row in rows]
    table = session.createDataFrame(data, schema).coalesce(1)
    made, wanted = [], []
    for number, each in enumerate(drawn):
        assert each.fields == fields
        text = f"SELECT count({each.text}) AS x FROM s OVER INFINITE"
        types = {name: parse_type(kind) for name, kind in fields.items()}
        [metric] = resolve(parse_query(text), types, "s")
        assert metric.argument is not None
        try:
            made.append(f"{sql_of(metric.argument)} AS e{number}")
        except InexpressibleError:
            continue
        argument = oracle_query(text)[0].argument
        assert argument is not None
        typed = infer(argument, {name: _oracle_type(kind) for name, kind in fields.items()})
        wanted.append((each.text, [evaluate(typed, row) for row in rows]))
    assert len(made) > CASES * 0.9
    got, wrong = table.selectExpr(*made).collect(), []
    for place, (text, values) in enumerate(wanted):
        for row, value in enumerate(values):
            found = got[row][place]
            if not _same(found, value):
                wrong.append(f"{text}: {rows[row]}: {value!r}, Spark says {found!r}")
                break
    assert not wrong, "\n".join(wrong)


FUNCTION_ROWS = 2_000


@pytest.mark.spark
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.torture)])
def test_functions_are_the_oracles(spark: SparkSession, seed: int) -> None:
    """All of them over the arguments that the kernels are tried on."""
    session = own_session(spark)
    fields = function_arguments.FIELDS
    count = FUNCTION_ROWS if seed == 0 else 50 * FUNCTION_ROWS
    rows = list(function_arguments.rows(seed, count))
    schema = StructType([StructField(FIELD_PREFIX + name, spark_type(text)) for name, text in fields.items()])
    data = [[_as_spark(row[name], fields[name]) for name in fields] for row in rows]
    table = session.createDataFrame(data, schema).coalesce(1)
    made, wanted = [], []
    types = {name: parse_type(kind) for name, kind in fields.items()}
    for number, text in enumerate(function_arguments.TEXTS):
        query = f"SELECT count({text}) AS x FROM s OVER INFINITE"
        argument, theirs = (
            resolve(parse_query(query), types, "s")[0].argument,
            oracle_query(query)[0].argument,
        )
        assert argument is not None
        assert theirs is not None
        try:
            made.append(f"{sql_of(argument)} AS e{number}")
        except InexpressibleError:
            continue
        typed = infer(theirs, {name: _oracle_type(kind) for name, kind in fields.items()})
        wanted.append((text, [evaluate(typed, row) for row in rows]))
    assert len(made) == len(function_arguments.TEXTS)
    got, wrong = table.selectExpr(*made).collect(), []
    for place, (text, values) in enumerate(wanted):
        for row, value in enumerate(values):
            if not _same(got[row][place], value):
                wrong.append(f"{text}: {rows[row]}: {value!r}, Spark says {got[row][place]!r}"[:1000])
                break
    assert not wrong, "\n".join(wrong)


@pytest.mark.spark
def test_a_time_zone_has_the_table_of_its_metric(spark: SparkSession) -> None:
    """Not that of the JVM, nor that of this program."""
    session = own_session(spark)
    zone = zone_of("Europe/Lisbon", (7_200, ((100, -3_600),)))
    query = parse_query("SELECT last(HOUR(ts IN 'Europe/Lisbon')) AS x FROM s OVER INFINITE")
    argument = resolve(query, {"ts": parse_type("timestamp")}, "s", {zone.name: zone}.get)[0].argument
    assert argument is not None
    times_ms = [-1, 0, 99_999, 100_000, 1_742_700_000_000, None]
    schema = StructType([StructField(f"{FIELD_PREFIX}ts", LongType())])
    table = session.createDataFrame([[each] for each in times_ms], schema).coalesce(1)
    assert [row[0] for row in table.selectExpr(sql_of(argument)).collect()] == [1, 2, 2, 23, 2, None]


def _oracle_type(text: str) -> Any:
    from tests.oracle.types import parse_type as oracle_type

    return oracle_type(text)


def _as_spark(value: Any, text: str) -> Any:
    if isinstance(value, Fraction) or (value is not None and text.startswith("decimal")):
        return to_decimal(Fraction(value), parse_type(text).scale) if value is not None else None
    return value


def _same(found: Any, value: Any) -> bool:
    if isinstance(found, Decimal):
        return value is not None and Fraction(found) == Fraction(value)
    if isinstance(value, Fraction):
        return False
    return type(found) is type(value) and found == value
