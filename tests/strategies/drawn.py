"""Cases and expressions as Hypothesis draws and shrinks them."""

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from tests.strategies.case import Case
from tests.strategies.generate import ExpressionCase, Profile, draw_case, draw_expression
from tests.strategies.seeded import DEFAULT
from tests.strategies.source import DrawnSource

Draw = Callable[[st.SearchStrategy[Any]], Any]


@st.composite
def cases(draw: Draw, max_steps: int = 30, profile: Profile = DEFAULT) -> Case:
    """Cases of at most `max_steps` steps."""
    return draw_case(DrawnSource(draw), draw(st.integers(1, max_steps)), profile)


@st.composite
def expression_cases(draw: Draw, depth: int = 3, rows: int = 5) -> ExpressionCase:
    """An expression and rows to evaluate it on."""
    return draw_expression(DrawnSource(draw), depth, rows)
