"""Power goes at any moment: what a checkpoint calls durable is there, and the log goes on from it."""

from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest

from reservoir.reservoir import Settings
from tests.reservoir.event_log import AMOUNT, CARD, EventLog
from tests.reservoir.log_driver import Checkpoint, LogDriver
from tests.reservoir.log_strategies import seeded_log
from tests.reservoir.memory_files import MemoryFiles

FOLDER = Path("reservoir")
SETTINGS = Settings(bytes(16), chunk_events=8, segment_bytes=5_000)


@dataclass
class Story:
    """A run on files that never failed: its log, its checkpoints and how many changes preceded each."""

    log: EventLog
    files: MemoryFiles
    checkpoints: list[tuple[int, Checkpoint]]


def story(seed: int) -> Story:
    files, log = MemoryFiles(), seeded_log(seed, 150, name_max=60)
    driver = LogDriver(FOLDER, log, SETTINGS, files)
    driver.set_hot((AMOUNT, CARD))
    driver.add_edge(30)
    checkpoints = []
    while True:
        saved = driver.checkpoint()
        checkpoints.append((len(files.journal), saved))
        if driver.position == len(log.records):
            break
        driver.run_all_until(min(driver.position + 25, len(log.records)), [6])
    driver.reservoir.close()
    return Story(log, files, checkpoints)


def recover_and_finish(told: Story, files: MemoryFiles, saved: Checkpoint) -> None:
    """Exactly the checkpoint's rows are there, and the rest of the log leads to the same segments."""
    driver = LogDriver.__new__(LogDriver)
    driver.folder, driver.log, driver.settings, driver.files, driver.limit = (
        FOLDER,
        told.log,
        SETTINGS,
        files,
        None,
    )
    driver.recover(saved)
    try:
        assert driver.reservoir.recovered.length == saved.length
        driver.check_rows()
        driver.run_all([40])
        driver.check_rows()
        driver.reservoir.sync(driver.reservoir.chunks)
    finally:
        driver.reservoir.close()
    assert files.segments() == told.files.segments()


@pytest.mark.parametrize(
    ("step", "seeds"), [(7, 1), pytest.param(1, 20, marks=pytest.mark.torture, id="torture")]
)
def test_power_loss_after_each_change(step: int, seeds: int) -> None:
    told = story(7)
    for k in range(told.checkpoints[0][0], len(told.files.journal) + 1, step):
        saved = [checkpoint for changes, checkpoint in told.checkpoints if changes <= k][-1]
        for seed in range(seeds):
            files = MemoryFiles.replayed(told.files.journal[:k]).without_power(Random(f"{k} {seed}"))
            recover_and_finish(told, files, saved)


@pytest.mark.parametrize(
    ("step", "seeds"), [(19, 1), pytest.param(2, 5, marks=pytest.mark.torture, id="torture")]
)
def test_power_loss_during_recovery(step: int, seeds: int) -> None:
    told = story(8)
    cuts = 0
    for k in range(told.checkpoints[0][0], len(told.files.journal) + 1, step):
        saved = [checkpoint for changes, checkpoint in told.checkpoints if changes <= k][-1]
        for seed in range(seeds):
            random = Random(f"{k} {seed}")
            found = MemoryFiles.replayed(told.files.journal[:k]).without_power(random)
            first = MemoryFiles.replayed([], found)
            driver = LogDriver.__new__(LogDriver)
            driver.folder, driver.settings, driver.files = FOLDER, SETTINGS, first
            driver.open(saved.length, saved.saved_rows)
            driver.reservoir.close()
            for steps in range(len(first.journal) + 1):
                cuts += 1
                half = MemoryFiles.replayed(first.journal[:steps], found).without_power(random)
                recover_and_finish(told, half, saved)
    assert cuts > 10


def test_the_model_loses_what_was_not_synced() -> None:
    files = MemoryFiles()
    file = files.create(FOLDER / "a")
    file.write(b"x" * 2000)
    file.sync()
    file.write(b"y" * 2000)
    found = {
        bytes(files.without_power(Random(seed)).names.get("a", type(files.names["a"])()).data)
        for seed in range(60)
    }
    assert b"" in found
    files.sync_folder(FOLDER)
    found = {bytes(files.without_power(Random(seed)).names["a"].data) for seed in range(60)}
    assert {data[:1536] for data in found} == {b"x" * 1536}
    assert any(0 in data for data in found)
    assert any(len(data) == 4000 for data in found)
    assert any(len(data) == 2000 for data in found)
