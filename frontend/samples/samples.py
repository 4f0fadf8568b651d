"""Takes events with their answers into the rings of their streams, once the answers are given.

HTTP requests and the readers of input topics call it. Without `[console] samples` nobody does. Events are answered
without it too, so a defect here is logged, and harms nothing else.
"""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from frontend.access.masks import Masks
from frontend.problems import Problem
from frontend.samples.ring import Ring, Sample
from frontend.samples.shown import shown
from frontend.samples.values import EventFields
from railgun.catalog.catalog import StreamEntry
from railgun.config.settings import ConsoleSettings
from railgun.ingest.accepted import AcceptedBatch
from railgun.ingest.replies import Reply
from railgun.messaging.transport import TopicPartition

TEXT_BYTES_MAX = 1 << 18
"""A longer event is not kept, nor is a longer answer."""
SHOWN_TEXT_BYTES_MAX = 1 << 14
"""How much is kept of the text of an event that was refused."""
_DEFECTS_MAX = 100
_encode = msgspec.json.Encoder().encode
_log = logging.getLogger("railgun.frontend")


class Samples:
    """The rings of all streams. Any thread may call it.

    entries: returns the registered streams.
    limit: how many events a ring holds; with 0 nothing is taken.
    masks: what is not shown of them.
    now_s, now_ms: the clocks: monotonic, and of the wall.
    """

    def __init__(
        self,
        settings: ConsoleSettings,
        entries: Callable[[], Mapping[str, StreamEntry]],
        masks: Masks,
        now_s: Callable[[], float] = time.monotonic,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self.limit, self._limit_bytes = settings.samples, settings.samples_limit_bytes
        self.entries, self.masks = entries, masks
        self._now_s, self._now_ms = now_s, now_ms
        self._rings: dict[str, Ring] = {}
        self._fields: dict[str, EventFields] = {}
        # By stream and text: the defects that were logged. Each could come with every event.
        self._defects: set[tuple[str, str]] = set()

    @property
    def or_none(self) -> "Samples | None":
        """These, or None if nothing is taken: callers look at that before each event."""
        return self if self.limit else None

    def ring(self, entry: StreamEntry) -> Ring:
        """Return the ring of a stream. One of an earlier stream of its name is dropped."""
        found = self._rings.get(entry.stream.name)
        if found is None or found.created != entry.created:
            made = Ring(entry.created, self.limit, self._limit_bytes)
            found = self._rings[entry.stream.name] = made
        return found

    def forget_dropped(self) -> None:
        """Drop the rings of streams that are not registered any more. To be called about once a second."""
        entries = self.entries()
        for name, ring in list(self._rings.items()):
            if name not in entries or entries[name].created != ring.created:
                self._rings.pop(name, None)
                self._fields.pop(name, None)

    def take(self, stream: str, texts: Sequence[object], answers: Sequence[Reply | Problem | None]) -> None:
        """Take events that came over HTTP, once they are answered. texts: one without bytes is not kept."""
        try:
            self._take(stream, texts, answers)
        except Exception as error:  # noqa: BLE001 - the events are answered
            self._note_defect(stream, error)

    def _take(self, stream: str, texts: Sequence[object], answers: Sequence[Reply | Problem | None]) -> None:
        ring = self._rings.get(stream)
        rows = range(len(answers)) if ring is None else ring.choose(answers, self._now_s())
        if not rows:
            return
        entry = self.entries().get(stream)
        if entry is None:
            return
        if ring is None or ring.created != entry.created:
            ring = self.ring(entry)
            rows = ring.choose(answers, self._now_s())
        mask, at_ms = self.masks.of(entry), self._now_ms()
        made = []
        for row in rows:
            answer, text = answers[row], texts[row]
            status = answer.status if isinstance(answer, Problem) else 200
            size_bytes = len(text) if isinstance(text, bytes | msgspec.Raw) else 0
            kept_bytes = size_bytes if size_bytes <= TEXT_BYTES_MAX else 0
            if status != 200:
                kept_bytes = min(size_bytes, SHOWN_TEXT_BYTES_MAX) if mask.shows_texts else 0
            # It is copied, so that the body of which it may be a part need not be held.
            kept = bytes(memoryview(text)[:kept_bytes]) if kept_bytes else None  # type: ignore[arg-type]
            made.append(Sample(at_ms, _told(answer), status, kept, None, size_bytes, mask, entry.mapped))
        ring.put(made)

    def of_topic(
        self,
        stream: str,
        created: int,
        replies: Sequence[Reply | Problem],
        accepted: AcceptedBatch,
        where: TopicPartition,
        offsets: Sequence[int],
    ) -> list[Sample]:
        """Return some events of an input topic, to be put into the ring once their replies are written.

        created: the place of the stream's creation.
        replies: to all accepted events, in order.
        offsets: of their records.
        """
        try:
            entry = self._entry(stream, created)
            if entry is None:
                return []
            rows = self.ring(entry).choose(replies, self._now_s())
            if not rows:
                return []
            mask, at_ms = self.masks.of(entry), self._now_ms()
            made = []
            for row, values in zip(rows, self._fields_of(entry).of(accepted, rows)):
                fields, reply = _encode(values), replies[row]
                status = reply.status if isinstance(reply, Problem) else 200
                kept = fields if len(fields) <= TEXT_BYTES_MAX else None
                made.append(
                    Sample(
                        at_ms,
                        _told(reply),
                        status,
                        None,
                        kept,
                        len(fields),
                        mask,
                        entry.mapped,
                        where=where,
                        offset=offsets[row],
                    )
                )
            return made
        except Exception as error:  # noqa: BLE001 - the replies are written without it
            self._note_defect(stream, error)
            return []

    def put(self, stream: str, created: int, samples: Sequence[Sample]) -> None:
        """Put events that `of_topic` has returned into the ring of their stream."""
        try:
            entry = self._entry(stream, created)
            if entry is not None and samples:
                self.ring(entry).put(samples)
        except Exception as error:  # noqa: BLE001 - the replies are written
            self._note_defect(stream, error)

    def _note_defect(self, stream: str, error: Exception) -> None:
        """Log a defect, once for each stream and text."""
        told = stream, f"{type(error).__name__}: {error}"[:200]
        if told not in self._defects and len(self._defects) < _DEFECTS_MAX:
            self._defects.add(told)
            _log.error("a defect: events of %s are not kept for the console", stream, exc_info=error)

    def _entry(self, stream: str, created: int) -> StreamEntry | None:
        """Return a stream's entry, unless it is gone, or another stream has its name."""
        entry = self.entries().get(stream)
        return entry if entry is not None and entry.created == created else None

    def shown(self, entry: StreamEntry, limit: int, after: int) -> tuple[int, int, list[dict[str, Any]]]:
        """Return (how many events were answered, the number of the last one that was taken, the newest of these).

        The events are for people, as JSON can have them. It may take some milliseconds.

        limit, after: at most so many, those with a number above `after`.
        """
        ring = self._rings.get(entry.stream.name)
        if ring is None or ring.created != entry.created:
            return 0, 0, []
        # Events that come meanwhile have greater numbers, and are in the next answer.
        last, found = ring.last, ring.newest(limit, after)
        found = [each for each in found if each.number <= last]
        # It is read after `last`, as events are counted before they are put.
        return ring.answered, last, shown(found, self.masks.of(entry), self._fields_of(entry))

    def _fields_of(self, entry: StreamEntry) -> EventFields:
        found = self._fields.get(entry.stream.name)
        if found is None or found.stream is not entry.stream:
            found = self._fields[entry.stream.name] = EventFields(entry)
        return found


def _told(answer: Reply | Problem | None) -> bytes | None:
    told = None if answer is None else _encode(answer)
    return told if told is None or len(told) <= TEXT_BYTES_MAX else None
