"""A cluster of nodes as processes on a real broker, with events that go on whatever happens to the nodes.

Tests check four rules. Each event is answered, by the reply that the oracle makes of the accepted events. When nothing
happens, nothing is answered twice. The copies of a task have equal data at the end. Events are answered again within
30 s of the end of a fault.
"""

import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import httpx

from railgun.cluster.copies import CopyName, CopyState
from railgun.cluster.hearing import Timing
from railgun.cluster.reports import CopyStatus, UnitReport
from railgun.ingest.routing import Router
from railgun.messaging.kafka.membership import GroupMembers
from railgun.messaging.transport import TopicPartition
from tests.broker.own_topics import own_prefix
from tests.forked import ROOT
from tests.halting import halted
from tests.oracle.compare import differences
from tests.oracle.stream import Oracle
from tests.proc import children, units
from tests.strategies.case import STREAM
from tests.unit.cluster_player import ClusterPlayer, longest_delay_s
from tests.unit.equal_copies import check_equal
from tests.unit.fixed_plan import FixedPlan
from tests.unit.local_units import SMALL, LocalUnit, awaited, quick_settings
from tests.unit.processes import DEFINITIONS

TASKS = 4
"""Of the stream in DEFINITIONS."""
# So often events are sent, whether those before are answered or not.
_TICK_S = 0.05
# A session takes 6 s: a node that is halted is still a member when it comes back, or is one no more.
_WITHIN_SESSION_S, _BEYOND_SESSION_S = 4.0, 8.0
# So many events are answered within this time of a fault's end, whatever it was; that is some of each task.
_PROGRESS_S, _FIRST = 30.0, 20
# Everything is answered, and all copies are there, after this time.
_HEALED_S = 90.0
# So often a unit may be late while nothing may change.
_PASSED_TIMES = 5
# A delay that begins so long before counts too.
_DELAYED_MS = 2_000

_CONFIG = """
[cluster]
broker = "{broker}"
topic_prefix = "{prefix}"
node_name = "{name}"
session_timeout_s = "6s"
{more}
[engine]
checkpoint_interval_s = 0.5
memory_limit_bytes = "256MiB"
"""


class Node:
    """A node as a process, with a data folder of its own, which may be there already.

    more: settings of the section `cluster`, in TOML.
    """

    def __init__(
        self, folder: Path, name: str, broker: str, prefix: str, unit_count: int, more: str = ""
    ) -> None:
        folder.mkdir(exist_ok=True)
        self.name, self.data, self._units = name, folder / "data", unit_count
        self._config, self._log = folder / "railgun.toml", folder / "log"
        text = _CONFIG.format(broker=broker, prefix=prefix, name=name, more=more)
        self._config.write_text(text, encoding="utf-8")
        self.start()

    def start(self) -> None:
        command = [sys.executable, "-m", "railgun", "node", "--units", str(self._units)]
        with self._log.open("ab") as log:
            self._begins_at = log.tell()
            self.process = subprocess.Popen(
                [*command, "--data", str(self.data), "--config", str(self._config)], stderr=log, cwd=ROOT
            )

    @property
    def pids(self) -> list[int]:
        """All processes of the node, its own first."""
        return [self.process.pid, *children(self.process.pid)]

    def unit(self, number: int) -> int | None:
        """The process of a unit; None while it is started again."""
        with suppress(FileNotFoundError):
            found = units(self.process.pid)
            return found[number] if number < len(found) else None
        return None

    def lose_disk(self) -> None:
        """Kill the node, and delete its data."""
        self.kill()
        shutil.rmtree(self.data)

    def said(self) -> str:
        """What this run of the node has logged."""
        return self._log.read_bytes()[self._begins_at :].decode()

    def readiness(self) -> str:
        """What the node answers at `/readyz`; empty while it does not answer."""
        found = re.search(r"(http://[\d.:]+)/metrics", self.said())
        with suppress(httpx.TransportError):
            return httpx.get(f"{found[1]}/readyz", trust_env=False).text.strip() if found else ""
        return ""

    def kill(self) -> None:
        for pid in self.pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()

    def stop(self) -> int:
        self.process.terminate()
        return self.process.wait(120)


class RunningCluster:
    """Nodes, and a player that sends events at a steady rate.

    seed: of the events. rate_per_s: of events; it may be changed.
    ways: the addresses by which the first nodes reach the broker, where they do not connect to it directly.
    more: settings of the section `cluster`, in TOML.
    definitions: of a stream with the partitions and the recorded fields of DEFINITIONS.
    nodes: by name. One that is taken out is gone for good: nothing counts that was heard of it.
    """

    def __init__(
        self,
        broker: str,
        folder: Path,
        seed: int,
        nodes: int,
        unit_count: int = 1,
        rate_per_s: int = 100,
        ways: Sequence[str] = (),
        more: str = "",
        definitions: str = DEFINITIONS,
    ) -> None:
        self._broker, self._folder, self._seed, self.rate_per_s = broker, folder, seed, rate_per_s
        self._definitions = definitions
        self._ways, self._more = ways, more
        self._unit_count, self._made = unit_count, 0
        self.prefix = own_prefix("f")
        self.player = ClusterPlayer(broker, self.prefix)
        self.player.apply(definitions)
        self.sent = 0
        self.nodes: dict[str, Node] = {}
        for _ in range(nodes):
            self.add_node()
        try:
            self.drive_until(self.is_whole)
        except BaseException:
            self.close()
            raise

    def add_node(self) -> Node:
        """Start one node more."""
        number, self._made = self._made, self._made + 1
        name = f"node-{number + 1}"
        broker = self._ways[number] if number < len(self._ways) else self._broker
        self.nodes[name] = Node(self._folder / name, name, broker, self.prefix, self._unit_count, self._more)
        return self.nodes[name]

    # --- load --------------------------------------------------------------------------------------

    def event(self, number: int) -> dict[str, Any]:
        """The event of a number: some are late, some come again, some share a time."""
        chance = random.Random(self._seed * 1_000_003 + number)
        late_ms = chance.choice((0, 0, 0, 0, 0, 0, 0, 0, 0, 9_000))
        return {
            "id": number - 1 if number and chance.random() < 0.03 else number,
            "ts": 1_700_000_000_000 + 10 * (number - number % 3) - late_ms,
            "card": f"c{chance.randrange(40)}",
            "shop": chance.randrange(15),
            "x": chance.randrange(1_000) / 8,
        }

    def drive(self, seconds: float) -> None:
        """Send events for a while, and take the replies that come."""
        until_s = time.monotonic() + seconds
        self._drive(lambda: time.monotonic() >= until_s)

    def drive_until(self, condition: Callable[[], bool], within_s: float = _HEALED_S) -> None:
        """Send events until something is so."""
        until_s = time.monotonic() + within_s

        def is_over() -> bool:
            assert time.monotonic() < until_s, f"not so after {within_s:g} s: {condition}"
            return condition()

        self._drive(is_over)

    def await_progress(self) -> None:
        """Send events until some that were sent from now on are answered."""
        first = self.sent

        def goes_on() -> bool:
            asked, answers = self.player.front_end.sent, self.player.front_end.answers
            return self.sent >= first + _FIRST and all(
                (number, partitioner) in answers
                for number in range(first, first + _FIRST)
                for partitioner in asked[number][1]
            )

        self.drive_until(goes_on, _PROGRESS_S)

    def await_healed(self) -> None:
        """Send events until all that was wrong is over: first there is progress, then all copies are there."""
        self.await_progress()
        self.drive_until(self.is_whole)

    def _drive(self, is_over: Callable[[], bool]) -> None:
        due_s = time.monotonic()
        while not is_over():
            for _ in range(max(1, round(self.rate_per_s * _TICK_S))):
                self.player.score(self.event(self.sent))
                self.sent += 1
            self.player.flush()
            self.player.front_end.collect()
            due_s += _TICK_S
            time.sleep(max(0.0, due_s - time.monotonic()))

    def await_answers(self, within_s: float = 30.0) -> None:
        """Wait until everything that was sent is answered."""
        self.player.front_end.await_all(within_s)

    def await_processed(self) -> None:
        """Wait until each copy has processed all of its log."""
        awaited(lambda: self._are_at_ends(lambda status: status.position), 60.0)

    def await_checkpoints(self) -> None:
        """Wait until each copy has a checkpoint of all of its log."""
        awaited(lambda: self._are_at_ends(lambda status: status.checkpoint), 60.0)

    def await_checkpoints_of(self, node: Node) -> None:
        """Wait until the copies of one node have checkpoints of all of their logs, however others stand."""
        awaited(lambda: self._are_all_at_ends(lambda status: status.checkpoint, {node.name}), 60.0)

    def _are_at_ends(self, place: Callable[[CopyStatus], int]) -> bool:
        """Whether each task's copies, one that answers and one that is silent, are at the end of its log."""
        if not self.is_whole():
            return False
        return self._are_all_at_ends(place, self.nodes)

    def _are_all_at_ends(self, place: Callable[[CopyStatus], int], nodes: Collection[str]) -> bool:
        """Whether the copies of these nodes are at the ends of their logs."""
        self.player.positions.read()
        topics = self.player.registry.topics
        for key in self.player.registry.snapshot().catalog.task_keys:
            end = self.player.transport.end_offset(topics.tasks(key.stream, key.partitioner), key.partition)
            copies = [each.status for each in self.player.positions.copies(key) if each.copy.node in nodes]
            if not all(place(each) == end for each in copies if each.state is not CopyState.CLOSED):
                return False
        return True

    # --- what is seen ------------------------------------------------------------------------------

    def states(self) -> dict[tuple[str, int], dict[CopyName, CopyState]]:
        """By task, the states of its copies."""
        self.player.positions.read()
        return {
            (heard.status.partitioner, heard.status.partition): {
                copy.copy: copy.status.state
                for copy in self.player.positions.copies(heard.status.task)
                if copy.copy.node in self.nodes
            }
            for heard in self.player.positions.newest.values()
        }

    def runs(self, node: str) -> dict[CopyName, int]:
        """Of each unit of a node its newest run that was heard: later ones have greater numbers."""
        self.player.positions.read()
        return {unit: run for unit, run in self.player.positions.runs.items() if unit.node == node}

    def is_whole(self) -> bool:
        """Whether each task has a copy that answers, one that is silent, and no other that is heard."""
        states = self.states()
        wanted = [CopyState.ANSWERING, CopyState.SILENT]
        return len(states) == TASKS and all(
            sorted(state for state in copies.values() if state is not CopyState.CLOSED) == wanted
            for copies in states.values()
        )

    def nodes_of_copies(self) -> set[str]:
        """The nodes that have a copy of some task."""
        return {
            name.node
            for copies in self.states().values()
            for name, state in copies.items()
            if state is not CopyState.CLOSED
        }

    def leader(self) -> str | None:
        """The node that leads."""
        settings = quick_settings(self._broker)
        return GroupMembers(settings, self.player.registry.topics.nodes).now().leader

    def partition(self, partitioner: str, fields: Mapping[str, Any]) -> int:
        """The partition of a partitioner that an event, or a key, with these fields goes to."""
        stream = self.player.registry.snapshot().catalog.streams[STREAM].stream
        router = Router(stream)
        values = [fields.get(field.name) for field in stream.fields]
        return router.partitions(router.routed(values))[router.partitioners.index(partitioner)]

    def log(self, where: TopicPartition) -> Iterator[bytes]:
        """All records of a topic's partition."""
        transport, offset = self.player.transport, 0
        end = transport.end_offset(*where)
        while offset < end:
            fetched = transport.read(*where, offset, 10_000, 4 << 20)
            yield from fetched.values()
            offset = fetched.next_offset

    # --- checks ------------------------------------------------------------------------------------

    def check_replies(self) -> None:
        """Everything is answered, and equal to the oracle's."""
        model, got = Oracle(self._definitions).streams[STREAM], self.player.replies()
        assert len(got) == self.sent
        for number, reply in enumerate(got):
            found = differences(model.score(self.event(number)), reply)
            assert not found, f"event {number}: {found}"

    def check_quiet(self, seconds: float) -> None:
        """While nothing happens nothing is answered twice, and nobody else answers.

        First, copies that were passed take activity back. On a busy machine something does happen: a unit that
        does not report for `pause_s` may rightly be passed, and so may all if the broker pauses. Then this begins anew.
        """
        self.await_answers()
        for _ in range(_PASSED_TIMES):
            self._await_settled()
            since_ms = time.time() * 1000 - _DELAYED_MS
            changed, paused_s = self._changes(seconds)
            if not changed:
                return
            reports = self._reports_until_all_have_reported()
            delay_s = longest_delay_s(each for each in reports if each.said_ms > since_ms)
            assert max(paused_s, delay_s) > Timing().pause_s, changed
        raise AssertionError(changed)

    def _reports_until_all_have_reported(self) -> Sequence[UnitReport]:
        """Wait for a report of each unit that is heard of: one that was paused tells by it for how long."""
        positions = self.player.positions
        begin = len(positions.reports)
        wanted = {unit for unit in positions.runs if unit.node in self.nodes}

        def have_reported() -> bool:
            positions.read()
            return wanted <= {each.copy for each in positions.reports[begin:]}

        awaited(have_reported)
        return positions.reports

    def _changes(self, seconds: float) -> tuple[list[str], float]:
        """Return what has changed within a time, and how long the broker took to say at the most."""
        # What was answered twice until now may not have been read yet.
        self.player.front_end.collect_all()
        states, repeats, paused_s = self.states(), self.player.front_end.repeats, 0.0
        until_s = time.monotonic() + seconds
        while time.monotonic() < until_s:
            begun_s = time.monotonic()
            self.player.front_end.collect()
            now = self.states()
            paused_s = max(paused_s, time.monotonic() - begun_s)
            changed = [
                f"{task}: {states.get(task)} -> {now[task]}" for task in now if now[task] != states.get(task)
            ]
            if self.player.front_end.repeats != repeats:
                changed.append(f"answered twice: {self.player.front_end.repeats - repeats}")
            if changed:
                return changed, paused_s
        return [], paused_s

    def _await_settled(self) -> None:
        """Wait until copies have been in the same states for longer than one that was passed waits for the first
        time.
        """
        states, since_s = self.states(), time.monotonic()
        until_s = since_s + _HEALED_S
        while time.monotonic() - since_s < Timing().back_s + 1.0:
            assert time.monotonic() < until_s, states
            time.sleep(_TICK_S)
            now = self.states()
            if now != states:
                states, since_s = now, time.monotonic()

    def check_copies(self) -> None:
        """Stop all nodes, in order; then their copies have equal data."""
        codes = [node.stop() for node in self.nodes.values()]
        assert codes == [0] * len(codes)
        order = [CopyName(name, 0) for name in self.nodes]
        with ExitStack() as stack:
            opened = []
            for name in self.nodes:
                unit = LocalUnit(
                    self._broker,
                    self.prefix,
                    self._folder / name / "data",
                    0,
                    1,
                    SMALL,
                    node=name,
                    assignments=FixedPlan(order),
                )
                stack.callback(unit.stop)
                opened.append(unit)
            check_equal(opened, TASKS)

    def close(self) -> None:
        """End what still runs."""
        for node in self.nodes.values():
            if node.process.poll() is None:
                for pid in node.pids:
                    with suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGCONT)
                node.kill()
        self.player.close()


# After these, so many units of the node begin anew; None: all.
_BEGINS_ANEW = {"unit killed": 1, "node killed": None, "node stopped": None}


class Faults:
    """Does something to a node under load, waits until others answer for it, and brings it back."""

    def __init__(self, cluster: RunningCluster, chance: random.Random) -> None:
        self._cluster, self._chance = cluster, chance
        self.kinds: dict[str, Callable[[Node], None]] = {
            "unit killed": self._unit_killed,
            "node killed": self._node_killed,
            "unit halted": self._unit_halted,
            "node halted": self._node_halted,
            "unit halted for a moment": self._unit_halted_for_a_moment,
            "node halted for a moment": self._node_halted_for_a_moment,
            "node stopped": self._node_stopped,
        }

    def one(self, kind: str) -> None:
        """One fault: of the leader's node every third time."""
        names = list(self._cluster.nodes)
        leader = self._cluster.leader()
        name = leader if leader in names and self._chance.random() < 0.33 else self._chance.choice(names)
        self._cluster.drive(self._chance.uniform(0.2, 1.0))
        before = self._cluster.runs(name)
        self.kinds[kind](self._cluster.nodes[name])
        self._cluster.await_progress()
        self._await_begun(name, before, _BEGINS_ANEW.get(kind, 0))
        self._cluster.drive_until(self._cluster.is_whole)

    def _await_begun(self, node: str, before: Mapping[CopyName, int], units: int | None) -> None:
        """Until then what was heard of earlier runs reads as if all were there. units: how many are new; None: all."""
        wanted = len(before) if units is None else units

        def have_begun() -> bool:
            return sum(run > before.get(unit, 0) for unit, run in self._cluster.runs(node).items()) >= wanted

        self._cluster.drive_until(have_begun)

    def _unit_killed(self, node: Node) -> None:
        os.kill(self._first_unit(node)[0], signal.SIGKILL)
        self._away()

    def _node_killed(self, node: Node) -> None:
        node.kill()
        self._away()
        node.start()

    def _unit_halted(self, node: Node) -> None:
        self._halted(self._first_unit(node), _BEYOND_SESSION_S)

    def _node_halted(self, node: Node) -> None:
        self._halted(node.pids, _BEYOND_SESSION_S)

    def _unit_halted_for_a_moment(self, node: Node) -> None:
        self._halted(self._first_unit(node), self._chance.uniform(0.1, _WITHIN_SESSION_S))

    def _node_halted_for_a_moment(self, node: Node) -> None:
        self._halted(node.pids, self._chance.uniform(0.1, _WITHIN_SESSION_S))

    def _node_stopped(self, node: Node) -> None:
        assert node.stop() == 0
        self._away()
        node.start()

    def _away(self) -> None:
        """Others answer everything meanwhile."""
        self._cluster.drive(self._chance.uniform(1.0, 3.0))
        self._cluster.await_answers()

    def _first_unit(self, node: Node) -> list[int]:
        pid = node.unit(0)
        assert pid is not None
        return [pid]

    def _halted(self, pids: Iterable[int], seconds: float) -> None:
        with halted(pids):
            self._cluster.drive(seconds)
            self._cluster.await_answers()
