"""The canonical text of a typed expression: the name under which its values are kept in chunks.

Two expressions have one text exactly when they have equal values on every event: the text spells the tree
with every type and conversion in it.  It is stored, so it never changes for a given tree (docs/decisions/0002).
"""

import json

from railgun.language.typed import Apply, Constant, Field, TypedExpression


def text_of(expression: TypedExpression) -> str:
    """`amount`, `(> amount 0:long)`: prefix form, constants with their types."""
    match expression:
        case Field(name=name):
            return name
        case Constant(type=type_, value=value):
            return f"{json.dumps(value)}:{type_}"
        case Apply(type=type_, operation=operation, arguments=arguments):
            inner = " ".join(text_of(argument) for argument in arguments)
            return f"({operation}:{type_} {inner})"
    raise TypeError(f"no text for {type(expression).__name__}")
