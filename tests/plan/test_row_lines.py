"""How cells lie in rows: those of one window and filter across as few cache lines as can be; which nodes are plain."""

import pytest

from railgun.catalog.definitions import parse_definitions
from railgun.interpreter import layout as at
from railgun.plan.layout import GroupLayout
from railgun.plan.program import Generation, Program, ProgramBuilder
from railgun.state.rows.context import LINE_WORDS, ROW_HEAD_WORDS, slot_bytes_for

_STREAM = """
[streams.payments]
time = "ts"
id = "tx_id"
partitioners = ["card"]
[streams.payments.fields]
tx_id = "string"
ts = "timestamp"
card = "string"
amount = "double"
fee = "double"
items = "long"
"""


def program_of(*queries: str) -> Program:
    """The program of metrics over payments, each in a window of its own."""
    metrics = "".join(
        f'[[metrics]]\nsql = """SELECT {select} FROM payments GROUP BY card OVER SLIDING {n + 1} MINUTES"""\n'
        for n, select in enumerate(queries)
    )
    definitions = parse_definitions(_STREAM + metrics)
    edges = {60_000 * (n + 1): n for n in range(len(queries))}
    resolved = tuple(metric.resolved for metric in definitions.metrics)
    builder = ProgramBuilder(definitions.streams["payments"].types, edges, {("card",): 0})
    return builder.build([Generation(0, resolved)])


def lines_of(first: int, words: int) -> int:
    """Cache lines that a run of words of a row touches."""
    begin = ROW_HEAD_WORDS + first
    return (begin + words - 1) // LINE_WORDS - begin // LINE_WORDS + 1


@pytest.mark.parametrize("before", range(1, 17))
def test_a_run_of_cells_lies_across_as_few_lines_as_it_can(before: int) -> None:
    for words in range(1, 40):
        layout = GroupLayout(0, ("card",))
        layout.place("before", before)
        layout.hold_together(words)
        assert 0 <= layout.words - before < LINE_WORDS
        assert lines_of(layout.words, words) == -(-words // LINE_WORDS)


def test_the_first_cells_follow_the_head() -> None:
    layout = GroupLayout(0, ("card",))
    layout.hold_together(7)
    assert layout.words == 0


def test_every_window_of_a_wide_row_is_one_line() -> None:
    program = program_of(*[f"count(*) AS c{n}, sum(amount) AS s{n}, avg(amount) AS a{n}" for n in range(5)])
    [layout] = program.groups
    for node in program.nodes[1:].tolist():
        ops = program.updates[node[at.NODE_UPDATES] : node[at.NODE_UPDATES_END], at.UPDATE_CELL]
        assert ops.max() // 64 == ops.min() // 64 == node[at.NODE_FIRST_CELL] // 64
    assert layout.words == max(offset + words for offset, words in layout.cells.values())


def test_slots_of_wide_rows_are_whole_lines() -> None:
    assert slot_bytes_for(7) == 8 * (ROW_HEAD_WORDS + 7)
    assert slot_bytes_for(12) == 128
    assert slot_bytes_for(13) == slot_bytes_for(20) == 192


def test_slots_of_very_wide_rows_grow_in_steps() -> None:
    widths = [slot_bytes_for(cells) for cells in range(64, 10_000)]
    for cells, width in enumerate(widths, 64):
        least = 8 * (ROW_HEAD_WORDS + cells)
        assert least <= width < least * 9 / 8 + 64
        assert width % 64 == 0
    assert widths == sorted(widths)
    assert len(set(widths)) < 70
    assert all(size in widths for size in (1024, 4096, 65_536)), "no row is too wide for a segment for that"


@pytest.mark.parametrize(
    ("select", "plain"),
    [
        ("count(*) AS a", True),
        ("count(amount) AS a", True),
        ("sum(amount) AS a", True),
        ("count(*) AS a, avg(amount) AS b, count(amount) AS c, sum(amount) AS d", True),
        ("count(items) AS a", True),
        ("sum(items) AS a", False),
        ("sum(amount) AS a, sum(fee) AS b", False),
        ("count(fee) AS a, sum(amount) AS b", False),
        ("max(amount) AS a, sum(amount) AS b", False),
        ("stddev(amount) AS a", False),
        ("count(*) AS a, count(*) AS b", False),
    ],
)
def test_which_nodes_are_plain(select: str, plain: bool) -> None:
    [node] = program_of(select).nodes.tolist()
    assert bool(node[at.NODE_PLAIN]) == plain
