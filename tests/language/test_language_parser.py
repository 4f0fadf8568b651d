"""Queries as text: what is read from them, and the canonical text that is written back."""

import pytest

from railgun.language import ast
from railgun.language.errors import QueryError
from railgun.language.limits import DEPTH_LIMIT, IN_LIMIT, ITEMS_LIMIT, TEXT_LIMIT_BYTES
from railgun.language.parser import parse_query, parse_statement
from railgun.language.printer import RESERVED, print_query

DAY_MS = 86_400_000


def expression(text: str) -> ast.Expression:
    argument = parse_query(f"SELECT sum({text}) FROM s OVER INFINITE").items[0].argument
    assert argument is not None
    return argument


def canonical(text: str) -> str:
    printed = print_query(parse_query(f"SELECT sum({text}) FROM s OVER INFINITE"))
    return printed.removeprefix("SELECT sum(").removesuffix(") FROM s OVER INFINITE")


def test_a_whole_query() -> None:
    query = parse_query(
        "SELECT count(*) AS card_count_7d, sum(amount * 2) FROM payments\n"
        "WHERE amount > 0 GROUP BY card, merchant OVER SLIDING 7 DAYS DELAYED BY 90 SECONDS"
    )
    amount = ast.FieldReference("amount")
    assert query == ast.Query(
        items=(
            ast.SelectItem(ast.Aggregator.COUNT, None, "card_count_7d"),
            ast.SelectItem(
                ast.Aggregator.SUM,
                ast.Arithmetic(ast.ArithmeticOperator.MULTIPLY, amount, ast.LongLiteral(2)),
            ),
        ),
        stream=ast.StreamName("payments"),
        where=ast.Comparison(ast.ComparisonOperator.GREATER, amount, ast.LongLiteral(0)),
        group_by=(ast.FieldReference("card"), ast.FieldReference("merchant")),
        window=ast.Window(ast.WindowKind.SLIDING, 7 * DAY_MS, 90_000),
    )


@pytest.mark.parametrize(
    ("text", "window"),
    [
        ("SLIDING 1 MILLISECOND", ast.Window(ast.WindowKind.SLIDING, 1)),
        ("sliding 5 minutes", ast.Window(ast.WindowKind.SLIDING, 300_000)),
        ("SLIDING 2 WEEKS DELAYED BY 1 HOUR", ast.Window(ast.WindowKind.SLIDING, 14 * DAY_MS, 3_600_000)),
        ("TUMBLING 1 DAY", ast.Window(ast.WindowKind.TUMBLING, DAY_MS)),
        ("TUMBLING 36 hours DELAYED by 2 Seconds", ast.Window(ast.WindowKind.TUMBLING, 129_600_000, 2_000)),
        ("INFINITE", ast.Window(ast.WindowKind.INFINITE)),
        ("INFINITE DELAYED BY 1500 MILLISECONDS", ast.Window(ast.WindowKind.INFINITE, None, 1_500)),
    ],
)
def test_windows(text: str, window: ast.Window) -> None:
    assert parse_query(f"SELECT count(*) FROM s OVER {text}").window == window


GOLDEN = [
    ("a", "a"),
    ("(a)", "a"),
    ("a+b*c", "a + b * c"),
    ("(a+b)*c", "(a + b) * c"),
    ("a-(b-c)", "a - (b - c)"),
    ("(a-b)-c", "a - b - c"),
    ("a/b%c", "a / b % c"),
    ("-a", "-a"),
    ("- -a", "- -a"),
    ("-5", "-5"),
    ("-(5)", "-(5)"),
    ("a - -1.50", "a - -1.50"),
    ("-9223372036854775808", "-9223372036854775808"),
    (".5", "0.5"),
    ("1E3", "1000.0e0"),
    ("1e300", "1e+300"),
    ("'it''s'", "'it''s'"),
    ("a = 1 and b != 2 or not c", "a = 1 AND b <> 2 OR NOT c"),
    ("a and (b or c)", "a AND (b OR c)"),
    ("a and (b and c)", "a AND b AND c"),
    ("not (a = b)", "NOT a = b"),
    ("not (a and b)", "NOT (a AND b)"),
    ("not a not in (1)", "NOT a NOT IN (1)"),
    ("(a = b) = c", "(a = b) = c"),
    ("x between 1 and 2 and y", "x BETWEEN 1 AND 2 AND y"),
    ("not x between 1 and 2", "x NOT BETWEEN 1 AND 2"),
    ("x in (1, null, y + 1)", "x IN (1, NULL, y + 1)"),
    ("s not like 'a\\%%'", "s NOT LIKE 'a\\%%'"),
    ("x is not null", "x IS NOT NULL"),
    ("(x is null) is null", "(x IS NULL) IS NULL"),
    ("case when a then 1 else 2 end", "CASE WHEN a THEN 1 ELSE 2 END"),
    ("case a when 1 then 'x' when 2 then 'y' end", "CASE a WHEN 1 THEN 'x' WHEN 2 THEN 'y' END"),
    ("coalesce(a, lower(b), 'c')", "COALESCE(a, LOWER(b), 'c')"),
    ("abs(-a) + 1", "ABS(-a) + 1"),
    ("TRUE and false", "TRUE AND FALSE"),
    ('"day" + "null"', 'day + "null"'),
    ("7DAYS", None),
]


@pytest.mark.parametrize(("text", "printed"), GOLDEN)
def test_expressions_in_canonical_form(text: str, printed: str | None) -> None:
    if printed is None:
        with pytest.raises(QueryError):
            expression(text)
        return
    assert canonical(text) == printed
    assert expression(printed) == expression(text)


@pytest.mark.parametrize(
    ("written", "printed"),
    [
        ("stddev(x)", "stddev_samp(x)"),
        ("COUNT( * )", "count(*)"),
        ("count(DISTINCT x)", "count_distinct(x)"),
        ("Count_Distinct(x)", "count_distinct(x)"),
        ("last(x) as y", "last(x) AS y"),
    ],
)
def test_select_items_in_canonical_form(written: str, printed: str) -> None:
    assert print_query(parse_query(f"select {written} from s over infinite;")) == (
        f"SELECT {printed} FROM s OVER INFINITE"
    )


def test_numbers_keep_what_their_type_depends_on() -> None:
    assert expression("1.50") == ast.DecimalLiteral(150, 2)
    assert expression("1.50") != expression("1.5")
    assert expression("15e-1") == ast.DoubleLiteral(1.5)
    assert expression("-0e0") == ast.DoubleLiteral(0.0)
    assert str(expression("-0e0")) == str(ast.DoubleLiteral(0.0))
    assert expression("0009") == ast.LongLiteral(9)


_KEYWORDS = (
    "select distinct as from where group by over sliding tumbling infinite delayed day hours or and not in "
    "between like is null true false case when then else end abs coalesce lower upper count sum first last "
    "substr length trim greatest least nullif round floor ceil sqrt cast hour minute day_of_week month year "
    "long decimal derive filter exclude current"
)


@pytest.mark.parametrize("word", _KEYWORDS.split())
def test_keywords_are_names_where_nothing_else_can_stand(word: str) -> None:
    name = f'"{word}"' if word in RESERVED else word
    query = parse_query(
        f"SELECT sum({name}) AS {word} FROM {word} WHERE {name} > 1 AND {name} IN ({name}) "
        f"GROUP BY {word} OVER INFINITE"
    )
    assert query.stream.name == query.items[0].name == query.group_by[0].name == word
    assert query.items[0].argument == ast.FieldReference(word)
    assert parse_query(print_query(query)) == query


@pytest.mark.parametrize("word", _KEYWORDS.split())
def test_keywords_are_names_in_a_derivation(word: str) -> None:
    name = f'"{word}"' if word in RESERVED else word
    derivation = parse_statement(f"DERIVE {name} AS {word}, {name} + 1 AS b FROM {word}")
    assert isinstance(derivation, ast.Derivation)
    assert derivation.stream.name == derivation.items[0].name == word
    assert derivation.items[0].expression == ast.FieldReference(word)


def test_functions_are_names_even_within_themselves() -> None:
    assert canonical("cast(cast as long)") == "CAST(cast AS long)"
    assert canonical("hour(hour - 1 in 'Asia/Tokyo') + year") == "HOUR(hour - 1 IN 'Asia/Tokyo') + year"
    assert canonical("hour(t in 'UTC')") == "HOUR(t)"
    assert canonical('round(round, 1) || trim("null")') == 'ROUND(round, 1) || TRIM("null")'


@pytest.mark.parametrize("word", sorted(RESERVED))
def test_reserved_words_are_reserved_for_a_reason(word: str) -> None:
    try:
        unquoted = [expression(word), expression(f"CASE {word} WHEN 1 THEN 2 END")]
    except QueryError:
        return
    assert unquoted[0] != ast.FieldReference(word)


@pytest.mark.parametrize("letter", ["\u017f", "\u212a", "\u0130"])
def test_keywords_are_ascii(letter: str) -> None:
    for text in (
        f"{letter}elect count(*) from s over infinite",
        f"select count(*) from {letter} over infinite",
    ):
        with pytest.raises(QueryError):
            parse_query(text)


# --- limits: what is just allowed, and what is just too much


def _refused(text: str) -> QueryError:
    with pytest.raises(QueryError) as caught:
        parse_query(text)
    return caught.value


def test_text_is_limited() -> None:
    query = "SELECT count(*) FROM s OVER INFINITE"
    assert parse_query(query + " " * (TEXT_LIMIT_BYTES - len(query)))
    assert (
        f"at most {TEXT_LIMIT_BYTES}" in _refused(query + " " * (TEXT_LIMIT_BYTES - len(query) + 1)).message
    )


@pytest.mark.parametrize(
    "nest",
    [
        lambda depth: "NOT " * (depth - 1) + "a",
        lambda depth: "- " * (depth - 1) + "a",
        lambda depth: "a" + " + a" * (depth - 1),
        lambda depth: "ABS(" * (depth - 1) + "a" + ")" * (depth - 1),
        lambda depth: "CASE WHEN b THEN " * (depth - 1) + "a" + " END" * (depth - 1),
    ],
)
def test_depth_is_limited(nest) -> None:
    # The aggregator's own parentheses take no depth of the tree, but one of the parentheses.
    assert expression(nest(DEPTH_LIMIT - 1))
    assert "deeper" in _refused(f"SELECT sum({nest(DEPTH_LIMIT + 1)}) FROM s OVER INFINITE").message
    assert "deeper" in _refused(f"SELECT sum({nest(500)}) FROM s OVER INFINITE").message


def test_a_sum_of_many_terms_is_told_how_to_be_written() -> None:
    terms = [f"a{number}" for number in range(DEPTH_LIMIT + 1)]
    refused = _refused(f"SELECT sum({' + '.join(terms)}) FROM s OVER INFINITE")
    assert str(refused) == (
        "line 1, column 12: an expression deeper than 64: each operator of a chain is one deeper; write a long chain "
        "in halves, as (a + b) + (c + d)"
    )
    halves = [" + ".join(terms[:32]), " + ".join(terms[32:])]
    assert expression(f"({halves[0]}) + ({halves[1]})")


def test_parentheses_are_limited_and_those_in_strings_are_not_counted() -> None:
    assert expression("(" * (DEPTH_LIMIT - 1) + "a" + ")" * (DEPTH_LIMIT - 1))
    assert "parentheses" in _refused("SELECT sum(" + "(" * DEPTH_LIMIT + "a" + ")" * DEPTH_LIMIT).message
    assert expression(f"s LIKE '{'(' * 500}'")


def test_long_chains_are_not_deep() -> None:
    assert len(expression(" OR ".join(["a = 1"] * 500)).operands) == 500


def test_what_between_repeats_is_limited() -> None:
    nested = "(" * 20 + "b" + " BETWEEN FALSE AND TRUE)" * 20
    assert "too large" in _refused(f"SELECT sum({nested}) FROM s OVER INFINITE").message


def test_in_lists_and_select_items_are_limited() -> None:
    def in_list(count: int) -> str:
        return f"SELECT count(*) FROM s WHERE a IN ({', '.join(['1'] * count)}) OVER INFINITE"

    def items(count: int) -> str:
        return f"SELECT {', '.join(['count(*)'] * count)} FROM s OVER INFINITE"

    assert parse_query(in_list(IN_LIMIT))
    assert f"more than {IN_LIMIT}" in _refused(in_list(IN_LIMIT + 1)).message
    assert parse_query(items(ITEMS_LIMIT))
    assert f"more than {ITEMS_LIMIT}" in _refused(items(ITEMS_LIMIT + 1)).message


def test_like_patterns_are_limited() -> None:
    assert expression(f"s LIKE '{'é' * 500}'")
    assert "pattern" in _refused(f"SELECT sum(s LIKE '{'é' * 500}a') FROM s OVER INFINITE").message


def test_names_of_metrics_are_limited() -> None:
    assert parse_query(f"SELECT count(*) AS {'a' * 63} FROM s OVER INFINITE")
    assert "cannot name" in _refused(f"SELECT count(*) AS {'a' * 64} FROM s OVER INFINITE").message


def test_the_longest_window_is_far_from_64_bits() -> None:
    assert parse_query("SELECT count(*) FROM s OVER SLIDING 3000000 DAYS")
    assert "at most" in _refused("SELECT count(*) FROM s OVER SLIDING 4000000 DAYS").message
    assert "at most" in _refused(f"SELECT count(*) FROM s OVER SLIDING {10**19} DAYS").message
