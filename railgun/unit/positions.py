"""How the tasks of a unit stand, told to everybody: the topic of positions. See FORMAT.md."""

import time
from collections.abc import Iterable
from concurrent.futures import Future
from typing import Any

import msgspec

from railgun.messaging.errors import TransportFullError
from railgun.messaging.transport import Entry, TopicPartition, Transport
from railgun.registry.topics import Topics
from railgun.unit.reading import filled
from railgun.unit.task_host import TaskHost

VERSION = 1
# Everything is said again so often, moved or not: who is silent for longer does not run.
AGAIN_S = 5.0

_encode = msgspec.json.Encoder().encode


class Positions:
    """Writes what has changed, at most every `interval_s`. node, unit: who says so; generation: ms at its start."""

    def __init__(
        self, transport: Transport, topics: Topics, node: str, unit: int, generation: int, interval_s: float
    ) -> None:
        self._transport, self._where = transport, TopicPartition(topics.positions, 0)
        self._who = {"version": VERSION, "node": node, "unit": unit, "generation": generation}
        self._interval_s = interval_s
        self._said: dict[TopicPartition, dict[str, Any]] = {}
        self._due_s = self._again_s = 0.0
        self._sent: Future[list[int]] | None = None

    def note(self, hosts: Iterable[TaskHost], *, last: bool = False) -> None:
        """Say how tasks stand where that has changed and it is time to. last: whatever the time; they are let go.
        Raises TransportError where replies or what was said could not be delivered."""
        time_s = time.monotonic()
        if time_s < self._due_s and not last:
            return
        self._due_s = time_s + self._interval_s
        if self._sent is not None:
            if not (self._sent.done() or last):
                return
            self._sent.result()
        hosts = list(hosts)
        bodies = {host.place.where: self._body(host, last=last) for host in hosts}
        if time_s >= self._again_s:
            self._said, self._again_s = {}, time_s + AGAIN_S
        changed = [where for where, body in bodies.items() if self._said.get(where) != body]
        self._said = bodies
        if changed:
            keys: list[bytes | None] = [str(where).encode() for where in changed]
            records = [_encode({**self._who, **bodies[where]}) for where in changed]
            try:
                self._sent = self._transport.submit([Entry(self._where, records, keys)])
            except TransportFullError:
                self._said = {}
        if last and self._sent is not None:
            self._sent.result()

    def _body(self, host: TaskHost, *, last: bool) -> dict[str, Any]:
        place, position = host.place, host.position
        running = host.task if host.is_running else None
        return {
            "stream": place.key.stream,
            "created": place.key.created,
            "partitioner": place.key.partitioner,
            "partition": place.key.partition,
            "state": f"failed: {host.failure}" if host.failure else "stopped" if last else host.state,
            "processed": position,
            "replied": host.replied() if running is not None else position,
            "checkpointed": 0 if running is None else running.checkpoints.durable_position,
            "end": position + host.lag,
            "warming": [] if running is None else sorted(running.metrics.warming),
            "filled": {} if running is None else _rounded(filled(running)),
            "history": "" if running is None else running.history,
            "following": host.following,
            "unreadable": 0 if running is None else running.unreadable_records,
        }


def _rounded(shares: dict[str, float]) -> dict[str, float]:
    """In steps that people see: not every record of progress is written."""
    return {name: round(share, 2) for name, share in shares.items()}
