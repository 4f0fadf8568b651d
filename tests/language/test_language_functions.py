"""Every function is the oracle's, over random arguments at the edges of what it does."""

import pytest

from railgun.language.types import parse_type
from tests.counts import seeds
from tests.language.test_language_against_oracle import check
from tests.strategies.function_arguments import FIELDS, TEXTS, rows

_FIELDS = {name: parse_type(text) for name, text in FIELDS.items()}
_ROWS_AT_ONCE = 2_000


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("parts", seeds([1], [50]))
def test_functions_are_the_oracles(text: str, parts: int) -> None:
    values = 0
    for part in range(parts):
        values += check([text], _FIELDS, list(rows(part, _ROWS_AT_ONCE)))
    assert values > 100, "nulls hide what it computes"
