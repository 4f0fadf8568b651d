"""Remembers for a task which positions of input topics it has processed, and what it answered to them.

`TaskProcessor` has one `InputMemory`, which checkpoints keep. A record of an input topic may come again, from a reader
that took over before the record's position was committed (docs/semantics.md, Identity: redelivery). It is recognised by
its position, however long ago that was, and gets the reply that it got first. Positions before the committed one are
answered for good, and are forgotten.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from railgun.task.admission import REPEAT_WITH_REPLY, REPEAT_WITHOUT_REPLY
from railgun.wire.decode import Decoded
from railgun.wire.repeat import repeat_row
from reservoir.distinct import distinct

_FIRST_ROW = np.zeros(1, np.int64)


class Kept:
    """The reply record for those records of one batch that came from input topics."""

    __slots__ = ("bytes",)

    def __init__(self, record: bytes = b"") -> None:
        self.bytes = record


@dataclass(frozen=True, slots=True)
class Repeat:
    """The reply to an earlier record: a row of a reply record that was kept."""

    kept: Kept
    row: int

    def record(self, incarnation: int, sequence: int) -> bytes:
        """Return the reply as a reply record for the present request."""
        return repeat_row(self.kept.bytes, self.row, incarnation, sequence)


@dataclass(slots=True)
class Met:
    """The records of a batch that came from input topics.

    met: uint8[n]; 0, or MET_... of railgun.task.admission. None if all are new.
    fresh: int64[...]; the rows that came for the first time, ascending.
    repeats: the first reply for each row that came again.
    """

    met: npt.NDArray[np.uint8] | None
    fresh: npt.NDArray[np.int64]
    repeats: dict[int, Repeat]


@dataclass(slots=True)
class _Span:
    """Positions that one batch has processed.

    offsets: int64[n], ascending.
    rows: int64[n]; row `rows[i]` of the kept record is the reply to `offsets[i]`.
    kept: a reply record with these replies.
    """

    offsets: npt.NDArray[np.int64]
    rows: npt.NDArray[np.int64]
    kept: Kept


@dataclass(slots=True)
class _Input:
    """One partition of the input topic.

    committed: the position up to which it was read and answered for good, as its records tell.
    highest: the greatest offset processed.
    spans: the positions behind `committed` that were processed, with their replies.
    """

    committed: int = 0
    highest: int = -1
    spans: list[_Span] = field(default_factory=list)

    def commit(self, committed: int) -> None:
        """Forget replies to positions before a committed one."""
        if committed > self.committed:
            self.committed = committed
            self.spans = [span for span in self.spans if span.offsets[-1] >= committed]

    def find(self, offset: int) -> Repeat | None:
        """Return the reply to a position that an earlier batch has processed; None if there is none."""
        for span in self.spans if offset <= self.highest else ():
            place = int(np.searchsorted(span.offsets, offset))
            if place < len(span.offsets) and span.offsets[place] == offset:
                return Repeat(span.kept, int(span.rows[place]))
        return None


class InputMemory:
    """Remembers for each partition of the stream's input topic the committed position, and the replies
    to later ones.
    """

    def __init__(self) -> None:
        self._inputs: dict[int, _Input] = {}
        self._kept = Kept()

    def meet(self, decoded: Decoded) -> Met | None:
        """Find out which records of a batch are new and which came before. Returns None if none came from an input
        topic.

        If some are new, their reply record must be passed to `keep` next.
        """
        n = decoded.n
        partitions = decoded.source_partition[:n]
        if (partitions[0] if n == 1 else partitions.max()) < 0:
            return None
        if n == 1 and (first := self._meet_next(decoded)) is not None:
            return first
        readable = decoded.status[:n] == 0
        found = Met(None, np.zeros(0, np.int64), {})
        fresh: list[tuple[_Input, dict[int, int]]] = []
        self._kept = Kept()
        for partition in distinct(partitions[readable & (partitions >= 0)]).tolist():
            source = self._inputs.setdefault(partition, _Input())
            rows = np.flatnonzero(readable & (partitions == partition))
            fresh.append((source, self._sort(source, rows, decoded, found)))
        found.fresh = np.array(sorted(row for _, new in fresh for row in new.values()), np.int64)
        place = {row: place for place, row in enumerate(found.fresh.tolist())}
        for source, new in fresh:
            self._add(source, new, place)
        for row, repeat in found.repeats.items():
            if repeat.kept is self._kept:
                found.repeats[row] = Repeat(self._kept, place[repeat.row])
        return found

    def _meet_next(self, decoded: Decoded) -> Met | None:
        """Do the same as `meet` for a single record whose offset is beyond all processed ones of its partition.
        Returns None otherwise.
        """
        if decoded.status[0] != 0:
            return None
        source = self._inputs.setdefault(int(decoded.source_partition[0]), _Input())
        offset, committed = int(decoded.source_offset[0]), int(decoded.source_committed[0])
        if offset <= source.highest or offset < max(committed, source.committed):
            return None
        source.commit(committed)
        self._kept = Kept()
        source.spans.append(_Span(np.array((offset,), np.int64), _FIRST_ROW, self._kept))
        source.highest = offset
        return Met(None, _FIRST_ROW, {})

    def _sort(
        self, source: _Input, rows: npt.NDArray[np.int64], decoded: Decoded, found: Met
    ) -> dict[int, int]:
        """Return the rows that came for the first time, by offset. Notes the other rows in `found`."""
        offsets, committed = decoded.source_offset[rows], decoded.source_committed[rows]
        running = np.maximum(np.maximum.accumulate(committed), source.committed)
        if offsets[0] > source.highest and (offsets >= running).all() and (np.diff(offsets) > 0).all():
            source.commit(int(running[-1]))
            return dict(zip(offsets.tolist(), rows.tolist()))
        met = np.zeros(decoded.n, np.uint8) if found.met is None else found.met
        found.met = met
        new: dict[int, int] = {}
        for row, offset, settled in zip(rows.tolist(), offsets.tolist(), running.tolist()):
            if offset < settled:
                met[row] = REPEAT_WITHOUT_REPLY
                continue
            earlier = Repeat(self._kept, new[offset]) if offset in new else source.find(offset)
            if earlier is None:
                new[offset] = row
            else:
                met[row] = REPEAT_WITH_REPLY
                found.repeats[row] = earlier
        source.commit(int(running[-1]))
        return new

    def _add(self, source: _Input, new: dict[int, int], place: dict[int, int]) -> None:
        if not new:
            return
        offsets = np.array(sorted(new), np.int64)
        rows = np.array([place[new[offset]] for offset in offsets.tolist()], np.int64)
        source.spans.append(_Span(offsets, rows, self._kept))
        source.highest = max(source.highest, int(offsets[-1]))

    def keep(self, record: bytes) -> None:
        """Keep the reply record of the rows that were new in the last call of `meet`."""
        self._kept.bytes = record

    def positions(self) -> dict[int, list[int]]:
        """Return the offsets whose replies are kept, ascending, by partition of the input topic."""
        return {
            partition: sorted(offset for span in source.spans for offset in span.offsets.tolist())
            for partition, source in self._inputs.items()
        }

    def to_json(self) -> dict[str, Any]:
        """Return the content for a checkpoint."""
        records: dict[int, tuple[int, bytes]] = {}
        inputs = []
        for partition, source in self._inputs.items():
            spans = []
            for span in source.spans:
                number, _ = records.setdefault(id(span.kept), (len(records), span.kept.bytes))
                spans.append([span.offsets.tobytes(), span.rows.tobytes(), number])
            inputs.append([partition, source.committed, source.highest, spans])
        return {"inputs": inputs, "records": [record for _, record in records.values()]}

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> "InputMemory":
        """Restore what `to_json` returned."""
        memory = cls()
        kept = [Kept(record) for record in body.get("records", ())]
        for partition, committed, highest, spans in body.get("inputs", ()):
            read = [
                _Span(np.frombuffer(offsets, np.int64), np.frombuffer(rows, np.int64), kept[number])
                for offsets, rows, number in spans
            ]
            memory._inputs[partition] = _Input(committed, highest, read)
        return memory
