"""Layouts of rows from one version to the next: which words move with which."""

from railgun.plan.layout import GroupLayout
from railgun.state.layouts import Run, to_runs

WORDS = 6  # of the cells of a node: not a part of a cache line


def layout(*names: str) -> GroupLayout:
    made = GroupLayout(0, ("k",))
    for name in names:
        made.hold_together(WORDS)
        made.place(f"{name} count", 1)
        made.place(f"{name} sum", WORDS - 1)
    return made


def runs(old: GroupLayout, new: GroupLayout) -> tuple[Run, ...]:
    return to_runs(new.moves_from(old, {name: name for name in old.cells if name in new.cells}))


def test_a_layout_that_grew_is_one_run() -> None:
    names = "abcdefghij"
    assert layout(*names).words > len(names) * WORDS, "nothing was left free between nodes"
    for n in range(1, len(names)):
        old = layout(*names[:n])
        assert runs(old, layout(*names[: n + 1])) == (Run(0, 0, old.words),)


def test_what_a_dropped_cell_leaves_moves_nowhere() -> None:
    old, new = layout("a", "b", "c"), layout("a", "c")
    kept = {name: old.cells[name] for name in new.cells}
    moved = {word for run in runs(old, new) for word in range(run.old, run.old + run.words)}
    dropped = {
        word for name in ("b count", "b sum") for word in range(old.cells[name][0], sum(old.cells[name]))
    }
    assert not moved & dropped
    assert moved >= {word for offset, words in kept.values() for word in range(offset, offset + words)}


def test_a_cell_in_what_was_free_begins_at_zero() -> None:
    old, new = layout(*"abcd"), layout(*"abcd")
    ends = {sum(place) for place in old.cells.values()}
    free = min(ends - {offset for offset, _ in old.cells.values()})
    assert free < old.words
    assert any(run.old <= free < run.old + run.words for run in runs(old, new))
    new.cells["new"] = (free, 1)
    assert not any(run.old <= free < run.old + run.words for run in runs(old, new))
