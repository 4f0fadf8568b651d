"""Gaps in a simulated cluster: logs lose what no checkpoint has, somebody accepts that, and the oracle crosses them."""

from dataclasses import dataclass
from types import SimpleNamespace
from typing import cast
from unittest.mock import patch

from frontend.backend.cluster import GapOrder
from frontend.kafka import accepted_gaps
from frontend.kafka.accepted_gaps import found_gap, standing_of, told_gap
from frontend.problems import ProblemError
from railgun.catalog.task_key import TaskKey
from railgun.cluster.copies import Gap
from railgun.cluster.records import AcceptedGap
from railgun.messaging.transport import Transport
from railgun.registry.kafka_registry import KafkaRegistry
from railgun.wire.records import EVENT, kind_of
from tests.simulator.committed import committed
from tests.simulator.node import SimulatedNode, up
from tests.simulator.simulation import DEFINITIONS, Broken, Simulation
from tests.unit.answers_by_log import Crossing, Expected, expected_answers, place_of

# So often somebody looks whether a gap can be accepted.
_LOOKS_S = 0.5


def lose_beginnings(simulation: Simulation, share: float, spared: SimulatedNode | None = None) -> int:
    """Delete the beginnings of some logs, up to behind every checkpoint of every node. Returns of how many.

    spared: a node whose checkpoint the log still reaches afterwards, if it is newer than those of all others.
    """
    lost = 0
    for task in simulation.tasks:
        log = simulation.broker.logs[simulation.where(task)]
        newest = max(committed(node, task) for node in simulation.nodes if node is not spared)
        least = max(newest + 1, log.start + 1)
        end = log.end
        if spared is not None and least <= committed(spared, task):
            end = committed(spared, task)
        if least <= end and simulation.chance.random() < share:
            offset = simulation.chance.choice((least, simulation.chance.randint(least, end), end))
            simulation.broker.delete_before(simulation.where(task), offset)
            lost += 1
    return lost


@dataclass(frozen=True)
class _Accepted:
    """An accepted gap.

    crossing: as the oracle crosses it.
    told_end: no copy that has not crossed it reads behind this offset.
    """

    crossing: Crossing
    told_end: int


class Operator:
    """Somebody who accepts gaps, as `railgun cluster accept-gap` does."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self._look_s = 0.0
        self._ordered: dict[TaskKey, Gap] = {}
        self._accepted: dict[TaskKey, list[_Accepted]] = {task: [] for task in simulation.tasks}
        # The front-ends, sequence numbers and tasks of events in gaps that nobody had answered.
        self._excused: set[tuple[int, int, TaskKey]] = set()
        # How many orders gave up the states of nodes that were away.
        self.gave_up = 0

    @property
    def accepted(self) -> int:
        """How many gaps were accepted."""
        return sum(len(each) for each in self._accepted.values())

    def look(self, *, gives_up: bool = False) -> None:
        """Accept what can be accepted, now and then. A process that runs and is not heard is waited for.

        gives_up: whether the states of nodes that are away may be given up.
        """
        simulation = self._simulation
        now_s = simulation.now_s
        if now_s < self._look_s or any(_is_away(node, now_s) for node in up(simulation.nodes)):
            return
        self._look_s = now_s + _LOOKS_S
        for task in simulation.tasks:
            node = simulation.chance.choice(simulation.nodes)
            if not self._accept(task, "") and gives_up and node.is_up:
                self.gave_up += self._accept(task, node.name)

    def _accept(self, task: TaskKey, node: str) -> bool:
        """Accept a gap of a task. Returns whether there is one that was not accepted before, and that can be accepted.

        node: whose state goes on, whatever nodes that are away have; empty: the newest one.
        """
        simulation, where = self._simulation, self._simulation.where(task)
        now_s = simulation.now_s
        leaders = [each.leading for each in up(simulation.nodes) if each.leading is not None]
        observed = next((each._observed for each in leaders if each.leads), None)
        if observed is None or observed.gaps.get(task) != self._ordered.get(task):
            # An order is on its way.
            return False
        standing = standing_of(observed, task, now_s)
        client, now_ms = cast(Transport, simulation.broker.clients[0]), simulation.broker.date_ms()
        clock = SimpleNamespace(time_ns=lambda: now_ms * 1_000_000)
        try:
            with patch.object(accepted_gaps, "time", clock):
                found = found_gap(client, where, task, standing, 1_000, GapOrder(node))
        except ProblemError:
            return False
        if isinstance(found, Gap):
            return False
        log = simulation.broker.logs[where]
        appended_ms = log.appended_ms[found.offset] if found.offset < log.end else now_ms
        gap = told_gap(cast(KafkaRegistry, simulation), task, found)
        simulation.say(AcceptedGap(**task._asdict(), gap=gap))
        self._ordered[task] = gap
        crossing = Crossing(gap.state.offset, gap.offset, appended_ms, 1_000, gap.place)
        self._accepted[task].append(_Accepted(crossing, gap.told[1]))
        self._excuse(task, gap)
        return True

    def _excuse(self, task: TaskKey, gap: Gap) -> None:
        """Expect no answers to events in a gap any more. To those behind it there may be answers from before."""
        simulation = self._simulation
        log = simulation.broker.logs[simulation.where(task)]
        records = [record for record, _ in (*log.deleted, *log.records)]
        front_ends = {each.number: each for each in simulation.front_ends}
        for offset in range(gap.state.offset, gap.told[1]):
            if kind_of(records[offset]) != EVENT:
                continue
            number, sequence = place_of(records[offset])
            front_end, key = front_ends[number], (sequence, task.partitioner)
            front_end.may_differ.add(key)
            asked = front_end.sent[sequence][1]
            if offset < gap.offset and key not in front_end.answers and task.partitioner in asked:
                asked.remove(task.partitioner)
                self._excused.add((number, sequence, task))

    def check_replies(self) -> tuple[int, int]:
        """Compare every reply with what the oracle makes of the logs and their gaps. Returns how many, and how many of
        them are partial by a gap. Raises Broken.
        """
        found = [self._check_task(task) for task in self._simulation.tasks]
        return sum(compared for compared, _ in found), sum(partial for _, partial in found)

    def _check_task(self, task: TaskKey) -> tuple[int, int]:
        lines, compared, partial = self._lines(task), 0, 0
        front_ends = {each.number: each for each in self._simulation.front_ends}
        for offset in sorted({offset for line in lines for offset in line}):
            right = [line[offset] for line in lines if offset in line]
            number, sequence = right[0].place
            answer = front_ends[number].answers.get((sequence, task.partitioner))
            if answer is None:
                if (number, sequence, task) not in self._excused:
                    raise Broken(f"{task}: the event at offset {offset} was not answered")
                continue
            wrong = [each.difference(answer) for each in right]
            if all(wrong):
                raise Broken(f"{task} at offset {offset}: {wrong}")
            compared += 1
            partial += bool(answer["partial"])
        return compared, partial

    def _lines(self, task: TaskKey) -> list[dict[int, Expected]]:
        """Return by offset what the oracle makes of the events of a log: without a gap, and behind each gap, as far as
        copies may have answered so.
        """
        log, accepted = self._simulation.broker.logs[self._simulation.where(task)], self._accepted[task]
        by_id = {event["tx"]: event for event in self._simulation.events}
        front_ends = {each.number: each for each in self._simulation.front_ends}
        records = [record for record, _ in (*log.deleted, *log.records)]
        lines, paths = [], [list[Crossing]()]
        for each in accepted:
            crossed = [path for path in paths[1:] if path[-1].offset <= each.crossing.position]
            paths.append([*(crossed[-1] if crossed else []), each.crossing])
        for number, path in enumerate(paths):
            first = path[-1].offset if path else 0
            end = accepted[number].told_end if number < len(accepted) else log.end
            expected = expected_answers(
                DEFINITIONS,
                task,
                records[:end],
                lambda number, sequence: by_id[front_ends[number].sent[sequence][0]["id"]],
                path,
            )
            lines.append({each.offset: each for each in expected if each.offset >= first})
        return lines


def _is_away(node: SimulatedNode, now_s: float) -> bool:
    """Whether a process of a node runs, and may not be heard."""
    until_s = [
        max(unit.troubles.halted_s, unit.troubles.cut_s, unit.troubles.replies_stuck_s)
        for unit in node.live_units
    ]
    return now_s < max(node.halted_s, *until_s, 0.0)
