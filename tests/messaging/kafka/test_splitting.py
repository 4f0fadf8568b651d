"""A large entry is split into several requests: each of its records once, in order, with its key and headers."""

import numpy as np
import pytest

from railgun.messaging.errors import RecordTooLargeError
from railgun.messaging.kafka.batching import REQUEST_LIMIT_BYTES
from railgun.messaging.kafka.producer import split_entry
from railgun.messaging.limits import RECORD_LIMIT_BYTES
from railgun.messaging.transport import Entry, TopicPartition
from railgun.wire.records import Records

_WHERE = TopicPartition("t", 0)
_MIB = 1 << 20


def _sizes() -> list[int]:
    return [*(100 for _ in range(30_000)), 3 * _MIB, 2 * _MIB, 5 * _MIB, *(0 for _ in range(70_000)), 1]


def test_what_is_small_is_one_part() -> None:
    entry = Entry(_WHERE, Records.of([b"a", b"b"]), [b"k", None])
    [part] = split_entry(entry)
    assert part.entry is entry
    assert part.records == 2


def test_each_record_is_in_one_part() -> None:
    values = [bytes([number % 251]) * size for number, size in enumerate(_sizes())]
    keys = [b"%d" % number for number in range(len(values))]
    headers = [[("h", key)] for key in keys]
    buffer = np.frombuffer(b"before" + b"".join(values), np.uint8)
    records = Records(buffer, 6 + np.cumsum([0, *map(len, values)]))
    parts = split_entry(Entry(_WHERE, records, keys, headers))
    lists = [part.entry.records.to_list() for part in parts]
    assert [record for each in lists for record in each] == values
    assert [key for part in parts for key in part.entry.keys or ()] == keys
    assert [each for part in parts for each in part.entry.headers or ()] == headers
    assert [part.records for part in parts] == list(map(len, lists))
    assert all(part.held_bytes <= REQUEST_LIMIT_BYTES or part.records == 1 for part in parts)


def test_what_is_no_entry() -> None:
    with pytest.raises(ValueError, match="nothing to append"):
        split_entry(Entry(_WHERE, Records.of([])))
    with pytest.raises(ValueError, match="2 records to t-0 have 1 keys"):
        split_entry(Entry(_WHERE, Records.of([b"a", b"b"]), [b"k"]))
    with pytest.raises(RecordTooLargeError):
        split_entry(Entry(_WHERE, Records.of([b"a", bytes(RECORD_LIMIT_BYTES + 1)])))
