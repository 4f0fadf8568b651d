"""What remedies of errors about types tell people to write is taken, and has the type that was wanted."""

import re

import pytest

from railgun.language.errors import QueryError
from railgun.language.parser import parse_query
from railgun.language.remedies import of_conversion
from railgun.language.resolve import resolve
from railgun.language.types import Kind, Type, parse_type

FIELDS = {
    name: parse_type(text)
    for name, text in {
        "s": "string",
        "n": "long",
        "d": "double",
        "p": "decimal(10,2)",
        "t": "timestamp",
        "b": "boolean",
    }.items()
}
WANTED = ("boolean", "string", "timestamp", "long", "double", "decimal(9,3)")
_CODE = re.compile(r"CASE .* END|CAST\(.*\)|\bx (?:<>|=|IS) .*")


def type_of(expression: str) -> Type:
    (metric,) = resolve(parse_query(f"SELECT first({expression}) FROM s OVER INFINITE"), FIELDS, "s")
    return metric.result_type


def code(hint: str, field: str) -> str:
    """The expression that a remedy shows, of a field."""
    found = _CODE.search(hint)
    assert found is not None, hint
    return re.sub(r"\bx\b", field, found[0])


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("wanted", [Kind.BOOLEAN, Kind.STRING, Kind.TIMESTAMP, Kind.LONG])
def test_what_converts(field: str, wanted: Kind) -> None:
    found = FIELDS[field]
    if found.kind is wanted:
        return
    hint = of_conversion(found, wanted)
    if (field, wanted) == ("b", Kind.TIMESTAMP):
        assert "a boolean tells no time" in hint
        return
    assert type_of(code(hint, field)).kind is wanted


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("wanted", WANTED)
def test_what_serves_in_place_of_a_cast_that_there_is_not(field: str, wanted: str) -> None:
    try:
        assert type_of(f"CAST({field} AS {wanted})") == parse_type(wanted)
        return
    except QueryError as error:
        hint = error.hint or ""
    if FIELDS[field] == parse_type(wanted):
        assert hint == "it is one already"
    elif (field, wanted) == ("b", "timestamp"):
        assert "a boolean tells no time" in hint
    else:
        # What is no number becomes a long, which goes with the others.
        expected = {parse_type(wanted).kind, Kind.LONG} if field == "b" else {parse_type(wanted).kind}
        assert type_of(code(hint, field)).kind in expected


@pytest.mark.parametrize(
    ("wrong", "field", "right"),
    [
        ("n > 's'", "s", "n > {}"),
        ("t > n", "n", "t > {}"),
        ("t = s", "s", "t = {}"),
        ("t = p", "p", "t = {}"),
        ("n + s", "s", "n + {}"),
        ("n + b", "b", "n + {}"),
        ("s || d", "d", "s || {}"),
        ("s || t", "t", "s || {}"),
        ("COALESCE(p, p * 0.1)", "p", "COALESCE({}, p * 0.1)"),
        ("COALESCE(p, d)", "p", "COALESCE({}, d)"),
        ("LENGTH(b)", "b", "LENGTH({})"),
        ("SUBSTR(s, d)", "d", "SUBSTR(s, {})"),
    ],
)
def test_what_mends_an_operation(wrong: str, field: str, right: str) -> None:
    with pytest.raises(QueryError) as caught:
        type_of(wrong)
    assert type_of(right.format(code(caught.value.hint or "", field)))
