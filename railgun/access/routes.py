"""A table of HTTP routes. A lookup finds the row for a request.

The rows of the service are in `frontend/http/routes.py`, those of a node in `railgun/node/server.py`.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, TypeVar

from railgun.access.scopes import Need

Handler = TypeVar("Handler")


class Route(NamedTuple):
    """A row of the table: the requests of one method for one path.

    path: a part in braces stands for any text between two slashes, or after the last one.
    handler: the name of the function that answers.
    served_by: the part of the server that has this function. All rows of one path have the same part.
    needs: the rights that a caller needs for it.
    """

    method: str
    path: str
    handler: str
    served_by: str
    needs: Need


class RouteMatch(NamedTuple):
    """The result of a lookup.

    route: the row; None if the table has none for this method and path.
    rows: the rows of the path, by method; empty if the table does not have the path.
    parameters: the texts that stand for the parts in braces, by name.
    """

    route: Route | None
    rows: Mapping[str, Route]
    parameters: Mapping[str, str]

    @property
    def served_by(self) -> str | None:
        """The part of the server that answers at the path; None if the table does not have the path."""
        return next((row.served_by for row in self.rows.values()), None)

    @property
    def methods(self) -> list[str]:
        """The methods that the path takes, sorted."""
        return sorted({*self.rows, *([_HEAD] if _GET in self.rows else [])})


_GET, _HEAD = "GET", "HEAD"
_NOT_FOUND = RouteMatch(None, {}, {})


class _Node:
    """A node of the tree of all paths. An edge is the text between two slashes.

    fixed: the next nodes, by text.
    braces: the next node for any text. A node has either `fixed` or `braces`.
    parameters: the names in braces on the way from the root.
    rows: the rows of the path that ends here, by method.
    """

    __slots__ = ("braces", "fixed", "parameters", "rows")

    def __init__(self, parameters: tuple[str, ...] = ()) -> None:
        self.fixed: dict[str, _Node] = {}
        self.braces: _Node | None = None
        self.parameters = parameters
        self.rows: dict[str, Route] = {}

    def add(self, part: str) -> "_Node":
        """Returns the next node for a part of a row's path, and creates it if it is missing."""
        if part.startswith("{"):
            self.braces = following = self.braces or _Node((*self.parameters, part[1:-1]))
        else:
            following = self.fixed.setdefault(part, _Node(self.parameters))
        if self.fixed and self.braces:
            raise ValueError(f"{part}: at one place there is either a text or a part in braces")
        return following


class Routes:
    """A table of routes. A HEAD is answered as the GET of its path, and has no row.

    Raises ValueError if a request could match two of its rows, or if rows contradict each other.
    """

    def __init__(self, rows: Iterable[Route]) -> None:
        self._rows = tuple(rows)
        self._root = _Node()
        for row in self._rows:
            self._add(row)

    def __iter__(self) -> Iterator[Route]:
        return iter(self._rows)

    def rows_of(self, part: str) -> tuple[Route, ...]:
        """Returns the rows that a part of the server answers, in order."""
        return tuple(row for row in self._rows if row.served_by == part)

    def bind(self, part: str, handlers: Mapping[str, Handler]) -> dict[Route, Handler]:
        """Returns the rows that a part of the server answers, in order, each with its handler. handlers: by name.

        Raises ValueError if a row has no handler, or a handler has no row.
        """
        rows = self.rows_of(part)
        unbound = {row.handler for row in rows} ^ handlers.keys()
        if unbound:
            raise ValueError(f"{part}: these are not both a row and a handler: {', '.join(sorted(unbound))}")
        return {row: handlers[row.handler] for row in rows}

    def find(self, method: str, path: str) -> RouteMatch:
        """Finds the row for a request. path: decoded, without the query."""
        node = self._root
        texts: list[str] = []
        for text in path.split("/"):
            following = node.fixed.get(text)
            if following is None:
                following = node.braces
                if following is None or not text:
                    return _NOT_FOUND
                texts.append(text)
            node = following
        if not node.rows:
            return _NOT_FOUND
        row = node.rows.get(_GET if method == _HEAD else method)
        return RouteMatch(row, node.rows, dict(zip(node.parameters, texts)))

    def _add(self, row: Route) -> None:
        parts = row.path.split("/")
        node = self._root
        for part in parts:
            node = node.add(part)
        names = tuple(part[1:-1] for part in parts if part.startswith("{"))
        others = {each.served_by for each in node.rows.values()} - {row.served_by}
        if row.method in node.rows or row.method == _HEAD or others or names != node.parameters:
            raise ValueError(f"{row.method} {row.path}: another row contradicts this one")
        node.rows[row.method] = row
