"""What a checkpoint keeps of the open region: the log is its journal, these bits say what was accepted.

The open rows are not stored.  Recovery reads the log again from the oldest unsealed position; for that the
checkpoint keeps one accepted-bit per position and, at the start of each page of them, the clock and the
settings in force there (decision 7 of the architecture).  Pages of which nothing was accepted are left out: a
flood of duplicates behind one open row takes no memory and is not read again.  It does hold the log back, though:
the log is kept from the oldest open row on, until its chunk has its number of events.
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
    """Consecutive records from `first_offset` on, and what was in force before them."""

    first_offset: int
    clock_ms: int
    floor_ms: int
    lateness_ms: int
    discard: bool
    accepted: bytearray = field(default_factory=bytearray)

    @property
    def end_offset(self) -> int:
        """The offset behind its last record."""
        return self.first_offset + len(self.accepted)

    @property
    def any_accepted(self) -> bool:
        """Is there anything in it that may be open?"""
        return 1 in self.accepted


class Journal:
    """The pages from the oldest unsealed position on; between them lie records of which none was accepted."""

    def __init__(self) -> None:
        self.pages: deque[JournalPage] = deque()

    @property
    def first_offset(self) -> int | None:
        """Where a recovery would begin to read the log; None: nothing is open."""
        return self.pages[0].first_offset if self.pages else None

    def log_start(self, position: int) -> int:
        """The first offset of the log that a recovery would read, `position` being the one it would go on at.

        What lies before offset 0 is history, which is in no log.
        """
        return min((page.first_offset for page in self.pages if page.first_offset >= 0), default=position)

    def begin(self, offset: int, clock_ms: int, floor_ms: int, lateness_ms: int, discard: bool) -> None:
        """Records from `offset` on are about to be admitted under these; a new page begins where one is due."""
        last = self.pages[-1] if self.pages else None
        if last is not None and last.end_offset == offset and len(last.accepted) < _PAGE_RECORDS:
            if (last.lateness_ms, last.discard) == (lateness_ms, discard):
                return
        if last is not None and not last.any_accepted:
            self.pages.pop()
        self.pages.append(JournalPage(offset, clock_ms, floor_ms, lateness_ms, discard))

    def note(self, accepted: npt.NDArray[np.uint8]) -> None:
        """Which of the records just admitted were accepted, uint8[n]."""
        self.pages[-1].accepted += accepted.tobytes()

    def trim(self, oldest_open: int) -> None:
        """Forget pages that lie before the oldest position still open."""
        while self.pages and self.pages[0].end_offset <= oldest_open:
            self.pages.popleft()

    def to_json(self) -> list[dict[str, Any]]:
        """What a checkpoint keeps."""
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
        """What `to_json` wrote."""
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
