"""Which cells an aggregator needs: complete, shared where they should be, counts first."""

import itertools

import pytest

from railgun.aggregators import codes
from railgun.aggregators.catalogue import Recipe, recipe_of
from railgun.language.ast import Aggregator, WindowKind
from railgun.language.resolve import result_type
from railgun.language.types import BOOLEAN, DOUBLE, LONG, STRING, TIMESTAMP, Type, decimal

TYPES = [STRING, LONG, DOUBLE, BOOLEAN, TIMESTAMP, decimal(10, 2)]
MOMENTS = [
    Aggregator.SUM,
    Aggregator.AVG,
    Aggregator.VAR_SAMP,
    Aggregator.VAR_POP,
    Aggregator.STDDEV_SAMP,
    Aggregator.STDDEV_POP,
]


def ops(aggregator: Aggregator, of: Type | None, window: WindowKind) -> list[int]:
    return [cell.op for cell in recipe_of(aggregator, of, window).cells]


def every_recipe() -> list[tuple[Aggregator, Type, WindowKind, Recipe]]:
    combinations = itertools.product(Aggregator, TYPES, WindowKind)
    return [(a, t, w, recipe_of(a, t, w)) for a, t, w in combinations if result_type(a, t) is not None]


def test_every_aggregator_has_a_recipe_for_every_type_it_takes() -> None:
    assert len(every_recipe()) == 3 * (7 * 6 + 6 * 3)


@pytest.mark.parametrize("aggregator", MOMENTS)
@pytest.mark.parametrize("of", [STRING, BOOLEAN, TIMESTAMP])
def test_a_type_it_does_not_take(aggregator: Aggregator, of: Type) -> None:
    with pytest.raises(ValueError, match=str(aggregator)):
        recipe_of(aggregator, of, WindowKind.SLIDING)


def test_the_count_comes_first() -> None:
    """All that need to know how many values there are find them counted already."""
    for aggregator, _, _, recipe in every_recipe():
        if aggregator is not Aggregator.COUNT_DISTINCT:
            assert recipe.cells[0].op == codes.COUNT
            assert recipe.count == 0
        assert codes.COUNT not in [cell.op for cell in recipe.cells[1:]]


def test_indexes_name_cells() -> None:
    for _, _, _, recipe in every_recipe():
        assert 0 <= recipe.main < len(recipe.cells)
        assert recipe.squares < len(recipe.cells)
        assert len({cell.op for cell in recipe.cells}) == len(recipe.cells)


def test_cells_of_one_op_and_type_are_alike() -> None:
    """So aggregators of one argument may share them."""
    seen: dict[tuple[int, Type], object] = {}
    for _, of, _, recipe in every_recipe():
        for cell in recipe.cells:
            assert seen.setdefault((cell.op, of), cell) == cell


@pytest.mark.parametrize("of", [LONG, DOUBLE, decimal(10, 2)])
def test_moments_share_their_sums(of: Type) -> None:
    together = {op for aggregator in MOMENTS for op in ops(aggregator, of, WindowKind.SLIDING)}
    assert len(together) == 3


def test_last_and_prev_share_and_min_and_max_do_not() -> None:
    last, prev = (ops(a, STRING, WindowKind.SLIDING) for a in (Aggregator.LAST, Aggregator.PREV))
    assert last == prev
    least, greatest = (ops(a, LONG, WindowKind.SLIDING) for a in (Aggregator.MIN, Aggregator.MAX))
    assert set(least) & set(greatest) == {codes.COUNT}


def test_only_what_leaves_a_window_is_remembered_in_maps() -> None:
    for aggregator, _, window, recipe in every_recipe():
        if window is not WindowKind.SLIDING and aggregator is not Aggregator.COUNT_DISTINCT:
            assert not any(cell.tree_words for cell in recipe.cells)


def test_only_strings_that_are_answers_need_their_bytes() -> None:
    ordered = {Aggregator.MIN, Aggregator.MAX, Aggregator.FIRST, Aggregator.LAST, Aggregator.PREV}
    for aggregator, of, _, recipe in every_recipe():
        assert recipe.needs_bytes == (of == STRING and aggregator in ordered)
        assert (recipe.result_type_code == codes.TYPE_STRING) == recipe.needs_bytes


def test_count_of_all_has_no_argument() -> None:
    recipe = recipe_of(Aggregator.COUNT, None, WindowKind.SLIDING)
    assert [cell.op for cell in recipe.cells] == [codes.COUNT]
    assert recipe.result == codes.RESULT_COUNT


def test_codes_are_told_apart() -> None:
    cells = {name: value for name, value in vars(codes).items() if name.isupper()}
    results = [value for name, value in cells.items() if name.startswith("RESULT_")]
    types = [value for name, value in cells.items() if name.startswith("TYPE_")]
    assert len(set(results)) == len(results)
    assert len(set(types)) == len(types)
