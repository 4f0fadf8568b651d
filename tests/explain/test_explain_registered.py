"""The explanation of a registered stream with metrics that may be added, or that may stand in place of others."""

import re
from typing import Any

import pytest

from railgun.catalog.catalog import Catalog
from railgun.catalog.definitions import definitions_from_sql, parse_definitions
from railgun.catalog.errors import DefinitionError
from railgun.explain.analysis import explained
from railgun.registry import evolution

DEFINITIONS = """
[streams.s]
time = "ts"
partitioners = ["k", "*"]
[streams.s.fields]
ts = "timestamp"
k = "string"
x = "long"
name = "string"
[[metrics]]
sql = "SELECT max(x) AS most, count(*) AS n FROM s GROUP BY k OVER SLIDING 1 HOUR"
[[metrics]]
sql = "DERIVE most + 1 AS above, above * n AS product, n AS same, HOUR(ts IN 'Europe/Lisbon') AS hour FROM s"
"""


def with_query(sql: str) -> dict[str, Any]:
    entry = Catalog(evolution.missing(Catalog(), parse_definitions(DEFINITIONS))).streams["s"]
    [stream] = explained(entry, definitions_from_sql(sql, entry.stream, entry.known))["streams"]
    return stream  # type: ignore[no-any-return]


def types(stream: dict[str, Any]) -> dict[str, str]:
    return {each["name"]: each["type"] for each in stream["derived"]}


def test_a_new_metric_stands_beside_the_others() -> None:
    stream = with_query("SELECT count(*) AS all_n FROM s OVER INFINITE")
    assert [plan["metrics"] for plan in stream["partitioners"]] == [2, 1]
    assert types(stream) == {"above": "long", "product": "long", "same": "long", "hour": "long"}
    assert types(with_query("DERIVE above / 2 AS half FROM s"))["half"] == "double"


def test_what_reads_a_redefined_operand_gets_its_type() -> None:
    stream = with_query("SELECT max(x + 5e-1) AS most FROM s OVER INFINITE")
    assert [plan["metrics"] for plan in stream["partitioners"]] == [1, 1]
    assert types(stream) == {"above": "double", "product": "double", "same": "long", "hour": "long"}
    stream = with_query("DERIVE most + 5e-1 AS above FROM s")
    assert types(stream) == {"above": "double", "product": "double", "same": "long", "hour": "long"}


def test_a_metric_may_stand_in_place_of_a_derived_one_and_the_other_way_round() -> None:
    stream = with_query("SELECT max(name) AS same FROM s OVER INFINITE")
    assert list(types(stream)) == ["above", "product", "hour"]
    stream = with_query("DERIVE x AS n FROM s")
    [product] = [each for each in stream["derived"] if each["name"] == "product"]
    assert (product["metrics"], product["fields"], product["reads"]) == (["most"], ["x"], ["above", "n"])


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (
            "SELECT max(name) AS most FROM s GROUP BY k OVER INFINITE",
            "sql: the derived metric above would no longer fit: line 1, column 8: string + long is not defined",
        ),
        (
            "DERIVE product AS most FROM s",
            "would no longer fit: line 1, column 8: derived metrics in a circle",
        ),
    ],
)
def test_what_would_no_longer_fit_is_named(query: str, message: str) -> None:
    with pytest.raises(DefinitionError, match=re.escape(message)):
        with_query(query)
