"""Finds redelivered records of an input topic, which are identified by their position in it."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

INPUT_COLUMNS = ("input_partition", "input_offset", "input_committed")
"""The input partition and offset that a record of a task's log came from; -1 without an input topic."""

Position = tuple[int, int] | None


class InputPositions:
    """The input positions that one task has read. It holds an entry for each one above the committed position, for ids
    that come again.
    """

    def __init__(self) -> None:
        self._committed: dict[int, int] = {}
        self._met: dict[int, set[int]] = {}

    def answered(self, batch: pa.RecordBatch) -> NDArray[np.bool_]:
        """bool[n]: whether the position was committed before, so that the first reply is the one that counts."""
        found = np.zeros(len(batch), np.bool_)
        if INPUT_COLUMNS[0] not in batch.schema.names:
            return found
        partitions, offsets, committed = (batch.column(name).to_numpy() for name in INPUT_COLUMNS)
        for partition in np.unique(partitions[partitions >= 0]).tolist():
            rows = np.flatnonzero(partitions == partition)
            running = np.maximum.accumulate(
                np.concatenate([[self._committed.get(partition, 0)], committed[rows]])
            )[1:]
            found[rows] = offsets[rows] < running
            self._committed[partition] = int(running[-1])
            met = self._met.get(partition)
            if met:
                self._met[partition] = {each for each in met if each >= int(running[0])}
        return found

    def positions(self, batch: pa.RecordBatch) -> list[Position]:
        """Return, for each row, the input partition and offset."""
        if INPUT_COLUMNS[0] not in batch.schema.names:
            return [None] * len(batch)
        partitions, offsets = (batch.column(name).to_pylist() for name in INPUT_COLUMNS[:2])
        return [(p, o) if p >= 0 else None for p, o in zip(partitions, offsets)]

    def meet(self, position: Position) -> bool:
        """Whether a position was read before. It is remembered."""
        if position is None:
            return False
        met = self._met.setdefault(position[0], set())
        if position[1] in met:
            return True
        met.add(position[1])
        return False
