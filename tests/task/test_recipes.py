"""Columns computed of columns of fields: the very words that arrivals give, or no recipe."""

from collections.abc import Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from railgun.language.errors import QueryError
from railgun.language.evaluator import Evaluator
from railgun.language.parser import parse_query
from railgun.language.program import compile_program
from railgun.language.resolve import resolve
from railgun.language.typed import Field, TypedExpression, fields_of
from railgun.language.types import Kind
from railgun.plan.hot import HotPlan, field_column
from railgun.task.computed_columns import ColumnComputer
from railgun.task.recipes import recipe_for
from reservoir.columns import ColumnData, HotColumn, StoredColumn
from reservoir.gather import gather_computed
from reservoir.native.jit import array_at
from tests.language.batch import Batch, Value
from tests.language.expression_text import FIELDS, expressions, rows

KEYS = tuple(Field(FIELDS[name], name) for name in ("s", "n"))
KINDS = ("long", "double", "decimal", "timestamp", "boolean", "string")


def typed(text: str) -> TypedExpression | None:
    try:
        return resolve(parse_query(f"SELECT first({text}) FROM s OVER INFINITE"), FIELDS, "s")[0].argument
    except QueryError:
        return None


def planned(found: Sequence[TypedExpression]) -> tuple[HotPlan, list[HotColumn]]:
    """A plan over all fields, in which these have columns among others."""
    hot = HotPlan(list(FIELDS.items()))
    hot.entity(("s", "n"), KEYS)
    columns = [hot.columns[hot.value(each)] for each in found]
    hot.value(*(each for each in (typed("n + 1"),) if each))
    return hot, columns


def on_arrival(batch: Batch, found: Sequence[TypedExpression]) -> list[tuple[list[int], list[int]]]:
    """Words and nulls of each, by one program over whole vectors."""
    evaluator = Evaluator(compile_program(found, list(FIELDS.items())))
    batch.bind_to(evaluator)
    evaluator.evaluate(batch.rows)
    at = [evaluator.root_addresses(root) for root in range(len(found))]
    return [
        (array_at(words, batch.rows, np.uint64).tolist(), array_at(nulls, batch.rows, np.uint8).tolist())
        for words, nulls in at
    ]


def stored(batch: Batch, column: HotColumn) -> StoredColumn:
    place = [field_column(*field) for field in FIELDS.items()].index(column)
    return gather_computed(column, ColumnData(words=batch.words[place], nulls=batch.nulls[place]), batch.rows)


def check(found: Sequence[TypedExpression], events: Sequence[dict[str, Value]]) -> bool:
    """False where there is no recipe, which has a reason then."""
    hot, columns = planned(found)
    recipe = recipe_for(hot, columns)
    names = frozenset[str]().union(*map(fields_of, found))
    kinds = {each.type.kind for each in found} | {FIELDS[name].kind for name in names}
    if recipe is None:
        assert Kind.STRING in kinds or not names
        return False
    assert {each.name for each in recipe.sources} == {f"value:{name}" for name in names}
    batch = Batch(FIELDS, events)
    made = recipe.make(batch.rows, [stored(batch, source) for source in recipe.sources])
    assert len(made) == len(columns)
    for data, (words, nulls) in zip(made, on_arrival(batch, found)):
        assert data.words is not None
        assert data.nulls is not None
        assert data.words.tolist() == words
        assert data.nulls.tolist() == nulls
    return True


@given(
    st.lists(st.sampled_from(KINDS).flatmap(expressions), min_size=1, max_size=3),
    st.lists(rows(), min_size=1, max_size=8),
)
def test_a_recipe_makes_the_words_of_arrival(texts: list[str], events: list[dict[str, Value]]) -> None:
    found = [each for each in map(typed, texts) if each is not None]
    if found:
        check(found, events)


def test_more_rows_than_a_block() -> None:
    events: list[dict[str, Value]] = [
        {"n": None if k % 7 == 0 else k, "x": k / 3, "t": 10**12 + k} for k in range(2_500)
    ]
    texts = ("n * 2 + 1", "x > 400e0 AND n IS NOT NULL", "CASE WHEN 'a' < 'B' THEN t ELSE t + n END")
    assert check([each for each in map(typed, texts) if each is not None], events)
    # Where no value of a field is null its column has no flags.
    assert check([each for each in (typed("-x"),) if each is not None], events)


def test_hashes_strings_and_constants_have_none() -> None:
    hot, (plain, text, of_text, constant) = planned(
        [each for each in map(typed, ("n * 2", "LOWER(s)", "s LIKE 'a%'", "1 + 1")) if each is not None]
    )
    assert recipe_for(hot, [plain]) is not None
    entity = hot.columns[hot.entity(("s", "n"), KEYS)]
    for column in (text, of_text, constant, entity):
        assert recipe_for(hot, [column]) is None
        assert recipe_for(hot, [plain, column]) is None or column == constant


def test_what_other_threads_ask_for_meanwhile_takes_no_recipe_away() -> None:
    """Each time that a recipe is looked up, others are asked for: more than are kept."""
    hot, (wanted, *others) = planned(
        [each for each in (typed(f"n + {k + 2}") for k in range(20)) if each is not None]
    )
    column_computer = ColumnComputer()
    column_computer.follow([], hot, bytes(16))
    lookups: list[int] = []

    class Interrupted(HotColumn):
        def __hash__(self) -> int:
            lookups.append(0)
            for other in others:
                column_computer.find_recipe([other])
            return hash(self.name)

    for _ in range(2):
        assert column_computer.find_recipe([Interrupted(wanted.name, wanted.kind)]) is not None
    assert lookups
