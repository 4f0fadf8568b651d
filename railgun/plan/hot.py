"""The hot columns of a plan: values that are computed once per event on arrival and stored beside it in chunks.

Predicates and arguments are evaluated once, and entities hashed once. When the event leaves a window, the same words
are read again (docs/decisions/0002).

The name of a column is the canonical text of its typed expression: the tree with every type and conversion in it.
Expressions with one text have equal values on every event. The text is stored with the column, so the text of a given
tree must never change.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from railgun.interpreter.hashing import HashColumn
from railgun.language.resolve import ResolvedMetric
from railgun.language.typed import Apply, Constant, Field, InZone, TypedExpression
from railgun.language.types import Kind, Type
from reservoir.columns import ColumnKind, HotColumn


def text_of(expression: TypedExpression) -> str:
    """The canonical text, as in `amount` or `(> amount 0:long)`: in prefix form, constants with their types."""
    match expression:
        case Field(name=name):
            return name
        case Constant(type=type_, value=value):
            return f"{json.dumps(value)}:{type_}"
        case InZone(zone=zone):
            # The tables of a zone differ from release to release.
            return f"{json.dumps(zone.name)}@{zone.digest}"
        case Apply(type=type_, operation=operation, arguments=arguments):
            inner = " ".join(text_of(argument) for argument in arguments)
            return f"({operation}:{type_} {inner})"
    raise TypeError(f"no text for {type(expression).__name__}")


@dataclass(slots=True)
class HotPlan:
    """The fields to decode, and the expressions to evaluate and hash, for a set of metrics.

    fields: the fields to decode, with their types.  expressions: the roots to evaluate.  columns: the hot columns.
    roots: by column of values, the index of its expression.
    hashes: by column of hashes, how it is made. A source below len(fields) is a field, any other a root.
    """

    fields: list[tuple[str, Type]] = field(default_factory=list)
    expressions: list[TypedExpression] = field(default_factory=list)
    columns: list[HotColumn] = field(default_factory=list)
    roots: dict[int, int] = field(default_factory=dict)
    hashes: dict[int, HashColumn] = field(default_factory=dict)
    _index: dict[str, int] = field(default_factory=dict)

    def copy(self) -> "HotPlan":
        """A copy, which later additions to this one do not change."""
        return HotPlan(
            list(self.fields),
            list(self.expressions),
            list(self.columns),
            dict(self.roots),
            dict(self.hashes),
            dict(self._index),
        )

    def only(self, columns: Sequence[HotColumn]) -> "HotPlan":
        """The plan of these columns alone, in their order. Raises KeyError for a column that is not in this plan."""
        found = HotPlan(list(self.fields))
        for column in columns:
            place = self._index[column.name]
            own, _ = found._column(column.name, column.kind)
            if place in self.roots:
                found.roots[own] = found._root(self.expressions[self.roots[place]])
            else:
                made = self.hashes[place]
                sources = [
                    source
                    if source < _ROOT_BASE
                    else _ROOT_BASE + found._root(self.expressions[source - _ROOT_BASE])
                    for source in made.sources
                ]
                found.hashes[own] = replace(made, sources=tuple(sources))
        return found

    def values(self, columns: Sequence[HotColumn]) -> list[TypedExpression] | None:
        """Return the expressions whose values these columns hold; None if one of the columns holds hashes.

        Raises KeyError for a column that is not in this plan.
        """
        places = [self._index[column.name] for column in columns]
        if not all(place in self.roots for place in places):
            return None
        return [self.expressions[self.roots[place]] for place in places]

    def value(self, expression: TypedExpression) -> int:
        """The column of an expression's values; strings with their bytes."""
        column, is_new = self._column(*_value_column(expression))
        if is_new:
            self.roots[column] = self._root(expression)
        return column

    def string_hash(self, expression: TypedExpression) -> int:
        """The column of the hashes of a string expression's values."""
        column, is_new = self._column(f"hash:{text_of(expression)}", ColumnKind.ENTITY)
        if is_new:
            self.hashes[column] = HashColumn(None, (_ROOT_BASE + self._root(expression),))
        return column

    def entity(self, group_by: tuple[str, ...], keys: tuple[TypedExpression, ...]) -> int:
        """The column of the entities of a group-by. keys: the values of its fields.

        The name of the column has the expressions of computed fields, because another field may get the name of one
        that was dropped. The hashes do not depend on them, so that value queries can say values of computed fields.
        """
        named = [
            name if isinstance(key, Field) and key.name == name else f"{name}={text_of(key)}"
            for name, key in zip(group_by, keys)
        ]
        column, is_new = self._column(f"entity:{','.join(named)}", ColumnKind.ENTITY)
        if is_new:
            names = [name for name, _ in self.fields]
            sources = [
                names.index(key.name) if isinstance(key, Field) else _ROOT_BASE + self._root(key)
                for key in keys
            ]
            self.hashes[column] = HashColumn(f"entity:{','.join(group_by)}", tuple(sources))
        return column

    def _column(self, name: str, kind: ColumnKind) -> tuple[int, bool]:
        known = self._index.get(name)
        if known is not None:
            return known, False
        self.columns.append(HotColumn(name, kind))
        self._index[name] = len(self.columns) - 1
        return len(self.columns) - 1, True

    def _root(self, expression: TypedExpression) -> int:
        if expression not in self.expressions:
            self.expressions.append(expression)
        return self.expressions.index(expression)


def field_column(name: str, type_: Type) -> HotColumn:
    """The column of a field's own values."""
    return HotColumn(*_value_column(Field(type_, name)))


def _value_column(expression: TypedExpression) -> tuple[str, ColumnKind]:
    kind = ColumnKind.STRING if expression.type.kind is Kind.STRING else ColumnKind.WORD
    return f"value:{text_of(expression)}", kind


_ROOT_BASE = 1 << 20
"""A hash's source with this number or more is an expression, not a field."""


def fields_needed(metrics: Iterable[ResolvedMetric], types: dict[str, Type]) -> list[tuple[str, Type]]:
    """The recorded fields that metrics read, in the order of the schema."""
    names = frozenset[str]().union(*(metric.fields for metric in metrics))
    return [(name, type_) for name, type_ in types.items() if name in names]


def source_index(source: int, fields: int) -> int:
    """The index of a hash's source in a list of the fields followed by the expressions."""
    return source if source < _ROOT_BASE else fields + source - _ROOT_BASE
