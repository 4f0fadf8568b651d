"""A seeded random walk over rows, checkpoints, layouts and crashes: what canaries and kill tests run."""

import random
from pathlib import Path

from tests.state.state_run import StateRun

_MASK = (1 << 64) - 1


def begin_groups(run: StateRun) -> None:
    """Two groups with rows of different widths, and one that comes and goes."""
    run.set_layout(0, 14, [])
    run.set_layout(1, 5, [])


def one_step(run: StateRun, rng: random.Random, number: int | None = None) -> None:
    """Something that the task could do next; what it does to the rows depends on rng and the rows alone."""
    action = rng.random()
    group = rng.choice([0, 0, 1])
    if action < 0.55:
        entities = [rng.randrange(300) for _ in range(rng.randrange(1, 40))]
        run.write(group, entities, rng.randrange(30), rng.getrandbits(64) & _MASK)
    elif action < 0.65:
        run.read(group, rng.randrange(300))
    elif action < 0.70:
        run.delete(group, [rng.randrange(300)])
    elif action < 0.78:
        run.begin(number)
    elif action < 0.97:
        run.step(rng.choice([1, 500, 4000]))
    else:
        cells = run.cells[group]
        shift = rng.randrange(4)
        kept = rng.randrange(1, cells + 1)
        run.set_layout(group, kept + shift + rng.randrange(3), [(cells - kept, shift, kept)])


def walk(folder: Path, seed: int, steps: int, crash_every: int) -> None:
    """A run that now and then proves what a crash would leave. AssertionError or a StateError if it is wrong.

    `folder` gets the run's own folder and the copies that stand for crashes.
    """
    rng = random.Random(seed)
    run = StateRun(folder / "run", limit_bytes=16 * 1024)
    try:
        begin_groups(run)
        for i in range(steps):
            one_step(run, rng)
            if i % crash_every == crash_every - 1:
                run.check()
                run.crash(folder / f"crash-{i}").close()
    finally:
        run.close()
