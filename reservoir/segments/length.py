"""How far a reservoir is durable, as a few numbers that a checkpoint keeps. It does no I/O."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Length:
    """How far the reservoir is durable. A checkpoint keeps it, and opening cuts the segments back to it.

    segment, size_bytes: the last segment, and how much of it counts.
    chunks, rows: how many were sealed since the beginning.
    last_time, last_seq: those of the last sealed row.
    All are zero if nothing was sealed.
    """

    segment: int = 0
    size_bytes: int = 0
    chunks: int = 0
    rows: int = 0
    last_time: int = 0
    last_seq: int = 0
