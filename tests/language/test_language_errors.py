"""What a wrong query is told: the place, what was expected, and the name that may be meant.

In each text `¦` marks the place that the error has to name.
"""

import pytest

from railgun.language.ast import Derivation
from railgun.language.derive import resolve_derived
from railgun.language.errors import QueryError, nearest, position_of
from railgun.language.limits import (
    DEPTH_LIMIT,
    GROUP_BY_LIMIT,
    IN_LIMIT,
    ITEMS_LIMIT,
    LIKE_PATTERN_LIMIT_BYTES,
    NUMBER_LIMIT_DIGITS,
    TEXT_LIMIT_BYTES,
)
from railgun.language.parser import parse_query, parse_statement
from railgun.language.resolve import resolve
from railgun.language.types import decimal, parse_type

FIELDS = {
    name: parse_type(text)
    for name, text in {
        "card": "string",
        "merchant": "string",
        "amount": "double",
        "items": "long",
        "price": "decimal(10,2)",
        "rate": "decimal(12,4)",
        "at": "timestamp",
        "online": "boolean",
    }.items()
}

SYNTAX = [
    ("¦", "ends too early", ("DERIVE", "SELECT"), None),
    ("SELECT count(*) FROM s¦", "ends too early", ("GROUP", "OVER", "WHERE"), None),
    (
        "SELECT ¦cuont(*) FROM s OVER INFINITE",
        "unknown aggregator 'cuont'",
        (),
        "did you mean count? they are avg, count,",
    ),
    ("SELECT ¦quantile(x) FROM s OVER INFINITE", "unknown aggregator", (), "stddev"),
    (
        "¦SELCT count(*) FROM s OVER INFINITE",
        "unexpected 'SELCT'",
        ("DERIVE", "SELECT"),
        "did you mean SELECT?",
    ),
    ("SELECT count(*) ¦FORM s OVER INFINITE", "unexpected 'FORM'", ("','", "AS", "FILTER", "FROM"), "FROM?"),
    ("SELECT count(*) FILTER (¦ok) FROM s OVER INFINITE", "unexpected 'ok'", ("WHERE",), None),
    (
        "SELECT count(*) ¦FLTER (WHERE ok) FROM s OVER INFINITE",
        "unexpected",
        ("','", "AS", "FILTER", "FROM"),
        "FILTER?",
    ),
    ("SELECT count(*) FROM s ¦WHER x OVER INFINITE", "unexpected", ("GROUP", "OVER", "WHERE"), "WHERE?"),
    ("SELECT count(*) FROM s GROUP ¦card OVER INFINITE", "unexpected 'card'", ("BY",), None),
    (
        "SELECT count(*) FROM s OVER ¦SLIDNG 7 DAYS",
        "'SLIDNG'",
        ("INFINITE", "SLIDING", "TUMBLING"),
        "SLIDING?",
    ),
    ("SELECT count(*) FROM s OVER SLIDING ¦DAYS", "unexpected 'DAYS'", ("a whole number",), None),
    ("SELECT count(*) FROM s OVER SLIDING 7 ¦DAYZ", "unexpected 'DAYZ'", None, "did you mean DAYS?"),
    ("SELECT count(*) FROM s OVER SLIDING ¦0 DAYS", "at least 1 MILLISECOND", (), "write a greater number"),
    ("SELECT count(*) FROM s OVER SLIDING ¦3257813 DAYS", "at most 3257812 DAYS", (), "OVER INFINITE"),
    (f"SELECT count(*) FROM s OVER SLIDING ¦{'9' * 40} DAYS", "at most 3257812 DAYS", (), "OVER INFINITE"),
    (
        "SELECT count(*) FROM s OVER SLIDING 1 DAY DELAYED BY ¦0 DAYS",
        "at least 1 MILLISECOND",
        (),
        "leave out DELAYED BY",
    ),
    ("SELECT count(*) FROM s OVER INFINITE ¦x", "unexpected 'x'", ("DELAYED", "EXCLUDE", "the end"), None),
    ("SELECT sum(x = ¦= 1) FROM s OVER INFINITE", "unexpected '='", ("a value",), "a single ="),
    ("SELECT ¦* FROM s OVER INFINITE", "unexpected '*'", ("a name",), "name each metric"),
    ("SELECT sum(x) AS a, FROM ¦s OVER INFINITE", "unexpected 's'", ("'('",), "the comma before FROM"),
    ("DERIVE a / b AS c, FROM ¦s", "unexpected 's'", None, "the comma before FROM"),
    ("SELECT sum(x) FROM s WHERE 1 < x ¦< 3 OVER INFINITE", "unexpected '<'", None, "1 < x AND x < 3"),
    ("SELECT sum(x) ¦* 2 FROM s OVER INFINITE", "unexpected '*'", None, "in a DERIVE"),
    ("SELECT sum(x) ¦/ count(*) FROM s OVER INFINITE", "unexpected '/'", None, "in a DERIVE"),
    ("SELECT count(*) ¦> 3 AS many FROM s OVER INFINITE", "unexpected '>'", None, "in a DERIVE"),
    ("SELECT count(*) FROM s GROUP BY c ¦HAVING n > 3 OVER INFINITE", "'HAVING'", None, "in a DERIVE"),
    ("SELECT count(*) FROM s ¦JOIN t OVER INFINITE", "'JOIN'", None, "reads one stream"),
    ("SELECT count(*) FROM s OVER INFINITE ¦GROUP BY c", "'GROUP'", None, "GROUP BY stands before OVER"),
    ("SELECT count(*) FROM s GROUP BY c ¦WHERE x OVER INFINITE", "'WHERE'", None, "after the stream's name"),
    ("SELECT count(*) FROM s GROUP BY c ¦WINDOW w", "'WINDOW'", None, "follows the word OVER"),
    ("SELECT count(*) FROM s OVER SLIDING ¦INTERVAL '7' DAY", "'INTERVAL'", None, "as in 7 DAYS"),
    ("SELECT count(*) FROM s GROUP BY c ¦ORDER BY c OVER INFINITE", "'ORDER'", None, "one answer"),
    ("SELECT count(*) FROM s OVER INFINITE ¦ORDER BY c", "'ORDER'", None, "every event has one answer"),
    ("SELECT count(*) FROM s OVER INFINITE EXCLUDE CURRENT ¦ROW", "'ROW'", None, "write EXCLUDE CURRENT"),
    ("SELECT count(*) FROM s OVER TUMBLING 1 DAY ¦IN 'UTC'", "'IN'", None, "windows have no zone"),
    ("SELECT count(*) FROM s OVER ¦7 DAYS", "unexpected '7'", None, "write OVER SLIDING 7 DAYS"),
    ("SELECT count(*) FROM s OVER ¦HOPPING 7 DAYS", "'HOPPING'", None, "write OVER SLIDING 7 DAYS"),
    ("SELECT count(*) FROM s OVER SLIDING ¦'7 days'", "'7 days'", None, "without quotes"),
    ("SELECT count(*) FROM s OVER SLIDING 7¦d", "unexpected 'd'", None, "did you mean DAYS?"),
    ("SELECT count(*) FROM s OVER SLIDING 5 ¦Min", "unexpected 'Min'", None, "did you mean MINUTES?"),
    ("SELECT count(*) FROM s OVER SLIDING 1 ¦month", "unexpected 'month'", None, "as in 30 DAYS"),
    ("SELECT count(*) FROM s OVER SLIDING 1¦.5 HOURS", "unexpected '.5'", None, "90 MINUTES"),
    ("SELECT count(*) ¦-- of all\nFROM s OVER INFINITE", "unexpected '-'", None, "no comments"),
    ("SELECT sum(x) FROM s WHERE x > 5 -- if ¦big\nOVER INFINITE", "unexpected 'big'", None, "no comments"),
    ("SELECT sum(x) FROM s WHERE x > 5 - -y ¦big OVER INFINITE", "unexpected 'big'", None, None),
    (
        "SELECT sum(x) FILTER (WHERE y) ¦/ count(*) FROM s OVER INFINITE",
        "unexpected '/'",
        None,
        "in a DERIVE",
    ),
    ("SELECT sum(x) AS a ¦/ count(*) FROM s OVER INFINITE", "unexpected '/'", None, "in a DERIVE"),
    ("SELECT sum(x) ¦OVER (PARTITION BY card) FROM s", "unexpected 'OVER'", None, "write one window, last"),
    ("SELECT count(*) FROM s ¦LEFT JOIN t OVER INFINITE", "'LEFT'", None, "reads one stream"),
    ("SELECT count(*) FROM s WHERE x = ' -- a' OVER ¦SLIDNG 7 DAYS", "'SLIDNG'", None, "SLIDING?"),
    ("SELECT count(*) FROM s WHERE x ¦WHERE y OVER INFINITE", "'WHERE'", None, None),
    ("SELECT count(*) FILTER ¦WHERE x FROM s OVER INFINITE", "'WHERE'", ("'('",), None),
    ("DERIVE a / n AS b FROM s ¦WHERE a > 1", "'WHERE'", ("the end",), None),
    ("DERIVE a / n ¦limit FROM s", "needs a name", (), "write AS and a name"),
    (
        "SELECT count(*) FROM s WHERE ¦mean(x) > 3 OVER INFINITE",
        "unknown function 'mean'",
        (),
        "they are abs",
    ),
    ("SELECT ¦Mean(x) FROM s OVER INFINITE", "unknown aggregator 'Mean'", (), "did you mean avg?"),
    ("SELECT sum(x) FROM s WHERE x IS NULL ¦= TRUE OVER INFINITE", "unexpected '='", None, None),
    ("SELECT sum(x) FROM s WHERE y = 1 AND x IS NULL ¦= TRUE OVER INFINITE", "unexpected '='", None, None),
    ("SELECT sum(x) FROM s WHERE x BETWEEN 1 ¦< 3 OVER INFINITE", "unexpected '<'", None, None),
    ("DERIVE a < b ¦= c AS d FROM s", "unexpected '='", None, "two at a time"),
    ("SELECT sum(x ¦! 1) FROM s OVER INFINITE", "unexpected character '!'", (), "unequal is <> or !="),
    ("SELECT sum(s = ¦'abc) FROM s OVER INFINITE", "never closed", (), "end it with '"),
    ('SELECT sum(¦"abc) FROM s OVER INFINITE', "never closed", (), 'end it with "'),
    ("SELECT sum(x)¦", "ends too early", ("','", "AS", "FILTER", "FROM"), None),
    ("SELECT sum(x +¦) FROM s OVER INFINITE", "unexpected ')'", ("a value",), None),
    ("SELECT sum(a ¦b) FROM s OVER INFINITE", "unexpected 'b'", None, None),
    ("SELECT sum(s LIKE ¦t) FROM s OVER INFINITE", "unexpected 't'", ("a string in single quotes",), None),
    ("SELECT sum(s LIKE ¦'a\\') FROM s OVER INFINITE", "lone backslash", (), "write two"),
    ("SELECT sum(¦lowr(x)) FROM s OVER INFINITE", "unknown function 'lowr'", (), "did you mean lower?"),
    ("SELECT sum(¦avg(x)) FROM s OVER INFINITE", "is an aggregator", (), "by its name"),
    ("SELECT sum(abs(x, ¦y)) FROM s OVER INFINITE", "one argument", (), "as in ABS(x)"),
    ("SELECT sum(¦substr(x)) FROM s OVER INFINITE", "two or three arguments", (), "as in SUBSTR(s, 1) or"),
    (
        "SELECT sum(round(x, 1, ¦2)) FROM s OVER INFINITE",
        "one or two arguments",
        (),
        "as in ROUND(x) or ROUND(x, 2)",
    ),
    ("SELECT sum(¦greatest(x)) FROM s OVER INFINITE", "two arguments or more", (), "as in GREATEST(a, b)"),
    ("SELECT sum(¦nullif(x)) FROM s OVER INFINITE", "nullif takes two arguments", (), "as in NULLIF(a, b)"),
    ("SELECT sum(length(s IN ¦'x')) FROM s OVER INFINITE", "length takes no time zone", (), "HOUR, MINUTE"),
    ("SELECT sum(¦first(t IN 'x')) FROM s OVER INFINITE", "is an aggregator", (), "by its name"),
    ("SELECT sum(¦cast(x)) FROM s OVER INFINITE", "CAST names no type", (), "CAST(x AS long)"),
    ("SELECT sum(¦cats(x)) FROM s OVER INFINITE", "unknown function 'cats'", (), "did you mean cast?"),
    ("SELECT sum(¦round(x AS long)) FROM s OVER INFINITE", "AS stands in CAST alone", (), "CAST(x AS long)"),
    (
        "SELECT sum(CAST(x AS ¦lnog)) FROM s OVER INFINITE",
        "unknown type 'lnog'",
        (),
        "did you mean long? types are string, long",
    ),
    (
        "SELECT sum(CAST(x AS ¦decimal(19,2))) FROM s OVER INFINITE",
        "no type 'decimal(19,2)'",
        (),
        "precision ≤ 18",
    ),
    ("SELECT sum(CAST(x AS decimal(9¦))) FROM s OVER INFINITE", "unexpected ')'", ("','",), None),
    ("SELECT sum(¦*) FROM s OVER INFINITE", "* is for count alone", (), "write sum(x) or count(*)"),
    (
        "SELECT sum(¦DISTINCT x) FROM s OVER INFINITE",
        "DISTINCT is for count alone",
        (),
        "write sum(x) or count(DISTINCT x)",
    ),
    ("SELECT sum(¦9223372036854775808) FROM s OVER INFINITE", "beyond 64 bits", (), "exponent"),
    ("SELECT sum(-¦9223372036854775809) FROM s OVER INFINITE", "beyond 64 bits", (), "exponent"),
    ("SELECT sum(¦1e999) FROM s OVER INFINITE", "beyond the range of a double", (), "the greatest is 1.79"),
    ("SELECT sum(x) AS ¦_x FROM s OVER INFINITE", "cannot name a metric", (), "a letter"),
    ('SELECT sum(x) AS ¦"a b" FROM s OVER INFINITE', "cannot name a metric", (), "a letter"),
    ("DERIVE a / b ¦FROM s", "each item of DERIVE needs a name", (), "write AS and a name behind"),
    ("DERIVE a¦, b AS c FROM s", "each item of DERIVE needs a name", (), "write AS"),
    ("DERIVE b AS c, a¦", "each item of DERIVE needs a name", (), "write AS"),
    ("DERIVE a / b ¦rate FROM s", "each item of DERIVE needs a name", (), "write AS"),
    ("DERIVE a ¦ADN b AS c FROM s", "unexpected 'ADN'", None, "did you mean AND?"),
    ("DERIVE cast(a ¦FROM s", "unexpected 'FROM'", None, None),
    ("DERIVE (a + b ¦FROM s", "unexpected 'FROM'", None, None),
    ("SELECT sum(x = '¦\ud800') FROM s OVER INFINITE", "surrogate", (), "the character itself"),
]

MEANING = [
    ("SELECT sum(¦amonut) FROM s OVER INFINITE", "stream s has no field 'amonut'", "did you mean amount?"),
    ("SELECT sum(¦Amount) FROM s OVER INFINITE", "no field 'Amount'", "did you mean amount?"),
    ("SELECT sum(amount) FROM s GROUP BY ¦crd OVER INFINITE", "no field 'crd'", "did you mean card?"),
    ("SELECT sum(¦zzz) FROM s OVER INFINITE", "no field 'zzz'", "its fields are card, merchant"),
    ('SELECT sum(items) FROM s WHERE card = ¦"visa" OVER INFINITE', "no field 'visa'", "single quotes"),
    ("SELECT sum(items) FROM ¦t OVER INFINITE", "unknown stream 't'", "this is stream s"),
    (
        "SELECT sum(¦card) FROM s OVER INFINITE",
        "sum takes long, double or decimal, not string",
        "CAST(x AS long)",
    ),
    (
        "SELECT avg(¦at) FROM s OVER INFINITE",
        "avg takes long, double or decimal, not timestamp",
        "CAST(x AS long)",
    ),
    ("SELECT var_pop(¦online) FROM s OVER INFINITE", "not boolean", "CASE WHEN x THEN 1 ELSE 0 END"),
    ("SELECT count(¦NULL) FROM s OVER INFINITE", "nothing but NULL", "count(*) counts events"),
    (
        "SELECT sum(items) FROM s WHERE ¦items OVER INFINITE",
        "WHERE takes boolean, not long",
        "compare it, as in x <> 0",
    ),
    (
        "SELECT sum(items) FILTER (WHERE ¦items) FROM s OVER INFINITE",
        "WHERE takes boolean, not long",
        "compare it, as in x <> 0",
    ),
    (
        "SELECT sum(items) FROM s WHERE online AND ¦card OVER INFINITE",
        "AND takes boolean, not string",
        "compare it, as in x = 'yes'",
    ),
    (
        "SELECT sum(items) FROM s WHERE NOT ¦items OVER INFINITE",
        "NOT takes boolean, not long",
        "compare it, as in x <> 0",
    ),
    (
        "SELECT sum(items) FROM s WHERE NOT ¦NULL OVER INFINITE",
        "NOT takes boolean, not null",
        "write a value that has one",
    ),
    ("SELECT sum(items) FROM s WHERE ¦card = 5 OVER INFINITE", "string cannot be compared", "no number"),
    ("SELECT sum(items) FROM s WHERE ¦at > 5 OVER INFINITE", "timestamp cannot be compared", "in ms"),
    (
        "SELECT sum(items) FROM s WHERE items IN (1, ¦'2') OVER INFINITE",
        "long cannot be compared",
        "no number",
    ),
    (
        "SELECT sum(items) FROM s WHERE ¦items LIKE '1' OVER INFINITE",
        "LIKE takes string, not long",
        "CAST(x AS string)",
    ),
    ("SELECT sum(¦items + card) FROM s OVER INFINITE", "long + string is not defined", "no number"),
    ("SELECT max(¦5 + at) FROM s OVER INFINITE", "long + timestamp is not defined", "timestamp ± long"),
    ("SELECT max(¦at * 2) FROM s OVER INFINITE", "timestamp * long is not defined", "timestamp ± long"),
    (
        "SELECT sum(-¦card) FROM s OVER INFINITE",
        "a minus takes long or double or decimal, not string",
        "CAST(x AS long)",
    ),
    ("SELECT sum(ABS(¦card)) FROM s OVER INFINITE", "ABS takes long or double or decimal", "CAST(x AS long)"),
    ("SELECT max(LOWER(¦items)) FROM s OVER INFINITE", "LOWER takes string, not long", "CAST(x AS string)"),
    ("SELECT sum(COALESCE(price, ¦0)) FROM s OVER INFINITE", "decimal(10,2) and long", "such as 0.0"),
    (
        "SELECT sum(COALESCE(price, ¦rate)) FROM s OVER INFINITE",
        "decimal(10,2) and decimal(12,4)",
        "CAST(x AS decimal(18,4)) gives them one scale",
    ),
    (
        "SELECT sum(COALESCE(price, ¦0.005)) FROM s OVER INFINITE",
        "does not fit",
        "16 digits may stand before the point and 2 behind",
    ),
    ("SELECT sum(¦COALESCE(NULL)) FROM s OVER INFINITE", "nothing but NULL", "give it a value"),
    (
        "SELECT sum(CASE WHEN ¦items THEN 1 END) FROM s OVER INFINITE",
        "WHEN takes boolean",
        "compare it, as in x <> 0",
    ),
    (
        "SELECT sum(CASE WHEN online THEN 1 ELSE ¦'a' END) FROM s OVER INFINITE",
        "long and string",
        "only long widens",
    ),
    (
        "SELECT sum(¦rate * rate * rate * rate * rate) FROM s OVER INFINITE",
        "20 digits after the point",
        "1e0",
    ),
    (
        "SELECT sum(price + ¦1.0000000000000000001) FROM s OVER INFINITE",
        "at most 18 digits",
        "with an exponent",
    ),
    (
        "SELECT max(SUBSTR(¦items, 1)) FROM s OVER INFINITE",
        "SUBSTR takes string, not long",
        "CAST(x AS string)",
    ),
    (
        "SELECT max(SUBSTR(card, ¦amount)) FROM s OVER INFINITE",
        "SUBSTR's place takes long, not double",
        "CAST(x AS long)",
    ),
    ("SELECT max(¦items || card) FROM s OVER INFINITE", "long || string is not defined", "AS string"),
    (
        "SELECT max(¦card || amount) FROM s OVER INFINITE",
        "string || double is not defined",
        "CAST(CAST(x AS long) AS string)",
    ),
    ("SELECT max(GREATEST(items, ¦card)) FROM s OVER INFINITE", "branches of GREATEST", "only long widens"),
    ("SELECT max(¦NULLIF(items, card)) FROM s OVER INFINITE", "cannot be compared", "no number"),
    ("SELECT max(NULLIF(¦NULL, card)) FROM s OVER INFINITE", "NULLIF of NULL has no type", "put a value"),
    ("SELECT max(ROUND(amount, ¦2)) FROM s OVER INFINITE", "not beside a double", "a whole number"),
    ("SELECT max(ROUND(price, ¦3)) FROM s OVER INFINITE", "a number from 0 to 2", "as in ROUND(x, 2)"),
    ("SELECT max(ROUND(price, ¦items)) FROM s OVER INFINITE", "a number from 0 to 2", "as in ROUND(x, 2)"),
    (
        "SELECT max(FLOOR(¦card)) FROM s OVER INFINITE",
        "FLOOR takes long or double or decimal",
        "CAST(x AS long)",
    ),
    ("SELECT max(SQRT(¦at)) FROM s OVER INFINITE", "SQRT takes long or double or decimal", "CAST(x AS long)"),
    (
        "SELECT max(¦CAST(amount AS decimal(9,2))) FROM s OVER INFINITE",
        "double cannot be cast",
        "only long or",
    ),
    (
        "SELECT max(¦CAST(card AS double)) FROM s OVER INFINITE",
        "string cannot be cast to double",
        "only long",
    ),
    ("SELECT max(¦CAST(items AS long)) FROM s OVER INFINITE", "long cannot be cast", "it is one already"),
    (
        "SELECT max(¦CAST(items AS boolean)) FROM s OVER INFINITE",
        "long cannot be cast to boolean",
        "compare it, as in x <> 0",
    ),
    (
        "SELECT max(HOUR(¦items)) FROM s OVER INFINITE",
        "HOUR takes timestamp, not long",
        "CAST(x AS timestamp)",
    ),
    ("SELECT max(HOUR(at IN ¦'Europe/Lisbno')) FROM s OVER INFINITE", "unknown time zone", "Europe/Lisbon?"),
    (
        "SELECT max(HOUR(at IN ¦'../x')) FROM s OVER INFINITE",
        "unknown time zone '../x'",
        "such as 'Europe/Lisbon'",
    ),
    ("SELECT max(HOUR(¦items IN 'Asia/Tokyo')) FROM s OVER INFINITE", "HOUR takes timestamp", "CAST"),
    (
        "SELECT max(YEAR(¦card)) FROM s OVER INFINITE",
        "YEAR takes timestamp, not string",
        "CAST(CAST(x AS long) AS timestamp)",
    ),
    ("SELECT sum(items), ¦sum(items) FROM s OVER INFINITE", "two metrics are named sum_items_infinite", "AS"),
    ("SELECT sum(items) AS a, avg(items) AS ¦a FROM s OVER INFINITE", "two metrics are named a", "AS"),
    ("SELECT sum(items) AS ¦late_card FROM s OVER INFINITE", "begin with late_", "does not begin so"),
    ("SELECT sum(items) AS ¦duplicate_x FROM s OVER INFINITE", "begin with duplicate_", "does not begin so"),
]

KNOWN = {"n": parse_type("long"), "mean": decimal(38, 20), "amount": parse_type("double")}
DERIVED = [
    ("DERIVE ¦nn + 1 AS a FROM s", "neither a field nor a metric 'nn'", "did you mean n?"),
    (
        "DERIVE 1 + ¦zzzz AS a FROM s",
        "neither a field nor a metric 'zzzz'",
        "its metrics are n, mean, amount",
    ),
    ("DERIVE ¦amount AS a FROM s", "amount is both a field and a metric", "give the metric another name"),
    ("DERIVE n / ¦mean AS a FROM s", "has at most 18 digits", "aggregate a CAST of fewer digits"),
    ("DERIVE ¦n AND n AS a FROM s", "AND takes boolean, not long", "compare it, as in x <> 0"),
    ("DERIVE n AS ¦late_n FROM s", "begin with late_", "does not begin so"),
    ("DERIVE n AS ¦duplicate_n FROM s", "begin with duplicate_", "does not begin so"),
    ("DERIVE ¦NULL AS a FROM s", "a is nothing but NULL", "give it a value with a type"),
    ("DERIVE n AS a FROM ¦t", "unknown stream 't'", "this is stream s"),
]


def _many(text: str, count: int, joint: str = ", ") -> str:
    return joint.join([text] * count)


TOO_MUCH = [
    (f"SELECT sum(x IN ({_many('1', IN_LIMIT)}, ¦2)) FROM s OVER INFINITE", "joined by OR"),
    (f"SELECT {_many('sum(x)', ITEMS_LIMIT)}, ¦avg(x) FROM s OVER INFINITE", "a statement of their own"),
    (f"DERIVE {_many('x AS a', ITEMS_LIMIT)}, ¦x AS a FROM s", "a statement of their own"),
    (f"SELECT sum(x) FROM s GROUP BY {_many('c', GROUP_BY_LIMIT)}, ¦d OVER INFINITE", "leave out"),
    (f"SELECT sum(s LIKE ¦'{'a' * LIKE_PATTERN_LIMIT_BYTES}a') FROM s OVER INFINITE", "joined by AND"),
    (f"SELECT sum(¦0.{'1' * NUMBER_LIMIT_DIGITS}) FROM s OVER INFINITE", "write fewer"),
    (f"SELECT sum(¦1{'0' * NUMBER_LIMIT_DIGITS}e-9) FROM s OVER INFINITE", "write fewer"),
    (f"SELECT sum(¦{'9' * 320}.0) FROM s OVER INFINITE", "the greatest is 1.79"),
    (f"SELECT sum(x) FROM s OVER INFINITE{' ' * TEXT_LIMIT_BYTES}¦", "several queries"),
    (f"SELECT sum({'(' * (DEPTH_LIMIT - 1)}¦(x)) FROM s OVER INFINITE", "that change nothing"),
    (f"SELECT sum(¦x{' + x' * DEPTH_LIMIT}) FROM s OVER INFINITE", "in halves"),
    (f"SELECT sum({'(' * 20}¦b{' BETWEEN FALSE AND TRUE)' * 20}) FROM s OVER INFINITE", "first operand"),
]


def _split(marked: str) -> tuple[str, int]:
    return marked.replace("¦", ""), marked.index("¦")


@pytest.mark.parametrize(("marked", "message", "expected", "hint"), SYNTAX)
def test_syntax(marked: str, message: str, expected: tuple[str, ...] | None, hint: str | None) -> None:
    text, offset = _split(marked)
    with pytest.raises(QueryError) as caught:
        parse_query(text)
    error = caught.value
    assert message in error.message
    assert error.hint or error.expected, "neither a remedy nor what could have stood there"
    assert error.position.offset == offset
    assert expected is None or error.expected == expected
    assert error.hint is None if hint is None else hint in (error.hint or "")


@pytest.mark.parametrize(("marked", "message", "hint"), MEANING)
def test_meaning(marked: str, message: str, hint: str) -> None:
    text, offset = _split(marked)
    query = parse_query(text)
    with pytest.raises(QueryError) as caught:
        resolve(query, FIELDS, "s")
    error = caught.value
    assert message in error.message
    assert error.position.offset == offset
    assert hint
    assert hint in (error.hint or "")


@pytest.mark.parametrize(("marked", "message", "hint"), DERIVED)
def test_meaning_of_derived_metrics(marked: str, message: str, hint: str) -> None:
    text, offset = _split(marked)
    derivation = parse_statement(text)
    assert isinstance(derivation, Derivation)
    (item,) = derivation.items
    with pytest.raises(QueryError) as caught:
        resolve_derived(item, derivation, FIELDS, KNOWN, "s")
    error = caught.value
    assert message in error.message
    assert error.position.offset == offset
    assert hint in (error.hint or "")


@pytest.mark.parametrize(("marked", "hint"), TOO_MUCH)
def test_what_is_too_much(marked: str, hint: str) -> None:
    text, offset = _split(marked)
    with pytest.raises(QueryError) as caught:
        parse_statement(text)
    assert caught.value.position.offset == offset
    assert hint in (caught.value.hint or "")


def test_the_place_is_told_by_line_and_column() -> None:
    with pytest.raises(QueryError) as caught:
        parse_query("SELECT count(*)\nFROM s\n  OVR INFINITE")
    assert (caught.value.position.line, caught.value.position.column) == (3, 3)
    assert str(caught.value) == (
        "line 3, column 3: unexpected 'OVR'; expected GROUP, OVER or WHERE; did you mean OVER?"
    )


def test_an_error_is_one_line_whatever_the_text() -> None:
    for text in ("SELECT a\n\n\x00", "SELECT count(*) FROM s OVER SLIDING 1 'a\nb'", "\n\n'"):
        with pytest.raises(QueryError) as caught:
            parse_query(text)
        assert "\n" not in str(caught.value)


def test_positions_outside_the_text_are_moved_to_its_ends() -> None:
    assert position_of("ab", -5).offset == 0
    assert position_of("ab", 9).offset == 2
    assert position_of("a\nb", 2).line == 2


def test_nearest_ignores_case_and_far_names() -> None:
    assert nearest("AMUONT", ["amount", "card"]) == "amount"
    assert nearest("xyz", ["amount", "card"]) is None
