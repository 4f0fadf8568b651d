"""The contract between a checkpoint and the residents: the entity table and the page pool, which hold items in memory.

An *item* is anything stored under a key whose image belongs to an epoch. The epoch in progress is the
*current* one; while a checkpoint is on its way, the epoch before it is the *old* one. An item in memory
carries two epochs:

- `dirty_epoch`: the epoch of its content if RocksDB does not have that content yet; 0 if it is clean. It is the old or
  the current epoch, nothing else.
- `stored_epoch`: the epoch of the value that RocksDB has under its key, tombstones included; 0 if there is none.

An *image* is an item's key and its content as bytes, or its deletion. Images of one key must reach the store in the
order of their epochs. So before an item whose `dirty_epoch` is the old one is changed, deleted or evicted, its image is
copied into a *copy buffer* (copy on write). That buffer is drained before any image of the current epoch is written.
"""

from typing import Protocol, TypeAlias

# (key, body or None for a deletion, epoch of the content, stored_epoch before this write)
Image: TypeAlias = tuple[bytes, bytes | None, int, int]


class Resident(Protocol):
    """Holds items in memory that take part in checkpoints. One thread calls all methods."""

    def set_epoch(self, epoch: int) -> None:
        """Make `epoch` the current epoch. The epoch that was current becomes the old one; no older item may be left."""

    def pending(self, old_epoch: int, limit_bytes: int) -> list[Image]:
        """Mark some items with `dirty_epoch == old_epoch` as clean, and return their images, about `limit_bytes`.

        The caller must write the images before it calls any other method. A resident may also write them itself and
        return none. One call does a bounded part of a scan, so an empty list does not mean that all is done;
        `exhausted` tells that. The copy buffer is not included.
        """

    def drain(self, limit_bytes: int | None = None) -> None:
        """Write the copy buffer to the store and empty it. With a limit, it may be only about this much of it."""

    def exhausted(self) -> bool:
        """Whether no dirty item of the old epoch is left, and the copy buffer is empty."""

    def committed(self, epoch: int) -> None:
        """Note that the checkpoint of `epoch` is durable. Work that waited for that (physical deletion) may happen."""
