"""Reads the times that a field has in a sample, and measures how far events are out of order."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from railgun.draft.fields import Candidate
from railgun.language.duration import format_duration
from railgun.wire.values import read_time
from railgun.wording import span_text

_STEPS_MS = [
    1_000 * seconds for seconds in (5, 10, 30, 60, 120, 300, 600, 1_800, 3_600, 7_200, 21_600, 43_200, 86_400)
]
# Where the greatest disorder is beyond all steps, such a share of the events has to be within the lateness.
_WITHIN = 0.99


def times_ms(field: Candidate) -> list[int]:
    """Return the times of the events that have a field of the type timestamp, in ms."""
    unit = field.choice.unit or "ms"
    return [_time_ms(value, unit) for value in field.place.values]


def _time_ms(value: Any, unit: str) -> int:
    if isinstance(value, datetime) and value.tzinfo is None:
        value = value.replace(tzinfo=UTC)
    return read_time(value, unit)


@dataclass(frozen=True, slots=True)
class Disorder:
    """How far events come after later ones.

    late: how many events do.  greatest_ms: by how much at most.  lateness_ms: what a stream needs.
    """

    total: int
    late: int
    greatest_ms: int
    lateness_ms: int

    @property
    def lateness(self) -> str:
        """The lateness as definitions have it."""
        return format_duration(self.lateness_ms)

    @property
    def is_unordered(self) -> bool:
        """Whether events are further apart than a lateness should be."""
        return self.greatest_ms > _STEPS_MS[-1]

    @property
    def note(self) -> str:
        """What a draft says of it."""
        if not self.late:
            return "no event came after a later one"
        return f"{self.late:,} of {self.total:,} came after a later one, by {span_text(self.greatest_ms)} at most"


def disorder_of(field: Candidate, lanes: Sequence[int]) -> Disorder:
    """Measure the disorder of a field of the type timestamp.

    lanes: the partition of each event; empty if all are of one.
    """
    latest: dict[int, int] = {}
    behind: list[int] = []
    for row, time in zip(field.place.rows, times_ms(field)):
        lane = lanes[row] if lanes else 0
        newest = max(latest.get(lane, time), time)
        latest[lane] = newest
        behind.append(newest - time)
    behind.sort()
    greatest = behind[-1] if behind else 0
    needed = greatest if greatest <= _STEPS_MS[-1] else behind[int(_WITHIN * (len(behind) - 1))]
    fit = next((step for step in _STEPS_MS if step >= needed), _STEPS_MS[-1])
    return Disorder(len(behind), sum(each > 0 for each in behind), greatest, fit)
