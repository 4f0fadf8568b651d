"""`railgun explain --format json`, and the same over HTTP: the fields of the plan's classes by name."""

from railgun.explain.explanation import render_json
from tests.explain.explained import CONSTRUCTS, explained
from tests.golden.promises import held_bytes


def test_the_plan_as_json() -> None:
    held_bytes("explain.json", render_json(explained()).encode())


def test_the_plan_of_what_leaves_the_event_out_and_has_conditions_of_its_own() -> None:
    held_bytes("explain_constructs.json", render_json(explained(CONSTRUCTS)).encode())
