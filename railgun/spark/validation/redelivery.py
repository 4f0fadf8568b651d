"""Records of an input topic that come again: told by their position there, as the definition says."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

INPUT_COLUMNS = ("input_partition", "input_offset", "input_committed")
"""Where a record of a task's log came from; -1 where from no topic."""

Position = tuple[int, int] | None


class InputPositions:
    """What one task has met. Memory: an entry for each position above what is committed, of ids that come again."""

    def __init__(self) -> None:
        self._committed: dict[int, int] = {}
        self._met: dict[int, set[int]] = {}

    def answered(self, batch: pa.RecordBatch) -> NDArray[np.bool_]:
        """bool[n]: whether the position was committed already, so that its reply was given for good."""
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
        """By row, the partition and offset it came from."""
        if INPUT_COLUMNS[0] not in batch.schema.names:
            return [None] * len(batch)
        partitions, offsets = (batch.column(name).to_pylist() for name in INPUT_COLUMNS[:2])
        return [(p, o) if p >= 0 else None for p, o in zip(partitions, offsets)]

    def meet(self, position: Position) -> bool:
        """Whether it was met before; from now on it was."""
        if position is None:
            return False
        met = self._met.setdefault(position[0], set())
        if position[1] in met:
            return True
        met.add(position[1])
        return False
