"""The least cost of a flow through a network whose edges have capacities and costs: by cheapest paths, one by one."""

from collections import defaultdict, deque
from collections.abc import Hashable


class _Edge:
    """back: the edge that takes back what flows here."""

    def __init__(self, to: Hashable, room: int, cost: int) -> None:
        self.to, self.room, self.cost = to, room, cost
        self.back: _Edge


class CheapestFlow:
    """A network of whole numbers."""

    def __init__(self) -> None:
        self._edges: dict[Hashable, list[_Edge]] = defaultdict(list)

    def add(self, start: Hashable, end: Hashable, room: int, cost: int) -> None:
        """Add an edge. room: how much may flow.  cost: of each unit that does."""
        there, back = _Edge(end, room, cost), _Edge(start, 0, -cost)
        there.back, back.back = back, there
        self._edges[start].append(there)
        self._edges[end].append(back)

    def cost(self, start: Hashable, end: Hashable, units: int) -> int:
        """Let so many units flow, and return what they cost. Raises ValueError where there is no room for them."""
        whole = 0
        for _ in range(units):
            path = self._cheapest_path(start, end)
            for edge in path:
                edge.room -= 1
                edge.back.room += 1
            whole += sum(edge.cost for edge in path)
        return whole

    def _cheapest_path(self, start: Hashable, end: Hashable) -> list[_Edge]:
        costs, by = {start: 0}, dict[Hashable, _Edge]()
        waiting = deque([start])
        while waiting:
            place = waiting.popleft()
            for edge in self._edges[place]:
                cost = costs[place] + edge.cost
                if edge.room and cost < costs.get(edge.to, cost + 1):
                    costs[edge.to], by[edge.to] = cost, edge
                    waiting.append(edge.to)
        if end not in by:
            raise ValueError("there is no room for so much")
        path = [by[end]]
        while path[-1].back.to != start:
            path.append(by[path[-1].back.to])
        return path
