"""Clients that never read, and one that reads slowly, beside one that behaves: nothing is lost, and nothing grows."""

import json
import os
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import httpx
import pytest

from tests.frontend.raw_client import RawClient, chunked, head
from tests.frontend.serving import until
from tests.frontend.serving_process import process

EVENTS = "/v1/streams/payments/events"
CONFIG = """
[http]
in_flight_limit_events = 2000
in_flight_limit_bytes = "2MiB"
keep_alive_s = "10s"
[engine]
durability = "os"
memory_limit_bytes = "64MiB"
"""
REFUSED = (429, 503)
NEVER, SLOW_LINES, PIECE_BYTES = 4, 3_000, 4_096
# What docs/memory.md has: caches, the log, the ids of a million events of two tasks; and what allocators keep.
GROWTH_LIMIT_BYTES = 400 << 20
SOCKETS_LIMIT = 20
_SHOWN = 200


class Clients:
    """Each runs until `over`; what it finds wrong it raises."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.address = address
        self.over = threading.Event()
        self.cut = self.answered = self.refused = self.slow_streams = 0
        self._number, self._first_ms = 0, int(time.time() * 1000) - 30 * 86_400_000
        self._lock = threading.Lock()

    def event(self, card: str) -> dict[str, Any]:
        with self._lock:
            self._number += 1
            # A millisecond apart, however fast they are made: what is within the lateness stays in memory.
            time_ms = self._first_ms + self._number
            return {"tx_id": f"t{self._number}", "ts": time_ms, "card": card, "amount": 1.0}

    def lines(self, card: str, n: int) -> bytes:
        return b"".join(json.dumps(self.event(card)).encode() + b"\n" for _ in range(n))

    def never(self, name: str) -> None:
        """Send until nothing more is taken, then wait for the server to have enough of it."""
        while not self.over.is_set():
            with RawClient(self.address) as client, suppress(OSError):
                client.socket.settimeout(0.5)
                client.send(head(EVENTS, "application/x-ndjson", "Transfer-Encoding: chunked"))
                while not self.over.is_set():
                    client.send(chunked(self.lines(name, 500), end=False))
            self.cut += 1

    def slow(self) -> None:
        """One answer for each line, in order, however slowly they are read."""
        for stream in range(10**9):
            if self.over.is_set():
                return
            card = f"slow{stream}"
            with RawClient(self.address) as client:
                body = chunked(self.lines(card, SLOW_LINES))
                client.send(head(EVENTS, "application/x-ndjson", "Transfer-Encoding: chunked"))
                sender = threading.Thread(target=self._send, args=(client, body))
                sender.start()
                try:
                    status, _ = client.head()
                    if status in REFUSED:
                        self.refused += 1
                        continue
                    assert status == 200
                    said = b""
                    while piece := client.chunk():
                        said += piece
                        time.sleep(len(piece) / PIECE_BYTES * 0.01)
                finally:
                    client.socket.shutdown(socket.SHUT_RDWR)
                    sender.join()
            counted = [json.loads(line)["metrics"]["n7"] for line in said.splitlines()]
            assert counted == list(range(1, SLOW_LINES + 1))
            self.slow_streams += 1

    @staticmethod
    def _send(client: RawClient, body: bytes) -> None:
        # Where it is cut off, whoever reads finds out.
        with suppress(OSError):
            client.send(body)

    def good(self, client: httpx.Client) -> None:
        """What is answered counts once; what is refused was not taken."""
        event = self.event("good")
        while not self.over.is_set():
            try:
                response = client.post(EVENTS, json=event)
            except httpx.TransportError:
                # Idle for too long, its connection was closed as it sent: again, with its id.
                continue
            event = self.event("good")
            if response.status_code == 200:
                self.answered += 1
                assert response.json()["metrics"]["n7"] == self.answered
            else:
                assert response.status_code in REFUSED, response.text
                assert response.headers["retry-after"]
                self.refused += 1
                time.sleep(0.01)


def resident_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def open_sockets(pid: int) -> int:
    found = 0
    for each in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):
            found += str(each.readlink()).startswith("socket:")
    return found


def watch(bounded: Callable[[], None], running: list["Future[None]"], seconds: float) -> None:
    end_s = time.monotonic() + seconds
    while time.monotonic() < end_s and not any(each.done() for each in running):
        bounded()
        time.sleep(0.2)


@contextmanager
def _heard(stderr: IO[str] | None) -> Iterator[None]:
    """Read what the server logs, so that it can go on, and show the end of it where the block fails."""
    assert stderr is not None
    said: deque[str] = deque(maxlen=_SHOWN)
    listening = threading.Thread(target=lambda: said.extend(stderr), daemon=True)
    listening.start()
    try:
        yield
    except BaseException as error:
        # What it has said until now is on its way.
        listening.join(1.0)
        error.add_note("The server said last:\n" + "".join(said.copy()))
        raise


def withstand(folder: Path, seconds: float) -> Clients:
    """So many seconds of it."""
    config = folder / "railgun.toml"
    config.write_text(CONFIG)
    with process(folder / "data", "--config", str(config)) as (child, client), _heard(child.stderr):
        host, port = str(client.base_url.host), client.base_url.port
        assert port is not None
        clients = Clients((host, port))
        # A first stream brings what any amount of traffic brings.
        content = clients.lines("first", 20_000)
        client.post(EVENTS, content=content, headers={"Content-Type": "application/x-ndjson"})
        before_bytes, before_sockets = resident_bytes(child.pid), open_sockets(child.pid)

        def bounded() -> None:
            assert resident_bytes(child.pid) < before_bytes + GROWTH_LIMIT_BYTES
            assert open_sockets(child.pid) < before_sockets + SOCKETS_LIMIT

        with ThreadPoolExecutor(NEVER + 2) as pool:
            running = [pool.submit(clients.never, f"never{number}") for number in range(NEVER)]
            running += [pool.submit(clients.slow), pool.submit(clients.good, client)]
            try:
                watch(bounded, running, seconds)
            finally:
                clients.over.set()
        for each in running:
            each.result()
        until(lambda: open_sockets(child.pid) <= before_sockets)
        child.terminate()
        assert child.wait(60) == 0
    return clients


def test_six_seconds_of_slow_clients(tmp_path: Path) -> None:
    clients = withstand(tmp_path, 6)
    assert clients.answered > 10
    assert clients.slow_streams > 0


@pytest.mark.torture
def test_ten_minutes_of_slow_clients(tmp_path: Path) -> None:
    clients = withstand(tmp_path, 600)
    assert clients.answered > 1_000
    assert clients.cut > 20
    assert clients.slow_streams > 10
