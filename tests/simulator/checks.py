"""What has to be true of a simulated cluster once it has healed: every reply is the oracle's, all copies are equal,
plans have followed one another, and nothing changes while nothing happens.
"""

import msgspec

from railgun.catalog.task_key import TaskKey
from railgun.cluster.copies import CopyName
from railgun.messaging.transport import TopicPartition
from tests.oracle.compare import same_value
from tests.oracle.stream import Oracle
from tests.simulator.simulation import DEFINITIONS, Broken, Simulation
from tests.unit.answers_by_log import check_answers

# So often it is looked who answers: one that does for a moment only is seen.
_LOOK_S = 0.05


def check_replies(simulation: Simulation, *, has_lost_records: bool = False) -> int:
    """Compare every reply with what the oracle makes of the tasks' logs. Returns how many. Raises AssertionError."""
    by_id = {event["tx"]: event for event in simulation.events}
    front_ends = {each.number: each for each in simulation.front_ends}
    compared = 0
    for task in simulation.tasks:
        where = TopicPartition(simulation.topics.tasks(task.stream, task.partitioner), task.partition)
        log = simulation.broker.logs[where]
        compared += check_answers(
            DEFINITIONS,
            task,
            [record for record, _ in (*log.deleted, *log.records)],
            lambda number, sequence: by_id[front_ends[number].sent[sequence][0]["id"]],
            lambda number, sequence, name=task.partitioner: front_ends[number].answers.get((sequence, name)),  # type: ignore[misc]
            has_lost_records=has_lost_records,
        )
    return compared


def check_derived(simulation: Simulation) -> int:
    """Compare the derived metrics of DEFINITIONS in every reply with what they make of the others there. Returns how
    many. Raises Broken.
    """
    stream, compared = Oracle(DEFINITIONS).streams["s"], 0
    by_id = {event["tx"]: event for event in simulation.events}
    for front_end in simulation.front_ends:
        for reply in front_end.replies():
            row = stream.read(by_id[reply["id"]], "").fields
            for name, derived in stream.catalogue.derived.items():
                wanted = derived.result(row, reply["metrics"])
                if name not in reply["metrics"] or not same_value(wanted, reply["metrics"][name]):
                    raise Broken(f"{name} of {row} is not {wanted}: {reply}")
                compared += 1
    return compared


def check_copies(simulation: Simulation) -> None:
    """Compare the digests of the copies that have caught up, which is all that are not being made. Raises Broken."""
    for task in simulation.tasks:
        hosts = [(name, host) for name, state, host in simulation.hosts(task) if state.is_caught_up]
        digests = {name: (host.position, host.task.digest()) for name, host in hosts}
        if len(set(digests.values())) > 1:
            raise Broken(f"copies of {task} differ: {digests}")


def check_plans(simulation: Simulation) -> None:
    """Each plan was made of the one before it: no leader has written one after others had gone on. Raises Broken."""
    newest = 0
    for record, _ in simulation.broker.logs[TopicPartition(simulation.topics.assignment, 0)].records:
        body = msgspec.json.decode(record)
        if body["epoch"] <= newest:
            raise Broken(f"plan {body['epoch']} was written after plan {newest}")
        # The header comes last.
        if "stream" not in body:
            newest = body["epoch"]


def check_quiet(simulation: Simulation, seconds: float, events_per_s: float) -> None:
    """Once all is well nothing moves, the same copies answer, and no reply is sent twice. Raises Broken.

    events_per_s: how many come meanwhile. Where none does, copies report as rarely as they ever do.
    """
    simulation.run(2.0, 0.0)
    repeats, answering, places = _repeats(simulation), simulation.answering(), _places(simulation)
    until_s = simulation.now_s + seconds
    while simulation.now_s < until_s:
        simulation.run(_LOOK_S, events_per_s)
        if simulation.answering() != answering:
            raise Broken(f"in a quiet time who answers has changed from {answering}: {simulation.shown()}")
    if _places(simulation) != places:
        raise Broken(f"in a quiet time copies have moved from {places}: {simulation.shown()}")
    simulation.run_until(lambda: simulation.missing() == 0, 2.0, "events of a quiet time are answered")
    again = _repeats(simulation) - repeats
    if again:
        raise Broken(f"in a quiet time {again} replies were sent twice")
    simulation.run(0.5, 0.0)


def _repeats(simulation: Simulation) -> int:
    return sum(each.repeats for each in simulation.front_ends)


def _places(simulation: Simulation) -> dict[TaskKey, list[CopyName]]:
    return {task: [each.copy for each in copies] for task, copies in simulation.plan.copies.items()}
