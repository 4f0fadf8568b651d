"""Several orders to one node at once: each is told what became of the one that counts."""

import contextlib
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from frontend.kafka import cluster_state
from frontend.kafka.cluster_state import ClusterState
from frontend.kafka.followed_plan import PlanNotReadError
from frontend.kafka.task_states import TaskStates
from frontend.problems import ProblemError
from railgun.cluster.plan import Plan
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
        self._broker, self._transport = broker, transport
        self._opened: list[TaskStates] = []
        self.state = self.another()

    def another(self) -> ClusterState:
        """Another front-end's part."""
        states = TaskStates(self._transport, self._topics)
        self._opened.append(states)
        return ClusterState(self._transport, quick_settings(self._broker), self._topics, states)

    def close(self) -> None:
        for states in self._opened:
            states.close()

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
            if is_held:
                node.halt()
            node.is_halted = is_held

    def write(self, order: DrainOrder) -> None:
        self.nodes.write(self._topics.nodes, order.key, encode_statement(order))

    def newest(self, state: ClusterState | None = None) -> DrainOrder | None:
        """The newest order to node-1 that the front-end knows."""
        return (state or self.state)._observed.orders.get("node-1")

    def give(self, *, is_on: bool, state: ClusterState | None = None) -> Given:
        """Order node-1 to be emptied or used. Returns once the order is written."""
        before = self.newest(state)
        given = self._pool.submit((state or self.state).order, "node-1", [], is_on=is_on)
        awaited(lambda: self.newest(state) != before)
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


def _has_read_the_plan(state: ClusterState) -> bool:
    with state._lock, contextlib.suppress(PlanNotReadError):
        state._refresh()
        return True
    return False


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
    given, order = orders.give(is_on=True), orders.newest()
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


@pytest.mark.parametrize("is_of_another", [False, True], ids=["one_front_end", "two_front_ends"])
def test_a_refusal_is_told_to_one_that_looks_when_it_is_withdrawn(
    orders: Orders, monkeypatch: pytest.MonkeyPatch, is_of_another: bool
) -> None:
    """Whoever gave the newest order withdraws it as soon as it is refused."""
    orders.start(1)
    state = orders.another() if is_of_another else orders.state
    awaited(lambda: _has_read_the_plan(state))
    waits, may_look, awaits = threading.Event(), threading.Event(), state._await

    def await_late(is_decided: Callable[[Plan], bool]) -> Plan:
        waits.set()
        assert may_look.wait(120.0)
        with state._lock:
            state._refresh()
        return awaits(is_decided)

    monkeypatch.setattr(state, "_await", await_late)
    first = orders.give(is_on=True, state=state)
    assert waits.wait(120.0)
    monkeypatch.setattr(state, "_await", awaits)
    second = orders.give(is_on=True)
    orders.hold(is_held=False)
    assert "no other node that lives" in _refused(second)
    awaited(lambda: not orders.nodes.running[1].plan.drains)
    may_look.set()
    assert "no other node that lives" in _refused(first)


def test_a_refusal_of_an_earlier_order_is_not_told_of_a_later_one(orders: Orders) -> None:
    orders.start(1)
    orders.hold(is_held=False)
    assert "no other node that lives" in _refused(orders.give(is_on=True))
    awaited(lambda: not orders.nodes.running[1].plan.drains)
    orders.hold(is_held=True)
    first = orders.give(is_on=True)
    orders.give(is_on=False)
    orders.hold(is_held=False)
    assert "a later order has it used again" in _refused(first)
