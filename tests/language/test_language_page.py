"""What docs/language.md writes is so: its queries run, and its names are those that are made."""

import re
from pathlib import Path

import pytest

from railgun.engine.engine import Engine
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
_QUERIES = [
    " ".join(block.split())
    for block in re.findall(r"(?:^ {4}.*\n)+", _PAGE, re.MULTILINE)
    if block.split()[0] in ("SELECT", "DERIVE") and "…" not in block
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


def test_there_are_names() -> None:
    assert len(_NAMES) >= 4
