"""Opens a state's RocksDB with its options, iterates over its keys, and turns its failures into errors of this package.

`Store` and `StoredState` (stored.py) are made of these functions.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rocksdict import (
    BlockBasedOptions,
    Cache,
    DBCompressionType,
    DBRecoveryMode,
    Options,
    Rdict,
    WriteOptions,
)

from railgun.state.errors import StoreCorruptionError, StoreError
from railgun.state.rocks_files import check_files
from reservoir.files import Files

_MIB = 1 << 20
_BLOCK_BYTES = 4 * 1024


@dataclass(frozen=True, slots=True)
class StoreLimits:
    """The limits of one store: memory for writes not yet in tables, memory for blocks read, and open files."""

    write_buffer_bytes: int = 64 * _MIB
    block_cache_bytes: int = 64 * _MIB
    open_files: int = 256


def open_database(folder: Path, limits: StoreLimits, files: Files) -> Rdict:
    """Open the database in a folder; make it if there is none. It does not compact until it is told to.

    It has one column family, so that one write-ahead log (WAL) orders all writes.
    """
    options = Options(raw_mode=True)
    options.create_if_missing(True)
    # The memory is divided into four write buffers, so that a burst need not wait for the flush of the one before.
    options.set_write_buffer_size(limits.write_buffer_bytes // 4)
    options.set_max_write_buffer_number(4)
    options.set_max_open_files(limits.open_files)
    options.set_compression_type(DBCompressionType.lz4())
    options.set_block_based_table_factory(_tables(limits))
    # A first look-up of a new entity is a miss: the bloom filter of the memtable answers most of them.
    options.set_memtable_prefix_bloom_ratio(0.05)
    options.set_memtable_whole_key_filtering(True)
    # A crash leaves a torn tail of the WAL. What lies before it is a prefix of what was written.
    options.set_wal_recovery_mode(DBRecoveryMode.point_in_time())
    # Spread the syncing of tables and WAL, so that the sync of a checkpoint finds little left to do.
    options.set_bytes_per_sync(_MIB)
    options.set_wal_bytes_per_sync(_MIB // 2)
    options.set_max_background_jobs(2)
    options.set_disable_auto_compactions(True)
    options.set_keep_log_file_num(2)
    options.set_max_log_file_size(_MIB)
    options.set_stats_dump_period_sec(0)
    _refuse_headless(folder)
    with failures(folder, "open"):
        check_files(files, folder)
        # The column family is named, because otherwise an existing database keeps the options it was made with. Its
        # memory would then be that of its first start, and its cache RocksDB's own default.
        database = Rdict(str(folder), options, column_families={"default": options})
    database.set_write_options(WriteOptions())
    return database


def _refuse_headless(folder: Path) -> None:
    """Refuse a folder with data but without the file that RocksDB begins from. RocksDB would make a new database, and
    the state would be lost in silence.
    """
    if not (folder / "CURRENT").exists():
        data = [*folder.glob("*.sst"), *(log for log in folder.glob("*.log") if log.stat().st_size)]
        if data:
            raise StoreCorruptionError(folder, "open", f"{data[0].name} is there, CURRENT is not")


def _tables(limits: StoreLimits) -> BlockBasedOptions:
    tables = BlockBasedOptions()
    tables.set_block_cache(Cache.new_hyper_clock_cache(limits.block_cache_bytes, _BLOCK_BYTES))
    tables.set_bloom_filter(10, False)
    tables.set_block_size(_BLOCK_BYTES)
    tables.set_format_version(5)
    # Index and filter blocks count against the cache: otherwise memory would grow with the state.
    tables.set_cache_index_and_filter_blocks(True)
    tables.set_pin_l0_filter_and_index_blocks_in_cache(True)
    return tables


def items(database: Rdict, folder: Path, start: bytes, stop: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Iterate over (key, value) of the keys in [start, stop), in order. Raises StoreError.

    The binding's own iterators end in silence at a damaged block. Only the status tells the damage.
    """
    with failures(folder, "scan"):
        cursor = database.iter()
        cursor.seek(start)
        while cursor.valid():
            key = cursor.key()
            if key >= stop:
                return
            yield key, cursor.value()
            cursor.next()
        cursor.status()


def items_backwards(
    database: Rdict, folder: Path, start: bytes, stop: bytes
) -> Iterator[tuple[bytes, bytes]]:
    """Iterate like `items`, but from the last key to the first. With one cursor, so that deletions made meanwhile do
    not slow it down.
    """
    with failures(folder, "scan"):
        cursor = database.iter()
        cursor.seek_for_prev(stop)
        while cursor.valid():
            key = cursor.key()
            if key < start:
                return
            if key < stop:
                yield key, cursor.value()
            cursor.prev()
        cursor.status()


@contextmanager
def failures(folder: Path, doing: str) -> Iterator[None]:
    """Turn what RocksDB's binding raises in the block (a bare Exception, its text the status) into typed errors."""
    try:
        yield
    except StoreError:
        raise
    except Exception as error:
        raise failure(folder, doing, error) from error


def failure(folder: Path, doing: str, error: Exception) -> StoreError:
    """Return the typed error for an error of the binding. Only the name of the status tells the kinds apart."""
    reason = str(error)
    # Whatever lacks a file while the database is opened is damaged: the disk answers, and the folder is there.
    is_incomplete = doing == "open" and "No such file or directory" in reason
    if reason.startswith("Corruption") or is_incomplete:
        return StoreCorruptionError(folder, doing, reason)
    return StoreError(
        folder,
        doing,
        reason,
        "Check the disk's space and health, then start again: the task recovers by itself",
    )
