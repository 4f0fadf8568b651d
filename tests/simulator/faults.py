"""Faults of a simulated cluster. Each takes the simulation and picks by chance where it happens, and for how long."""

from collections.abc import Callable
from typing import Any, cast

from railgun.host.reply_sink import ReplySink
from railgun.task.errors import LogGapError
from railgun.task.processor import TaskProcessor
from railgun.task.replies import Replies
from tests.simulator.node import SimulatedNode, SimulatedUnit, Troubles, up
from tests.simulator.simulation import Simulation


class FailingSink:
    """Stands in for the sink of a host: the first batch of replies is not delivered."""

    def __init__(self, sink: ReplySink) -> None:
        self.right = sink

    def __getattr__(self, name: str) -> Any:
        return getattr(self.right, name)

    def deliver(self, task: TaskProcessor, replies: Replies) -> None:
        raise LogGapError("planted", "an error of the task")


Fault = Callable[[Simulation], None]
_LONGEST_S = 6.0
# Two rounds of a leader, or so.
_LEADER_STEPS = 24


def crash_unit(simulation: Simulation) -> None:
    """A unit's process is killed; its supervisor starts it again."""
    node = _node(simulation)
    if node is not None and node.running:
        node.kill_unit(simulation.chance.randrange(len(node.running)))


def crash_node(simulation: Simulation) -> None:
    """A node is killed; it comes back later, or when all has healed."""
    node = _node(simulation)
    if node is not None:
        node.kill()


def crash_all(simulation: Simulation) -> None:
    """All nodes are killed."""
    for node in up(simulation.nodes):
        node.kill()


def leave_all(simulation: Simulation) -> None:
    """All nodes are asked to end at once; each ends in order."""
    for node in up(simulation.nodes):
        node.leave()


def start_node(simulation: Simulation) -> None:
    """A node that is away comes back, perhaps with more units or fewer."""
    away = [node for node in simulation.nodes if not node.is_up]
    if away:
        node = simulation.chance.choice(away)
        node.units = simulation.chance.choice((1, 1, 2))
        node.start()


def restart_unit(simulation: Simulation) -> None:
    """A unit is asked to stop, and is started again."""
    node = _node(simulation)
    if node is not None and node.live_units:
        simulation.chance.choice(node.live_units).leave()


def halt_node(simulation: Simulation) -> None:
    """All processes of a node stand still."""
    node = _node(simulation)
    if node is not None:
        node.halted_s = _until(simulation)


def halt_then_crash(simulation: Simulation) -> None:
    """Whoever may survive stands still for a moment, then another node is killed."""
    nodes = up(simulation.nodes)
    if len(nodes) > 1:
        paused, killed = simulation.chance.sample(nodes, 2)
        paused.halted_s = simulation.now_s + simulation.chance.uniform(0.3, 1.5)
        killed.kill()


def halt_leader(simulation: Simulation) -> None:
    """A process that leads, or may come to lead, stands still, between any two of its steps."""
    node = _node(simulation)
    if node is not None:
        steps = simulation.chance.randrange(_LEADER_STEPS)
        node.halt_leader(steps, simulation.chance.uniform(0.1, _LONGEST_S))


def cut(simulation: Simulation) -> None:
    """A node cannot reach the broker."""
    _trouble(simulation, "cut_s")


def slow_disk(simulation: Simulation) -> None:
    """What a node does beside its loop stands still: opening, commits, closing."""
    _trouble(simulation, "slow_disk_s")


def cold_rows(simulation: Simulation) -> None:
    """A node's rounds take long, as when rows come from a cold disk."""
    _trouble(simulation, "slow_rounds_s")


def replies_stuck(simulation: Simulation) -> None:
    """A node's replies do not arrive, while its reports do."""
    _trouble(simulation, "replies_stuck_s")


def log_stuck(simulation: Simulation) -> None:
    """A node reads no logs of tasks, while its replies and reports arrive."""
    _trouble(simulation, "log_stuck_s")


def deaf(simulation: Simulation) -> None:
    """A node reads no reports, while its own arrive."""
    _trouble(simulation, "deaf_s")


def fail_task(simulation: Simulation) -> None:
    """A task is stopped by an error of its own, amid a batch."""
    node = _node(simulation)
    hosts = [] if node is None else [host for unit in node.live_units for host in unit.loop.hosts.values()]
    if hosts:
        host = simulation.chance.choice(hosts)
        host.sink = cast(ReplySink, FailingSink(host.sink))


def drain(simulation: Simulation) -> None:
    """A node is to be emptied, or to be used again: its answering copies leave the plan."""
    chance = simulation.chance
    simulation.order(
        chance.choice(simulation.nodes), is_on=chance.random() < 0.5, fewer_copies=chance.random() < 0.5
    )


def add_metric(simulation: Simulation) -> None:
    """A metric is added."""
    simulation.add_metric()


def drop_metric(simulation: Simulation) -> None:
    """A metric is dropped."""
    simulation.drop_metric()


def add_front_end(simulation: Simulation) -> None:
    """Another front-end begins to send events."""
    if len(simulation.front_ends) < 3:
        simulation.add_front_end()


WEIGHTS: dict[Fault, float] = {
    crash_unit: 3,
    crash_node: 2,
    crash_all: 0.3,
    leave_all: 0.3,
    start_node: 4,
    restart_unit: 3,
    halt_node: 2,
    halt_then_crash: 1,
    halt_leader: 2,
    cut: 2,
    slow_disk: 2,
    cold_rows: 2,
    replies_stuck: 2,
    log_stuck: 2,
    deaf: 2,
    fail_task: 1,
    drain: 1,
    add_metric: 2,
    drop_metric: 1,
    add_front_end: 0.5,
}


def random_fault(simulation: Simulation) -> None:
    """Let one of the faults happen."""
    [fault] = simulation.chance.choices(list(WEIGHTS), list(WEIGHTS.values()))
    fault(simulation)


def heal(simulation: Simulation) -> None:
    """End all faults: every node runs, and none is being emptied."""
    for node in simulation.nodes:
        simulation.order(node, is_on=False)
        node.halted_s = 0.0
        node.let_leader_go()
        if not node.is_up:
            node.start()
        elif node.is_leaving:
            node.stay()
        for number, unit in enumerate(node.running):
            if not isinstance(unit, SimulatedUnit):
                continue
            unit.troubles = Troubles()
            for host in unit.loop.hosts.values():
                while isinstance(host.sink, FailingSink):
                    host.sink = host.sink.right
            if any(host.failure for host in unit.loop.hosts.values()):
                node.kill_unit(number)


def _node(simulation: Simulation) -> SimulatedNode | None:
    nodes = up(simulation.nodes)
    return simulation.chance.choice(nodes) if nodes else None


def _until(simulation: Simulation) -> float:
    return simulation.now_s + simulation.chance.uniform(0.1, _LONGEST_S)


def _trouble(simulation: Simulation, name: str) -> None:
    node = _node(simulation)
    if node is not None:
        node.trouble(**{name: _until(simulation)})
