"""Notes which records of the log were accepted, from the oldest row that is not sealed.

`TaskProcessor` notes records in it, and checkpoints store it. A recovery needs it only for releases whose checkpoints
have no open rows: this release with an older folder, or an older release with a folder of this one. Such a recovery
reads the log again from the oldest unsealed row, so an embedded log is kept from there on.

The journal has one accepted bit per position in pages of bits, and for each page the clock and the settings in force at
its start. Pages without an accepted record are left out, so a flood of duplicates behind one open row takes no memory.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

_PAGE_RECORDS = 1024


@dataclass(slots=True)
class JournalPage:
    """Consecutive records from `first_offset` on, with the clock and the settings in force before them."""

    first_offset: int
    clock_ms: int
    floor_ms: int
    lateness_ms: int
    discard: bool
    accepted: bytearray = field(default_factory=bytearray)

    @property
    def end_offset(self) -> int:
        """The offset after its last record."""
        return self.first_offset + len(self.accepted)

    @property
    def any_accepted(self) -> bool:
        """Whether any of its records was accepted, and so may be open."""
        return 1 in self.accepted


class Journal:
    """The pages from the oldest unsealed position on. No record in the gaps between pages was accepted."""

    def __init__(self) -> None:
        self.pages: deque[JournalPage] = deque()

    @property
    def first_offset(self) -> int | None:
        """The offset from which a recovery would read the log; None if no row is open."""
        return self.pages[0].first_offset if self.pages else None

    def log_start(self, position: int) -> int:
        """Return the first offset of the log that a recovery would read. position: where it would go on.

        Offsets below 0 are history, which is in no log.
        """
        return min((page.first_offset for page in self.pages if page.first_offset >= 0), default=position)

    def begin(self, offset: int, clock_ms: int, floor_ms: int, lateness_ms: int, discard: bool) -> None:
        """Note the settings under which records from `offset` on will be admitted. Begins a new page if
        one is due.
        """
        last = self.pages[-1] if self.pages else None
        if last is not None and last.end_offset == offset and len(last.accepted) < _PAGE_RECORDS:
            if (last.lateness_ms, last.discard) == (lateness_ms, discard):
                return
        if last is not None and not last.any_accepted:
            self.pages.pop()
        self.pages.append(JournalPage(offset, clock_ms, floor_ms, lateness_ms, discard))

    def note(self, accepted: npt.NDArray[np.uint8]) -> None:
        """Note which of the records just admitted were accepted. uint8[n]."""
        self.pages[-1].accepted += accepted.tobytes()

    def trim(self, oldest_open: int) -> None:
        """Forget pages before the oldest position that is still open."""
        while self.pages and self.pages[0].end_offset <= oldest_open:
            self.pages.popleft()

    def to_json(self) -> list[dict[str, Any]]:
        """Return the content for a checkpoint."""
        return [
            {
                "first_offset": page.first_offset,
                "clock_ms": page.clock_ms,
                "floor_ms": page.floor_ms,
                "lateness_ms": page.lateness_ms,
                "discard": page.discard,
                "records": len(page.accepted),
                "accepted": np.packbits(np.frombuffer(bytes(page.accepted), np.uint8)).tobytes(),
            }
            for page in self.pages
        ]

    @classmethod
    def from_json(cls, pages: Sequence[Mapping[str, Any]]) -> "Journal":
        """Restore what `to_json` returned."""
        journal = cls()
        for page in pages:
            bits = np.unpackbits(np.frombuffer(page["accepted"], np.uint8), count=page["records"])
            journal.pages.append(
                JournalPage(
                    page["first_offset"], page["clock_ms"], page["floor_ms"], page["lateness_ms"], page["discard"],
                    bytearray(bits.tobytes()),
                )
            )  # fmt: skip
        return journal
