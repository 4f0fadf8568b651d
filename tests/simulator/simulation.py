"""A simulated cluster: real units and leaders, virtual time, a stream of events, and a front-end that collects replies.

Everything that happens follows from the seed.
"""

import itertools
import math
import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, cast

from railgun.catalog.catalog import Catalog
from railgun.catalog.changes import AddMetric, Change
from railgun.catalog.definitions import parse_definitions
from railgun.catalog.retelling import retold
from railgun.catalog.task_key import TaskKey
from railgun.cluster.copies import CopyName, CopyState
from railgun.cluster.plan import Plan
from railgun.cluster.records import DrainOrder, Statement, encode_statement
from railgun.host.task_host import TaskHost
from railgun.messaging.kafka.transport import KafkaTransport
from railgun.messaging.transport import TopicPartition, TopicSettings
from railgun.registry import evolution
from railgun.registry.cluster_topics import make_topics
from railgun.registry.follower import Snapshot
from railgun.registry.telling import Telling
from railgun.registry.topics import Topics
from tests.simulator.broker import SimulatedBroker
from tests.simulator.membership import Group
from tests.simulator.node import SimulatedNode, Surroundings, up
from tests.unit.front_end import FrontEnd

STREAM = "s"
DEFINITIONS = """
[streams.s]
time = "ts"
id = "tx"
partitioners = ["card", "shop"]
partitions = 2
lateness = "2s"
[streams.s.fields]
tx = "string"
ts = "timestamp"
card = "string"
shop = "string"
amount = "long"
[[metrics]]
sql = "SELECT count(*) AS n, sum(amount) AS total FROM s GROUP BY card OVER SLIDING 10 SECONDS"
[[metrics]]
sql = "SELECT count_distinct(card) AS cards FROM s GROUP BY shop OVER SLIDING 30 SECONDS"
[[metrics]]
sql = "SELECT min(amount) AS least FROM s WHERE amount > 5 GROUP BY card, shop OVER TUMBLING 20 SECONDS"
[[metrics]]
sql = "SELECT max(amount) AS most_before FROM s GROUP BY card OVER SLIDING 10 SECONDS EXCLUDE CURRENT"
[[metrics]]
sql = '''SELECT count(*) FILTER (WHERE HOUR(CAST(amount * 3600000 AS timestamp) IN 'Asia/Kolkata') < 6) AS nightly
  FROM s GROUP BY shop OVER SLIDING 30 SECONDS'''
[[metrics]]
sql = "DERIVE amount > most_before AS is_most, n + cards AS both FROM s"
"""
# Metrics that come and go while events flow; the number makes each a name of its own.
LATER = (
    "SELECT max(amount) AS later_{} FROM s GROUP BY card OVER SLIDING 15 SECONDS",
    "SELECT stddev(amount) AS later_{} FROM s GROUP BY shop OVER SLIDING 20 SECONDS DELAYED BY 5 SECONDS",
    "SELECT last(amount) AS later_{} FROM s GROUP BY card OVER INFINITE",
    "SELECT sum(amount) AS later_{} FROM s GROUP BY card OVER SLIDING 15 SECONDS EXCLUDE CURRENT",
    "SELECT count(*) FILTER (WHERE HOUR(ts IN 'Asia/Kolkata') = 3) AS later_{} FROM s GROUP BY shop OVER INFINITE",
    "DERIVE n * 2 + nightly AS later_{} FROM s",
)
_LATER_MAX = 4
TICK_S = 0.01
_CARDS, _SHOPS = 12, 4
# A leader plans so soon after it has learned who is there.
_PLANS_WITHIN_S = 0.5
# Of 100 events, so many are as old, and so many come a second time.
_LATE, _LATE_MS, _AGAIN = 10, 6_000, 3


class Broken(AssertionError):
    """The simulated cluster has not kept a promise."""


class Simulation:
    """folder: an empty one.
    seed: decides everything that happens.
    units: a node has one of these numbers of units.
    """

    def __init__(self, folder: Path, seed: int, nodes: int = 3, units: Sequence[int] = (1, 1, 2)) -> None:
        self.seed, self.chance = seed, random.Random(seed)
        self.now_s = 0.0
        self.topics = Topics("sim")
        self.broker = SimulatedBroker(self.chance, self._now)
        self._catalog, self._keys = Catalog(), {STREAM: self.chance.randbytes(16)}
        self._client = self.broker.client("front-end")
        make_topics(self._client, self.topics)
        self._telling = Telling(cast(KafkaTransport, self._client), self.topics, TopicSettings())
        self._change(lambda catalog: evolution.missing(catalog, parse_definitions(DEFINITIONS)))
        self.front_ends = [FrontEnd(cast(KafkaTransport, self._client), self.topics, 1)]
        self.events: list[dict[str, Any]] = []
        self.around = Surroundings(
            self.chance, self._now, self.broker, Group(self._now), self.topics, lambda: self._snapshot
        )
        self.nodes = [
            SimulatedNode(self.around, f"node-{number}", folder / str(number), self.chance.choice(units))
            for number in range(nodes)
        ]
        self.around.nodes += self.nodes
        self._numbers = itertools.count(1)
        self._plans_seen: dict[str, int] = {}
        self._unknown_s = -math.inf
        self._asked_ms = 0
        self._sent_s: dict[tuple[int, int], float] = {}

    # --- time --------------------------------------------------------------------------------------

    def run(self, seconds: float, events_per_s: float = 0.0) -> None:
        """Let time pass, with so many events."""
        for _ in range(round(seconds / TICK_S)):
            self.tick(events_per_s)

    def run_until(self, condition: Callable[[], bool], within_s: float, what: str) -> None:
        """Let time pass until something is so. Raises Broken."""
        until_s = self.now_s + within_s
        while not condition():
            if self.now_s >= until_s:
                raise Broken(f"not within {within_s:g} s: {what}; {self.shown()}")
            self.tick(0.0)

    def tick(self, events_per_s: float) -> None:
        """Let the shortest time pass."""
        self.now_s += TICK_S
        if self.chance.random() < events_per_s * TICK_S:
            self.send(self.chance.choice((1, 1, 1, 4)))
        self.broker.advance()
        for node in self.chance.sample(self.nodes, len(self.nodes)):
            if node.is_up:
                node.step()
                self._check_plan(node)
        if self.chance.random() < 0.2:
            for each in self.front_ends:
                each.collect()

    def _now(self) -> float:
        return self.now_s

    # --- what clients do -----------------------------------------------------------------------------

    def send(self, count: int) -> None:
        """Send events to one of the front-ends."""
        front_end = self.chance.choice(self.front_ends)
        self._sent_s |= {(front_end.number, len(front_end.sent) + each): self.now_s for each in range(count)}
        front_end.send(self._catalog.streams[STREAM], [self._event() for _ in range(count)])

    def add_metric(self, queries: Sequence[str] = LATER) -> None:
        """Add a metric by one of these queries, as long as there are not many."""
        if len(self._later()) < _LATER_MAX:
            sql = self.chance.choice(queries).format(next(self._numbers))
            self._change(lambda catalog: evolution.new_metrics(catalog, STREAM, sql))

    def drop_metric(self) -> None:
        """Drop a metric that was added."""
        later = self._later()
        if later:
            name = self.chance.choice(later)
            self._change(lambda catalog: [evolution.dropped_metric(catalog, STREAM, name)])

    def _later(self) -> list[str]:
        """The names of the metrics that were added, derived ones among them."""
        return [name for name in self._catalog.streams[STREAM].names if name.startswith("later")]

    def order(self, node: SimulatedNode, *, is_on: bool, fewer_copies: bool = False) -> None:
        """Order a node to be emptied, or to be used again."""
        self._asked_ms += 1
        self.say(DrainOrder(node=node.name, asked_ms=self._asked_ms, is_on=is_on, fewer_copies=fewer_copies))

    def say(self, record: Statement) -> None:
        """Write a record to the topic of nodes, as a front-end does."""
        self.broker.append(TopicPartition(self.topics.nodes, 0), [encode_statement(record)])

    def tell_again(self, task: TaskKey) -> tuple[tuple[int, int], int]:
        """See `KafkaRegistry.tell_again`."""
        where = self.where(task)
        begin = self._telling.tell_one(where, retold(self._catalog.entry(task.stream)))
        return (begin, self.broker.logs[where].end), self._catalog.last_place

    def add_front_end(self) -> None:
        """Start another front-end; units do not see its topic at once."""
        number = len(self.front_ends) + 1
        self.front_ends.append(FrontEnd(cast(KafkaTransport, self._client), self.topics, number))

    def _event(self) -> dict[str, Any]:
        chance = self.chance
        if self.events and chance.randrange(100) < _AGAIN:
            return chance.choice(self.events)
        time_ms = self.broker.date_ms()
        if chance.randrange(100) < _LATE:
            time_ms -= chance.randrange(_LATE_MS)
        event = {
            "tx": f"t{len(self.events)}",
            "ts": time_ms,
            "card": f"c{chance.randrange(_CARDS)}",
            "shop": f"s{chance.randrange(_SHOPS)}",
            "amount": chance.randrange(100),
        }
        self.events.append(event)
        return event

    def _change(self, make: Callable[[Catalog], list[Change] | list[AddMetric]]) -> None:
        catalog = self._catalog.copy()
        changes: list[Change] = list(make(catalog))
        for change in changes:
            catalog.apply(change)
        streams = {name: entry.stream for name, entry in catalog.streams.items()}
        self._telling.tell(changes, streams, {}, streams.keys() - self._catalog.streams.keys())
        self._catalog = catalog
        self._snapshot = Snapshot(catalog, self._keys, (), catalog)

    # --- how the cluster stands ----------------------------------------------------------------------

    @property
    def tasks(self) -> list[TaskKey]:
        """All tasks."""
        return list(self._catalog.task_keys)

    def where(self, task: TaskKey) -> TopicPartition:
        """The log of a task."""
        return TopicPartition(self.topics.tasks(task.stream, task.partitioner), task.partition)

    @property
    def plan(self) -> Plan:
        """The newest plan that any node knows."""
        plans = [node.leading.plan for node in up(self.nodes) if node.leading is not None]
        return max(plans, key=lambda plan: plan.epoch, default=Plan())

    def hosts(self, task: TaskKey) -> Iterator[tuple[CopyName, CopyState, TaskHost]]:
        """The copies of a task that are open, with their states."""
        for node in up(self.nodes):
            for unit in node.live_units:
                host = unit.loop.hosts.get(task)
                if host is not None:
                    yield unit.name, unit.copies.state(host), host

    def answering(self) -> dict[TaskKey, list[CopyName]]:
        """By task, the copies that answer."""
        return {
            task: [name for name, state, _ in self.hosts(task) if state is CopyState.ANSWERING]
            for task in self.tasks
        }

    def is_whole(self) -> bool:
        """Whether each task has as many copies as it should, where they should be, of which one answers.

        A leader that has just learned that a node is back has not planned with it yet.
        """
        if not self._leader_knows_all():
            self._unknown_s = self.now_s
        if self.now_s - self._unknown_s < _PLANS_WITHIN_S:
            return False
        wanted, plan = min(2, len(up(self.nodes))), self.plan
        for task in self.tasks:
            if tuple(each.copy for each in plan.copies.get(task, ())) != plan.target.get(task):
                return False
            states = [state for _, state, _ in self.hosts(task)]
            if sum(state.is_caught_up for state in states) < wanted:
                return False
            if states.count(CopyState.ANSWERING) != 1:
                return False
        return True

    def first_ones_answer(self) -> bool:
        """Whether of each task the copy answers that comes first in the plan, and no other."""
        return self.answering() == {
            task: [each.copy for each in copies[:1]] for task, copies in self.plan.copies.items()
        }

    def is_steady(self) -> bool:
        """Whether it is whole, of each task the copy answers that comes first in the plan, and none counts as ill."""
        flapping = [
            copy
            for node in up(self.nodes)
            if node.leading is not None and node.leading.leads
            for copy in node.leading._observed._progress._flapping
        ]
        return self.is_whole() and not flapping and self.first_ones_answer()

    def _leader_knows_all(self) -> bool:
        running = up(self.nodes)
        leaders = [node.leading for node in running if node.leading is not None and node.leading.leads]
        names = {node.name for node in running}
        return any(names <= leading._observed.members for leading in leaders)

    def missing(self) -> int:
        """How many answers have not come."""
        return sum(len(each.missing()) for each in self.front_ends)

    def waiting_s(self) -> float:
        """For how long the event waits that has waited longest for an answer."""
        sent_s = (
            self._sent_s[each.number, sequence] for each in self.front_ends for sequence, _ in each.missing()
        )
        return self.now_s - min(sent_s, default=self.now_s)

    def shown(self) -> str:
        """How it stands, for people."""
        states = {
            f"{task.partitioner}/{task.partition}": ", ".join(
                f"{name} {state} {host.position}{' ' + host.failure if host.failure else ''}"
                for name, state, host in self.hosts(task)
            )
            for task in self.tasks
        }
        return f"at {self.now_s:.2f} s, {self.missing()} answers missing, plan {self.plan.epoch}, {states}"

    def _check_plan(self, node: SimulatedNode) -> None:
        if node.leading is None or node.leading.plan.epoch == self._plans_seen.get(node.name):
            return
        plan = node.leading.plan
        self._plans_seen[node.name] = plan.epoch
        for task, copies in plan.copies.items():
            names = [each.copy.node for each in copies]
            if len(set(names)) < len(names):
                raise Broken(f"two copies of {task} on one node: {copies}")

    def close(self) -> None:
        """End all processes."""
        for node in up(self.nodes):
            node.kill()
