"""The case mapping is Unicode 14.0's, whole, and the tables say the same."""

import sys
import unicodedata
import weakref
from importlib import resources

import pytest

from railgun.language.evaluator import UNICODE_VERSION, Evaluator, case_tables, casemap_text
from railgun.language.parser import parse_query
from railgun.language.program import compile_program
from railgun.language.resolve import resolve
from railgun.language.types import STRING
from tests.language.batch import Batch, evaluate_all, root_values

needs_unicode_14 = pytest.mark.skipif(
    unicodedata.unidata_version != UNICODE_VERSION, reason="this Python knows another Unicode"
)


@needs_unicode_14
def test_the_file_is_what_makes_it() -> None:
    text = resources.files("railgun.language").joinpath("casemap.txt").read_text("utf-8")
    assert text == casemap_text()


@needs_unicode_14
def test_every_code_point_by_itself() -> None:
    points = [chr(point) for point in range(sys.maxunicode + 1) if not 0xD800 <= point < 0xE000]
    rows = [{"s": "".join(points[start : start + 1000])} for start in range(0, len(points), 1000)]
    query = parse_query("SELECT max(LOWER(s)), max(UPPER(s)) FROM t OVER INFINITE")
    expressions = [metric.argument for metric in resolve(query, {"s": STRING}, "t")]
    lower, upper = evaluate_all(expressions, {"s": STRING}, rows)
    for row, low, up in zip(rows, lower, upper, strict=True):
        assert low == "".join(map(str.lower, row["s"]))
        assert up == "".join(map(str.upper, row["s"]))


def test_no_rule_of_context_or_language() -> None:
    rows = [{"s": text} for text in ("ΑΣ", "straße", "İI", "ŉ", "ﬃ", "ᾷ")]
    query = parse_query("SELECT max(LOWER(s)), max(UPPER(s)) FROM t OVER INFINITE")
    expressions = [metric.argument for metric in resolve(query, {"s": STRING}, "t")]
    lower, upper = evaluate_all(expressions, {"s": STRING}, rows)
    assert lower == ["ασ", "straße", "i\u0307i", "ŉ", "ﬃ", "ᾷ"]
    assert upper == ["ΑΣ", "STRASSE", "İI", "\u02bcN", "FFI", "\u0391\u0342\u0399"]


def test_the_tables_live_as_long_as_what_reads_them_by_address() -> None:
    # Tasks are opened by several threads at once. Two that both read the tables first each have their own, and those
    # of the one that comes last are remembered: here another's have just taken the place of this evaluator's.
    query = parse_query("SELECT max(LOWER(s)) FROM t OVER INFINITE")
    expression = resolve(query, {"s": STRING}, "t")[0].argument
    assert expression is not None
    evaluator = Evaluator(compile_program([expression], [("s", STRING)]))
    tables = weakref.ref(case_tables())
    case_tables.cache_clear()
    assert tables() is not None
    batch = Batch({"s": STRING}, [{"s": "ΑΣ"}])
    batch.bind_to(evaluator)
    evaluator.evaluate(1)
    assert root_values(evaluator, 0, STRING, 1) == ["ασ"]
