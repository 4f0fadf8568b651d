"""Records at the end of a log are lost, though copies have answered them: all stop, and go on once that is accepted.

A failing case is run again by: python -m pytest -m "" "tests/failover/test_lost_records.py" -k "SEED"
"""

import os
import random
import re
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from frontend.backend.cluster import GapOrder
from frontend.kafka.cluster_state import ClusterState
from frontend.kafka.task_states import TaskStates
from frontend.problems import ProblemError
from railgun.cluster.copies import CopyName, CopyState
from railgun.messaging.errors import TransportUnavailableError
from railgun.messaging.kafka.transport import KafkaTransport
from tests.broker.own_topics import own_prefix
from tests.broker.quick_broker import quick_broker, started_again, unheard
from tests.counts import seeds
from tests.failover.cut_log import cut_log
from tests.failover.running_cluster import Node
from tests.oracle.compare import differences
from tests.oracle.stream import Oracle
from tests.strategies.case import STREAM
from tests.unit.cluster_player import ClusterPlayer
from tests.unit.local_units import awaited, quick_settings

_DEFINITIONS = """
[streams.s]
time = "ts"
id = "id"
partitioners = ["card"]
partitions = 1
[streams.s.fields]
id = "long"
ts = "timestamp"
card = "string"
x = "double"
[[metrics]]
sql = "SELECT count(*) AS n, sum(x) AS total, last(x) AS newest FROM s GROUP BY card OVER INFINITE"
"""
_TOGETHER = 4


class Cluster:
    """Two nodes with a copy of the one task, on a broker that is this cluster's own."""

    def __init__(self, folder: Path, seed: int) -> None:
        self._seed, self._folder = seed, folder / "broker"
        self.broker = quick_broker(self._folder)
        self._status = self.broker.start(0, unheard)
        self._prefix = prefix = own_prefix("l")
        address = self._status.address
        self._before = self.player = ClusterPlayer(address, prefix)
        self.player.apply(_DEFINITIONS)
        topics = self.player.registry.topics
        (self.task,) = self.player.registry.snapshot().catalog.task_keys
        self.topic = topics.tasks(self.task.stream, self.task.partitioner)
        self._transport = KafkaTransport(quick_settings(address))
        self._states = TaskStates(self._transport, topics)
        self._state = ClusterState(self._transport, quick_settings(address), topics, self._states)
        self.nodes = [Node(folder / name, name, address, prefix, 1) for name in ("node-1", "node-2")]
        self.sent: list[dict[str, Any]] = []
        self.await_states([CopyState.ANSWERING, CopyState.SILENT])

    def send(self, count: int) -> None:
        for first in range(0, count, _TOGETHER):
            for _ in range(min(_TOGETHER, count - first)):
                event = self._event(len(self.sent))
                self.sent.append(event)
                self.player.score(event)
            self.player.flush()

    def _event(self, number: int) -> dict[str, Any]:
        chance = random.Random(self._seed * 1_000_003 + number)
        at_ms = 1_700_000_000_000 + 10 * number
        return {
            "id": number,
            "ts": at_ms,
            "card": f"c{chance.randrange(5)}",
            "x": chance.randrange(1_000) / 8,
        }

    def lose(self, records: int) -> int:
        """Let the broker lose its power, and records with it. Returns where the log ends then."""
        os.kill(self._status.pid, signal.SIGKILL)
        awaited(lambda: self.broker.status() is None)
        end = cut_log(self._folder, self.topic, self.task.partition, records)
        started_again(self.broker, int(self._status.address.partition(":")[2]))
        # The producer of the front-end before has numbers of batches that the broker no longer knows: a front-end ends
        # with that, and is started again.
        self._before, self.player = self.player, ClusterPlayer(self._status.address, self._prefix, 2)
        return end

    def replies(self) -> list[dict[str, Any]]:
        return [*self._before.replies(), *self.player.replies()]

    def copies(self) -> list[Any]:
        """What is heard of the task's copies."""
        return [copy.status for copy in self._states.reports.copies(self.task)]

    def run(self, node: Node) -> int:
        """The newest run of a node's unit that was heard."""
        report = self._states.reports.last(CopyName(node.name, 0))
        assert report is not None
        return report.generation

    def await_states(self, wanted: list[CopyState]) -> None:
        awaited(lambda: sorted(copy.state for copy in self.copies()) == wanted)

    def accept(self) -> dict[str, Any]:
        """Accept the loss; again where the broker is not found at once after its start."""
        until_s = time.monotonic() + 30.0
        while True:
            try:
                return self._state.accept_cut(self.task, self.player.registry)
            except TransportUnavailableError:
                if time.monotonic() > until_s:
                    raise

    def says_to_accept_a_gap(self) -> bool:
        """Accept the loss. Whether that is refused, with the order that helps.

        A copy that is just beginning again may go on for all that is known.
        """
        try:
            self.accept()
        except ProblemError as error:
            return bool(re.search(r"loss is accepted.*`railgun cluster accept-gap s/card/0`", str(error)))
        return False

    def accept_gap(self) -> dict[str, Any]:
        return self._state.accept_gap(self.task, self.player.registry, GapOrder())

    def trim(self, before: int) -> None:
        """Let the log's retention delete its beginning."""
        self._transport.trim(self.topic, self.task.partition, before)

    def close(self) -> None:
        for node in self.nodes:
            if node.process.poll() is None:
                node.kill()
        self._states.close()
        self._transport.close()
        self._before.close()
        if self.player is not self._before:
            self.player.close()
        self.broker.stop()


def _check(cluster: Cluster, lost: range) -> None:
    """What came before the loss is answered as it was; what came after it as if the lost events had never been."""
    got = cluster.replies()
    assert len(got) == len(cluster.sent)
    before, after = (Oracle(_DEFINITIONS).streams[STREAM] for _ in range(2))
    for number, (event, reply) in enumerate(zip(cluster.sent, got, strict=True)):
        wanted = []
        if number < lost.stop:
            wanted.append(before.score(event))
        if number not in lost:
            wanted.append(after.score(event))
        found = [differences(each, reply) for each in wanted]
        assert not all(found), f"event {number}: {found}"


@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", seeds(range(2), range(12)))
def test_records_that_were_answered_are_lost(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    cluster = Cluster(tmp_path, seed)
    try:
        cluster.send(300)
        cluster.player.front_end.await_all()
        log_end = cluster.player.transport.end_offset(cluster.topic, cluster.task.partition)
        with pytest.raises(ProblemError, match="nothing to accept"):
            cluster.accept()
        end = cluster.lose(chance.randint(1, 100))
        # The log may grow again past the place where it ended, before anybody has seen that it was shorter.
        grown = chance.choice((0, 40, 200)) if seed else 0
        cluster.send(grown)
        cluster.await_states([CopyState.FAILED, CopyState.FAILED])
        assert all("accept-cut s/card/0" in copy.failure for copy in cluster.copies())
        # A restart does not forgive it.
        run = cluster.run(cluster.nodes[0])
        cluster.nodes[0].kill()
        cluster.nodes[0].start()
        awaited(lambda: cluster.run(cluster.nodes[0]) > run)
        cluster.await_states([CopyState.FAILED, CopyState.FAILED])
        accepted = cluster.accept()
        assert (accepted["offset"], accepted["records"]) == (end, log_end - end)
        cluster.await_states([CopyState.ANSWERING, CopyState.SILENT])
        cluster.send(100)
        lost = range(300 - (log_end - end), 300)
        _check(cluster, lost)
        assert [node.stop() for node in cluster.nodes] == [0, 0]
    finally:
        cluster.close()


@pytest.mark.timeout(300)
def test_the_log_has_lost_its_beginning_too(tmp_path: Path) -> None:
    """No copy has a state without the lost records. The order says which one helps, however often it is given."""
    cluster = Cluster(tmp_path, 1)
    try:
        cluster.send(300)
        cluster.player.front_end.await_all()
        log_end = cluster.player.transport.end_offset(cluster.topic, cluster.task.partition)
        told = log_end - 300
        # A checkpoint before the lost records would be a state that the order alone helps.
        awaited(lambda: all(copy.checkpoint == log_end for copy in cluster.copies()))
        end = cluster.lose(50)
        cluster.await_states([CopyState.FAILED, CopyState.FAILED])
        cluster.trim(end - 20)
        for _ in range(2):
            awaited(lambda: cluster.says_to_accept_a_gap())
            # They begin again meanwhile.
            awaited(lambda: all(copy.left_behind is not None for copy in cluster.copies()))
            assert all("accept-gap s/card/0" in copy.failure for copy in cluster.copies())
        crossed = cluster.accept_gap()
        assert (crossed["outcome"], crossed["first"], crossed["offset"]) == ("crossed", 0, end - 20)
        cluster.await_states([CopyState.ANSWERING, CopyState.SILENT])
        assert cluster.accept()["outcome"] == "accepted_before"
        assert cluster.accept_gap()["outcome"] == "accepted_before"
        model = Oracle(_DEFINITIONS).streams[STREAM]
        model.tasks["card"][0].cross_gap(crossed["gap_ms"], 0)
        for event in cluster.sent[end - 20 - told : end - told]:
            model.score(event)
        # A restart changes nothing, before and after events have come.
        for count in (0, 40):
            known = len(cluster.replies())
            cluster.send(count)
            cluster.player.front_end.await_all()
            got = cluster.replies()[known:]
            assert [
                differences(model.score(event), reply) for event, reply in zip(cluster.sent[-count:], got)
            ] == [[] for _ in got]
            assert len(got) == count
            assert [node.stop() for node in cluster.nodes] == [0, 0]
            for node in cluster.nodes:
                node.start()
            cluster.await_states([CopyState.ANSWERING, CopyState.SILENT])
    finally:
        cluster.close()
