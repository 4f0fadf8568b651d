"""Programs compiled one after another are those that each would be by itself."""

import random
from collections.abc import Sequence

import numpy as np
import pytest

from railgun.language.parser import parse_query
from railgun.language.program import Program, ProgramCompiler, compile_program
from railgun.language.resolve import resolve
from railgun.language.typed import Field, TypedExpression
from railgun.language.types import LONG, STRING, Type
from tests.counts import seeds

_COLUMNS: list[tuple[str, Type]] = [("n", LONG), ("m", LONG), ("s", STRING)]
_TEXTS = (
    "n + 1", "m", "n + m * 2", "abs(n + 1)", "upper(s)", "coalesce(n, 7)", "n > 3", "s LIKE 'a%'", "s = 'x'",
    "n IN (1, 2, 3)", "CASE WHEN n > 3 THEN m ELSE n + 1 END", "s IN ('x', 'yy')", "n > 3 AND m > 3", "n * 1.5",
)  # fmt: skip


def _typed(text: str) -> TypedExpression:
    query = parse_query(f"SELECT first({text}) FROM s OVER INFINITE")
    argument = resolve(query, dict(_COLUMNS), "s")[0].argument
    assert argument is not None
    return argument


def _same(one: Program, other: Program) -> None:
    for name in ("rows", "pool", "heap", "constant_words", "constant_nulls"):
        assert np.array_equal(getattr(one, name), getattr(other, name)), name
    assert (one.columns, one.registers, one.roots) == (other.columns, other.registers, other.roots)


def _expressions(source: random.Random, at_most: int) -> list[TypedExpression]:
    return [_typed(text) for text in source.sample(_TEXTS, source.randint(0, at_most))]


@pytest.mark.parametrize("seed", seeds(range(10), range(30)))
def test_each_is_as_if_compiled_alone(seed: int) -> None:
    source, compiler = random.Random(seed), ProgramCompiler()
    wanted: list[TypedExpression] = []
    columns: Sequence[tuple[str, Type]] = _COLUMNS
    for _ in range(12):
        what = source.random()
        if what < 0.6:
            wanted = [*wanted, *_expressions(source, 2)]
        elif what < 0.7:
            wanted = wanted[: source.randint(0, len(wanted))]
        elif what < 0.8:
            wanted = _expressions(source, 5)
        elif what < 0.9:
            columns = source.choice((_COLUMNS, _COLUMNS[::-1]))
        else:
            # Equal, but made anew.
            wanted = [_typed(text) for text in _TEXTS[:4]]
        _same(compiler.compile(wanted, columns), compile_program(wanted, columns))


def test_one_that_cannot_be_compiled_leaves_nothing_behind() -> None:
    compiler = ProgramCompiler()
    found = [_typed(text) for text in _TEXTS[:3]]
    compiler.compile(found, _COLUMNS)
    for _ in range(2):
        with pytest.raises(KeyError):
            compiler.compile([*found, Field(LONG, "unknown")], _COLUMNS)
        _same(compiler.compile(found, _COLUMNS), compile_program(found, _COLUMNS))
