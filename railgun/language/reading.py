"""What syntax trees read: names and time zones; and the order of expressions that read each other."""

from collections.abc import Mapping, Sequence
from graphlib import CycleError, TopologicalSorter

from railgun.language import ast


def names_in(node: ast.Node) -> frozenset[str]:
    """The names that an expression reads."""
    if isinstance(node, ast.FieldReference):
        return frozenset((node.name,))
    return frozenset().union(*map(names_in, ast.children(node)))


def zone_names_in(node: ast.Node) -> frozenset[str]:
    """The names of the time zones in an expression."""
    own = [node.zone] if isinstance(node, ast.Call) and node.zone is not None else []
    return frozenset(own).union(*map(zone_names_in, ast.children(node)))


def operands_first(items: Mapping[str, ast.Node], what: str) -> list[str]:
    """The names of items in their order, but each behind the items that it reads. Raises CircleError.

    what: what errors call the items.
    """
    read = {name: [each for each in items if each in names_in(item)] for name, item in items.items()}
    try:
        TopologicalSorter(read).prepare()
    except CycleError as error:
        circle = error.args[1][::-1]
        raise CircleError(what, circle, _place_of(circle[1], items[circle[0]])) from None
    found: dict[str, None] = {}
    # A stack: an item leaves it once all items that it reads have left.
    waiting = list(items)[::-1]
    while waiting:
        unread = [each for each in read[waiting[-1]] if each not in found]
        if unread:
            waiting += reversed(unread)
        else:
            found[waiting.pop()] = None
    return list(found)


class CircleError(ValueError):
    """Expressions read each other in a circle.

    circle: their names. Each reads the next one, and the last name is the first one again.
    offset: the place in the statement's text where the first one reads the next one.
    """

    def __init__(self, what: str, circle: Sequence[str], offset: int) -> None:
        super().__init__(f"{what} in a circle: {' reads '.join(circle)}")
        self.circle = circle
        self.offset = offset


def _place_of(name: str, node: ast.Node) -> int:
    """The offset of the first place where an expression that reads a name does so."""
    while not isinstance(node, ast.FieldReference):
        node = next(each for each in ast.children(node) if name in names_in(each))
    return node.position
