"""Any text is a query or a QueryError with a place in it, and what is a query prints and reads back.

A failure prints the text itself: it is all that is needed to run it again.
"""

import random

import pytest

from railgun.language.errors import QueryError
from railgun.language.parser import parse_query
from railgun.language.printer import print_query
from railgun.language.resolve import resolve
from tests.language.expression_text import FIELDS

_VOCABULARY = (
    "SELECT FROM WHERE GROUP BY OVER SLIDING TUMBLING INFINITE DELAYED DISTINCT AS AND OR NOT IN BETWEEN "
    "LIKE IS NULL TRUE FALSE CASE WHEN THEN ELSE END DAYS HOUR MILLISECONDS count sum avg first lower abs "
    "cast substr trim round nullif greatest || long decimal "
    "coalesce n m x d s t p 1 0 7 2.5 1e3 9223372036854775808 'a' '' 'it''s' \"n\" \"\" 'open "
    '"open ( ) , * + - / % = <> != < <= > >= ; . \\ # -- /* é 😀 \x00 \t \n _'
)
TOKENS = _VOCABULARY.split(" ")
SEEDS = [
    "SELECT count(*) AS c, sum(n * 2) FROM s WHERE x > 0.5 AND s LIKE 'a%' GROUP BY s OVER SLIDING 7 DAYS",
    "SELECT avg(CASE WHEN p THEN d ELSE 1.50 END) FROM s WHERE n IN (1, 2, NULL) OVER TUMBLING 1 DAY",
    "SELECT count(DISTINCT lower(s)), prev(t) FROM s WHERE NOT (x BETWEEN -1e3 AND 2) OVER INFINITE",
    "SELECT last(s) FROM s WHERE s IS NOT NULL OR p GROUP BY s, p OVER INFINITE DELAYED BY 5 MINUTES",
    "SELECT max(coalesce(abs(-x), 3 % 2, n / m)) FROM s OVER SLIDING 90 SECONDS DELAYED BY 1 HOUR",
]


def _soup(rng: random.Random) -> str:
    return rng.choice(["", " "]).join(rng.choice(TOKENS) for _ in range(rng.randrange(30)))


_OPERANDS = "n m x d e s r t p q 1 -2 0.5 -12.50 1e3 'a' NULL TRUE"
OPERANDS = _OPERANDS.split(" ")
_SHAPES = (
    "{} + {}; {} - {}; {} * {}; {} / {}; {} % {}; -{}; {} = {}; {} < {}; {} AND {}; {} OR {}; NOT {}; "
    "{} IN ({}, {}); {} NOT BETWEEN {} AND {}; {} LIKE 'a%'; {} IS NULL; LOWER({}); ABS({}); COALESCE({}, {})"
    "; {} || {}; SUBSTR({}, {}); TRIM({}); LENGTH({}); ROUND({}); ROUND({}, 1); FLOOR({}); SQRT({}); NULLIF({}, {})"
    "; GREATEST({}, {}); CAST({} AS long); CAST({} AS decimal(9,2)); CAST({} AS string)"
    "; HOUR({}); YEAR({} IN 'Asia/Tokyo')"
    "; CASE WHEN {} THEN {} END; CASE {} WHEN {} THEN {} ELSE {} END"
)
SHAPES = _SHAPES.split("; ")


def _expression(rng: random.Random, depth: int) -> str:
    """Grammar without types: most of these are refused only when fields are known."""
    if depth == 0 or rng.random() < 0.2:
        return rng.choice(OPERANDS)
    shape = rng.choice(SHAPES)
    return "(" + shape.format(*(_expression(rng, depth - 1) for _ in range(shape.count("{}")))) + ")"


def _untyped(rng: random.Random) -> str:
    aggregator = rng.choice(["count", "sum", "last", "count_distinct"])
    return (
        f"SELECT {aggregator}({_expression(rng, 3)}) FROM s WHERE {_expression(rng, 2)} OVER TUMBLING 2 HOURS"
    )


def _mutated(rng: random.Random) -> str:
    text = rng.choice([*SEEDS, _untyped(rng)])
    parts, joint = (list(text), "") if rng.random() < 0.5 else (text.split(" "), " ")
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        where = rng.randrange(len(parts) + 1)
        match rng.randrange(4):
            case 0:
                del parts[where : where + rng.randrange(1, 4)]
            case 1:
                parts.insert(where, rng.choice(TOKENS))
            case 2:
                parts[where : where + 1] = [chr(rng.choice([rng.randrange(128), rng.randrange(0x11000)]))]
            case _:
                parts[where:where] = parts[rng.randrange(len(parts) + 1) :][:5]
    return joint.join(parts)


def check(text: str) -> bool:
    """Whether it reads as a query; AssertionError where what comes out is no QueryError with a place."""
    parsed, error = _read(text)
    if error is not None:
        assert isinstance(error, QueryError), f"{error!r} for {text!r}"
        assert 0 <= error.position.offset <= len(text), repr(text)
        assert error.message, repr(text)
        assert error.hint or error.expected, repr(text)
        assert "\n" not in str(error), repr(text)
    return parsed


def _read(text: str) -> tuple[bool, BaseException | None]:
    parsed = False
    try:
        query = parse_query(text)
        parsed = True
        assert parse_query(print_query(query)) == query
        resolve(query, FIELDS, "s")
    except BaseException as error:  # noqa: BLE001 (what else may come out is what this is about)
        return parsed, error
    return parsed, None


def _fuzz(count: int, seed: int) -> None:
    rng = random.Random(seed)
    good = 0
    for _ in range(count):
        good += check(rng.choice([_soup, _mutated, _untyped])(rng))
    # Else the texts are too wild to say anything about those that nearly are queries.
    assert 0.2 < good / count < 0.6


def test_texts_near_and_far_from_queries() -> None:
    _fuzz(2_000, seed=1)


@pytest.mark.torture
@pytest.mark.parametrize("seed", range(10))
def test_texts_near_and_far_from_queries_at_length(seed: int) -> None:
    _fuzz(10_000, seed=100 + seed)
