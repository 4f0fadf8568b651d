"""An embedded log read beside its writer: what it shows, and that it is only for reading."""

from collections.abc import Callable
from pathlib import Path

import pytest

from railgun.messaging.embedded.log import Durability, EmbeddedLog
from railgun.messaging.embedded.read_only import ReadOnlyLog
from railgun.messaging.errors import (
    OffsetOutOfRangeError,
    TopicMissingError,
    TransportIOError,
    TransportReadOnlyError,
)
from railgun.messaging.transport import Entry, TopicPartition
from railgun.wire.records import Records


def read(log: ReadOnlyLog, at: int = 0) -> list[bytes]:
    values: list[bytes] = []
    while at < log.end_offset("a", 0):
        fetched = log.read("a", 0, at, 7, 1 << 20)
        values += fetched.values()
        at = fetched.next_offset
    return values


def test_it_shows_the_log_as_it_was_when_opened_or_caught_up(tmp_path: Path) -> None:
    with EmbeddedLog(tmp_path, Durability.OS) as log:
        log.create_topic("a", 2)
        log.append("a", 0, [b"%d" % n for n in range(20)])
        with ReadOnlyLog(tmp_path) as seen:
            assert seen.topics() == {"a": 2}
            assert read(seen) == [b"%d" % n for n in range(20)]
            log.append("a", 0, [b"new"])
            log.trim("a", 0, 20)
            assert seen.end_offset("a", 0) == 20
            seen.catch_up()
            assert (seen.start_offset("a", 0), seen.end_offset("a", 0)) == (20, 21)
            assert read(seen, 20) == [b"new"]
            with pytest.raises(OffsetOutOfRangeError):
                seen.read("a", 0, 3, 1, 1)
    with ReadOnlyLog(tmp_path) as seen:
        assert read(seen, 20) == [b"new"]


REFUSED: list[Callable[[ReadOnlyLog], object]] = [
    lambda log: log.create_topic("b", 1),
    lambda log: log.create_topic("a", 3),
    lambda log: log.delete_topic("a"),
    lambda log: log.append("a", 0, [b"x"]),
    lambda log: log.submit([Entry(TopicPartition("a", 0), Records.of([b"x"]))]),
    lambda log: log.trim("a", 0, 1),
    lambda log: log.wait({}, 0),
    lambda log: log.sync(),
]


def test_it_is_only_for_reading(tmp_path: Path) -> None:
    with EmbeddedLog(tmp_path, Durability.OS) as log:
        log.create_topic("a", 1)
    with ReadOnlyLog(tmp_path) as seen:
        seen.create_topic("a", 1)
        for refused in REFUSED:
            with pytest.raises(TransportReadOnlyError):
                refused(seen)
        with pytest.raises(TopicMissingError):
            seen.end_offset("b", 0)


def test_a_folder_without_a_log(tmp_path: Path) -> None:
    with pytest.raises(TransportIOError, match="no embedded log"):
        ReadOnlyLog(tmp_path)
    assert list(tmp_path.iterdir()) == []
