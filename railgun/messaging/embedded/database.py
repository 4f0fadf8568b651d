"""The embedded log's RocksDB: its options, its keys, and its failures as errors of this package.

Blocks are stored in blob files. Compactions do not rewrite them, and a blob file is deleted when all its blocks are
trimmed.
"""

import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rocksdict import DBCompressionType, DBRecoveryMode, Options, Rdict, RdictIter, WriteBatch

from railgun.messaging.errors import TransportCorruptionError, TransportIOError
from railgun.state.errors import StoreCorruptionError
from railgun.state.rocks_files import check_files
from reservoir.files import DiskFiles

_MIB = 1 << 20
_RECORD = struct.Struct(">cIIQ")
_PREFIX = struct.Struct(">cII")

VERSION_KEY = b"v"
NEXT_TOPIC_KEY = b"n"
END_KEY = b"e"
TOPIC_PREFIX = b"t"


def block_key(topic_id: int, partition: int, offset: int) -> bytes:
    """Return the key of the block whose first record has this offset."""
    return _RECORD.pack(b"r", topic_id, partition, offset)


def block_offset(key: bytes) -> int:
    """Return the offset in a block's key."""
    return int(_RECORD.unpack(key)[3])


def blocks_prefix(topic_id: int, partition: int) -> bytes:
    """Return the common prefix of the keys of a partition's blocks."""
    return _PREFIX.pack(b"r", topic_id, partition)


def start_key(topic_id: int, partition: int) -> bytes:
    """Return the key of a partition's first readable offset, which trimming stores."""
    return _PREFIX.pack(b"s", topic_id, partition)


def topic_key(topic: str) -> bytes:
    """Return the key of a topic's number and its number of partitions."""
    return TOPIC_PREFIX + topic.encode()


class LogDatabase:
    """A RocksDB with one column family, so that a single write-ahead log orders all writes.

    Threads: any may call every method. All methods raise TransportIOError and TransportCorruptionError.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with self.failures("open"):
            if folder.is_dir():
                check_files(DiskFiles(), folder)
            options = log_options()
            # The column family is named, as rocksdict would otherwise use the options that it was created with.
            self._db = Rdict(str(folder), options, column_families={"default": options})

    def get(self, key: bytes) -> bytes | None:
        """Return the value of a key; None if it does not exist."""
        with self.failures("read"):
            value: bytes | None = self._db.get(key)
        return value

    def write(self, batch: WriteBatch) -> None:
        """Write a batch, without a sync. It holds the interpreter lock, so batches have to be small."""
        with self.failures("write"):
            self._db.write(batch)

    def sync(self) -> None:
        """Sync the write-ahead log. It releases the interpreter lock."""
        with self.failures("sync"):
            self._db.flush_wal(True)

    def from_key(self, key: bytes, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Yield (key, value) from a key on, as long as keys have the prefix."""
        return self._pairs(lambda iterator: iterator.seek(key), prefix)

    def around_key(self, key: bytes, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Yield (key, value) from the greatest key that is not after `key`, as long as keys have the prefix."""
        return self._pairs(lambda iterator: iterator.seek_for_prev(key), prefix)

    def _pairs(self, seek: Callable[[RdictIter], object], prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        with self.failures("read"):
            iterator = self._db.iter()
            seek(iterator)
            while iterator.valid():
                found = iterator.key()
                if not found.startswith(prefix):
                    return
                yield found, iterator.value()
                iterator.next()
            iterator.status()

    def last_key(self, key: bytes, prefix: bytes) -> bytes | None:
        """Return the greatest key that is not after `key`, if it has the prefix."""
        with self.failures("read"):
            iterator = self._db.iter()
            iterator.seek_for_prev(key)
            if not iterator.valid():
                iterator.status()
                return None
            found: bytes = iterator.key()
        return found if found.startswith(prefix) else None

    def close(self) -> None:
        """Close the database, so that others can open the folder."""
        with self.failures("close"):
            self._db.close()

    @contextmanager
    def failures(self, doing: str) -> Iterator[None]:
        """Map errors of RocksDB's binding, which raises bare Exceptions with the status as text.

        doing: the operation, for the message.
        """
        try:
            yield
        except (TransportIOError, TransportCorruptionError):
            raise
        except StoreCorruptionError as error:
            raise TransportCorruptionError(str(self.folder), error.reason) from error
        except Exception as error:
            reason = f"{doing}: {str(error).splitlines()[0] if str(error) else type(error).__name__}"
            if "Corruption" in reason:
                raise TransportCorruptionError(str(self.folder), reason) from error
            raise TransportIOError(
                str(self.folder), reason, "Check the disk and its free space, then start again"
            ) from error


def log_options() -> Options:
    """Return the options of the log's RocksDB."""
    options = Options(raw_mode=True)
    options.create_if_missing(True)
    options.set_write_buffer_size(16 * _MIB)
    options.set_max_write_buffer_number(4)
    options.set_max_open_files(256)
    options.set_compression_type(DBCompressionType.lz4())
    options.set_enable_blob_files(True)
    options.set_min_blob_size(2048)
    options.set_blob_file_size(64 * _MIB)
    options.set_blob_compression_type(DBCompressionType.lz4())
    options.set_enable_blob_gc(True)
    # Compactions merge keys only, so a backlog of tables is small. A stalled write would hold the interpreter lock.
    options.set_level_zero_slowdown_writes_trigger(60)
    options.set_level_zero_stop_writes_trigger(120)
    # A crash leaves a torn tail; point-in-time recovery keeps what was written before it. A stricter mode would accept
    # a torn last record only, but a loss of power may keep later disk blocks and lose earlier ones.
    options.set_wal_recovery_mode(DBRecoveryMode.point_in_time())
    options.set_bytes_per_sync(_MIB)
    options.set_max_background_jobs(2)
    options.set_keep_log_file_num(2)
    options.set_max_log_file_size(_MIB)
    options.set_stats_dump_period_sec(0)
    return options
