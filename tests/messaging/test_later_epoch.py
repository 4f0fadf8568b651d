"""Where a log goes on with records of a later leader is found, whatever its epochs are."""

import random
from typing import cast

import numpy as np
import pytest

from railgun.messaging.later_epoch import first_of_later_epoch
from railgun.messaging.transport import Fetched, TopicPartition, Transport
from railgun.wire.records import Records

WHERE = TopicPartition("t", 0)


class _Log:
    def __init__(self, start: int, epochs: list[int]) -> None:
        self._start, self._epochs = start, epochs
        self.reads = 0

    def start_offset(self, topic: str, partition: int) -> int:
        return self._start

    def end_offset(self, topic: str, partition: int) -> int:
        return self._start + len(self._epochs)

    def read(self, topic: str, partition: int, offset: int, max_records: int, max_bytes: int) -> Fetched:
        self.reads += 1
        epoch = self._epochs[offset - self._start]
        return Fetched(WHERE, np.array([offset]), Records.of([b"x"]), offset + 1, leader_epoch=epoch)

    def release(self, topic: str, partition: int) -> None:
        pass


@pytest.mark.parametrize("seed", range(20))
def test_it_is_the_first_one(seed: int) -> None:
    chance = random.Random(seed)
    start, epochs = chance.randrange(5), sorted(chance.randrange(6) for _ in range(chance.randrange(200)))
    log = _Log(start, epochs)
    for epoch in range(-1, 7):
        later = [number for number, each in enumerate(epochs) if each > epoch]
        expected = (start + later[0], epochs[later[0]]) if later else (start + len(epochs), -1)
        assert first_of_later_epoch(cast("Transport", log), WHERE, epoch) == expected
    assert log.reads <= 8 * 8
