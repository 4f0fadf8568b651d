"""Fuzzy checkpoints: `Checkpointer` makes a task's state durable in small steps, while events go on to change it.

An *epoch* is the time from one checkpoint to the next. Items (rows and pages) that were dirty when an epoch closed are
written to the store bit by bit; one batch then commits the epoch. `TaskProcessor` makes the checkpointer, and
`railgun/task/checkpoints.py` calls it.
"""

from collections.abc import Callable, Sequence
from functools import partial

from railgun.state.errors import EpochOrderError
from railgun.state.resident import Resident
from railgun.state.store import Store
from reservoir.executor import Executor, Job

# The most tombstones of a committed epoch that one step deletes.
_SETTLE_LIMIT = 32


class Checkpointer:
    """Takes one checkpoint at a time of all residents. One thread calls it; a lane of the executor syncs.

    Call `begin`, then `step` until it returns True: everything up to `begin` is then durable. After a failure
    (StoreError, or what `make_durable` raised) each `step` raises that error.
    """

    def __init__(self, store: Store, residents: Sequence[Resident], executor: Executor) -> None:
        self._store = store
        self._residents = tuple(residents)
        self._epoch = store.committed_epoch + 1
        self._closing = 0
        self._meta = b""
        self._executor, self._lane = executor, executor.lane("checkpoint")
        self._prepared: Job[bytes] | None = None
        # Whether `make_durable` has returned.
        self._is_prepared = False
        self._commit: Job[None] | None = None
        # Whether all tombstones of committed epochs are deleted. A recovery leaves some.
        self._is_settled = False
        for resident in self._residents:
            resident.set_epoch(self._epoch)

    @property
    def epoch(self) -> int:
        """The current epoch, to which every change made now belongs."""
        return self._epoch

    @property
    def is_in_flight(self) -> bool:
        """Whether a checkpoint was begun and is not durable yet."""
        return self._closing != 0

    @property
    def is_committing(self) -> bool:
        """Whether the commit is being written. After a crash now, the checkpoint may or may not be there."""
        return self._commit is not None

    def begin(self, meta: bytes, make_durable: Callable[[], bytes] | None = None) -> None:
        """Close the current epoch. The checkpoint holds the items as they are now, and meta.

        make_durable: runs in the lane, before the commit. It syncs what meta refers to (segments, the log). It returns
            bytes that are known only then; they are stored behind meta.
        Raises EpochOrderError while a checkpoint is in flight.
        """
        if self.is_in_flight:
            raise EpochOrderError(f"the checkpoint of epoch {self._closing} is still in flight")
        self._store.let_compact()
        self._closing, self._meta = self._epoch, meta
        self._epoch += 1
        if make_durable is not None:
            self._prepared = self._lane.submit(make_durable)
        for resident in self._residents:
            resident.set_epoch(self._epoch)

    def step(self, limit_bytes: int) -> bool:
        """Do a bounded bit of the checkpoint's work. Returns True in the one call that finds it durable."""
        if not self.is_in_flight:
            self._settle()
            return False
        if not self._is_prepared and self._prepared is not None and self._prepared.done():
            self._prepared.result()
            self._is_prepared = True
        if self._commit is None:
            if not self._write_pending(limit_bytes):
                return False
            self._commit = self._lane.submit(partial(self._commit_when_prepared, self._prepared))
        if not self._commit.done():
            return False
        self._commit.result()
        return self._finish()

    def finish(self) -> None:
        """Complete a checkpoint in flight, and wait for it. For the shutdown, and for tests."""
        while self.is_in_flight:
            if not self.step(1 << 20) and self._commit is not None:
                self._commit.exception()
        while not self._is_settled:
            self._settle()

    def wait(self, timeout_s: float) -> None:
        """Wait until the commit that is being written has ended, for so long at most."""
        if self._commit is not None:
            self._executor.wait([self._commit], timeout_s)

    def close(self) -> None:
        """End the lane. A checkpoint in flight is given up: the next recovery undoes it."""
        self._lane.close()

    def _write_pending(self, limit_bytes: int) -> bool:
        """Write some of the pending images. Returns True if none is left."""
        for resident in self._residents:
            if not resident.exhausted():
                images = resident.pending(self._closing, limit_bytes)
                self._store.write(images)
                if not images:
                    resident.drain(limit_bytes)
                return False
        return True

    def _commit_when_prepared(self, prepared: Job[bytes] | None) -> None:
        found = b"" if prepared is None else prepared.result()
        self._store.commit(self._closing, self._meta + found)

    def _finish(self) -> bool:
        for resident in self._residents:
            resident.committed(self._closing)
        self._closing, self._prepared, self._commit = 0, None, None
        self._is_prepared = False
        self._is_settled = False
        return True

    def _settle(self) -> None:
        if not self._is_settled:
            self._is_settled = self._store.settle(_SETTLE_LIMIT)
