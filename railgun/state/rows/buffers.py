"""The buffers into which kernels put images of rows on their way to the store.

An *image* is the bytes of a row as the store keeps it: its key and its body, with two epochs (`resident.py`). The
memory of the entity table (memory.py) has two of these buffers, which `RowEviction` empties into the store.
`ImageBuffer` is a single buffer, for rows that leave memory and for those that a checkpoint finds. `CopyQueue` is a
queue of buffers, for images that are copied before their rows change (copy on write).
"""

from collections import deque
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from railgun.state.keys import ROW_KEY_BYTES
from railgun.state.resident import Image
from railgun.state.rows.context import (
    BUFFER_BYTES,
    BUFFER_CAPACITY,
    BUFFER_COUNT,
    BUFFER_IMAGES,
    BUFFER_LIMIT,
    BUFFER_USED,
    IMAGE_BYTES,
)
from railgun.state.rows.images import image_bytes_max
from reservoir.native.jit import address

Words = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]

# Images smaller than this count as this large when a limit in bytes is applied, because each takes time of its own.
IMAGE_BYTES_LIKELY = 128
_IMAGES_LEAST = 4
# The least number of own pieces: one is filled while the other is written.
_OWN_LEAST = 2


def room_for(cells: int) -> int:
    """Return the bytes that a few images of rows of so many cells (64-bit words) take at most."""
    return _IMAGES_LEAST * int(image_bytes_max(cells))


class ImageBuffer:
    """A buffer for images, described to kernels by the six BUFFER_ words at `at` in the context."""

    def __init__(self, context: Words, at: int, piece: "Piece") -> None:
        self._context, self._at = context, at // 8
        self.bind(piece)

    @property
    def count(self) -> int:
        """Images in it."""
        return int(self._context[self._at + BUFFER_COUNT // 8])

    @property
    def used_bytes(self) -> int:
        """Bytes of the images in it."""
        return int(self._context[self._at + BUFFER_USED // 8])

    def fits(self, cells: int) -> bool:
        """Whether the buffer can hold a few images of rows of so many cells. Asked when a layout becomes wider."""
        return room_for(cells) <= self._piece.content.size

    def fit(self, cells: int) -> None:
        """Grow the buffer, which must be empty, until it can hold a few images of rows of so many cells."""
        self.bind(Piece.of(np.zeros(room_for(cells), np.uint8)))

    def bind(self, piece: "Piece") -> None:
        """Let kernels continue in another piece of memory, which must be empty."""
        self._piece = piece
        for word, value in (
            (BUFFER_BYTES, address(piece.content)),
            (BUFFER_LIMIT, piece.content.size),
            (BUFFER_IMAGES, address(piece.images)),
            (BUFFER_CAPACITY, len(piece.images)),
            (BUFFER_COUNT, 0),
            (BUFFER_USED, 0),
        ):
            self._context[self._at + word // 8] = value

    def leave(self) -> "Piece":
        """Return the present piece with its images. Another one must be bound next."""
        self._piece.count, self._piece.taken = self.count, 0
        return self._piece

    def take(self) -> list[Image]:
        """Remove and return all images, the oldest first."""
        images = self.leave().take(None)
        for word in (BUFFER_COUNT, BUFFER_USED):
            self._context[self._at + word // 8] = 0
        return images


@dataclass(slots=True)
class Piece:
    """A piece of memory for images.

    content: the bytes of the images.
    images: int64[n, 4] of (start, end, epoch, stored_epoch).
    count: how many images were put in. It is known once kernels have left the piece.
    taken: how many images have been taken out again.
    """

    content: Bytes
    images: Words
    count: int = 0
    taken: int = 0

    @classmethod
    def of(cls, content: Bytes) -> "Piece":
        """Make an empty piece of some memory."""
        return cls(
            content, np.zeros((max(1, content.size // IMAGE_BYTES_LIKELY), IMAGE_BYTES // 8), np.int64)
        )

    @property
    def left(self) -> int:
        """How many images have not been taken."""
        return self.count - self.taken

    @property
    def left_bytes(self) -> int:
        """The bytes of the images that have not been taken."""
        return int(self.images[self.count - 1, 1] - self.images[self.taken, 0]) if self.left else 0

    def take(self, limit_bytes: int | None) -> list[Image]:
        """Take and return the oldest images, up to about so many bytes. Small images count as IMAGE_BYTES_LIKELY. An
        image without a body is a deletion."""
        if not self.left:
            return []
        first, end = self.taken, self.count
        begin = int(self.images[first, 0])
        if limit_bytes is not None:
            end = min(end, first + max(1, limit_bytes // IMAGE_BYTES_LIKELY))
            end = first + 1 + int(np.searchsorted(self.images[first : end - 1, 1], begin + limit_bytes))
        taken = self.images[first:end].tolist()
        content = self.content[begin : taken[-1][1]].tobytes()
        self.taken = end
        return [
            (
                content[start - begin : start - begin + ROW_KEY_BYTES],
                content[start - begin + ROW_KEY_BYTES : stop - begin] or None,
                epoch,
                stored,
            )
            for start, stop, epoch, stored in taken
        ]


class Lender(Protocol):
    """Lends memory that it does not need. `memory.LentSegments` is one."""

    def lend(self, least_bytes: int) -> Bytes | None:
        """Lend at least so many bytes until `take_back`. None if there is no memory to spare."""

    def take_back(self) -> None:
        """Take back all that was lent."""


class CopyQueue:
    """A queue of images copied on write: old images of rows that changed before the checkpoint had written them.

    Kernels fill one piece. Full pieces wait until the caller writes them, the oldest first. A kernel that finds its
    piece full returns ROWS_DRAIN. The caller should then call `make_room`, and write a piece only if that returns
    False, because an event is waiting. Pieces are cut from memory of the queue's own, and from lent memory.

    piece_bytes: bytes of a piece; pieces are larger if rows are wide.
    size_bytes: bytes of all own pieces together.
    lender: lends memory for more pieces, which `shrink` gives back.
    """

    def __init__(
        self,
        context: Words,
        at: int,
        piece_bytes: int,
        size_bytes: int,
        lender: Lender,
    ) -> None:
        self._size_bytes, self._lender = size_bytes, lender
        self._own: list[Piece] = []
        self._spare: list[Piece] = []
        self._full: deque[Piece] = deque()
        self._full_bytes, self._has_borrowed = 0, False
        self._own_pieces(piece_bytes)
        self._filling = ImageBuffer(context, at, self._spare.pop())

    @property
    def is_empty(self) -> bool:
        """Whether all images have been taken."""
        return not self._full and not self._filling.count

    @property
    def used_bytes(self) -> int:
        """Bytes of the images in it."""
        return self._full_bytes + self._filling.used_bytes

    def fits(self, cells: int) -> bool:
        """Whether a piece can hold a few images of rows of so many cells."""
        return self._filling.fits(cells)

    def fit(self, cells: int) -> None:
        """Continue with pieces that can hold a few images of rows of so many cells. Images in the queue stay."""
        self._put_by()
        self._own_pieces(room_for(cells))
        self._filling.bind(self._spare.pop())

    def make_room(self) -> bool:
        """Let kernels continue in an empty piece, an own or a lent one. False if there is none."""
        if not self._filling.count:
            return True
        if not self._spare:
            memory = self._lender.lend(self._piece_bytes)
            if memory is not None:
                self._has_borrowed = True
                self._spare = self._cut(memory)
        if not self._spare:
            return False
        self._put_by()
        self._filling.bind(self._spare.pop())
        return True

    def take(self, limit_bytes: int | None = None) -> list[Image]:
        """Remove and return the oldest images: all of one piece, or up to about so many bytes of it."""
        if not self._full:
            counted_bytes = max(self._filling.used_bytes, self._filling.count * IMAGE_BYTES_LIKELY)
            if limit_bytes is None or limit_bytes >= counted_bytes or not self.make_room():
                return self._filling.take()
        oldest = self._full[0]
        before_bytes = oldest.left_bytes
        images = oldest.take(limit_bytes)
        self._full_bytes -= before_bytes - oldest.left_bytes
        if not oldest.left:
            self._full.popleft()
            if oldest.content.size == self._piece_bytes:
                self._spare.append(oldest)
        return images

    def shrink(self) -> None:
        """Give back lent memory, if the queue is empty. Called when rows need memory, and after a checkpoint."""
        if self._has_borrowed and self.is_empty:
            self._spare = list(self._own)
            self._filling.bind(self._spare.pop())
            self._has_borrowed = False
            self._lender.take_back()

    def _put_by(self) -> None:
        """Put the piece that is being filled among those that wait to be written."""
        if self._filling.count:
            piece = self._filling.leave()
            self._full.append(piece)
            self._full_bytes += piece.left_bytes

    def _own_pieces(self, piece_bytes: int) -> None:
        self._piece_bytes = piece_bytes
        self._own = self._cut(np.zeros(max(_OWN_LEAST * piece_bytes, self._size_bytes), np.uint8))
        self._spare = list(self._own)

    def _cut(self, memory: Bytes) -> list[Piece]:
        size = self._piece_bytes
        return [Piece.of(memory[at : at + size]) for at in range(0, memory.size - size + 1, size)]
