"""Programs and their evaluator: what is shared, what is used again, what grows."""

import numpy as np
import pytest

from railgun.language.evaluator import Evaluator
from railgun.language.kernels import layout
from railgun.language.lowering import like_items
from railgun.language.parser import parse_query
from railgun.language.program import Program, compile_program
from railgun.language.resolve import resolve
from railgun.language.typed import TypedExpression
from tests.language.batch import Batch, Value, evaluate_all, root_values
from tests.language.expression_text import FIELDS

COLUMNS = list(FIELDS.items())


def typed(*texts: str) -> list[TypedExpression]:
    found = []
    for text in texts:
        argument = resolve(parse_query(f"SELECT first({text}) FROM s OVER INFINITE"), FIELDS, "s")[0].argument
        assert argument is not None
        found.append(argument)
    return found


def program(*texts: str) -> Program:
    return compile_program(typed(*texts), COLUMNS)


def codes(found: Program) -> list[int]:
    return [int(code) for code in found.rows[:, layout.CODE]]


def test_fields_and_constants_take_no_operation() -> None:
    found = program("n", "5", "s", "NOT p")
    assert codes(found) == [layout.NOT]
    assert found.roots[:3] == (0, len(COLUMNS), 8)


def test_common_parts_are_computed_once() -> None:
    once = program("(n + m) * 2")
    found = program("(n + m) * 2", "(n + m) * 2 > 7", "n + m", "x > 0 AND (n + m) * 2 > 7")
    assert codes(once) == [layout.LONG_ADD, layout.LONG_MULTIPLY]
    assert len(found.rows) == 5
    assert len(set(found.roots)) == 4


def test_equal_constants_of_different_types_stay_apart() -> None:
    found = program("n + 1", "x + 1e0", "p = TRUE", "d + 1.0")
    assert len(found.constant_words) == 4 - 1  # the long 1 and TRUE have one word
    assert evaluate_all(typed("n + 1", "x + 1e0", "p = TRUE"), FIELDS, [{"n": 1, "x": 1.0, "p": True}]) == [
        [2],
        [2.0],
        [True],
    ]


def test_registers_are_used_again() -> None:
    chain = " + ".join(f"n * {i}" for i in range(2, 42))
    assert program(chain).registers == 2
    assert program(*(f"n * {i}" for i in range(2, 42))).registers == 40


def test_constants_are_compared_in_the_other_sides_type() -> None:
    assert codes(program("x > 0")) == [layout.COMPARE_DOUBLE]
    assert codes(program("5 < n")) == [layout.COMPARE_LONG]
    assert codes(program("d > 5")) == [layout.COMPARE_LONG]
    assert codes(program("d > 0.125")) == [layout.COMPARE_DECIMAL]
    assert codes(program("n > 2.5")) == [layout.COMPARE_DECIMAL_DOUBLE]
    assert codes(program("n > 2e0")) == [layout.COMPARE_LONG]
    assert codes(program("x > 9007199254740993")) == [layout.COMPARE_DECIMAL_DOUBLE]


def test_listed_constants_that_cannot_be_equal_are_left_out() -> None:
    found = program("n IN (1, 2.5, 3, 1, 4e0, 1e300)")
    assert codes(found) == [layout.IN_LONG]
    assert found.pool.tolist() == [1, 3, 4]
    assert evaluate_all(typed("n IN (2.5)", "n IN (2.5, NULL)"), FIELDS, [{"n": 2}, {}]) == [
        [False, None],
        [None, None],
    ]


def test_patterns_become_bytes() -> None:
    assert like_items("a%%_\\%é\\\\") == (97, layout.ANY_RUN, layout.ANY_ONE, 37, 0xC3, 0xA9, 92)


@pytest.mark.parametrize("count", [1, 255, 256, 257, 1000])
def test_any_number_of_rows(count: int) -> None:
    rows: list[dict[str, Value]] = [{"n": i, "s": f"Row {i}", "p": i % 3 == 0} for i in range(count)]
    found = evaluate_all(typed("n * 2 + 1", "UPPER(s)", "COALESCE(x, 0.5)"), FIELDS, rows)
    assert found == [
        [2 * i + 1 for i in range(count)],
        [f"ROW {i}" for i in range(count)],
        [0.5] * count,
    ]


def test_no_rows_at_all() -> None:
    assert evaluate_all(typed("n + 1", "LOWER(s)"), FIELDS, []) == [[], []]


def test_batches_of_changing_size_one_after_the_other() -> None:
    expressions = typed("LOWER(s)", "n + 1", "'constant'", "LOWER(s) LIKE 'a%'")
    evaluator = Evaluator(compile_program(expressions, COLUMNS))
    for count, size in ((3, 2), (600, 10), (1, 16_000), (2, 1), (700, 50)):
        rows = [{"n": i, "s": "AbÄ" * size + str(i)} for i in range(count)]
        batch = Batch(FIELDS, rows)
        batch.bind_to(evaluator)
        evaluator.evaluate(count)
        found = [root_values(evaluator, i, e.type, count) for i, e in enumerate(expressions)]
        assert found[0] == [row["s"].lower() for row in rows]
        assert found[1] == [i + 1 for i in range(count)]
        assert found[2] == ["constant"] * count
        assert found[3] == [True] * count


def test_strings_that_do_not_change_are_not_copied() -> None:
    evaluator = Evaluator(program("LOWER(s)"))
    batch = Batch(FIELDS, [{"s": "all lower already 123"}, {"s": ""}])
    batch.bind_to(evaluator)
    evaluator.evaluate(2)
    constants, scratch = evaluator.own_heaps
    assert len(constants) == len(scratch) == 0


def test_a_string_that_outgrows_its_length_is_null() -> None:
    """65,535 bytes are the most: what would be longer is null."""
    longest = 65_535 // 6
    fields = {"s": FIELDS["s"]}
    upper = typed("UPPER(s)")
    # Two bytes that become three code points of six bytes.
    rows = [{"s": "\u0390" * size} for size in (longest + 1, longest, 1)]
    assert evaluate_all(upper, fields, rows) == [[None, "\u0399\u0308\u0301" * longest, "\u0399\u0308\u0301"]]


def test_rows_beyond_the_batch_are_left_alone() -> None:
    evaluator = Evaluator(program("n + 1"))
    batch = Batch(FIELDS, [{"n": 1}] * 8)
    batch.bind_to(evaluator)
    evaluator.evaluate(8)
    words, _ = evaluator.root_addresses(0)
    batch.words[0][:] = np.uint64(50)
    evaluator.evaluate(3)
    assert evaluator.root_addresses(0)[0] == words
    assert root_values(evaluator, 0, FIELDS["n"], 8) == [51, 51, 51, 2, 2, 2, 2, 2]
