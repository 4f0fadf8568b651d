"""`railgun explain --format json`, and the same over HTTP: the fields of the plan's classes by name."""

from railgun.explain.explanation import render_json
from tests.explain.explained import explained
from tests.golden.promises import held_bytes


def test_the_plan_as_json() -> None:
    held_bytes("explain.json", render_json(explained()).encode())
