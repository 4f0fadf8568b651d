"""What became of events that were taken each by itself: which were refused, and the others' answers by columns."""

from collections.abc import Mapping
from dataclasses import dataclass

from railgun.ingest.accepted import Taken
from railgun.ingest.answers import Answers


@dataclass(frozen=True, slots=True)
class Scored:
    """taken: what was recorded, and what was refused and why.  metrics: all of the stream, by name, in the order added.
    answers: by partitioner in the stream's order, to the events that were taken; a metric is in those of its home.
    """

    taken: Taken
    metrics: tuple[str, ...]
    answers: Mapping[str, Answers]
