"""Derived metrics in the catalogue: their order, what they keep others from, what stays known of them."""

import pytest

from railgun.catalog.catalog import Catalog
from railgun.catalog.changes import (
    AddDerived,
    AddMetric,
    DropMetric,
    PutStream,
    change_from_json,
    change_to_json,
)
from railgun.catalog.definitions import parse_definitions
from railgun.catalog.errors import CatalogError, DefinitionError
from railgun.language.types import DOUBLE, LONG
from railgun.registry import evolution
from railgun.registry.errors import DifferentDefinitionsError

STREAM = """
[streams.s]
time = "ts"
id = "tx"
partitioners = ["card", "*"]
[streams.s.fields]
ts = "timestamp"
tx = "string"
card = "string"
x = "long"
"""


def metrics(*queries: str) -> str:
    return STREAM + "".join(f'[[metrics]]\nsql = "{sql}"\n' for sql in queries)


COUNTS = "SELECT count(*) AS n, sum(x) AS total FROM s GROUP BY card OVER SLIDING 1 HOUR"
DEFINITIONS = metrics(
    "DERIVE last + 1 AS next, mean > 2.0 AS high FROM s",
    COUNTS,
    "DERIVE total / n AS mean, x AS last FROM s",
)


def catalog(text: str = DEFINITIONS) -> Catalog:
    return Catalog(evolution.missing(Catalog(), parse_definitions(text)))


def test_each_stands_in_the_order_written_behind_what_it_reads() -> None:
    read = parse_definitions(DEFINITIONS)
    assert [each.name for each in read.derived] == ["last", "next", "mean", "high"]
    assert read.names == ["n", "total", "last", "next", "mean", "high"]
    entry = catalog().streams["s"]
    assert [(each.name, each.added, each.home) for each in entry.registered] == [
        ("n", 2, "card"),
        ("total", 3, "card"),
        ("last", 4, None),
        ("next", 5, None),
        ("mean", 6, None),
        ("high", 7, None),
    ]
    high = entry.derived["high"]
    assert (high.operands, high.fields) == ({"total": LONG, "n": LONG}, {})
    assert entry.derived["mean"].result_type == DOUBLE


def test_changes_make_the_same_catalogue_again() -> None:
    before = catalog()
    assert [type(change) for change in before.changes()] == [
        PutStream,
        AddMetric,
        AddMetric,
        *[AddDerived] * 4,
    ]
    again = Catalog()
    for change in before.changes():
        read = change_from_json(change_to_json(change), again.definitions)
        assert read == change
        assert not isinstance(read, type(None))
        again.apply(read)  # type: ignore[arg-type]
    assert again.streams["s"].registered == before.streams["s"].registered
    assert evolution.missing(again, parse_definitions(DEFINITIONS)) == []


def test_one_that_was_dropped_stays_known_with_its_time() -> None:
    found = catalog()
    entry = found.streams["s"]
    found.apply(DropMetric(8, "s", "high", 7))
    found.apply(AddDerived(9, "s", "high", "DERIVE n > 3 AS high FROM s"))
    assert [(each.added, each.dropped) for each in entry.registered if each.name == "high"] == [
        (7, 8),
        (9, None),
    ]
    assert [
        [each.added for each in entry.registered if each.is_in_force(place)][-1] for place in (6, 7, 8, 9)
    ] == [
        6,
        7,
        6,
        9,
    ]
    assert [change.place for change in found.changes()] == [1, 2, 3, 4, 5, 6, 9]
    copied = found.copy()
    found.apply(DropMetric(10, "s", "high", 9))
    assert "high" in copied.streams["s"].derived
    assert "high" not in entry.derived


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (DropMetric(8, "s", "mean", 6), "mean is read by the derived metric high: drop that first"),
        (DropMetric(8, "s", "total", 3), "total is read by the derived metric mean: drop that first"),
        (DropMetric(8, "s", "high", 6), "no metric high of place 6"),
        (AddDerived(8, "s", "n", "DERIVE x AS n FROM s"), "a metric n already"),
        (
            AddDerived(8, "s", "x", "DERIVE n AS x FROM s"),
            "last reads the field x: a metric needs another name",
        ),
        (AddDerived(8, "s", "a", "DERIVE b AS a FROM s"), "neither a field nor a metric 'b'"),
        (AddDerived(8, "s", "a", "SELECT count(*) AS a FROM s OVER INFINITE"), "no DERIVE of one metric"),
    ],
)
def test_what_does_not_fit_changes_nothing(change: DropMetric | AddDerived, message: str) -> None:
    found = catalog()
    with pytest.raises(CatalogError, match=message):
        found.apply(change)
    assert found.last_place == 7
    assert list(found.changes()) == list(catalog().changes())


def test_a_field_does_not_take_the_name_of_a_metric_that_is_read() -> None:
    found = catalog()
    with pytest.raises(CatalogError, match="mean reads the metric total: a field needs another name"):
        found.apply(evolution.added_field(found, "s", "total", "long"))
    found.apply(evolution.added_field(found, "s", "next", "long"))
    with pytest.raises(CatalogError, match="next is both a field and a metric"):
        found.apply(AddDerived(9, "s", "after", "DERIVE next AS after FROM s"))


@pytest.mark.parametrize(
    ("queries", "message"),
    [
        (
            ["DERIVE b AS a FROM s", "DERIVE x AS c, 1 + a AS b FROM s"],
            r"metrics.0.sql: line 1, column 8: derived metrics in a circle: a reads b reads a; take one of",
        ),
        (["DERIVE x + a AS a FROM s"], "0.sql: line 1, column 12: derived metrics in a circle: a reads a"),
        (["DERIVE x + 1 FROM s"], "column 14: each item of DERIVE needs a name; write AS and a name behind"),
        (
            ["DERIVE x AS a, 2 AS a FROM s"],
            r"0.sql: line 1, column 21: two metrics are named a; give one of them another",
        ),
        (
            ["DERIVE x AS c, x AS a FROM s", "DERIVE 2 AS b, 3 AS a FROM s"],
            "1.sql: line 1, column 21: a is the",
        ),
        (["DERIVE x AS a FROM s", "DERIVE 2 AS a FROM s"], "a is the name of a metric of metrics.0 too"),
        (
            [COUNTS, "DERIVE x AS n FROM s"],
            "1.sql: line 1, column 13: n is the name of a metric of metrics.0 too",
        ),
        (["DERIVE x AS tx FROM s"], "line 1, column 13: tx is the column of the id in replies"),
        (
            ["DERIVE x AS late_x FROM s"],
            "line 1, column 13: .* begin with late_.*; choose a name that does not",
        ),
        (["DERIVE y AS a FROM s"], r"column 8: stream s has neither a field nor a metric 'y'"),
        (["DERIVE x AS a FROM t"], "line 1, column 20: there is no stream 't'; known here: s"),
        (["DERIVE x + card AS a FROM s"], r"column 8: long \+ string is not defined; a string is no number"),
        (["DERIVE NULL AS a FROM s"], "a is nothing but NULL"),
    ],
)
def test_definitions_that_cannot_be(queries: list[str], message: str) -> None:
    with pytest.raises(DefinitionError, match=message):
        parse_definitions(metrics(*queries))


@pytest.mark.parametrize(
    ("query", "column"),
    [
        ("DERIVE mean AS copied FROM s", 8),
        ("DERIVE x AS same, total > 0.5 OR mean IS NULL AS either FROM s", 34),
    ],
)
def test_an_operand_with_more_than_18_digits_behind_the_point_is_refused(query: str, column: int) -> None:
    """An average of decimals has four more than its argument; a sum has as many, and is an operand."""
    averages = "SELECT avg(d) AS mean, sum(d) AS total FROM s OVER INFINITE"
    text = metrics("DERIVE total AS copy FROM s", averages, query).replace(
        "\nx =", '\nd = "decimal(18,15)"\nx ='
    )
    with pytest.raises(DefinitionError) as refused:
        parse_definitions(text)
    said = f"metrics.2.sql: line 1, column {column}: mean is decimal(38,19): a decimal in an expression has at most 18 "
    assert str(refused.value).startswith(said)
    assert parse_definitions(text.replace("(18,15)", "(18,14)")).derived


@pytest.mark.parametrize(
    ("query", "column"),
    [
        ("SELECT count(*) FROM s WHERE n > 1 OVER INFINITE", 30),
        ("SELECT count(*) FILTER (WHERE n > 1) AS few FROM s OVER INFINITE", 31),
        ("SELECT max(x + n) FROM s OVER INFINITE", 16),
        ("SELECT count(*) FROM s GROUP BY n OVER INFINITE", 33),
        ("SELECT count(*) FROM s WHERE mean > 1e0 OVER INFINITE", 30),
    ],
)
def test_a_query_that_reads_a_metric_is_told_so(query: str, column: int) -> None:
    """In a file, whatever stands first, and of what is registered."""
    name = "mean" if "mean" in query else "n"
    said = (
        f"line 1, column {column}: {name} is a metric of stream s, not a field; WHERE, FILTER, GROUP BY and arguments "
        "cannot read metrics; a DERIVE can"
    )
    with pytest.raises(DefinitionError) as refused:
        parse_definitions(metrics(query, COUNTS, "DERIVE total / n AS mean FROM s"))
    assert str(refused.value) == f"metrics.0.sql: {said}"
    with pytest.raises(DefinitionError) as refused:
        evolution.new_metrics(catalog(), "s", query)
    assert str(refused.value) == f"sql: {said}"


def test_one_that_is_written_otherwise_differs() -> None:
    other = DEFINITIONS.replace("last + 1", "last + 2")
    with pytest.raises(DifferentDefinitionsError, match=r"s: metric next is DERIVE last \+ 1 AS next FROM s"):
        evolution.missing(catalog(), parse_definitions(other))
    again = DEFINITIONS.replace("last + 1", "(last)   +   1")
    assert evolution.missing(catalog(), parse_definitions(again)) == []


def test_one_that_grows_too_large_by_what_it_reads_is_refused() -> None:
    queries = ["DERIVE x + x AS d0 FROM s"]
    queries += [f"DERIVE d{n} * d{n} - d{n} AS d{n + 1} FROM s" for n in range(12)]
    with pytest.raises(
        DefinitionError,
        match=r"is too large once the derived metrics that it reads are written out: .*at most 20000",
    ):
        parse_definitions(metrics(*queries))


def test_a_name_of_the_other_kind_differs() -> None:
    text = metrics("SELECT count(*) AS fresh, count(*) AS mean FROM s GROUP BY card OVER SLIDING 1 HOUR")
    with pytest.raises(
        DifferentDefinitionsError, match=r"metric mean is DERIVE total / n AS mean FROM s, the def"
    ):
        evolution.missing(catalog(), parse_definitions(text))
    with pytest.raises(DifferentDefinitionsError, match=r"metric total is SELECT sum\(x\) AS total FROM s"):
        evolution.missing(catalog(), parse_definitions(metrics("DERIVE x AS total FROM s")))


def test_what_a_record_makes_has_its_name() -> None:
    with pytest.raises(CatalogError, match="makes a, not b"):
        catalog().apply(AddDerived(8, "s", "b", "DERIVE x AS a FROM s"))
