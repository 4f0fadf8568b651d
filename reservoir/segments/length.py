"""How far a reservoir is durable: the few numbers that a checkpoint keeps of it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Length:
    """How far the reservoir is durable: what a checkpoint keeps, and what opening cuts back to.

    segment and size_bytes: the last segment and how much of it counts.  chunks and rows: sealed since the
    beginning.  last_time, last_seq: the last sealed row.  All zero where nothing was sealed.
    """

    segment: int = 0
    size_bytes: int = 0
    chunks: int = 0
    rows: int = 0
    last_time: int = 0
    last_seq: int = 0
