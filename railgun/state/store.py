"""Stores the items of a task (rows, pages, strings, layouts) in RocksDB, by epochs (the times between checkpoints).

Each value carries its epoch. The values that an epoch overwrites are kept as undo entries until the epoch commits. A
task has one `Store`. Its entity table, its page pool and its checkpointer read and write through it.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby, islice
from pathlib import Path
from typing import TypeAlias

from rocksdict import Checkpoint, WriteBatch

from railgun.state import keys
from railgun.state.end_marker import END_MARK, EndMarker
from railgun.state.errors import EpochOrderError, StoreCorruptionError, StoreError, StoreVersionError
from railgun.state.image_batch import ImageBatch
from railgun.state.lock import FolderLock
from railgun.state.readers import Readers
from railgun.state.resident import Image
from railgun.state.rocks import StoreLimits, failure, failures, items, items_backwards, open_database
from railgun.state.rollback import WrittenKeys
from railgun.state.values import (
    BODY_FORMAT,
    HEADER_BYTES,
    PACKED_FORMAT,
    TOMBSTONE_FORMAT,
    VALUE_HEADER,
    pack_commit,
    undo_entry,
    unpack_commit,
)
from reservoir.executor import Executor
from reservoir.files import DiskFiles, Files

# A write holds the interpreter lock. A larger batch would stall other threads.
BATCH_BYTES = 256 * 1024

# The write buffer may be filled this many times before RocksDB compacts. That makes eight tables, and a read looks in
# each of them.
_BUFFERS_UNCOMPACTED = 2

# The kinds of lists that are kept by epoch. Graves (lists of tombstones) come last, because they outlive the commit.
_OF_EPOCHS = (keys.written_key, keys.undo_key, keys.graves_key)

Stored: TypeAlias = tuple[int, bytes | None]


class Store:
    """The stored state of one task. All calls come from one thread, except `commit` and `snapshot_to`, which may run
    in another.

    folder: made if absent, and locked while open (StoreLockedError). `recover` must be called first.
    written_bytes: about how much was written since the store was opened.
    Failures of RocksDB are StoreErrors that name the folder. After a failed write nothing is written any more: every
    further write raises that error again.
    """

    def __init__(self, folder: Path, limits: StoreLimits | None = None, files: Files | None = None) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._lock = FolderLock(folder)
        self._files = files = files or DiskFiles()
        try:
            with failures(folder, "open"):
                self._end = EndMarker(files, folder / END_MARK)
            limits = limits or StoreLimits()
            self._database = open_database(folder, limits, files)
        except BaseException:
            self._lock.release()
            raise
        self._is_closed = False
        self._may_compact = False
        self._compacts_after_bytes = _BUFFERS_UNCOMPACTED * limits.write_buffer_bytes
        self._committed: int | None = None
        self._settled = 0  # undo entries up to this epoch are deleted
        self._graves_from = keys.GRAVES  # no list of tombstones lies before this key
        self._number = 0
        self._kept: list[tuple[int, bytes]] = []
        self._kept_bytes = 0
        self._failed: StoreError | None = None
        self.written_bytes = 0
        self._readers = Readers()

    # --- life ------------------------------------------------------------------------------------

    @property
    def committed_epoch(self) -> int:
        """The last committed epoch; 0 before the first. It is known after `recover`."""
        if self._committed is None:
            raise EpochOrderError("the store has not been recovered yet")
        return self._committed

    def recover(self) -> tuple[int, bytes] | None:
        """Undo the epochs that did not commit, newest first. Returns (epoch, meta) of the last commit, or None.

        It may be interrupted anywhere and called again, because undo entries are deleted only after all of them were
        restored. Tombstones of the last epochs are left for `settle`, because there may be many and events wait for
        the recovery. Raises StoreCorruptionError, having changed nothing, if a commit that was durable is gone.
        """
        stored = self._read_meta()
        committed = stored[0] if stored else 0
        self._check_end(committed)
        for _ in self.recovery_steps(committed):
            pass
        self._committed = committed
        self.settle(0)
        return stored

    def _check_end(self, committed: int) -> None:
        """Raise StoreCorruptionError if a commit is older than the end mark says. RocksDB takes a damaged end of its
        log for the end, and would give back an older checkpoint in silence.
        """
        if self._end.found is not None and committed < self._end.found.synced:
            reason = f"checkpoint {self._end.found.synced} is gone, {committed} is the newest"
            raise StoreCorruptionError(self.folder, "recover", reason)

    def recovery_steps(self, committed: int) -> Iterable[None]:
        """The steps of undoing every epoch after `committed`, one write each: for tests to stop between."""
        ranges = [(make(committed + 1, 0), keys.after(make(0, 0)[:1])) for make in _OF_EPOCHS]
        written = WrittenKeys(items(self._database, self.folder, *ranges[0]))
        for epoch, values in _together(items_backwards(self._database, self.folder, *ranges[1])):
            batch = self._undone(written.overwritten(self.folder, epoch, values), committed)
            if not batch.is_empty():
                self._write(batch)
                yield
        self.purge(ranges)
        yield

    def close(self) -> None:
        """Close the database and release the folder. The next `recover` undoes what is not committed.

        A second call changes nothing.
        """
        if self._is_closed:
            return
        self._is_closed = True
        try:
            with failures(self.folder, "close"):
                self._database.close()
        finally:
            self._end.close()
            self._lock.release()

    @contextmanager
    def reading_with(self, executor: Executor, threads: int) -> Iterator[None]:
        """In the block, share reads of many keys among this many threads: the caller's and lanes."""
        self._readers = Readers([executor.lane("reader") for _ in range(threads - 1)])
        try:
            yield
        finally:
            self._readers.close()
            self._readers = Readers()

    # --- reading ---------------------------------------------------------------------------------

    def get(self, requested: list[bytes]) -> list[Stored]:
        """Return (stored_epoch, body) for each key; (0, None) if nothing is stored, (epoch, None) for a tombstone."""
        return [self._stored(key, value) for key, value in zip(requested, self.get_values(requested))]

    def get_values(self, requested: list[bytes]) -> list[bytes | None]:
        """Return the values as stored, with their headers, for kernels that decode them."""
        try:
            values: list[bytes | None] = self._readers.get(self._database, requested)
        except Exception as error:
            raise failure(self.folder, "read", error) from error
        return values

    def scan(self, start: bytes, stop: bytes, limit: int) -> list[tuple[bytes, int, bytes | None]]:
        """Return (key, stored_epoch, body) of at most `limit` keys in [start, stop), in order, tombstones included."""
        return [(key, *self._stored(key, value)) for key, value in self.scan_values(start, stop, limit)]

    def scan_values(self, start: bytes, stop: bytes, limit: int) -> list[tuple[bytes, bytes]]:
        """Return (key, value as stored) of at most `limit` keys in [start, stop), in order, tombstones included."""
        return list(islice(items(self._database, self.folder, start, stop), limit))

    def _stored(self, key: bytes, value: bytes | None) -> Stored:
        if value is None:
            return 0, None
        if len(value) < HEADER_BYTES:
            raise StoreCorruptionError(self.folder, "read", f"the value of {key.hex()} has no header")
        epoch, form = VALUE_HEADER.unpack_from(value)
        if form in (BODY_FORMAT, PACKED_FORMAT):
            return epoch, value[HEADER_BYTES:]
        if form == TOMBSTONE_FORMAT:
            return epoch, None
        raise StoreVersionError(self.folder, f"the value of {key.hex()} has format {form}")

    # --- writing ---------------------------------------------------------------------------------

    def keep(self, epoch: int, entries: bytes) -> None:
        """Keep undo entries (values.py) with the present values of keys that may be overwritten in `epoch`.

        They are written no later than the first of these overwrites. So the items may set their `stored_epoch` to
        `epoch`. A caller that has read a value to change it thus saves the store from reading it again.
        """
        self._kept.append((epoch, entries))
        self._kept_bytes += len(entries)
        if self._kept_bytes >= BATCH_BYTES:
            self._write_batch(self._batch_with_kept())

    def write(self, images: Sequence[Image], next_epoch: int | None = None) -> None:
        """Write images, at most one of each key, in atomic batches of about 256 KiB.

        An image whose `stored_epoch` is not its epoch is the first of its key in that epoch. The value that it
        replaces goes into the same batch, to be restored if the epoch does not commit.
        next_epoch: if given, the images are also kept as undo entries of this epoch, as by `keep`, because they may be
            overwritten in it.
        Raises EpochOrderError, before anything is written, for an image that is of a committed epoch, or older than
        the stored one. Raises StoreError if RocksDB fails.
        """
        if not images:
            return
        requested = [key for key, _, epoch, stored in images if stored != 0 and stored != epoch]
        old = dict(zip(requested, self.get_values(requested))) if requested else {}
        self._check(images, old)
        batch = self._batch_with_kept()
        for key, body, epoch, stored in images:
            if stored != epoch:
                batch.add_undo(epoch, key, old.get(key))
            value = batch.add(key, body, epoch)
            if next_epoch is not None:
                batch.add_undo(next_epoch, key, value)
            if batch.size_bytes >= BATCH_BYTES:
                self._write_batch(batch)
                batch = ImageBatch()
        self._write_batch(batch)

    def _check(self, images: Sequence[Image], old: dict[bytes, bytes | None]) -> None:
        """Check the order of epochs before a byte is written. Raises EpochOrderError."""
        committed = self.committed_epoch
        if len({image[0] for image in images}) != len(images):
            raise EpochOrderError("two images of one key in one write")
        for key, _, epoch, stored in images:
            if epoch <= committed or epoch < stored:
                raise EpochOrderError(
                    f"image of {key.hex()} of epoch {epoch}: stored is {stored}, committed {committed}"
                )
        for (key, value), stored in zip(
            old.items(), (stored for _, _, epoch, stored in images if stored != 0 and stored != epoch)
        ):
            # A tombstone of a committed epoch is deleted at some time, and its item need not know. A value that was
            # kept for an epoch, but not overwritten in it, is older than its item says.
            if stored > committed if value is None else VALUE_HEADER.unpack_from(value)[0] > stored:
                raise EpochOrderError(f"the value of {key.hex()} is newer than epoch {stored}, or gone")

    def _batch_with_kept(self) -> ImageBatch:
        batch = ImageBatch()
        for epoch, entries in self._kept:
            if epoch > self.committed_epoch:
                batch.add_entries(epoch, entries)
        self._kept.clear()
        self._kept_bytes = 0
        return batch

    def _write_batch(self, batch: ImageBatch) -> None:
        if batch.is_empty:
            return
        self._number += 1
        self.written_bytes += batch.size_bytes
        self._write(batch.sealed(self._number))
        if self.written_bytes > self._compacts_after_bytes:
            self.let_compact()

    def _write(self, batch: WriteBatch) -> None:
        if self._failed is not None:
            raise self._failed
        try:
            self._database.write(batch)
        except Exception as error:
            self._failed = failure(self.folder, "write", error)
            raise self._failed from error

    # --- commit ----------------------------------------------------------------------------------

    def commit(self, epoch: int, meta: bytes) -> None:
        """Commit `epoch` and those before it durably, so that `recover` gives their state.

        May run in another thread while images of later epochs are written, because the WAL is synced without the
        interpreter lock. Call `settle` afterwards, from the first thread.
        """
        if epoch != self.committed_epoch + 1:
            raise EpochOrderError(f"commit of epoch {epoch} after {self.committed_epoch}")
        batch = WriteBatch(raw_mode=True)
        batch.put(keys.META, pack_commit(epoch, meta))
        self._write(batch)
        try:
            self._database.flush_wal(True)
            self._end.note(epoch, epoch)
            self._end.sync()
        except Exception as error:
            self._failed = failure(self.folder, "sync", error)
            raise self._failed from error
        self._committed = epoch

    def last_commit(self) -> tuple[int, bytes] | None:
        """Return (epoch, meta) of the last commit, or None. Must not be called while a commit is being made."""
        return self._read_meta()

    def snapshot_to(self, folder: Path, epoch: int) -> None:
        """Write a copy of the committed state to a folder that does not exist, durably. It has hard links to tables.

        May run in another thread while images of later epochs are written: in the copy, `recover` undoes them.
        epoch: the last committed epoch. Raises EpochOrderError if another one commits meanwhile: the copy is then of
            no use. Raises StoreError if RocksDB or the disk fails.
        """
        self._check_committed(epoch)
        with failures(self.folder, "snapshot"):
            # This releases the interpreter lock. `create_checkpoint` holds it, and would flush by itself.
            self._database.flush()
            Checkpoint(self._database).create_checkpoint(str(folder))
            mark = EndMarker(self._files, folder / END_MARK)
            try:
                mark.note(epoch, epoch)
                mark.sync()
            finally:
                mark.close()
        self._check_committed(epoch)

    def _check_committed(self, epoch: int) -> None:
        if self.committed_epoch != epoch:
            raise EpochOrderError(f"a snapshot of epoch {epoch}, but {self.committed_epoch} is committed")

    def let_compact(self) -> None:
        """Let RocksDB compact from now on.

        Before this call it does not compact, because that would take a processor while an event waits for the task to
        be opened. If much is written before this call, it begins by itself.
        """
        if not self._may_compact:
            try:
                self._database.set_options({"disable_auto_compactions": "false"})
            except Exception as error:
                raise failure(self.folder, "set options", error) from error
            self._may_compact = True

    def settle(self, limit: int) -> bool:
        """Delete what committed epochs leave behind: undo entries, then up to `limit` tombstones.

        Returns True if nothing is left to do.
        """
        committed = self.committed_epoch
        if self._settled < committed:
            self.purge([(make(0, 0), make(committed + 1, 0)) for make in _OF_EPOCHS[:2]])
            self._settled = committed
        return limit > 0 and self._drop_tombstones(limit)

    def purge(self, ranges: Iterable[tuple[bytes, bytes]]) -> None:
        """Physically delete all keys in the [from, to) ranges, in one batch. Nothing restores them.

        Use this only for keys that were given up in a committed epoch.
        """
        batch = WriteBatch(raw_mode=True)
        for start, stop in ranges:
            batch.delete_range(start, stop)
        self._write(batch)

    def _drop_tombstones(self, limit: int) -> bool:
        """Delete up to `limit` listed tombstones of committed epochs. Returns True if none is left."""
        batch, dead = WriteBatch(raw_mode=True), list[bytes]()
        # It begins where it stopped the last time. Otherwise it would pass deleted lists again and again, until
        # RocksDB has removed them.
        begin, stop = self._graves_from, keys.graves_key(self.committed_epoch + 1, 0)
        for list_key, listed in items(self._database, self.folder, begin, stop):
            at, begin = 0, list_key
            while at < len(listed) and len(dead) < limit:
                key, _, at = undo_entry(self.folder, listed, at)
                dead.append(key)
            if at < len(listed):
                batch.put(list_key, listed[at:])
            else:
                batch.delete(list_key)
            if len(dead) == limit:
                break
        for key, (epoch, body) in zip(dead, self.get(dead)):
            if body is None and 0 < epoch <= self.committed_epoch:
                batch.delete(key)
        if dead:
            self._write(batch)
            self._graves_from = begin
        return len(dead) < limit

    # --- recovery --------------------------------------------------------------------------------

    def _read_meta(self) -> tuple[int, bytes] | None:
        value = self.get_values([keys.META])[0]
        if value is None:
            return None
        return unpack_commit(self.folder, value)

    def _undone(self, entries: Iterable[tuple[bytes, bytes | None]], committed: int) -> WriteBatch:
        batch = WriteBatch(raw_mode=True)
        for key, old in entries:
            if old is None or self._is_grave(key, old, committed):
                batch.delete(key)
            else:
                batch.put(key, old)
        return batch

    def _is_grave(self, key: bytes, value: bytes, committed: int) -> bool:
        """Whether a value is a tombstone of a committed epoch, which is not needed any more."""
        epoch, body = self._stored(key, value)
        return body is None and epoch <= committed


def _together(found: Iterable[tuple[bytes, bytes]]) -> Iterator[tuple[int, list[bytes]]]:
    """Group successive items by epoch: (epoch, values). The values of an epoch come in parts of about BATCH_BYTES."""
    for epoch, of_epoch in groupby(found, lambda item: keys.epoch_of(item[0])):
        values, size_bytes = list[bytes](), 0
        for _, value in of_epoch:
            values.append(value)
            size_bytes += len(value)
            if size_bytes >= BATCH_BYTES:
                yield epoch, values
                values, size_bytes = [], 0
        if values:
            yield epoch, values
