"""The bytes of segments are a function of the log: not of batches, restarts, caches or threads."""

from dataclasses import replace
from pathlib import Path

import pytest

from reservoir.reservoir import Settings
from tests.reservoir.event_log import ALL_COLUMNS, AMOUNT, CARD, NAME
from tests.reservoir.log_driver import LogDriver
from tests.reservoir.log_strategies import seeded_log
from tests.reservoir.memory_files import MemoryFiles

SETTINGS = Settings(bytes(16), chunk_events=16, segment_bytes=9_000)
CHANGES = {100: (AMOUNT, CARD), 260: ALL_COLUMNS, 333: (NAME,)}


def run(
    seed: int,
    cuts: list[int],
    *,
    restart_at: tuple[int, ...] = (),
    cache_bytes: int = 1 << 20,
    set_after: int = SETTINGS.chunk_events,
) -> dict[str, bytes]:
    """The segments after a log of 500 records whose hot columns change at given positions.

    set_after: the setting of events per chunk after a restart.
    """
    files, log = MemoryFiles(), seeded_log(seed, 500)
    settings = Settings(SETTINGS.stream_key, SETTINGS.chunk_events, SETTINGS.segment_bytes, cache_bytes)
    driver = LogDriver(Path("reservoir"), log, settings, files)
    driver.set_hot(ALL_COLUMNS[:3])
    driver.add_edge(30)
    saved, k = driver.checkpoint(), 0
    while driver.position < len(log.records):
        if driver.position in CHANGES:
            driver.set_hot(CHANGES[driver.position])
        stops = [stop for stop in (*CHANGES, *restart_at, len(log.records)) if stop > driver.position]
        driver.run(min(cuts[k % len(cuts)], min(stops) - driver.position))
        k += 1
        if driver.position in restart_at:
            restart_at = tuple(stop for stop in restart_at if stop != driver.position)
            driver.settings = replace(settings, chunk_events=set_after)
            driver.restart(saved)
        elif k % 7 == 0 and driver.position not in CHANGES:
            saved = driver.checkpoint()
    driver.check_rows()
    driver.reservoir.close()
    return files.segments()


@pytest.mark.parametrize("seed", range(3))
def test_bytes_do_not_show_how_the_log_was_cut(seed: int) -> None:
    whole = run(seed, [500])
    assert len(whole) > 3
    assert run(seed, [1]) == whole
    assert run(seed, [7, 60, 3], cache_bytes=0) == whole


@pytest.mark.parametrize("seed", range(3))
def test_bytes_do_not_show_restarts(seed: int) -> None:
    assert run(seed, [11, 40], restart_at=(90, 256, 420)) == run(seed, [500])


def test_bytes_do_not_show_another_size_of_chunks_set_later() -> None:
    assert run(1, [11, 40], restart_at=(256, 420), set_after=64) == run(1, [500])


def test_other_logs_give_other_bytes() -> None:
    assert run(0, [50]) != run(1, [50])
