"""The contract between a checkpoint and what keeps items in memory: entity rows and pages.

An *item* is anything stored under a key whose image belongs to an epoch. The epoch in progress is the
*current* one; while a checkpoint is on its way, the epoch before it is the *old* one. An item in memory
carries two epochs:

- `dirty_epoch`: the epoch of its content if RocksDB has not got it; 0 when it is clean. It is the old or the
  current epoch, nothing else.
- `stored_epoch`: the epoch of the value that RocksDB has under its key, tombstones included; 0 when it is
  known that there is none.

Images of one key must reach the store in the order of their epochs. So whatever changes, deletes or evicts
an item whose `dirty_epoch` is the old one first copies its image into a *copy buffer* (copy on write), and
whatever writes an image of the current epoch drains that buffer first.
"""

from typing import Protocol, TypeAlias

# (key, body or None for a deletion, epoch of the content, stored_epoch before this write)
Image: TypeAlias = tuple[bytes, bytes | None, int, int]


class Resident(Protocol):
    """Items in memory that take part in checkpoints. One thread calls all of these."""

    def set_epoch(self, epoch: int) -> None:
        """Make `epoch` the current one: what was current becomes old. Nothing of an older epoch is left."""

    def pending(self, old_epoch: int, limit_bytes: int) -> list[Image]:
        """Some images of items with `dirty_epoch == old_epoch`, about `limit_bytes`, now marked clean.

        The caller writes them before it calls anything else here; a resident may also write them itself and
        return none. An incremental scan with a bounded cost: an empty list does not mean that all is done,
        `exhausted` does. The copy buffer is not included.
        """

    def drain(self, limit_bytes: int | None = None) -> None:
        """Write the copy buffer to the store and empty it; with a limit it may be about so much of it."""

    def exhausted(self) -> bool:
        """No item of the old epoch is left, and the copy buffer is empty."""

    def committed(self, epoch: int) -> None:
        """The checkpoint of `epoch` is durable: what had to wait for that (physical deletion) may happen."""
