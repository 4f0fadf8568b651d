"""The names of types."""

import pytest

from railgun.language.types import DOUBLE, LONG, TypeTextError, decimal, parse_type


def test_types_read_and_print() -> None:
    for text in ("string", "long", "double", "boolean", "timestamp", "decimal(18,0)", "decimal(1,1)"):
        assert str(parse_type(text)) == text
    assert parse_type("decimal( 12 , 2 )") == decimal(12, 2)
    assert LONG.is_numeric
    assert not parse_type("timestamp").is_numeric
    assert parse_type("double") is DOUBLE


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("strin", "did you mean string?"),
        ("integer128", "unknown type"),
        ("null", "unknown type"),
        ("Decimal(3,1)", "did you mean decimal"),
        ("decimal", "did you mean decimal"),
        ("decimal(0,0)", "precision"),
        ("decimal(19,2)", "precision"),
        ("decimal(4,5)", "scale"),
        ("decimal(4,-1)", "unknown type"),
        ("long\n", "unknown type"),
    ],
)
def test_what_is_no_type(text: str, said: str) -> None:
    with pytest.raises(TypeTextError, match=said):
        parse_type(text)
