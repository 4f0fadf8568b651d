"""The embedded log: what reopening finds, who may open it, and what its failures say."""

import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rocksdict import WriteBatch

from railgun.host.disk_usage import size_of
from railgun.messaging.embedded import log as embedded
from railgun.messaging.embedded.database import VERSION_KEY, LogDatabase, block_key
from railgun.messaging.embedded.group_commit import PENDING_LIMIT_BYTES
from railgun.messaging.embedded.log import Durability, EmbeddedLog
from railgun.messaging.errors import (
    TransportCorruptionError,
    TransportError,
    TransportFullError,
    TransportIOError,
    TransportLockedError,
    TransportVersionError,
)
from railgun.messaging.transport import Entry, TopicPartition
from railgun.wire.records import Records
from tests.unit.local_units import awaited

T0 = TopicPartition("t", 0)


class FailingDatabase(LogDatabase):
    """A database whose k-th write or sync fails, and every later one."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.calls_left = 1 << 60
        self.calls = 0

    def _count(self) -> None:
        self.calls += 1
        self.calls_left -= 1
        if self.calls_left < 0:
            raise TransportIOError(str(self.folder), "no space left", "Free some")

    def write(self, batch: WriteBatch) -> None:
        self._count()
        super().write(batch)

    def sync(self) -> None:
        self._count()
        super().sync()


def opened(folder: Path) -> EmbeddedLog:
    log = EmbeddedLog(folder)
    log.create_topic("t", 1)
    return log


def contents(log: EmbeddedLog) -> list[bytes]:
    got: list[bytes] = []
    offset = log.start_offset("t", 0)
    while offset < log.end_offset("t", 0):
        fetched = log.read("t", 0, offset, 50, 1 << 20)
        got += fetched.values()
        offset = fetched.next_offset
    return got


@settings(max_examples=15)
@given(data=st.data())
def test_any_life_of_a_log(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """Appends, trims and reopenings in any order, against a list."""
    folder = tmp_path_factory.mktemp("life")
    log, model, start = opened(folder), [], 0
    for step in range(data.draw(st.integers(1, 12))):
        action = data.draw(st.sampled_from(["append", "append", "columns", "trim", "reopen", "read"]))
        if action == "append":
            values = [b"%d:%d" % (step, i) * (i % 5) for i in range(data.draw(st.integers(1, 300)))]
            assert log.append("t", 0, values) == len(model)
            model += values
        elif action == "columns":
            offsets = np.arange(data.draw(st.integers(2, 300)), dtype=np.int64) * 3
            buffer = np.arange(offsets[-1], dtype=np.int64).astype(np.uint8)
            records = Records(buffer, offsets)
            assert log.submit([Entry(T0, records)]).result() == [len(model)]
            model += records.to_list()
        elif action == "trim":
            start = max(start, data.draw(st.integers(0, len(model))))
            log.trim("t", 0, start)
        elif action == "reopen":
            log.close()
            log = opened(folder)
        elif start < len(model):
            offset = data.draw(st.integers(start, len(model) - 1))
            got = log.read("t", 0, offset, data.draw(st.integers(1, 400)), data.draw(st.integers(0, 2000)))
            assert got.values() == model[offset : got.next_offset]
        assert (log.start_offset("t", 0), log.end_offset("t", 0)) == (start, len(model))
    assert contents(log) == model[start:]
    log.close()


def test_reading_never_depends_on_what_is_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded, "RECENT_LIMIT_BYTES", 2_000)
    with opened(tmp_path) as log:
        values = [b"%d" % i * 50 for i in range(100)]
        for i in range(0, 100, 4):
            log.append("t", 0, values[i : i + 4])
        for offset in range(100):
            assert log.read("t", 0, offset, 9, 10_000).values() == values[offset : offset + 9]


def test_a_failed_write_is_for_good(tmp_path: Path) -> None:
    """Whatever call fails: nothing is acknowledged from then on, and what was acknowledged is kept."""
    failed_at = 0
    while True:
        folder = tmp_path / str(failed_at)
        database = FailingDatabase(folder / "log")
        log = EmbeddedLog(folder, database=database)
        log.create_topic("t", 1)
        log.append("t", 0, [b"first"])
        database.calls_left, database.calls = failed_at, 0
        acknowledged = [b"first"]
        try:
            for i in range(3):
                log.append("t", 0, [b"%d" % i * 200_000, b"%d" % i * 200_000])
                acknowledged += [b"%d" % i * 200_000] * 2
        except TransportIOError:
            assert contents(log) == acknowledged
            database.calls_left = 1 << 60
            for _ in range(2):
                with pytest.raises(TransportIOError, match="no space left"):
                    log.append("t", 0, [b"x"])
                with pytest.raises(TransportIOError, match="no space left"):
                    log.submit([Entry(T0, Records.of([b"x"]))])
            assert contents(log) == acknowledged
        with suppress(TransportIOError):
            log.close()
        with EmbeddedLog(folder) as log:
            assert contents(log)[: len(acknowledged)] == acknowledged
        if database.calls < failed_at:
            break
        failed_at += 1
    assert failed_at >= 9


def test_a_failure_reaches_all_that_wait(tmp_path: Path) -> None:
    database = FailingDatabase(tmp_path / "log")
    log = EmbeddedLog(tmp_path, database=database)
    log.create_topic("t", 1)
    database.calls_left = 0
    with log._commits.exclusive():
        futures = [log.submit([Entry(T0, Records.of([b"x"]))]) for _ in range(20)]
    for future in futures:
        assert isinstance(future.exception(30), TransportIOError)
    log.close()


def test_too_much_waiting_is_refused(tmp_path: Path) -> None:
    with opened(tmp_path) as log:
        with log._commits.exclusive():
            entry = Entry(T0, Records.of([bytes(8 << 20)]))
            futures = [log.submit([entry]) for _ in range(PENDING_LIMIT_BYTES // (9 << 20))]
            with pytest.raises(TransportFullError):
                log.submit([entry])
        assert [future.result(60) for future in futures] == [[i] for i in range(len(futures))]
        assert log.append("t", 0, [b"again"]) == len(futures)


def test_a_topic_deleted_under_way_fails_its_own_alone(tmp_path: Path) -> None:
    with opened(tmp_path) as log:
        log.create_topic("u", 1)
        gone = log._submission(
            [Entry(T0, Records.of([b"x"])), Entry(TopicPartition("u", 0), Records.of([b"y"]))]
        )
        log.delete_topic("t")
        stays = log._submission([Entry(TopicPartition("u", 0), Records.of([b"z"]))])
        log._commits.submit(gone)
        log._commits.submit(stays)
        assert isinstance(gone.future.exception(30), TransportError)
        assert stays.future.result(30) == [0]
        assert log.read("u", 0, 0, 9, 99).values() == [b"z"]


def test_one_owner_at_a_time(tmp_path: Path) -> None:
    log = opened(tmp_path)
    with pytest.raises(TransportLockedError, match="in use by process"):
        EmbeddedLog(tmp_path)
    code = (
        "import sys, pathlib\nfrom railgun.messaging.embedded.log import EmbeddedLog\n"
        "from railgun.messaging.errors import TransportLockedError\n"
        "try:\n    EmbeddedLog(pathlib.Path(sys.argv[1]))\n"
        "except TransportLockedError as error:\n    print(error)\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout
    assert "in use by process" in said
    assert said.count("\n") == 1
    log.close()
    opened(tmp_path).close()


def test_a_newer_format_is_left_alone(tmp_path: Path) -> None:
    opened(tmp_path).close()
    database = LogDatabase(tmp_path / "log")
    batch = WriteBatch(raw_mode=True)
    batch.put(VERSION_KEY, (2).to_bytes(4, "big"))
    database.write(batch)
    database.close()
    with pytest.raises(TransportVersionError, match="version 2"):
        EmbeddedLog(tmp_path)


def planted(folder: Path, key: bytes, value: bytes | None) -> None:
    database = LogDatabase(folder / "log")
    batch = WriteBatch(raw_mode=True)
    if value is None:
        batch.delete(key)
    else:
        batch.put(key, value)
    database.write(batch)
    database.close()


@pytest.mark.parametrize("value", [None, b"", b"\1\0\0\0\5\0\0\0"])
def test_a_hole_or_a_damaged_block_is_never_skipped(tmp_path: Path, value: bytes | None) -> None:
    with opened(tmp_path) as log:
        for i in range(4):
            log.append("t", 0, [b"%d" % i] * 10)
    planted(tmp_path, block_key(1, 0, 10), value)
    with EmbeddedLog(tmp_path) as log:
        assert log.read("t", 0, 3, 7, 1000).values() == [b"0"] * 7
        for offset in (3, 10, 12):
            with pytest.raises(TransportCorruptionError, match="t-0"):
                log.read("t", 0, offset, 17, 1000)
        assert log.read("t", 0, 20, 5, 1000).values() == [b"2"] * 5


@pytest.mark.parametrize("place", [0.1, 0.5, 0.9])
def test_flipped_bits_on_disk_are_told(tmp_path: Path, place: float) -> None:
    """Never another value in silence: RocksDB's checksums give an error."""
    values = [bytes([i]) * 5000 for i in range(100)]
    with opened(tmp_path) as log:
        log.append("t", 0, values)
    (file,) = (tmp_path / "log").glob("*.blob")
    damaged = bytearray(file.read_bytes())
    damaged[int(len(damaged) * place)] ^= 8
    file.write_bytes(damaged)
    got: list[bytes] = []
    with pytest.raises(TransportCorruptionError):
        read_into(got, tmp_path)
    assert got == values[: len(got)]


def read_into(got: list[bytes], folder: Path) -> None:
    """Open a log and read it, 1 record at a time, as far as that goes."""
    with EmbeddedLog(folder) as log:
        for offset in range(log.end_offset("t", 0)):
            got += log.read("t", 0, offset, 1, 1 << 20).values()


def test_readers_wait_for_durability(tmp_path: Path) -> None:
    """What is written but not yet synced cannot be read."""
    syncing, go_on = threading.Event(), threading.Event()

    class SlowDatabase(LogDatabase):
        slow = False

        def sync(self) -> None:
            if self.slow:
                syncing.set()
                assert go_on.wait(30)
            super().sync()

    database = SlowDatabase(tmp_path / "log")
    log = EmbeddedLog(tmp_path, Durability.FSYNC, database)
    log.create_topic("t", 1)
    log.append("t", 0, [b"a"])
    database.slow = True
    future = log.submit([Entry(T0, Records.of([b"b"]))])
    assert syncing.wait(30)
    assert log.end_offset("t", 0) == 1
    assert log.read("t", 0, 0, 9, 99).values() == [b"a"]
    assert not log.wait({T0: 1}, 0)
    go_on.set()
    assert future.result(30) == [1]
    assert log.read("t", 0, 0, 9, 99).values() == [b"a", b"b"]
    log.close()


def test_memory_and_disk_stay_bounded_while_trimming(tmp_path: Path) -> None:
    """A log that is trimmed as it grows takes no more disk than a few of its files."""
    chance = np.random.default_rng(5)
    with EmbeddedLog(tmp_path, Durability.OS) as log:
        log.create_topic("t", 1)
        for _ in range(300):
            buffer = chance.integers(0, 256, 1 << 20, dtype=np.uint8)
            records = Records(buffer, np.arange(0, (1 << 20) + 1, 1 << 10, dtype=np.int64))
            log.submit([Entry(T0, records)]).result()
            log.trim("t", 0, max(log.end_offset("t", 0) - 2048, 0))
        assert log._recent_bytes <= embedded.RECENT_LIMIT_BYTES
        # RocksDB deletes files in threads of its own.
        awaited(lambda: size_of(tmp_path / "log") < 220 << 20)


def test_few_records_for_the_page_cache_wake_no_thread(tmp_path: Path) -> None:
    with EmbeddedLog(tmp_path / "log", Durability.OS) as log:
        log.create_topic("t", 1)
        threads = set(threading.enumerate())
        for place in range(5):
            future = log.submit([Entry(T0, Records.of([b"%d" % place]))])
            assert future.done()
            assert future.result() == [place]
        assert set(threading.enumerate()) <= threads
        # Many go through the thread; few that come after them are written after them.
        many = log.submit([Entry(T0, Records.of([bytes(1_000)] * 100))])
        few = log.submit([Entry(T0, Records.of([b"last"]))])
        assert (many.result(), few.result()) == ([5], [105])
        assert log.read("t", 0, 105, 1, 100).records.buffer.tobytes().endswith(b"last")
