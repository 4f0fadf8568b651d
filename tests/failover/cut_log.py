"""Cuts records off the end of a broker's log on the disk, as a loss of power does where nothing was synced."""

from collections.abc import Iterator
from pathlib import Path
from struct import Struct

# Of a record batch: base offset, and the length of what follows.
_HEAD = Struct(">qi")
_LAST_OFFSET_DELTA = Struct(">i")
_DELTA_AT = 23


def cut_log(broker: Path, topic: str, partition: int, at_least: int) -> int:
    """Remove whole batches with at least so many records, and return the offset where the log ends then.

    broker: its folder. It must not run, and must not have been stopped in order: it looks at its logs then.
    """
    (segment,) = (broker / "logs" / f"{topic}-{partition}").glob("*.log")
    batches = list(_batches(segment.read_bytes()))
    end = batches[-1][2]
    place, first = next(
        (place, first) for place, first, _ in reversed(batches) if end - first >= at_least or first == 0
    )
    with segment.open("r+b") as file:
        file.truncate(place)
    return first


def _batches(data: bytes) -> Iterator[tuple[int, int, int]]:
    """Yield place, first offset, and the offset behind the last record."""
    place = 0
    while place + _DELTA_AT + 4 <= len(data):
        first, length = _HEAD.unpack_from(data, place)
        # A segment is preallocated with zeros.
        if not length:
            return
        (delta,) = _LAST_OFFSET_DELTA.unpack_from(data, place + _DELTA_AT)
        yield place, first, first + delta + 1
        place += _HEAD.size + length
