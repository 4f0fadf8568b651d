"""Moves the records of the page pool's outbox to the store, as images; each write has one image of a key at most.

An image is a key with its content as bytes, or its deletion. `PagePool` has one `Outbox`.
"""

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from railgun.state.paged.layout import OUTBOX_USED
from railgun.state.paged.memory import PageMemory
from railgun.state.paged.outbox import RECORD_BODY, RECORD_KEY, index_outbox
from railgun.state.resident import Image
from reservoir.native.jit import address

_KEY_BYTES = 17
_INDEX_ROWS = 256


class ItemStore(Protocol):
    """The part of the store (`store.Store`) that the pool needs."""

    def get(self, requested: list[bytes]) -> list[tuple[int, bytes | None]]:
        """Return (stored_epoch, body) for each key; (0, None) if nothing is stored."""

    def write(self, images: Sequence[Image]) -> None:
        """Write images, at most one of each key."""


class Outbox:
    """Takes the records out of a pool's outbox. `written`: how many records were taken so far."""

    def __init__(self, memory: PageMemory, store: ItemStore) -> None:
        self._memory = memory
        self._store = store
        self._bytes = memory.outbox.data.cast("B")
        self._index = np.zeros((_INDEX_ROWS, 4), np.int64)
        self.written = 0

    def take(self) -> list[Image]:
        """Empty the outbox and return its records as images, in order."""
        images: list[Image] = []
        outbox, index = self._bytes, address(self._index)
        at, used = 0, self._memory.get(OUTBOX_USED)
        while at < used:
            n = int(index_outbox(self._memory.context, at, index, _INDEX_ROWS))
            for begin, length, epoch, stored in self._index[:n].tolist():
                key = bytes(outbox[begin + RECORD_KEY : begin + RECORD_KEY + _KEY_BYTES])
                at = begin + RECORD_BODY
                if length < 0:
                    images.append((key, None, epoch, stored))
                else:
                    images.append((key, bytes(outbox[at : at + length]), epoch, stored))
                    at += length
        self.written += len(images)
        self._memory.set(OUTBOX_USED, 0)
        return images

    def drain(self) -> None:
        """Write all records to the store."""
        images = self.take()
        while images:
            # A page's image and its deletion may both be here, but one write may have only one image of a key.
            first = list({image[0]: image for image in reversed(images)}.values())
            if len(first) == len(images):
                self._store.write(images)
                return
            self._store.write(first[::-1])
            written = {id(image) for image in first}
            images = [image for image in images if id(image) not in written]
