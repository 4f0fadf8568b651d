"""Repeats events without end: each round is later than the one before, and its events have ids of their own."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from railgun.catalog.model import StreamDefinition
from railgun.measuring.columns import marked
from railgun.measuring.errors import NoEventsError, NoSpanError
from railgun.wire.columns import Column, EventColumns
from railgun.wire.long_text import longs_as_text
from railgun.wire.schema import WireKind
from railgun.wire.table_validator import row_number_ids
from railgun.wording import counted, time_text

# Ids of a span below this, one round behind the other, last for a million rounds. The other is the golden ratio of
# 64 bits: its multiples are as far apart as can be.
_SPAN_MAX, _SCATTER = 1 << 43, 0x9E3779B97F4A7C15


def round_ms(times: NDArray[np.int64], lateness_ms: int, where: str) -> int:
    """Return how much later the events come in each round: from the first of their times to the last, and one gap.

    A late event counts at the time that it would be rewritten to, so a single one of years ago stretches no round.
    All others are then later than the clock of the round before, so an event is late in each round or in none.
    times: int64[n] in ms, in the order of the events. where: the files, for errors. Raises NoEventsError, NoSpanError.
    """
    if len(times) < 2:
        raise NoEventsError(
            f"{where}: with {counted(len(times), 'event')} nothing says how often they come; name a file with more"
        )
    clocks = np.maximum.accumulate(times)
    # The first event has no clock before it, and is not late.
    in_force = np.maximum(times[1:], clocks[:-1] - lateness_ms)
    span_ms = int(clocks[-1]) - min(int(times[0]), int(in_force.min()))
    if not span_ms:
        raise NoSpanError(
            f"{where}: all {len(times):,} events are of {time_text(int(times[0]))}, so nothing says how often they "
            "come; name files with events of different times, or another field as the stream's time"
        )
    return span_ms + max(1, round(span_ms / (len(times) - 1)))


@dataclass(slots=True)
class RepeatedEvents:
    """The events of some files, again and again. Event g of them all is event g % n of the files, in round g // n.

    In each round the event time and all other timestamps are later by `round_ms`, so differences between them stay.
    Ids differ from those of all other rounds; within a round events have the same id as before.
    A stream that stamps events on arrival gets them at even distances.

    events: those of the files. round_ms: how much longer a round lasts than nothing; see the function of that name.
    position: how many were taken so far.
    """

    stream: StreamDefinition
    events: EventColumns
    round_ms: int
    position: int = 0

    @property
    def first_ms(self) -> int:
        """The time of the first event."""
        return int(self.events.times[0])

    @property
    def per_s(self) -> float:
        """How many events come in a second of event time."""
        return len(self.events) * 1000 / self.round_ms

    def take(self, n: int) -> EventColumns:
        """Return the next n events."""
        first = self.position
        self.position += n
        rounds, rows = np.divmod(np.arange(first, first + n), len(self.events))
        taken = self.events.take(rows)
        later_ms = rounds * self.round_ms
        names = [field.name for field in self.stream.fields]
        fields = [
            replace(column, words=column.words + later_ms.view(np.uint64))
            if column.type.kind is WireKind.TIMESTAMP
            else column
            for column in taken.fields
        ]
        if self.stream.id is None:
            ids = row_number_ids(first, n)
        else:
            place = names.index(self.stream.id)
            ids, fields[place] = self._ids(fields[place], rounds)
        return EventColumns(ids, taken.times + later_ms, tuple(fields))

    def _ids(self, column: Column, rounds: NDArray[np.int64]) -> tuple[Column, Column]:
        """Return the ids of events as texts, and as their field has them. column: the field as in the files."""
        if column.type.kind is not WireKind.LONG:
            texts = marked(column, rounds)
            return texts, texts
        place = [field.name for field in self.stream.fields].index(str(self.stream.id))
        own = self.events.fields[place].words.view(np.int64)
        span = int(own.max()) - int(own.min()) + 1
        # Ids from all over the 64 bits would be spent after a few rounds. Sums wrap then, and meet by chance alone.
        apart = np.uint64(span if span < _SPAN_MAX else _SCATTER)
        longs = replace(column, words=column.words + rounds.view(np.uint64) * apart)
        return longs_as_text(longs), longs
