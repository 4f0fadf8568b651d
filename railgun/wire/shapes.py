"""Makes msgspec structs into which texts of events are decoded in one call, with the values of their fields as a tuple.

Objects and arrays on the way to fields become structs within structs. Whatever no field reads is skipped.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

import msgspec

from railgun.wire.finding import steps_of
from railgun.wire.path import Step
from railgun.wire.schema import Field, FieldType, Schema

Leaf = tuple[Any, Any]
"""The type of a value for msgspec, and the value of an absent one."""

RAW: Leaf = (msgspec.Raw, msgspec.Raw(b"null"))
"""A value that stays as it is written."""
_NOTHING = "nothing"

Decode = Callable[[bytes | msgspec.Raw], Any]


@dataclass(frozen=True, slots=True)
class Shape:
    """How texts of events are decoded.

    decode: raises MsgspecError, UnicodeDecodeError and RecursionError. Unknown keys are skipped; these may
        be no UTF-8.
    decode_known: the same, and raises ValidationError for an unknown key; None if unknown keys are usual.
    values: the values of the fields, in the schema's order, of what was decoded.
    raw: the places of fields that stay as they are written.
    """

    decode: Decode
    decode_known: Decode | None
    values: Callable[[Any], Sequence[Any]]
    raw: frozenset[int]


def shape_of(schema: Schema, leaf: Callable[[FieldType], Leaf]) -> Shape | None:
    """Return the shape of a schema's events; None if msgspec has none for such paths.

    leaf: returns the leaf for a field's type.
    """
    if schema.has_paths:
        return _nested(schema, leaf)
    leaves = [leaf(each.type) for each in schema.fields]
    names = [f"f{place}" for place in range(len(schema.fields))]
    members = [(name, *each) for name, each in zip(names, leaves)]
    renamed = dict(zip(names, (each.name for each in schema.fields)))
    event = msgspec.defstruct("Event", members, rename=renamed, gc=False)
    known = msgspec.defstruct("Known", members, rename=renamed, gc=False, forbid_unknown_fields=True)
    raw = frozenset(place for place, each in enumerate(leaves) if each is RAW)
    return Shape(
        msgspec.json.Decoder(event).decode, msgspec.json.Decoder(known).decode, msgspec.structs.astuple, raw
    )


@dataclass(slots=True)
class _Node:
    """A place in documents. leaves: of the fields that are read here.  within: what is read in it, by key or index."""

    leaves: list[Leaf] = field(default_factory=list)
    within: dict[Step, "_Node"] = field(default_factory=dict)


def _nested(schema: Schema, leaf: Callable[[FieldType], Leaf]) -> Shape | None:
    root = _Node()
    nodes = [_add(root, each, leaf) for each in schema.fields]
    try:
        event = _struct(root, {_NOTHING: None})
    except _NoShapeError:
        return None
    attributes = [
        _NOTHING if node is None else _attribute(root, steps_of(each))
        for node, each in zip(nodes, schema.fields)
    ]
    raw = frozenset(place for place, node in enumerate(nodes) if node is not None and _leaf(node) is RAW)
    return Shape(msgspec.json.Decoder(event).decode, None, _values(attributes, raw), raw)


def _add(root: _Node, each: Field, leaf: Callable[[FieldType], Leaf]) -> _Node | None:
    """Add a field to the tree of places, and return its place; None if it is in no document."""
    steps = steps_of(each)
    if not steps:
        return None
    node = root
    for step in steps:
        node = node.within.setdefault(step, _Node())
    node.leaves.append(leaf(each.type))
    return node


class _NoShapeError(Exception):
    """No struct can hold such places."""


def _struct(node: _Node, namespace: dict[str, Any] | None = None) -> Any:
    """Return the struct for an object or an array. Raises _NoShapeError."""
    steps = list(node.within)
    are_places = {isinstance(step, int) for step in steps}
    if node.leaves or len(are_places) > 1:
        # One value would have to be two things. Nearly all events are refused then.
        raise _NoShapeError
    members = {step: _member(within) for step, within in node.within.items()}
    if are_places == {True}:
        elements = [(f"e{at}", *members.get(at, RAW)) for at in range(max(map(int, steps)) + 1)]
        return msgspec.defstruct("Elements", elements, array_like=True, frozen=True, gc=False)
    named = [(f"f{at}", *members[step]) for at, step in enumerate(steps)]
    renamed = {f"f{at}": str(step) for at, step in enumerate(steps)}
    try:
        return msgspec.defstruct("Object", named, rename=renamed, frozen=True, gc=False, namespace=namespace)
    except ValueError:
        # msgspec takes no names with quotes, backslashes or control characters.
        raise _NoShapeError from None


def _member(node: _Node) -> Leaf:
    if not node.within:
        return _leaf(node)
    struct = _struct(node)
    # An absent object is one in which everything is absent, so that values are found without a look at each step.
    return struct | None, struct()


def _leaf(node: _Node) -> Leaf:
    """Return the leaf at a place; RAW if several fields of unlike types read it."""
    return node.leaves[0] if all(each == node.leaves[0] for each in node.leaves) else RAW


def _attribute(root: _Node, steps: Sequence[Step]) -> str:
    names: list[str] = []
    node = root
    for step in steps:
        names.append(f"e{step}" if isinstance(step, int) else f"f{list(node.within).index(step)}")
        node = node.within[step]
    return ".".join(names)


def _values(attributes: Sequence[str], raw: frozenset[int]) -> Callable[[Any], Sequence[Any]]:
    """Return a function that gives these attributes of an event's struct."""
    get = attrgetter(*attributes)
    by_step = [(name.split("."), RAW[1] if place in raw else None) for place, name in enumerate(attributes)]

    def one_by_one(event: Any) -> Sequence[Any]:
        return tuple([_value(event, names, absent) for names, absent in by_step])

    if len(attributes) == 1:
        # With one name alone, attrgetter returns no tuple.
        return one_by_one

    def values(event: Any) -> Sequence[Any]:
        try:
            return get(event)
        except AttributeError:
            # An object on the way is null.
            return one_by_one(event)

    return values


def _value(event: Any, names: Sequence[str], absent: Any) -> Any:
    for name in names:
        if event is None:
            return absent
        event = getattr(event, name)
    return event
