"""Sends events over HTTP at a rate, as lines of one request, and compares each reply with the oracle's."""

import http.client
import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bench.children import ChildFailedError
from bench.service import Service
from tests.oracle.compare import differences, metric_differences
from tests.oracle.stream import StreamOracle

_TICK_S, _AGAIN_S, _ANSWERED_S, _TIMEOUT_S = 0.02, 0.05, 90.0, 120.0


@dataclass(frozen=True, slots=True)
class Checked:
    """What came of some events. longest_s: from when an event was due until its reply came.

    wrong: what is not as the oracle says, of replies and of values without an event, a line each.
    """

    events: int
    longest_s: float
    wrong: list[str]


class CheckedLines:
    """A client that sends the events of a stream in order and reads their replies.

    If the answer ends, because a front-end stops, the client sends what is not answered again once a server listens.
    event: gives the event of a number.
    """

    def __init__(
        self,
        service: Service,
        oracle: StreamOracle,
        event: Callable[[int], dict[str, Any]],
        rate_per_s: float,
    ) -> None:
        self._service, self._oracle, self._event, self._rate_per_s = service, oracle, event, rate_per_s
        self._path = f"/v1/streams/{oracle.stream.name}"
        self._due_s: list[float] = []
        self._replies: list[tuple[float, dict[str, Any]]] = []
        self._checked = 0
        self._next_due_s: float | None = None
        self._lock, self._ended = threading.Lock(), threading.Event()
        self._failure = "no server listened"
        self._thread = threading.Thread(target=self._repeat, daemon=True)
        self._thread.start()

    def flow(self) -> None:
        """Let events become due from now on."""
        self._next_due_s = time.monotonic()

    def check(self, keys: list[dict[str, Any]]) -> Checked:
        """Let no more events become due, wait for all replies, and compare those since the last check. Then compare the
        values of some keys.

        Raises ChildFailedError if replies are missing.
        """
        until_s = time.monotonic() + _ANSWERED_S
        with self._lock:
            self._next_due_s, due = None, len(self._due_s)
        while len(self._replies) < due:
            if time.monotonic() > until_s:
                raise ChildFailedError(f"{due - len(self._replies)} events without a reply: {self._failure}")
            time.sleep(_TICK_S)
        wrong, longest_s, first = [], 0.0, self._checked
        for number in range(first, due):
            came_s, reply = self._replies[number]
            longest_s = max(longest_s, came_s - self._due_s[number])
            expected = self._oracle.score(self._event(number))
            found = differences(expected, reply) if "metrics" in reply else [f"no reply: {reply}"]
            wrong += [f"event {number}: {each}" for each in found]
        for key in keys:
            asked = "&".join(f"{name}={value}" for name, value in key.items())
            got = self._service.ask("GET", f"{self._path}/values?{asked}")
            found = [*metric_differences(self._oracle.values(key)["metrics"], got["metrics"])]
            wrong += [f"values of {key}: {each}" for each in found]
        self._checked = due
        return Checked(due - first, longest_s, wrong)

    def close(self) -> None:
        """End the thread."""
        self._ended.set()
        self._thread.join(_TIMEOUT_S)

    def _make_due(self) -> int:
        """Return how many events are due by now."""
        with self._lock:
            while self._next_due_s is not None and self._next_due_s <= time.monotonic():
                self._due_s.append(self._next_due_s)
                self._next_due_s += 1 / self._rate_per_s
            return len(self._due_s)

    def _repeat(self) -> None:
        while not self._ended.wait(_AGAIN_S):
            connection = http.client.HTTPConnection(
                self._service.host, self._service.port, timeout=_TIMEOUT_S
            )
            try:
                self._request(connection)
            except (OSError, http.client.HTTPException, ValueError) as error:
                self._failure = f"{type(error).__name__}: {error}"
            finally:
                connection.close()

    def _request(self, connection: http.client.HTTPConnection) -> None:
        """Send lines until the server ends its answer."""
        connection.putrequest("POST", f"{self._path}/events")
        connection.putheader("Content-Type", "application/x-ndjson")
        connection.putheader("Transfer-Encoding", "chunked")
        connection.endheaders()
        is_over = threading.Event()
        sender = threading.Thread(target=self._send, args=(connection, is_over), daemon=True)
        sender.start()
        try:
            response = connection.getresponse()
            if response.status != http.HTTPStatus.OK:
                raise ValueError(f"{response.status}: {response.read().decode(errors='replace')}")
            for line in response:
                self._replies.append((time.monotonic(), json.loads(line)))
        finally:
            is_over.set()
            sender.join()

    def _send(self, connection: http.client.HTTPConnection, is_over: threading.Event) -> None:
        number = len(self._replies)
        try:
            while not self._ended.is_set() and not is_over.wait(_TICK_S):
                due = self._make_due()
                lines = b"".join(
                    json.dumps(self._event(each)).encode() + b"\n" for each in range(number, due)
                )
                if lines:
                    connection.send(b"%x\r\n%b\r\n" % (len(lines), lines))
                number = due
            connection.send(b"0\r\n\r\n")
        except OSError as error:
            self._failure = f"{type(error).__name__}: {error}"
