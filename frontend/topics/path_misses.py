"""Counts how often the paths of a stream's fields meet nothing, on a sample of the records of its input topics.

A producer that moves or renames what a path reads makes the field null, and nothing else tells of it.
"""

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from random import choice
from time import monotonic

import msgspec

from railgun.ingest.intake import EventText, ParsedEvent, RecordEvent
from railgun.wire.finding import NO_RECORD, meets
from railgun.wire.schema import Schema
from railgun.wire.values import decode_any_json

# The pause between two records that are looked at: at least this, and so much longer than a look takes.
_PAUSE_S, _SHARE = 0.1, 100
# The shares are those among so many records of a topic.
_NEWEST = 1_000


class PathMisses:
    """What was found in one stream's records. One thread looks, any may read.

    sampled: how many records were looked at, by topic.
    missed: in how many of them a path met nothing, or null, by topic and field. Others are left out.
    """

    def __init__(self) -> None:
        self.sampled = Counter[str]()
        self.missed = Counter[tuple[str, str]]()
        self._newest: dict[str, deque[tuple[str, ...]]] = {}
        self._next_s = 0.0

    def look(self, topic: str, texts: Sequence[EventText], incoming: Schema) -> None:
        """Look at one of some events that were read together, unless that was done just before.

        incoming: the schema of what comes in. Without paths nothing is looked at.
        """
        began_s = monotonic()
        if not incoming.has_paths or not texts or began_s < self._next_s:
            return
        found = _missed(choice(texts), incoming)
        if found is not None:
            self.sampled[topic] += 1
            self.missed.update((topic, name) for name in found)
            self._newest.setdefault(topic, deque(maxlen=_NEWEST)).append(found)
        self._next_s = monotonic() + max(_PAUSE_S, _SHARE * (monotonic() - began_s))

    def shares(self, topic: str) -> dict[str, float]:
        """Return in which share of the newest records that were looked at the path of each field met nothing.

        Fields whose path always met something are left out.
        """
        newest = list(self._newest.get(topic, ()))
        counts = Counter(name for found in newest for name in found)
        return {name: round(count / len(newest), 3) for name, count in sorted(counts.items())}


def _missed(text: EventText, incoming: Schema) -> tuple[str, ...] | None:
    """Return the fields whose paths meet nothing in an event; None if it is no object, and has a letter."""
    record = NO_RECORD
    if isinstance(text, RecordEvent):
        record, text = text.record, text.text
    try:
        event = text.event if isinstance(text, ParsedEvent) else decode_any_json(text)
    except (ValueError, msgspec.MsgspecError, RecursionError):
        return None
    if not isinstance(event, Mapping):
        return None
    fields = incoming.fields
    return tuple(
        each.name for each in fields if each.path is not None and not meets(each.path, event, record)
    )
