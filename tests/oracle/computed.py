"""Computed fields: expressions over the recorded fields of an event and over each other."""

from collections.abc import Mapping

from tests.oracle.derived import names_in
from tests.oracle.errors import DefinitionRefused, QueryRefused
from tests.oracle.expressions import evaluate
from tests.oracle.inference import Typed, infer
from tests.oracle.query import parse_expression
from tests.oracle.types import Row, Type, Value, parse_type


def typed_fields(texts: Mapping[str, tuple[str, str | None]], fields: Mapping[str, Type]) -> dict[str, Typed]:
    """The typed expressions of computed fields, each behind those that it reads; raises DefinitionRefused.

    texts: by name, the expression and the type that is said, None where none is.  fields: the recorded ones.
    """
    try:
        left = {name: parse_expression(text) for name, (text, _) in texts.items()}
    except QueryRefused as refused:
        raise DefinitionRefused(str(refused)) from refused
    known, typed = dict(fields), dict[str, Typed]()
    while left:
        ready = [name for name, node in left.items() if not set(names_in(node)) & set(left)]
        if not ready:
            raise DefinitionRefused(f"computed fields in a circle: {sorted(left)}")
        for name in ready:
            try:
                made = typed[name] = infer(left.pop(name), known)
            except QueryRefused as refused:
                raise DefinitionRefused(f"{name}: {refused}") from refused
            said = texts[name][1]
            wanted = made.type if said is None else parse_type(said)
            if made.type.kind == "null" or (wanted.kind, wanted.scale) != (made.type.kind, made.type.scale):
                raise DefinitionRefused(f"{name} is {made.type}, not {said}")
            known[name] = made.type
    return typed


def with_computed(recorded: Mapping[str, Value], typed: Mapping[str, Typed]) -> Row:
    """All fields of an event. A computed one that is there already, as in the key of a value query, stays."""
    row: Row = dict(recorded)
    for name, expression in typed.items():
        if name not in row:
            row[name] = evaluate(expression, row)
    return row
