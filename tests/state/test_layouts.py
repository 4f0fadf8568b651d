"""Row layouts: what fits, and going through several versions at once."""

import itertools
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from railgun.state import layouts
from railgun.state.errors import LayoutError
from railgun.state.layouts import Layout, LayoutHistory, Run, compose, pack_layout, unpack_layout
from tests.state.state_run import mapped, mapped_through

Mapping = list[tuple[int, int, int]]


@st.composite
def changes(draw: st.DrawFn) -> tuple[int, list[tuple[int, Mapping]]]:
    """(cells of the first layout, [(cells, mapping) of the next ones])."""
    first = cells = draw(st.integers(1, 12))
    found = []
    for _ in range(draw(st.integers(1, 10))):
        cuts = sorted(set(draw(st.lists(st.integers(1, cells), max_size=4))) | {0, cells})
        runs = [(start, end - start) for start, end in itertools.pairwise(cuts)]
        at, mapping = 0, []
        for old, words in draw(st.permutations(runs)):
            if draw(st.booleans()):
                at += draw(st.integers(0, 2))
                mapping.append((old, at, words))
                at += words
        cells = max(1, at + draw(st.integers(0, 3)))
        found.append((cells, mapping))
    return first, found


@given(changes())
def test_going_through_all_versions_at_once_is_going_through_one_after_the_other(
    case: tuple[int, list[tuple[int, Mapping]]],
) -> None:
    first, steps = case
    row = list(range(1, first + 1))
    expected = row
    for cells, mapping in steps:
        expected = mapped(expected, cells, mapping)
    width = steps[-1][0]
    assert mapped_through(row, width, [mapping for _, mapping in steps]) == expected
    history = LayoutHistory(3)
    history.add(Layout(1, first, ()))
    for version, (cells, mapping) in enumerate(steps, 2):
        history.add(Layout(version, cells, tuple(Run(*run) for run in mapping)))
    assert mapped(row, width, [tuple(run) for run in history.to_newest(1)]) == expected
    for start, version in enumerate(range(2, len(steps) + 1), 1):
        between = list(range(1, steps[start - 1][0] + 1))
        expected = mapped_through(between, width, [mapping for _, mapping in steps[start:]])
        assert mapped(between, width, [tuple(run) for run in history.to_newest(version)]) == expected


def test_what_a_change_costs_does_not_grow_with_those_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """Metrics that come and go by the thousands: nobody goes through one change after another."""
    composed: list[int] = []

    def counted(first: Iterable[Run], second: Iterable[Run]) -> tuple[Run, ...]:
        composed.append(1)
        return compose(first, second)

    monkeypatch.setattr(layouts, "compose", counted)
    history, versions = LayoutHistory(3), 4_000
    history.add(Layout(1, 8, ()))
    for version in range(2, versions + 1):
        grown = version % 2
        history.add(Layout(version, 8 + grown, (Run(0, 0, 7), Run(7, 7 + grown, 1))))
        if version % 97 == 0:
            assert history.to_newest(1)[0] == Run(0, 0, 7)
    assert len(composed) < versions + 24 * (versions // 97), "a change goes through all before it"
    composed.clear()
    for version in range(1, versions):
        history.to_newest(version)
    assert len(composed) < 2 * versions, "each older version is gone through anew"


@given(changes())
def test_a_stored_layout_reads_back(case: tuple[int, list[tuple[int, Mapping]]]) -> None:
    for version, (cells, mapping) in enumerate(case[1]):
        layout = Layout(version, cells, tuple(Run(*run) for run in mapping))
        assert unpack_layout(version, pack_layout(layout)) == layout


@pytest.mark.parametrize(
    ("layout", "reason"),
    [
        (Layout(5, 4, ()), "in force is 5"),
        (Layout(6, 0, ()), "20"),
        (Layout(1 << 32, 4, ()), "32 bits"),
        (Layout(6, 4, (Run(3, 0, 2),)), "not inside the 4 cells"),
        (Layout(6, 4, (Run(0, 0, 0),)), "not inside"),
        (Layout(6, 4, (Run(0, 3, 2),)), "behind the last cell"),
        (Layout(6, 4, (Run(0, 0, 2), Run(2, 1, 2))), "overlaps"),
    ],
)
def test_layouts_that_cannot_be(layout: Layout, reason: str) -> None:
    history = LayoutHistory(3)
    history.add(Layout(5, 4, ()))
    with pytest.raises(LayoutError, match=reason):
        history.add(layout)
    assert history.newest.version == 5


@pytest.mark.parametrize("body", [b"", b"\4\0\0\0\1\0\0\0", b"\4\0\0\0\0\0\0\0x"])
def test_stored_layouts_that_cannot_be(body: bytes) -> None:
    with pytest.raises(LayoutError):
        unpack_layout(1, body)
