"""Answers `GET /v1/live`: how the process, the cluster and each stream stand, each encoded at most once a second.

A caller gets the parts that its token may see: a stream's with `read` of it, those of the process and the cluster with
`metrics`. Nothing in a part of a stream is of another one, and there are no totals.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from functools import partial
from typing import Any

import msgspec

import railgun
from frontend.access.masks import Masks
from frontend.backend.live_figures import LISTED_MAX, LiveFigures, StreamStanding, Warming, Way
from frontend.backend.readiness import Readiness
from frontend.live import concerns
from frontend.live.answered import Answered
from frontend.live.look import Look
from frontend.live.traffic import Traffic
from frontend.live.unread import Unread
from railgun.access.scopes import Scopes
from railgun.telemetry.reading import DiskReading

CLUSTER_S, DISK_S = 5.0, 60.0
"""How old what is said of the cluster and of the disk may be when somebody asks."""
_SEES_ALL = "metrics"
_encode = msgspec.json.Encoder().encode


class Live:
    """The answers of one process. Used in one event loop.

    figures: of the backend.
    readiness: returns whether events are taken.
    in_flight: returns (events, bytes) that are not answered yet.
    masks: say of which metrics nobody is shown values.
    now_s, now_ms: the clocks: monotonic, and of the wall.
    ending: returns warnings of certificates that end within so many seconds; None without TLS.
    answered: what metrics were answered lately. Its `digest` is to be called after each tick.
    """

    def __init__(
        self,
        figures: LiveFigures,
        readiness: Callable[[], Readiness],
        in_flight: Callable[[], tuple[int, int]],
        masks: Masks,
        now_s: Callable[[], float] = time.monotonic,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        ending: Callable[[float], Iterable[str]] | None = None,
    ) -> None:
        self._figures, self._readiness, self._in_flight, self._ending = figures, readiness, in_flight, ending
        self._now_s, self._now_ms = now_s, now_ms
        self._started_ms = now_ms()
        self._traffic, self._unread = Traffic(), Unread()
        self.answered = Answered(figures.entries, masks, now_ms)
        self._cluster_look = Look(figures.look_at_cluster, CLUSTER_S, now_s)
        self._disk_look = Look(self._measure_disk, DISK_S, now_s)
        self._disk: tuple[DiskReading, float] | None = None
        # The time of the last tick, and what was made for those who have asked since.
        self._tick_ms: int | None = None
        self._streams: Mapping[str, StreamStanding] | None = None
        self._parts: dict[str, bytes] = {}

    def tick(self) -> None:
        """Keep the present counts. To be called about once a second, whether somebody asks or not."""
        self._tick_ms = self._now_ms()
        records = list(self._figures.records())
        self._traffic.tick(records, self._now_s())
        self._unread.tick(self._figures.inputs(), self._now_s())
        self.answered.tick(records)
        self._streams = None
        self._parts.clear()

    async def answer(self, scopes: Scopes) -> bytes:
        """Return the answer to a caller with these scopes, as JSON."""
        sees_all = scopes.have(_SEES_ALL)
        if self._figures.has_cluster:
            await self._cluster_look.recent()
        if sees_all:
            await self._disk_look.recent()
        if self._tick_ms is None:
            self.tick()
        if self._streams is None:
            self._streams = self._figures.streams()
        streams, head = self._streams, self._part("head", self._head)
        pieces = [head[:-1]]
        if sees_all:
            pieces += [b',"process":', self._part("process", self._process)]
            pieces += [b',"cluster":', self._part("cluster", self._cluster)]
        own = []
        for name in filter(scopes.may_read, streams):
            part = f"stream {name}"
            is_made = part in self._parts
            own.append(self._part(part, partial(self._stream, name, streams[name])))
            if not is_made:
                # Events do not wait for the parts of all streams.
                await asyncio.sleep(0)
        return b"".join([*pieces, b',"streams":[', b",".join(own), b"]}"])

    def _part(self, name: str, make: Callable[[], Any]) -> bytes:
        """Return the bytes of a part, which are made at the first request after a tick."""
        found = self._parts.get(name)
        if found is None:
            found = self._parts[name] = _encode(make())
        return found

    def front_end(self) -> dict[str, Any]:
        """Return the name of this process, and when it started, by which its answers are told from those of others."""
        return {"name": self._figures.name, "started_ms": self._started_ms}

    def _head(self) -> dict[str, Any]:
        return {"front_end": self.front_end(), "as_of_ms": self._tick_ms}

    def _process(self) -> dict[str, Any]:
        standing, waiting, disk = self._readiness(), self._figures.waiting(), self._disk
        events, size_bytes = self._in_flight()
        return {
            "release": railgun.__version__,
            "ready": standing.ready,
            "reason": standing.reason or None,
            "in_flight_events": events,
            "in_flight_bytes": size_bytes,
            "waiting": None
            if waiting is None
            else {
                "events": waiting.events,
                "bytes": waiting.size_bytes,
                "oldest_s": round(waiting.oldest_s, 3),
            },
            "disk": None if disk is None else {**asdict(disk[0]), "as_of_ms": self._at_ms(disk[1])},
            "warnings": [
                *concerns.of_disk(None if disk is None else disk[0]),
                *(() if self._ending is None else self._ending(concerns.CERTIFICATE_S)),
                *concerns.of_waiting(waiting),
                *concerns.of_inputs(self._unread.needed_s()),
            ][:LISTED_MAX],
        }

    def _cluster(self) -> dict[str, Any] | None:
        found = self._figures.cluster()
        if found is None:
            return None
        return {
            "unanswered": len(found.unanswered),
            "unanswered_tasks": list(found.unanswered[:LISTED_MAX]),
            "leader": found.leader,
            "wanted": found.wanted,
            "moves": found.moves,
            "nodes": found.nodes,
            "copies": found.copies,
            "warnings": list(found.warnings[:LISTED_MAX]),
            "lately": found.lately,
            "as_of_ms": None if found.at_s is None else self._at_ms(found.at_s),
        }

    def _stream(self, name: str, standing: StreamStanding) -> dict[str, Any]:
        windows = self._traffic.windows
        return {
            "name": name,
            "http": windows(name, Way.HTTP),
            "topics": windows(name, Way.TOPICS) if standing.has_topics else None,
            "metrics": standing.metrics,
            "nulls": self.answered.null_shares(name),
            "warming": self._warming(standing.warming),
            "unanswered": standing.unanswered,
            "warnings": list(standing.warnings[:LISTED_MAX]),
        }

    def _warming(self, warming: Warming | None) -> dict[str, Any] | None:
        if warming is None:
            return None
        least = sorted(warming.filled.items(), key=lambda each: (each[1], each[0]))[:LISTED_MAX]
        return {
            "count": len(warming.filled),
            "least": [{"name": name, "filled": round(share, 4)} for name, share in least],
            "as_of_ms": self._at_ms(warming.at_s),
        }

    def _measure_disk(self) -> None:
        found = self._figures.measure_disk()
        self._disk = None if found is None else (found, self._now_s())

    def _at_ms(self, at_s: float) -> int:
        """Return the time on the wall of a moment of the monotonic clock."""
        return self._now_ms() - round(1_000 * (self._now_s() - at_s))
