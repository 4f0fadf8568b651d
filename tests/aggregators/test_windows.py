"""All aggregators over all types against the oracle: in and out of order, expiry, resets, cold pages."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from railgun.language.ast import Aggregator, WindowKind
from railgun.language.types import BOOLEAN, DOUBLE, LONG, STRING, TIMESTAMP, Type, decimal
from railgun.state.status import DRAIN, FAULT, ROOM
from tests.aggregators.doubles import DOUBLES, MONEY, ORDINARY
from tests.aggregators.steps import Cold, Epoch, Run, random_steps, run, steps_of
from tests.aggregators.window_model import Group, Memory, Value

LONGS = st.integers(-5, 5) | st.integers(-(2**63), 2**63 - 1) | st.sampled_from([-(2**63), 2**63 - 1])
SCALED = st.integers(-300, 300) | st.integers(-(10**18) + 1, 10**18 - 1)
TEXTS = st.sampled_from(["", "a", "b", "aa", "ab", "ä", "zebra", "x" * 70, "x" * 70 + "y", "\U0001f600"])
STRINGS = TEXTS | st.text(max_size=5)

CASES: dict[str, tuple[Type, st.SearchStrategy[Value]]] = {
    "doubles": (DOUBLE, DOUBLES),
    "ordinary doubles": (DOUBLE, ORDINARY.map(lambda value: value + 0.0)),
    "money": (DOUBLE, MONEY.map(lambda value: value + 0.0)),
    "few doubles": (DOUBLE, st.sampled_from([0.0, 1.5, -1.5, 2.0**-1074, 1e308])),
    "longs": (LONG, LONGS),
    "timestamps": (TIMESTAMP, LONGS),
    "decimals": (decimal(18, 2), SCALED),
    "decimals of 18 places": (decimal(18, 18), SCALED),
    "strings": (STRING, STRINGS),
    "booleans": (BOOLEAN, st.booleans()),
}


@pytest.mark.parametrize("case", CASES)
@given(data=st.data())
def test_sliding(case: str, data: st.DataObject) -> None:
    of, values = CASES[case]
    group = Group(of, WindowKind.SLIDING)
    run(group, data.draw(steps_of(values, removing=True))).end()


@pytest.mark.parametrize("window", [WindowKind.TUMBLING, WindowKind.INFINITE])
@pytest.mark.parametrize("case", CASES)
@given(data=st.data())
def test_windows_that_nothing_leaves(case: str, window: WindowKind, data: st.DataObject) -> None:
    of, values = CASES[case]
    group = Group(of, window)
    run(group, data.draw(steps_of(values, removing=False)))
    group.reset()
    group.check()


@pytest.mark.parametrize("case", ["doubles", "strings", "longs"])
@given(data=st.data())
def test_an_outbox_that_is_always_full(case: str, data: st.DataObject) -> None:
    """Every operation that leaves anything to be written makes the next one ask to be called again."""
    of, values = CASES[case]
    group = Group(of, WindowKind.SLIDING)
    taken = run(group, [])
    for step in data.draw(steps_of(values, removing=True)):
        taken.take(step)
        if isinstance(step, (Cold, Epoch)):
            group.memory.always_drain()
        group.check()
    taken.end()


@pytest.mark.parametrize(
    ("of", "values"),
    [
        (DOUBLE, [0.1, 0.2, -0.3, 1e16, -1e16, 1.0, 2.0**-1074, 1e300, -1e300]),
        (LONG, [1, 2, 3, 4, -(2**63), 2**63 - 1]),
        (STRING, ["a", "b", "c", "d" * 30, "e"]),
    ],
)
def test_long_runs_in_a_small_memory(of: Type, values: list[Value]) -> None:
    """Windows of some hundred values, in more pages than fit, through all that a pool may ask for."""
    group = Group(of, WindowKind.SLIDING, Memory())
    ballast = Group(LONG, WindowKind.SLIDING, group.memory)
    for number in range(1_500):
        ballast.add((number, number, -number))
    steps = random_steps(1, values, 600)
    steps[100::100] = [Cold()] * len(steps[100::100])
    steps[50::100] = [Epoch()] * len(steps[50::100])
    taken = Run(group)
    for number, step in enumerate(steps):
        taken.take(step)
        if number == 500:
            group.memory.always_drain()
        ballast.check((Aggregator.FIRST, Aggregator.MAX))
        ballast.remove_oldest()
        group.check()
    assert {FAULT, ROOM, DRAIN} <= {np.int64(status) for status in group.memory.statuses}
    ballast.reset()
    taken.end()


@pytest.mark.torture
@pytest.mark.parametrize("window", WindowKind)
@pytest.mark.parametrize("case", CASES)
@settings(max_examples=2_000)
@given(data=st.data())
def test_torture(case: str, window: WindowKind, data: st.DataObject) -> None:
    """The reliability count: 2,000 sequences of 50 steps for every type and window."""
    of, values = CASES[case]
    sliding = window is WindowKind.SLIDING
    run(Group(of, window), data.draw(steps_of(values, removing=sliding, least=50, most=50)))
