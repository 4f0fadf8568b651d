"""Entity rows, store and checkpoints driven beside a plain dict of what they must hold."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from railgun.state.checkpoint import Checkpointer
from railgun.state.errors import BatchTooLargeError
from railgun.state.layouts import compose, to_runs
from railgun.state.rocks import StoreLimits
from railgun.state.rows.access import find_row, read_touch, row_is, touch_row
from railgun.state.rows.context import ROW_HEAD_BYTES
from railgun.state.rows.table import EntityTable
from railgun.state.status import DONE
from railgun.state.store import Store
from reservoir.native.jit import array_at
from tests.state.live_copy import live_copy

_LIMITS = StoreLimits(write_buffer_bytes=1 << 20, block_cache_bytes=1 << 20)
_WORD = (1 << 64) - 1
SALT = 0x243F6A8885A308D3

Cells = list[int]
Model = dict[tuple[int, int], Cells]


def entity_hash(number: int) -> tuple[int, int]:
    """(hi, lo) of an entity: few low halves of the hash, so that the table has to probe."""
    return (number * 0x9E3779B97F4A7C15 + 1) & _WORD, (number % 5) | (number << 40)


class Turn:
    """A commit that goes on only when it is asked about: to do, done but not told, told."""

    def __init__(self, work: Callable[[], None]) -> None:
        self._work = work
        self._asked = 0

    def done(self) -> bool:
        self._asked += 1
        if self._asked == 2:
            self._work()
        return self._asked > 2

    def result(self) -> None:
        """It is asked for only when done."""

    def exception(self) -> None:
        """What waits for it asks again soon."""


class Turns:
    """An executor for a checkpointer: the same run is the same, whatever the time of day."""

    def lane(self, name: str) -> Any:
        return self

    def submit(self, work: Callable[[], None]) -> Turn:
        return Turn(work)

    def close(self) -> None:
        """Nothing runs by itself."""


class StateRun:
    """One run over one folder. Cells of the model are those of the newest layout, and so are snapshots'."""

    def __init__(
        self,
        folder: Path,
        limit_bytes: int = 32 * 1024,
        segment_bytes: int = 4096,
        *,
        executor: Any = None,
        salt: int = SALT,
    ) -> None:
        self.folder = folder
        self.limits, self.salt = (limit_bytes, segment_bytes), salt
        self.store = Store(folder, _LIMITS)
        recovered = self.store.recover()
        self.recovered = None if recovered is None else int(recovered[1])
        self.table = EntityTable(limit_bytes, self.store, segment_bytes, salt=salt)
        self.checkpointer = Checkpointer(self.store, [self.table], executor or Turns())
        self.model: Model = {}
        self.cells: dict[int, int] = {group: layout.cells for group, layout in self.table.layouts().items()}
        self.snapshots: dict[int, tuple[Model, dict[int, int]]] = {0: ({}, {})}
        self.begun = self.durable = self.recovered or 0
        self.addresses: dict[tuple[int, int], int] = {}
        # What a program using rows calls; canaries put wrong ones here.
        self.touch_row: Callable[[int, int], int] = touch_row
        self.row_is: Callable[..., bool] = row_is

    # --- rows --------------------------------------------------------------------------------------

    def row(self, group: int, number: int) -> int:
        """Address of a row, remembered, found or loaded, and stamped."""
        hi, lo = entity_hash(number)
        known = self.addresses.get((group, number), 0)
        if known and self.row_is(self.table.context, known, group, np.uint64(hi), np.uint64(lo)):
            read_touch(self.table.context, known)
            return known
        row = find_row(self.table.context, group, np.uint64(hi), np.uint64(lo))
        if not row:
            # Twice the same: a batch names its entities as they come.
            self.table.load(np.array([(group, hi, lo)] * 2, np.uint64), 2)
            row = find_row(self.table.context, group, np.uint64(hi), np.uint64(lo))
        assert row, "a row just loaded is not there"
        read_touch(self.table.context, row)
        self.addresses[group, number] = int(row)
        return int(row)

    def content(self, group: int, row: int) -> np.ndarray:
        """The cells of a row, writable."""
        return array_at(row + ROW_HEAD_BYTES, self.cells[group], np.uint64)

    def write(self, group: int, entities: list[int], cell: int, value: int) -> None:
        """A batch: check and change a cell of the rows of some entities, all resident together."""
        self.table.next_stamp()
        try:
            rows = [self.row(group, number) for number in entities]
        except BatchTooLargeError:
            for number in entities:
                self.table.next_stamp()
                self._change(group, number, self.row(group, number), cell, value)
            return
        for number, row in zip(entities, rows):
            self._change(group, number, row, cell, value)

    def _change(self, group: int, number: int, row: int, cell: int, value: int) -> None:
        cells = self.content(group, row)
        expected = self.model.get((group, number), [0] * self.cells[group])
        assert cells.tolist() == expected, f"row ({group}, {number}) before its change"
        while self.touch_row(self.table.context, row) != DONE:
            self.table.drain()
        assert cells.tolist() == expected, "touching a row changed its cells"
        cells[cell % len(cells)] = value
        self.model[group, number] = cells.tolist()

    def read(self, group: int, number: int) -> None:
        """Look at a row without changing it."""
        self.table.next_stamp()
        expected = self.model.get((group, number), [0] * self.cells[group])
        assert self.content(group, self.row(group, number)).tolist() == expected

    def delete(self, group: int, entities: list[int]) -> None:
        """Delete the rows of some entities, whether they hold anything or not."""
        for number in entities:
            self.table.next_stamp()
            self.table.delete(np.array([self.row(group, number)], np.int64))
            self.model.pop((group, number), None)

    # --- layouts -----------------------------------------------------------------------------------

    def set_layout(self, group: int, cells: int, mapping: list[tuple[int, int, int]]) -> None:
        """Begin a group, or change its layout by one version."""
        known = self.table.layouts().get(group)
        self.table.next_stamp()
        self.table.set_layout(group, known.version + 3 if known else 1, cells, mapping)
        for key in [key for key in self.model if key[0] == group]:
            self.model[key] = mapped(self.model[key], cells, mapping)
        self.cells[group] = cells

    @property
    def dropped(self) -> set[int]:
        """Groups whose number is not free yet."""
        return self.table.dropped_groups()

    def drop_group(self, group: int) -> None:
        """Drop a group with all its rows."""
        self.table.next_stamp()
        self.table.drop_group(group)
        del self.cells[group]
        for key in [key for key in self.model if key[0] == group]:
            del self.model[key]

    # --- checkpoints -------------------------------------------------------------------------------

    def begin(self, number: int | None = None) -> None:
        """Begin a checkpoint, unless one is in flight; its meta is the number of a snapshot, a rising one."""
        if not self.checkpointer.is_in_flight:
            self.begun = self.begun + 1 if number is None else number
            self.snapshots[self.begun] = (
                {key: list(cells) for key, cells in self.model.items()},
                dict(self.cells),
            )
            self.checkpointer.begin(str(self.begun).encode())

    def step(self, limit_bytes: int = 512) -> None:
        """One step of a checkpoint, or of cleaning up after one."""
        if self.checkpointer.step(limit_bytes):
            self.durable = self.begun

    def finish(self) -> None:
        """Bring a checkpoint in flight to its end."""
        if self.checkpointer.is_in_flight:
            self.checkpointer.finish()
            self.durable = self.begun

    # --- checks ------------------------------------------------------------------------------------

    def rows(self) -> Model:
        """All rows with anything in them, wherever they are."""
        found: Model = {}
        numbers = {entity_hash(number): number for number in range(400)}
        for group in self.table.layouts():
            for ids, cells in self.table.reader.rows(group):
                for (hi, lo), words in zip(ids.tolist(), cells.tolist()):
                    key = group, numbers[hi, lo]
                    assert key not in found, f"row {key} is there twice"
                    found[key] = words
        return present(found)

    def check(self) -> None:
        """What is there is what must be."""
        assert self.rows() == present(self.model)

    def crash(self, copy: Path) -> "StateRun":
        """The run that recovers from a copy of the folder as it is now: exactly the last commit."""
        allowed = {self.durable}
        if self.checkpointer.is_committing:
            allowed.add(self.begun)
        live_copy(self.folder, copy)
        # What is stored does not depend on the salt.
        run = StateRun(copy, *self.limits, salt=self.salt + 1)
        try:
            run.adopt(self, allowed)
        except BaseException:
            run.close()
            raise
        return run

    def adopt(self, before: "StateRun", allowed: set[int]) -> None:
        """Check what was recovered against the snapshots of the run before, and take them over."""
        number = self.recovered or 0
        assert number in allowed, f"recovered commit {number}, not one of {allowed}"
        model, cells = before.snapshots[number]
        assert {group: layout.cells for group, layout in self.table.layouts().items()} == cells
        self.model = {key: list(words) for key, words in model.items()}
        self.snapshots = dict(before.snapshots)
        self.check()

    def close(self) -> None:
        """Leave the folder as it is."""
        self.checkpointer.close()
        self.store.close()


def present(model: Model) -> Model:
    """Without rows of zeros, which need not be there."""
    return {key: cells for key, cells in model.items() if any(cells)}


def mapped(cells: Cells, width: int, mapping: list[tuple[int, int, int]]) -> Cells:
    """A row in its next layout, word by word."""
    result = [0] * width
    for old, new, words in mapping:
        result[new : new + words] = cells[old : old + words]
    return result


def mapped_through(cells: Cells, width: int, changes: list[list[tuple[int, int, int]]]) -> Cells:
    """A row through several changes, by composing them first."""
    runs = to_runs(changes[0])
    for change in changes[1:]:
        runs = compose(runs, to_runs(change))
    return mapped(cells, width, [tuple(run) for run in runs])
