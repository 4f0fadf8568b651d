"""Cases and expressions by seed: fast, and the same everywhere."""

from tests.strategies.case import Case
from tests.strategies.generate import ExpressionCase, Profile, draw_case, draw_expression
from tests.strategies.source import SeededSource

DEFAULT = Profile()


def case(seed: int, size: int, profile: Profile = DEFAULT) -> Case:
    """The case of `size` steps that a seed stands for."""
    return draw_case(SeededSource(f"case {seed} {size}"), size, profile)


def expression_case(seed: int, depth: int = 4, rows: int = 20) -> ExpressionCase:
    """The expression and rows that a seed stands for."""
    return draw_expression(SeededSource(f"expression {seed}"), depth, rows)
