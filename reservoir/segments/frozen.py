"""What a reservoir holds at one moment, kept to be read elsewhere while it goes on."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from reservoir.segments.source import ScannedRows


@dataclass(frozen=True, slots=True)
class FrozenSegment:
    """A segment's file, as far as it was written then. is_fixed: nothing will ever change these bytes; of others a
    recovery may cut off what no checkpoint holds, so that they are to be copied.
    """

    path: Path
    size_bytes: int
    is_fixed: bool


@dataclass(frozen=True, slots=True)
class Frozen:
    """segments: with `chunks` chunks in all.  rows: what no segment holds yet.

    first_ms: time of the first row kept, where rows before it were let go; None: nothing ever was.
    """

    segments: Sequence[FrozenSegment]
    chunks: int
    rows: Sequence[ScannedRows]
    first_ms: int | None
