"""Fuzzy checkpoints: what was dirty when an epoch closed trickles into the store; one batch commits it."""

from collections.abc import Callable, Sequence
from functools import partial

from railgun.state.errors import EpochOrderError
from railgun.state.resident import Resident
from railgun.state.store import Store
from reservoir.executor import Executor, Job

# Tombstones of a committed epoch that one step deletes at most.
_SETTLE_LIMIT = 32


class Checkpointer:
    """One checkpoint at a time over all residents. One thread calls it; a lane of the executor syncs.

    begin -> step, step, ... -> step says True once: everything up to `begin` is durable.
    A failure (StoreError, or what `make_durable` raised) comes out of `step`, then and ever after.
    """

    def __init__(self, store: Store, residents: Sequence[Resident], executor: Executor) -> None:
        self._store = store
        self._residents = tuple(residents)
        self._epoch = store.committed_epoch + 1
        self._closing = 0
        self._meta = b""
        self._lane = executor.lane("checkpoint")
        self._prepared: Job[bytes] | None = None
        self._is_prepared = False  # and did not fail
        self._commit: Job[None] | None = None
        self._is_settled = False  # a recovery leaves tombstones
        for resident in self._residents:
            resident.set_epoch(self._epoch)

    @property
    def epoch(self) -> int:
        """The current epoch: that of every change made now."""
        return self._epoch

    @property
    def is_in_flight(self) -> bool:
        """A checkpoint was begun and is not durable yet."""
        return self._closing != 0

    @property
    def is_committing(self) -> bool:
        """The commit is on its way: after a crash now it may or may not be there."""
        return self._commit is not None

    def begin(self, meta: bytes, make_durable: Callable[[], bytes] | None = None) -> None:
        """Close the current epoch: the checkpoint holds the items as they are now, and meta.

        make_durable runs in the lane; the commit comes behind it there. It syncs what
        meta refers to (segments, the log); the bytes that it returns, known only then, follow meta.
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
        """Do a bounded bit of what is to be done. True in the one call that finds the checkpoint durable."""
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
        """Bring a checkpoint in flight to its end, waiting. At shutdown, and in tests."""
        while self.is_in_flight:
            if not self.step(1 << 20) and self._commit is not None:
                self._commit.exception()
        while not self._is_settled:
            self._settle()

    def close(self) -> None:
        """End the lane. A checkpoint in flight is given up: the next recovery undoes it."""
        self._lane.close()

    def _write_pending(self, limit_bytes: int) -> bool:
        """Write some of what is pending. True when nothing is left."""
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
