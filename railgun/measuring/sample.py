"""Reads the events that are repeated: as many as fit into a share of memory and time."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from railgun.catalog.model import StreamDefinition
from railgun.files.reading import EventFiles
from railgun.ingest.file_events import EventChecks, Refusals
from railgun.measuring.columns import joined
from railgun.measuring.errors import NoEventsError
from railgun.measuring.repeated import RepeatedEvents, round_ms
from railgun.wire.columns import EventColumns
from railgun.wording import listed

_EVENTS_MAX = 1_000_000
_BYTES_MAX = 256 << 20


@dataclass(slots=True)
class Sample:
    """The events of some files.

    where: the names of the files, for errors.
    read: how many rows were read, with refused ones.
    is_whole: whether the files were read to their ends.
    ignored: the columns that are no fields, by file; known if the files were read to their ends.
    """

    where: str
    events: EventColumns
    read: int
    is_whole: bool
    refusals: Refusals = field(default_factory=Refusals)
    ignored: dict[str, tuple[str, ...]] = field(default_factory=dict)


def read_sample(stream: StreamDefinition, paths: Sequence[Path], seconds: float) -> Sample:
    """Read events for at most so many seconds. Raises FileError, OSError; NoEventsError if none can be used."""
    until_s = time.perf_counter() + seconds
    schema = stream.incoming(1)
    checks = EventChecks(stream, schema, time.time_ns() // 1_000_000)
    blocks: list[EventColumns] = []
    sample = Sample(listed(list(map(str, paths)), 3), checks.none(), 0, True)
    events = size_bytes = 0
    with EventFiles(paths, schema) as files:
        for block in checks.blocks(files):
            sample.read += block.rows
            sample.refusals.add(block.refused)
            blocks.append(block.events)
            events, size_bytes = events + len(block.events), size_bytes + _bytes_of(block.events)
            if events >= _EVENTS_MAX or size_bytes >= _BYTES_MAX or time.perf_counter() >= until_s:
                sample.is_whole = files.rows == sample.read or block.read_bytes >= files.size_bytes
                break
        sample.ignored = files.ignored
    if not events:
        raise NoEventsError(_nothing(sample))
    sample.events = joined(blocks)
    return sample


def repeat(stream: StreamDefinition, sample: Sample, per_s: float) -> RepeatedEvents:
    """Return the events of a sample, again and again.

    per_s: how many come in a second where the stream stamps them on arrival.
    Raises NoEventsError, NoSpanError.
    """
    events = sample.events
    if stream.time is not None:
        return RepeatedEvents(stream, events, round_ms(events.times, stream.lateness_ms, sample.where))
    apart_ms, n = 1000 / per_s, len(events)
    times = int(events.times[0]) + (np.arange(n) * apart_ms).astype(np.int64)
    return RepeatedEvents(stream, replace(events, times=times), max(1, round(n * apart_ms)))


def _bytes_of(events: EventColumns) -> int:
    heaps = [column.heap.nbytes for column in (events.ids, *events.fields) if column.heap is not None]
    return sum(heaps) + 8 * len(events) * (2 + len(events.fields))


def _nothing(sample: Sample) -> str:
    if not sample.read:
        return f"{sample.where}: there is no event in it; name a file with events"
    return (
        f"{sample.where}: none of {sample.read:,} rows can be an event of the stream; the first: "
        f"{sample.refusals.first}; mend the definitions or the rows"
    )
