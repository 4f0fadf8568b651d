"""Nodes lose their disks, files are damaged, and logs lose what live copies have checkpointed, amid other faults.

Copies are made of the copies of other nodes. All replies are the oracle's, and all copies are there at the end, and
equal.
"""

import logging
from pathlib import Path

import pytest

from railgun.host.place import task_folder
from tests.counts import seeds
from tests.simulator import canaries, faults
from tests.simulator.checks import check_copies, check_derived, check_plans, check_quiet, check_replies
from tests.simulator.committed import DAMAGED, committed
from tests.simulator.faults import heal
from tests.simulator.node import up
from tests.simulator.seeds import play_each
from tests.simulator.simulation import Broken, Simulation

_FAULTS = (
    faults.crash_unit,
    faults.crash_unit,
    faults.crash_node,
    faults.start_node,
    faults.start_node,
    faults.halt_node,
    faults.halt_then_crash,
    faults.restart_unit,
    faults.slow_disk,
    faults.log_stuck,
    faults.cold_rows,
    faults.cut,
    faults.add_metric,
)
# Damage to these files of the state is found whenever a task is opened.
_FOUND = ("CURRENT", "end.mark")
_EVENTS_PER_S = 20.0
_FAULTY_S = 12.0


def empty_logs(simulation: Simulation) -> int:
    """Delete from each log what no copy needs that could answer. Returns how many records."""
    deleted = 0
    for task in simulation.tasks:
        needed = [host.durable[0] for _, state, host in simulation.hosts(task) if state.is_caught_up]
        log = simulation.broker.logs[simulation.where(task)]
        if needed and min(needed) > log.start:
            deleted += min(needed) - log.start
            simulation.broker.delete_before(simulation.where(task), min(needed))
    return deleted


def lose_a_disk(simulation: Simulation) -> bool:
    """A node loses its disk, unless no other one has what is needed. It comes back soon."""
    node = simulation.chance.choice(simulation.nodes)
    others = [each for each in simulation.nodes if each is not node]
    for task in simulation.tasks:
        start = simulation.broker.logs[simulation.where(task)].start
        if max(committed(each, task) for each in others) < start:
            return False
    node.lose_disk()
    simulation.run(simulation.chance.choice((0.0, 0.5, 3.0)), _EVENTS_PER_S)
    if not node.is_up:
        node.start()
    return True


class DamageFound(logging.Handler):
    """Keeps what units say of damaged data, and which folders were damaged. Any other damage is a mistake."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.said, self.planted = list[str](), set[Path]()
        logging.getLogger("railgun.unit").addHandler(self)
        # The fixture of this folder has all turned off.
        logging.disable(logging.INFO)

    def emit(self, record: logging.LogRecord) -> None:
        if "its data is damaged" in record.getMessage():
            self.said.append(record.getMessage())

    def check(self) -> None:
        """Raises Broken."""
        for each in self.said:
            if not any(f"{folder}/" in each for folder in self.planted):
                raise Broken(f"nobody has damaged that: {each}")

    def end(self) -> None:
        logging.disable(logging.CRITICAL)
        logging.getLogger("railgun.unit").removeHandler(self)


def test_damage_that_nobody_made_is_heard() -> None:
    found = DamageFound()
    try:
        found.check()
        logging.getLogger("railgun.unit").warning("%s: its data is damaged", "/x/state/1")
        with pytest.raises(Broken, match="nobody has damaged that"):
            found.check()
        found.planted.add(Path("/x"))
        found.check()
    finally:
        found.end()


def damage_a_copy(simulation: Simulation, found: DamageFound) -> None:
    """A file of a copy is damaged, unless no other node has what is needed. Its node comes back soon."""
    chance = simulation.chance
    node, task = chance.choice(simulation.nodes), chance.choice(simulation.tasks)
    start = simulation.broker.logs[simulation.where(task)].start
    if max(committed(each, task) for each in simulation.nodes if each is not node) < max(start, 1):
        return
    if node.is_up:
        node.kill()
    folder = task_folder(node.folder, *task)
    damaged = folder / "state" / chance.choice(_FOUND)
    if damaged.exists():
        damaged.write_bytes(chance.randbytes(damaged.stat().st_size))
        (folder / DAMAGED).touch()
        found.planted.add(folder)
    simulation.run(chance.choice((0.0, 0.5, 3.0)), _EVENTS_PER_S)
    if not node.is_up:
        node.start()


def crash_amid_a_fetch(simulation: Simulation) -> None:
    """The unit, or all processes, of a node that fetches are killed: what has come so far stays."""
    busy = [node for node in up(simulation.nodes) if node.transfer.is_busy]
    if busy:
        node = simulation.chance.choice(busy)
        if simulation.chance.random() < 0.5:
            node.kill_unit(0)
        else:
            node.kill()
            node.start()


def play(folder: Path, seed: int) -> tuple[int, int]:
    """Returns how many fetches came to their end, and how many replies were compared. Raises Broken."""
    folder.mkdir()
    simulation = Simulation(folder, seed, units=(1,))
    fetches, chance, found = 0, simulation.chance, DamageFound()
    try:
        for node in simulation.nodes:
            node.start()
        simulation.run(4.0, _EVENTS_PER_S)
        until_s = simulation.now_s + _FAULTY_S
        while simulation.now_s < until_s:
            kind = chance.random()
            if kind < 0.2:
                empty_logs(simulation)
            elif kind < 0.4:
                lose_a_disk(simulation)
            elif kind < 0.5:
                damage_a_copy(simulation, found)
            elif kind < 0.6:
                crash_amid_a_fetch(simulation)
            else:
                chance.choice(_FAULTS)(simulation)
            simulation.run(chance.uniform(0.1, 1.5), _EVENTS_PER_S)
        heal(simulation)
        simulation.run(1.0, _EVENTS_PER_S)
        simulation.run_until(lambda: simulation.missing() == 0, 40.0, "every event is answered")
        simulation.run_until(simulation.is_whole, 60.0, "each task has two copies, of which one answers")
        # One more disk, while all is well.
        simulation.run(1.0, _EVENTS_PER_S)
        empty_logs(simulation)
        assert lose_a_disk(simulation)
        simulation.run(2.0, _EVENTS_PER_S)
        simulation.run_until(simulation.is_whole, 60.0, "each task has two copies, of which one answers")
        simulation.run_until(simulation.is_steady, 330.0, "the copies answer that come first in the plan")
        check_quiet(simulation, 2.0, _EVENTS_PER_S)
        check_copies(simulation)
        check_plans(simulation)
        check_derived(simulation)
        _check_nothing_is_left(simulation)
        found.check()
        fetches = sum(node.fetched for node in up(simulation.nodes))
        return fetches, check_replies(simulation)
    except Exception as error:
        raise Broken(f"seed {seed}: {type(error).__name__}: {error}") from error
    finally:
        found.end()
        simulation.close()


def _check_nothing_is_left(simulation: Simulation) -> None:
    """Beside a task that is open nothing of a fetch is left, nor any damaged data in its place. Raises Broken."""
    for task in simulation.tasks:
        for _, _, host in simulation.hosts(task):
            if (host.place.folder / DAMAGED).exists():
                raise Broken(f"{host.place.folder} was damaged")
            names = {path.name for path in host.place.folder.parent.iterdir()}
            left = {f"{host.place.folder.name}.{end}" for end in ("fetching", "replaced")} & names
            if left:
                raise Broken(f"{host.place.folder.parent} has {left}")


@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", seeds(range(3), range(200)))
def test_copies_are_made_of_copies(tmp_path: Path, seed: int) -> None:
    fetches, compared = play(tmp_path / "nodes", seed)
    assert fetches > 0
    assert compared > 200


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "plant", [canaries.unverified_fetches_are_opened, canaries.donors_delete_what_is_fetched]
)
def test_planted_mistakes_are_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plant: canaries.Plant
) -> None:
    plant(monkeypatch)
    with pytest.raises(Broken):
        play_each(play, tmp_path)
