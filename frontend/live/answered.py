"""What metrics were answered lately: shares of nulls, quantiles and histograms, from some of the replies.

Some of each stream are noted every second (`frontend/scoring/noted.py`), and are looked at after they have left. What
was not asked for in a reply, and what is still warming, has no value there. Of masked metrics no value is kept.
"""

import asyncio
import contextlib
import logging
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import repeat
from math import isnan, nan
from typing import Any

import msgspec
import numpy as np

from frontend.access.masks import Masks
from frontend.backend.live_figures import Way
from frontend.live.distribution import histogram, quantiles
from frontend.scoring.noted import take_noted
from railgun.catalog.catalog import StreamEntry
from railgun.ingest.replies import Reply
from railgun.language.types import Kind
from railgun.telemetry.recording import StreamRecord

KEPT_MAX = 1_024
"""How many of the last values of a metric are kept."""
TOLD_MIN = 100
"""Of so many answers it is told that all were null: the first events of a key have nulls in many metrics."""
VALUES_MAX = 32_768
"""How many values of all streams are looked at each second: where there are many metrics, fewer replies are."""
_log = logging.getLogger("railgun.frontend")
# So many metrics are looked at before events have their turn.
_AT_ONCE = 32


class _Values:
    """The last values of a metric; NaN stands for null. place: that of the change which added the metric."""

    __slots__ = ("_seconds", "_values", "is_text", "nulls", "place")

    def __init__(self, place: int, *, is_text: bool) -> None:
        self.place, self.is_text, self.nulls = place, is_text, 0
        self._values = array("d")
        # When each was given, since 1970.
        self._seconds = array("Q")

    def add(self, column: Sequence[Any], at_ms: int) -> None:
        """Keep values, the last ones of which are `column`. Raises ValueError if one is no number."""
        fresh = [nan if each is None else 1.0 if self.is_text else float(each) for each in column]
        self.nulls += sum(map(isnan, fresh))
        self._values.extend(fresh)
        self._seconds.extend(repeat(at_ms // 1_000, len(fresh)))
        over = len(self._values) - KEPT_MAX
        if over > 0:
            self.nulls -= sum(map(isnan, self._values[:over]))
            del self._values[:over], self._seconds[:over]

    @property
    def is_always_null(self) -> bool:
        """Whether all of them are null, and enough to say so."""
        return self.nulls == len(self._values) >= TOLD_MIN

    @property
    def null_share(self) -> float:
        return self.nulls / len(self._values)

    def lately(self) -> dict[str, Any]:
        """Return what `AnsweredMetric` has, without the kind."""
        values = np.array(self._values)
        numbers = values[np.isfinite(values)]
        has_some = not self.is_text and len(numbers) > 0
        bins = histogram(numbers) if has_some else []
        return {
            "rows": len(values),
            "nulls": self.nulls,
            "since_ms": self._seconds[0] * 1_000,
            "as_of_ms": self._seconds[-1] * 1_000,
            "quantiles": quantiles(numbers) if has_some else None,
            "histogram": [{"from": low, "to": high, "count": count} for low, high, count in bins] or None,
        }


class _Stream:
    """The values of a stream's metrics, by name. as_of_ms: when the last of them came."""

    def __init__(self) -> None:
        self._entry: StreamEntry | None = None
        self.metrics: dict[str, tuple[int, Kind]] = {}
        self.values: dict[str, _Values] = {}
        self.as_of_ms: int | None = None

    def follow(self, entry: StreamEntry, masks: Masks) -> None:
        """Take over what is registered and may be shown, and forget the values of what is not any more."""
        if entry is self._entry:
            return
        masked = masks.of(entry).metrics
        self.metrics = {name: each for name, each in _kinds(entry).items() if name not in masked}
        for name, values in list(self.values.items()):
            if name not in self.metrics or self.metrics[name][0] != values.place:
                del self.values[name]
        self._entry = entry

    def add(self, name: str, column: Sequence[Any], at_ms: int) -> None:
        """Keep values of a metric, if it may be shown."""
        found = self.metrics.get(name)
        if found is None:
            return
        values = self.values.get(name) or _Values(found[0], is_text=found[1] is Kind.STRING)
        # A reply of before a change may have values of another type under this name.
        with contextlib.suppress(ValueError):
            values.add(column, at_ms)
            self.values[name], self.as_of_ms = values, at_ms


def _kinds(entry: StreamEntry) -> dict[str, tuple[int, Kind]]:
    """Return the place of each metric's add, and the kind of its result."""
    found = {name: (add.place, add.metric.resolved.result_type.kind) for name, add in entry.metrics.items()}
    for name, derived in entry.derived.items():
        registered = entry.registered.find(name)
        assert registered is not None
        found[name] = registered.added, derived.result_type.kind
    return found


class Answered:
    """What was answered lately of all streams. Used in one event loop.

    entries: returns the registered streams, each of which is another object once it has changed.
    masks: say of which metrics nobody is shown values.
    now_ms: the clock of the wall.
    """

    def __init__(
        self, entries: Callable[[], Mapping[str, StreamEntry]], masks: Masks, now_ms: Callable[[], int]
    ) -> None:
        self._entries, self._masks, self._now_ms = entries, masks, now_ms
        self._streams: dict[str, _Stream] = {}
        # By stream: the replies that were noted and not looked at yet.
        self._taken: dict[str, list[object]] = {}
        # How many times replies were looked at, and by stream the last time that some of its own were.
        self._looks = 0
        self._looked: dict[str, int] = {}

    def tick(self, records: Iterable[tuple[str, Way, StreamRecord]]) -> None:
        """Take the replies that were noted. To be called about once a second."""
        for stream, _, record in records:
            self._taken.setdefault(stream, []).extend(take_noted(record))

    async def digest(self) -> None:
        """Look at the replies that were taken, within `VALUES_MAX`. Events have their turn in between."""
        taken, self._taken = self._taken, {}
        entries, at_ms, left = self._entries(), self._now_ms(), VALUES_MAX
        self._streams = {name: each for name, each in self._streams.items() if name in entries}
        self._looked = {name: each for name, each in self._looked.items() if name in entries}
        names = self._in_turn([name for name, replies in taken.items() if replies and name in entries])
        for place, name in enumerate(names):
            stream = self._streams.setdefault(name, _Stream())
            try:
                stream.follow(entries[name], self._masks)
                chosen, count = _chosen(taken[name], left // (len(names) - place), left)
                left -= count
                if count:
                    self._looked[name] = self._looks
                for number, (metric, column) in enumerate(_columns(chosen)):
                    if number % _AT_ONCE == 0:
                        await asyncio.sleep(0)
                    stream.add(metric, column, at_ms)
            except Exception:  # noqa: BLE001 - the server goes on without it
                _log.exception("a defect: what was answered cannot be looked at")

    def _in_turn(self, names: list[str]) -> list[str]:
        """Return streams in the order in which they are looked at: first those that went without for longest. Among
        equals another one begins each time, since what is left over goes to the later ones.
        """
        self._looks += 1
        begin = self._looks % max(1, len(names))
        return sorted(names[begin:] + names[:begin], key=lambda name: self._looked.get(name, 0))

    def null_shares(self, stream: str) -> dict[str, Any] | None:
        """Return which share of each metric's last values was null, of which all were, and when the last ones came.

        None without any.
        """
        found = self._found(stream)
        if found is None or found.as_of_ms is None:
            return None
        shares = {name: round(each.null_share, 4) for name, each in found.values.items()}
        always = [name for name, each in found.values.items() if each.is_always_null]
        return {"as_of_ms": found.as_of_ms, "shares": shares, "always": always}

    def lately(self, stream: str, metric: str) -> dict[str, Any] | None:
        """Return what a metric was answered lately, as `AnsweredMetric` has it; None if it is not registered."""
        entry = self._entries().get(stream)
        kind = None if entry is None else _kinds(entry).get(metric)
        if entry is None or kind is None:
            return None
        found = self._found(stream)
        values = None if found is None else found.values.get(metric)
        known = _NOT_KNOWN if values is None else values.lately()
        is_masked = metric in self._masks.of(entry).metrics
        return {"kind": _WORDS.get(kind[1], "number"), "masked": is_masked, **known}

    def _found(self, stream: str) -> _Stream | None:
        found, entry = self._streams.get(stream), self._entries().get(stream)
        if found is None or entry is None:
            return None
        found.follow(entry, self._masks)
        return found


_NOT_KNOWN = {"rows": 0, "nulls": 0, "since_ms": None, "as_of_ms": None, "quantiles": None, "histogram": None}
_WORDS = {Kind.STRING: "text", Kind.BOOLEAN: "boolean", Kind.TIMESTAMP: "time"}


# The names of metrics, which of them are warming, and the values of all by reply.
_Chosen = tuple[Sequence[str], Sequence[str], Sequence[Any]]


def _chosen(replies: Sequence[object], share: int, left: int) -> tuple[list[_Chosen], int]:
    """Return replies of a stream that are looked at, and how many values they have. Refused events have none.

    share: how many values they should have. One reply may have more, if that many are left.
    """
    by_form: dict[tuple[Any, tuple[str, ...]], list[Any]] = {}
    for each in replies:
        if isinstance(each, Reply):
            by_form.setdefault(_form(each), []).append(each.metrics)
    chosen, count = list[_Chosen](), 0
    for (kind, warming), rows in by_form.items():
        names = kind.__struct_encode_fields__
        width = max(1, len(names))
        room = max(0, share - count) // width
        if not room and not count and width <= left:
            room = 1
        taken = rows[:room]
        count += len(taken) * len(names)
        if taken:
            chosen.append((names, warming, taken))
    return chosen, count


def _columns(chosen: Iterable[_Chosen]) -> Iterable[tuple[str, Sequence[Any]]]:
    """Yield the values of each metric that replies have."""
    for names, warming, rows in chosen:
        for name, column in zip(names, zip(*map(msgspec.structs.astuple, rows), strict=True)):
            if name not in warming:
                yield name, column


def _form(reply: Reply) -> tuple[Any, tuple[str, ...]]:
    warming = () if reply.warming is msgspec.UNSET else tuple(reply.warming)
    return type(reply.metrics), warming
