"""What docs/language.md writes is so: its queries run, and its names are those that are made."""

import re
from pathlib import Path

import pytest

from railgun.catalog.definitions import parse_definitions
from railgun.catalog.errors import DefinitionError
from railgun.engine.engine import Engine
from railgun.language.ast import Function
from railgun.language.parser import parse_query
from railgun.language.resolve import resolve
from railgun.language.types import parse_type
from tests.forked import ROOT
from tests.oracle.compare import differences
from tests.oracle.stream import Oracle

_STREAM = """
[streams.payments]
time = "ts"
partitioners = ["card", "*"]
[streams.payments.fields]
card = "string"
ts = "timestamp"
amount = "double"
channel = "string"
"""
_FIELDS = {
    name: parse_type(type_) for name, type_ in re.findall(r'^(\w+) = "(\w+)"$', _STREAM, re.MULTILINE)[1:]
}
_PAGE = (ROOT / "docs" / "language.md").read_text(encoding="utf-8")
_STATEMENTS, _ERRORS = _PAGE.split("\n## Errors\n")
_BLOCK = re.compile(r"(?:^ {4}.*\n)+", re.MULTILINE)
_QUERIES = [
    " ".join(block.split())
    for block in _BLOCK.findall(_STATEMENTS)
    if block.split()[0] in ("SELECT", "DERIVE") and "…" not in block
]
# Wrong statements, and the errors below them.
_WRONG = [
    re.split(r" (?=line [0-9])", " ".join(block.split()), maxsplit=1) for block in _BLOCK.findall(_ERRORS)
]
_NAMES = re.findall(r"^\| `(SELECT [^`]*…[^`]*)` \| `(\w+)` \|$", _PAGE, re.MULTILINE)
_EVENTS = [
    {
        "card": f"c{number % 2}",
        "ts": 1_000 * number,
        "amount": number / 4,
        "channel": ("web", "app", "shop")[number % 3],
    }
    for number in range(12)
]


def test_its_queries_run(tmp_path: Path) -> None:
    assert [query.split()[0] for query in _QUERIES].count("SELECT") >= 3
    assert "DERIVE" in [query.split()[0] for query in _QUERIES]
    definitions = _STREAM + "".join(f'[[metrics]]\nsql = """{query}"""\n' for query in _QUERIES)
    model = Oracle(definitions).streams["payments"]
    with Engine(tmp_path / "data") as engine:
        engine.apply(definitions)
        for event in _EVENTS:
            assert not differences(model.score(event), engine.score("payments", event)), event


@pytest.mark.parametrize(("query", "name"), _NAMES)
def test_its_names_are_those_that_are_made(query: str, name: str) -> None:
    (metric,) = resolve(
        parse_query(query.replace("…", "FROM payments", 1).replace("…", "")), _FIELDS, "payments"
    )
    assert metric.name == name


@pytest.mark.parametrize(("statement", "error"), _WRONG)
def test_its_errors_are_those_that_are_told(statement: str, error: str) -> None:
    entries = "".join(f'[[metrics]]\nsql = """{query}"""\n' for query in (*_QUERIES, statement))
    with pytest.raises(DefinitionError) as caught:
        parse_definitions(_STREAM + entries)
    assert str(caught.value) == f"metrics.{len(_QUERIES)}.sql: {error}"


def test_there_are_errors_of_each_kind() -> None:
    said = " ".join(statement for statement, _ in _WRONG)
    assert all(word in said for word in ("SELECT", "DERIVE", " IN '", "CAST"))


@pytest.mark.parametrize("function", [*Function, "cast"])
def test_each_function_is_in_a_query_that_runs(function: str) -> None:
    assert any(re.search(rf"\b{function.upper()}\(", query) for query in _QUERIES)


def test_there_are_names() -> None:
    assert len(_NAMES) >= 4
