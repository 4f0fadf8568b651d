"""Several orders to one node at once: each is told what became of the one that counts."""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from frontend.kafka import cluster_state
from frontend.kafka.cluster_state import ClusterState
from frontend.kafka.task_states import TaskStates
from frontend.problems import ProblemError
from railgun.cluster.records import DrainOrder, encode_statement
from railgun.messaging.kafka.transport import KafkaTransport
from tests.node.leader.leading_nodes import Nodes
from tests.unit.local_units import awaited, quick_settings

Given = Future[dict[str, Any]]


class Orders:
    """A front-end's part in threads, and nodes that decide on nothing while they are `held`."""

    def __init__(
        self, broker: str, nodes: Nodes, transport: KafkaTransport, pool: ThreadPoolExecutor
    ) -> None:
        self.nodes, self._topics, self._pool = nodes, nodes.player.registry.topics, pool
        self._states = TaskStates(transport, self._topics)
        self._state = ClusterState(transport, quick_settings(broker), self._topics, self._states)

    def close(self) -> None:
        self._states.close()

    def start(self, count: int) -> None:
        names = {f"node-{number}" for number in range(1, count + 1)}
        for number in range(1, count + 1):
            self.nodes.start(number)
        running = self.nodes.running.values()
        awaited(
            lambda: any(each.leading.leads and each.leading._observed.members == names for each in running)
        )
        awaited(lambda: bool(self.nodes.places()))
        self.hold(is_held=True)

    def hold(self, *, is_held: bool) -> None:
        for node in self.nodes.running.values():
            node.is_halted = is_held

    def write(self, order: DrainOrder) -> None:
        self.nodes.write(self._topics.nodes, order.key, encode_statement(order))

    @property
    def newest(self) -> DrainOrder | None:
        """The newest order to node-1 that the front-end knows."""
        return self._state._observed.orders.get("node-1")

    def give(self, *, is_on: bool) -> Given:
        """Order node-1 to be emptied or used. Returns once the order is written."""
        before = self.newest
        given = self._pool.submit(self._state.order, "node-1", [], is_on=is_on)
        awaited(lambda: self.newest != before)
        return given


@pytest.fixture
def orders(kafka: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Orders]:
    # Another node may have to lead first.
    monkeypatch.setattr(cluster_state, "_DECIDED_S", 90.0)
    with (
        KafkaTransport(quick_settings(kafka)) as transport,
        ThreadPoolExecutor(4) as pool,
        Nodes(kafka) as nodes,
    ):
        made = Orders(kafka, nodes, transport, pool)
        try:
            yield made
        finally:
            made.close()


def _refused(given: Given) -> str:
    with pytest.raises(ProblemError) as refused:
        given.result(120.0)
    return str(refused.value)


def _is_drained(nodes: Nodes) -> bool:
    return all(node.plan.is_drained("node-1") for node in nodes.running.values())


def test_two_that_want_the_same_get_the_same(orders: Orders) -> None:
    orders.start(3)
    first = orders.give(is_on=True)
    second = orders.give(is_on=True)
    orders.hold(is_held=False)
    assert first.result(120.0)["name"] == second.result(120.0)["name"] == "node-1"
    awaited(lambda: _is_drained(orders.nodes))


def test_what_came_last_counts_whatever_clocks_say(orders: Orders) -> None:
    """The clock of another front-end may be behind."""
    orders.start(3)
    given, order = orders.give(is_on=True), orders.newest
    assert order is not None
    orders.write(DrainOrder(node="node-1", asked_ms=order.asked_ms - 5_000, is_on=True))
    orders.hold(is_held=False)
    assert given.result(120.0)["name"] == "node-1"


def test_one_that_was_taken_back_says_so(orders: Orders) -> None:
    orders.start(3)
    first = orders.give(is_on=True)
    back = orders.give(is_on=False)
    orders.hold(is_held=False)
    assert "a later order has it used again" in _refused(first)
    assert back.result(120.0)["was_drained"]


def test_one_to_use_it_that_came_first_says_so(orders: Orders) -> None:
    orders.start(3)
    orders.hold(is_held=False)
    orders.give(is_on=True).result(120.0)
    orders.hold(is_held=True)
    back = orders.give(is_on=False)
    again = orders.give(is_on=True)
    orders.hold(is_held=False)
    assert "a later order has it drained" in _refused(back)
    assert again.result(120.0)["name"] == "node-1"


def test_what_is_refused_is_told_to_each_that_asked(orders: Orders) -> None:
    orders.start(1)
    first = orders.give(is_on=True)
    second = orders.give(is_on=True)
    orders.hold(is_held=False)
    assert "no other node that lives" in _refused(first)
    assert "no other node that lives" in _refused(second)
    awaited(lambda: not orders.nodes.running[1].plan.drains)
