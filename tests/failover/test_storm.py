"""Nodes come and go all the time, while metrics are added and dropped: no reply is lost, and
each is the one that the oracle makes of the task's log. The copies have equal data, and events are answered again
within 30 s.
"""

import itertools
import random
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from railgun.catalog.task_key import TaskKey
from railgun.cli.failures import EXIT_TERMINATED
from railgun.messaging.to_the_end import read_to_the_end
from railgun.messaging.transport import TopicPartition
from railgun.registry import evolution
from tests.failover.running_cluster import Node, RunningCluster
from tests.strategies.case import STREAM
from tests.unit.answers_by_log import check_answers
from tests.unit.processes import DEFINITIONS

_LATER = (
    "SELECT max(x) AS later_{} FROM s GROUP BY card OVER SLIDING 2 SECONDS",
    "SELECT avg(x) AS later_{} FROM s GROUP BY shop OVER SLIDING 1 SECOND DELAYED BY 1 SECOND",
    "SELECT count(*) AS later_{} FROM s WHERE x > 40 GROUP BY card OVER INFINITE",
    "SELECT sum(x) AS later_{} FROM s GROUP BY shop OVER SLIDING 1 SECOND EXCLUDE CURRENT",
    "SELECT last(x) FILTER (WHERE MINUTE(ts IN 'Asia/Kolkata') % 4 = 0) AS later_{} FROM s GROUP BY card OVER INFINITE",
    "DERIVE n * 2 + of_shop AS later_{} FROM s",
)
_MOST_LATER = 6


class _Storm:
    """Comings and goings of nodes, of which one at least stays, and changes of the metrics.

    happened: how often each kind of coming and going has.
    """

    def __init__(self, cluster: RunningCluster, chance: random.Random) -> None:
        self._cluster, self._chance = cluster, chance
        self._away: list[Node] = []
        self.happened: Counter[str] = Counter()
        self._numbers = itertools.count(1)
        self._later: list[str] = []

    def one_node(self) -> None:
        """A node comes back, or another one is stopped or killed."""
        nodes = list(self._cluster.nodes.values())
        node = self._chance.choice(nodes if len(self._away) < len(nodes) - 1 else self._away)
        if node in self._away:
            self._start(node)
            return
        if self._chance.random() < 0.5:
            node.kill()
            self.happened["killed"] += 1
        else:
            # One that is still starting ends with 143, or by the signal itself.
            assert node.stop() in (0, EXIT_TERMINATED, -signal.SIGTERM)
            self.happened["stopped"] += 1
        self._away.append(node)

    def one_metric(self) -> None:
        """A metric is added or dropped."""
        registry = self._cluster.player.registry
        if not self._later or (len(self._later) < _MOST_LATER and self._chance.random() < 0.6):
            name = f"later_{next(self._numbers)}"
            sql = self._chance.choice(_LATER).format(name.removeprefix("later_"))
            registry.change(lambda catalog: evolution.new_metrics(catalog, STREAM, sql))
            self._later.append(name)
        else:
            gone = self._later.pop(self._chance.randrange(len(self._later)))
            registry.change(lambda catalog: [evolution.dropped_metric(catalog, STREAM, gone)])

    def end(self) -> None:
        """Let all nodes come back."""
        for node in list(self._away):
            self._start(node)

    def _start(self, node: Node) -> None:
        node.start()
        self._away.remove(node)
        self.happened["started"] += 1


def _records(cluster: RunningCluster, task: TaskKey) -> Iterator[bytes]:
    where = TopicPartition(
        cluster.player.registry.topics.tasks(task.stream, task.partitioner), task.partition
    )
    for fetched in read_to_the_end(cluster.player.transport, where):
        yield from fetched.values()


@pytest.mark.torture
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize(("seed", "comings", "changes_each"), [(1, 100, 10)])
def test_nodes_and_metrics_come_and_go(
    kafka: str, tmp_path: Path, seed: int, comings: int, changes_each: int
) -> None:
    chance = random.Random(seed)
    cluster = RunningCluster(kafka, tmp_path, seed, 3, 1, rate_per_s=20)
    try:
        storm = _Storm(cluster, chance)
        for _ in range(comings):
            storm.one_node()
            for _ in range(changes_each):
                storm.one_metric()
                cluster.drive(chance.uniform(0.0, 1.2))
        assert storm.happened.total() == comings
        assert min(storm.happened[kind] for kind in ("started", "stopped", "killed")) > comings // 10
        storm.end()
        cluster.await_healed()
        cluster.await_answers()
        answers, compared = cluster.player.front_end.answers, 0
        for task in cluster.player.registry.snapshot().catalog.task_keys:
            compared += check_answers(
                DEFINITIONS,
                task,
                _records(cluster, task),
                lambda _, sequence: cluster.event(sequence),
                lambda _, sequence, name=task.partitioner: answers.get((sequence, name)),
            )
        assert compared == len(answers) == 2 * cluster.sent
        cluster.check_copies()
    finally:
        cluster.close()
