"""A process that walks over state until it is killed.

It goes on from what it recovers, and prints `start N`, then `durable N` whenever the checkpoint that began at
step N has become durable.
"""

import random
import sys
from pathlib import Path

from reservoir.thread_executor import ThreadExecutor
from tests.state.state_run import Cells, Model, StateRun, mapped
from tests.state.state_walk import begin_groups, one_step


class ModelRun:
    """What steps make of the rows, without any state behind it."""

    def __init__(self) -> None:
        self.model: Model = {}
        self.cells: dict[int, int] = {}

    def write(self, group: int, entities: list[int], cell: int, value: int) -> None:
        for number in entities:
            cells: Cells = self.model.setdefault((group, number), [0] * self.cells[group])
            cells[cell % len(cells)] = value

    def delete(self, group: int, entities: list[int]) -> None:
        for number in entities:
            self.model.pop((group, number), None)

    def set_layout(self, group: int, cells: int, mapping: list[tuple[int, int, int]]) -> None:
        for key in [key for key in self.model if key[0] == group]:
            self.model[key] = mapped(self.model[key], cells, mapping)
        self.cells[group] = cells

    def read(self, group: int, number: int) -> None: ...

    def begin(self, number: int | None) -> None: ...

    def step(self, limit_bytes: int) -> None: ...


def step(run: StateRun | ModelRun, seed: int, number: int) -> None:
    """Step `number` of the walk: what it does to the rows depends on the seed, the number and the rows."""
    if number == 1:
        begin_groups(run)
    else:
        one_step(run, random.Random(f"{seed}/{number}"), number)


def recovered(folder: Path, seed: int) -> StateRun:
    """The run that goes on from a folder, checked against what the steps up to its commit make."""
    run = StateRun(folder, limit_bytes=16 * 1024, executor=ThreadExecutor(), salt=random.getrandbits(63))
    expected = ModelRun()
    for number in range(1, (run.recovered or 0) + 1):
        step(expected, seed, number)
    run.model = expected.model
    try:
        assert run.cells == expected.cells
        run.check()
    except BaseException:
        run.close()
        raise
    return run


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main(folder: Path, seed: int) -> None:
    run = recovered(folder, seed)
    durable = run.durable
    say(f"start {durable}")
    for number in range(durable + 1, 1 << 30):
        step(run, seed, number)
        if run.durable != durable:
            durable = run.durable
            say(f"durable {durable}")
