"""What the counter of code takes for code."""

import pytest

from bench.code_size import code_lines


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ('"""A module."""\n\n# A comment.\nimport os  # and another\n', 1),
        ('def f(\n    a,\n    # Why.\n\n    b,\n):\n    """What\n    it does."""\n    return a\n', 5),
        ('class A:\n    x = 1\n    """What x is."""\n', 2),
        ('TEXT = """one\n\nthree"""\n', 3),
        ("a = 1; b = 2\n", 1),
        ("", 0),
    ],
)
def test_lines_of_code(source: str, lines: int) -> None:
    assert code_lines(source) == lines
