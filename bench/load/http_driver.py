"""Sends HTTP requests when they are due, over connections that each wait for their answer, in one thread."""

import select
import ssl
import time
from collections import deque

from bench.load.http_connection import Connection
from bench.load.http_requests import EventRequests
from bench.load.outcome import FAILED, Trace
from bench.load.timer import Timer

_CONNECT_FAILURES_MAX = 20


class HttpDriver:
    """Connects when it is made; `run` closes the connections. Raises OSError if nobody listens. ca: for TLS."""

    def __init__(self, host: str, port: int, connections: int, ca: str | None = None) -> None:
        self._where = (host, port)
        self._context = None if ca is None else ssl.create_default_context(cafile=ca)
        self._epoll = select.epoll()
        self._by_fd: dict[int, Connection] = {}
        self._idle: deque[Connection] = deque()
        self._connect_failures = 0
        self._all_busy_until_ns = 0
        for _ in range(connections):
            self._connect()

    def run(self, requests: EventRequests, trace: Trace, end_ns: int) -> None:
        """Send request i at `trace.due_ns[i]`, or as soon after as a connection is free; note in `trace` what came.

        Ends once all are answered, or at `end_ns`, or when nobody listens any more.
        """
        due_ns = trace.due_ns.tolist()
        next_place, under_way = 0, 0
        with Timer() as timer:
            self._epoll.register(timer.fd, select.EPOLLIN | select.EPOLLET)
            while next_place < len(due_ns) or under_way:
                now_ns = time.monotonic_ns()
                if now_ns >= end_ns or not self._by_fd:
                    break
                while next_place < len(due_ns) and due_ns[next_place] <= now_ns and self._idle:
                    self._send(next_place, requests[next_place], trace)
                    next_place += 1
                    under_way += 1
                    now_ns = time.monotonic_ns()
                if next_place < len(due_ns) and self._idle:
                    timer.arm(due_ns[next_place])
                for fd, events in self._epoll.poll(max(0.001, (end_ns - now_ns) / 1e9)):
                    if fd != timer.fd:
                        under_way -= self._serve(self._by_fd[fd], events, trace)
        self._close()

    def _send(self, place: int, request: bytes, trace: Trace) -> None:
        connection = self._idle.popleft()
        trace.starved += trace.due_ns[place] < self._all_busy_until_ns
        trace.sent_ns[place] = time.monotonic_ns()
        if connection.send(place, request):
            self._epoll.modify(connection.socket, select.EPOLLIN | select.EPOLLOUT)

    def _serve(self, connection: Connection, events: int, trace: Trace) -> int:
        """Read or write on a connection. Returns how many requests have ended by that."""
        if events & select.EPOLLOUT and not connection.send_more():
            self._epoll.modify(connection.socket, select.EPOLLIN)
        ended = bool(events & ~select.EPOLLOUT) and connection.receive()
        if ended:
            place, connection.place = connection.place, -1
            trace.status[place], trace.good[place] = connection.status, connection.good
            trace.done_ns[place] = time.monotonic_ns() if connection.status != FAILED else 0
        if not connection.is_open:
            self._replace(connection)
        elif ended:
            if not self._idle:
                self._all_busy_until_ns = time.monotonic_ns()
            self._idle.append(connection)
        return int(ended)

    def _connect(self) -> None:
        connection = Connection(*self._where, self._context)
        self._by_fd[connection.socket.fileno()] = connection
        self._epoll.register(connection.socket, select.EPOLLIN)
        self._idle.append(connection)

    def _replace(self, connection: Connection) -> None:
        """Replace a connection that was closed by a new one, unless nobody listens any more."""
        del self._by_fd[connection.socket.fileno()]
        if connection in self._idle:
            self._idle.remove(connection)
        connection.close()
        try:
            if self._connect_failures < _CONNECT_FAILURES_MAX:
                self._connect()
        except OSError:
            self._connect_failures += 1

    def _close(self) -> None:
        for connection in self._by_fd.values():
            connection.close()
        self._epoll.close()
