"""A decoded chunk holds no more memory than it counts as, wherever it was read from."""

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from reservoir.reservoir import Settings
from reservoir.segments.chunk import HotRows
from tests.reservoir.event_log import AMOUNT
from tests.reservoir.log_driver import LogDriver
from tests.reservoir.log_strategies import seeded_log
from tests.reservoir.memory_files import MemoryFiles


def _arrays(held: Any) -> Iterator[np.ndarray[Any, Any]]:
    """Everything that is kept alive."""
    if isinstance(held, np.ndarray):
        yield held if held.base is None else held.base  # type: ignore[misc]
    elif isinstance(held, tuple):
        for each in held:
            yield from _arrays(each)
    elif is_dataclass(held):
        for field in fields(held):
            yield from _arrays(getattr(held, field.name))


def _held_bytes(rows: HotRows) -> int:
    found = {id(array): array.nbytes for array in (*_arrays(rows.keep), *_arrays(rows.columns))}
    return sum(found.values())


def test_of_a_chunk_on_its_way_to_disk_nothing_else_stays() -> None:
    settings = Settings(bytes(16), chunk_events=16, segment_bytes=6_000)
    driver = LogDriver(Path("reservoir"), seeded_log(2, 600), settings, MemoryFiles())
    driver.set_hot((AMOUNT,))
    checked = 0
    try:
        while driver.position < 600:
            driver.run(50)
            source = driver.reservoir._source
            for chunk in list(source.pending):
                for columns in ([], [AMOUNT]):
                    rows = source.decoder(chunk, columns)()
                    assert rows.rows == 16
                    assert 16 * rows.rows <= _held_bytes(rows) <= rows.size_bytes
                    checked += 1
    finally:
        driver.reservoir.close()
    assert checked
