"""What a task remembers of input topics, against a dictionary: records that come one by one and many at a time."""

import random
from collections import Counter

import numpy as np
import pytest

from railgun.task.admission import REPEAT_WITH_REPLY, REPEAT_WITHOUT_REPLY
from railgun.task.inputs import InputMemory
from railgun.wire.decode import Decoded
from railgun.wire.msgpack import Status
from tests.counts import seeds

Row = tuple[int, int, int, Status]
Fate = tuple[str, bytes, int]
FRESH: Fate = ("fresh", b"", 0)
ANSWERED: Fate = ("answered", b"", 0)
NOT_OF_AN_INPUT: Fate = ("", b"", 0)


class Model:
    """By partition what is committed; by position the batch that met it first, and its place among the fresh there."""

    def __init__(self) -> None:
        self.committed: dict[int, int] = {}
        self.met: dict[tuple[int, int], tuple[bytes, int]] = {}

    def meet(self, rows: list[Row], record: bytes) -> list[Fate]:
        """What becomes of a batch, row by row, whose fresh ones are answered by this record."""
        fates: list[Fate] = []
        fresh = 0
        for partition, offset, committed, status in rows:
            if partition < 0 or status is not Status.OK:
                fates.append(NOT_OF_AN_INPUT)
                continue
            self.committed[partition] = max(committed, self.committed.get(partition, 0))
            where = partition, offset
            if offset < self.committed[partition]:
                fates.append(ANSWERED)
            elif where in self.met:
                fates.append(("repeat", *self.met[where]))
            else:
                self.met[where] = record, fresh
                fresh += 1
                fates.append(FRESH)
        return fates


def drawn(chosen: random.Random, ends: Counter[int]) -> Row:
    """Mostly the next of a partition; some that were there, some far ahead, some that are no input's, or unreadable."""
    partition = chosen.choice((0, 0, 0, 1, 2, -1))
    offset = ends[partition]
    if chosen.random() < 0.4:
        offset = max(0, offset + chosen.randint(-8, 3))
    ends[partition] = max(ends[partition], offset + 1)
    committed = chosen.choice((-1, 0, offset // 2, chosen.randint(0, offset + 1)))
    return partition, offset, committed, Status.OK if chosen.random() < 0.95 else Status.TRUNCATED


def decoded_of(rows: list[Row]) -> Decoded:
    """Their columns, as the decoder leaves them."""
    decoded = Decoded(len(rows), 0, np.zeros(1, np.int64))
    decoded.n = len(rows)
    columns = decoded.source_partition, decoded.source_offset, decoded.source_committed, decoded.status
    for column, values in zip(columns, zip(*rows)):
        column[:] = values
    return decoded


def met_by(memory: InputMemory, rows: list[Row], record: bytes) -> list[Fate]:
    """What a memory says of a batch, whose fresh ones are answered by this record."""
    found = memory.meet(decoded_of(rows))
    if found is None:
        return [NOT_OF_AN_INPUT] * len(rows)
    if len(found.fresh):
        memory.keep(record)
    fates = [NOT_OF_AN_INPUT] * len(rows)
    for row in found.fresh.tolist():
        fates[row] = FRESH
    met = np.zeros(len(rows), np.uint8) if found.met is None else found.met
    for row in np.flatnonzero(met == REPEAT_WITHOUT_REPLY).tolist():
        fates[row] = ANSWERED
    assert np.flatnonzero(met == REPEAT_WITH_REPLY).tolist() == sorted(found.repeats)
    for row, repeat in found.repeats.items():
        fates[row] = "repeat", repeat.kept.bytes, repeat.row
    return fates


@pytest.mark.parametrize("seed", seeds(range(20), range(60)))
def test_every_position_is_met_as_by_the_model(seed: int) -> None:
    chosen = random.Random(seed)
    memory, model = InputMemory(), Model()
    ends: Counter[int] = Counter()
    for batch in range(60):
        rows = [drawn(chosen, ends) for _ in range(1 if chosen.random() < 0.7 else chosen.randint(2, 9))]
        record = b"%d" % batch
        assert met_by(memory, rows, record) == model.meet(rows, record), f"seed {seed} batch {batch}: {rows}"
        if chosen.random() < 0.1:
            memory = InputMemory.from_json(memory.to_json())
    for partition, offsets in memory.positions().items():
        wanted = {o for p, o in model.met if p == partition and o >= model.committed[partition]}
        assert wanted <= set(offsets) <= {o for p, o in model.met if p == partition}
