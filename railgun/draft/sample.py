"""A sample of events, as it came from a file or a topic."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from railgun.wire.finding import EventRecord


@dataclass(frozen=True, slots=True)
class Sample:
    """Events in the order in which they were read.

    place: the file or topic that they are of, as messages name it.
    documents: the events.
    is_topic: whether they are records of a topic.
    records: of a topic, what each event's record has beside its value.
    lanes: of a topic, the partition of each event; the order holds within one.
    unread: how many records or rows are no events, by why.
    left_out: the names of columns that cannot be read, as others have them too, or as they are empty.
    """

    place: str
    documents: Sequence[Mapping[str, Any]]
    is_topic: bool = False
    records: Sequence[EventRecord] = ()
    lanes: Sequence[int] = ()
    unread: Mapping[str, int] = field(default_factory=dict)
    left_out: Sequence[str] = ()
