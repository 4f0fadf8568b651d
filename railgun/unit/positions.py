"""Reports the state of a unit's tasks to all processes of the cluster, in the topic of positions. See FORMAT.md."""

from collections.abc import Iterable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import Any

import msgspec

from railgun.host.host_state import HostState
from railgun.host.reading import filled
from railgun.host.task_host import TaskHost
from railgun.messaging.errors import TransportFullError, TransportUnavailableError
from railgun.messaging.transport import Entry, TopicPartition, Transport
from railgun.registry.topics import Topics
from railgun.unit.clock import CLOCK, Clock
from railgun.wire.records import Records

VERSION = 1
# All states are written again after this time, changed or not. A unit that writes nothing for longer is not running.
AGAIN_S = 5.0
# Wait at least this long, even when the time is over. A broker that is reachable has answered by then.
_LEAST_S = 0.5

_REPORTED = {HostState.FAILED: "failed", HostState.ANSWERING: "running"}

_encode = msgspec.json.Encoder().encode


class Positions:
    """Writes status records of tasks: those that have changed, at most every `interval_s`, and all of them every
    `again_s`.

    node, unit: the name of the node and the index of the unit, which each record names.
    generation: when the unit started, in ms since 1970. Each record names it.
    """

    def __init__(
        self,
        transport: Transport,
        topics: Topics,
        node: str,
        unit: int,
        generation: int,
        interval_s: float,
        again_s: float = AGAIN_S,
        clock: Clock = CLOCK,
    ) -> None:
        self._clock = clock
        self._transport, self._where = transport, TopicPartition(topics.positions, 0)
        self._who = {"version": VERSION, "node": node, "unit": unit, "generation": generation}
        self._interval_s, self._repeat_s = interval_s, again_s
        self._said: dict[TopicPartition, dict[str, Any]] = {}
        self._due_s = self._again_s = 0.0
        self._sent: Future[list[int]] | None = None

    def note(self, hosts: Iterable[TaskHost]) -> None:
        """Write the state of tasks if it has changed and the interval is over.

        Raises TransportError if replies or the last status records could not be delivered.
        """
        time_s = self._clock.now()
        if time_s < self._due_s:
            return
        self._due_s = time_s + self._interval_s
        if self._sent is not None:
            if not self._sent.done():
                return
            self._sent.result()
        self._say(hosts, last=False)

    def say_last(self, hosts: Iterable[TaskHost], until_s: float) -> None:
        """Write the state of tasks that are being closed, and wait until the records are acknowledged.

        until_s: when to stop waiting, in seconds of the monotonic clock.
        Raises TransportError.
        """
        self._settle(until_s)
        self._say(hosts, last=True)
        self._settle(until_s)

    def _settle(self, until_s: float) -> None:
        if self._sent is None:
            return
        try:
            self._sent.result(max(_LEAST_S, until_s - self._clock.now()))
        except FutureTimeoutError:
            raise TransportUnavailableError(
                str(self._where), "how tasks stand is not acknowledged", "Check the broker"
            ) from None

    def _say(self, hosts: Iterable[TaskHost], *, last: bool) -> None:
        time_s = self._clock.now()
        bodies = {host.place.where: self._body(host, last=last) for host in hosts}
        if time_s >= self._again_s:
            self._said, self._again_s = {}, time_s + self._repeat_s
        changed = [where for where, body in bodies.items() if self._said.get(where) != body]
        self._said = bodies
        if changed:
            keys: list[bytes | None] = [str(where).encode() for where in changed]
            records = Records.of([_encode({**self._who, **bodies[where]}) for where in changed])
            try:
                self._sent = self._transport.submit([Entry(self._where, records, keys)])
            except TransportFullError:
                self._said = {}

    def _body(self, host: TaskHost, *, last: bool) -> dict[str, Any]:
        place, position = host.place, host.position
        running = host.task if host.is_running else None
        return {
            "stream": place.key.stream,
            "created": place.key.created,
            "partitioner": place.key.partitioner,
            "partition": place.key.partition,
            "state": f"failed: {host.failure}" if host.failure else "stopped" if last else reported(host),
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


def reported(host: TaskHost) -> str:
    """Return the state of an open host as other processes see it: failed, running, or recovering.

    A task recovers until it has processed its log up to where it ended at opening.
    """
    return _REPORTED.get(host.state, "recovering")


def _rounded(shares: dict[str, float]) -> dict[str, float]:
    """Round shares to steps that people can see, so that not every bit of progress is written."""
    return {name: round(share, 2) for name, share in shares.items()}
