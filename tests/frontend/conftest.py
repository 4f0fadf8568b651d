"""A server with a stream of payments, and an engine whose scoring can be held up."""

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from railgun.engine.engine import Engine
from tests.frontend.serving import PATIENCE_S, Server, server

PAYMENTS = """
[streams.payments]
time = "ts"
id = "tx_id"
partitioners = ["card", "*"]
[streams.payments.fields]
tx_id = "string"
ts = "timestamp"
card = "string"
amount = "double"
n = "long"
price = "decimal(9,2)"
[[metrics]]
sql = '''SELECT count(*) AS n7, sum(amount) AS s7, sum(n) AS l7, sum(price) AS p7 FROM payments
         GROUP BY card OVER SLIDING 7 DAYS'''
[[metrics]]
sql = "SELECT count(*) AS everyone FROM payments OVER INFINITE"
"""


class Gate:
    """While it is shut, no event is scored: the engine waits for its clock."""

    def __init__(self) -> None:
        self._open = threading.Event()
        self._open.set()
        self._is_waiting = threading.Event()

    def now_ms(self) -> int:
        if not self._open.is_set():
            self._is_waiting.set()
            assert self._open.wait(PATIENCE_S)
        return time.time_ns() // 1_000_000

    def shut(self) -> None:
        self._is_waiting.clear()
        self._open.clear()

    def open(self) -> None:
        self._open.set()

    def wait_for_event(self) -> None:
        """Wait until an event stands before it."""
        assert self._is_waiting.wait(PATIENCE_S)


class Payments:
    """Starts servers with payments over one folder. `http`: settings of theirs."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.gate = folder, Gate()

    def engine(self) -> Engine:
        return Engine(self.folder, durability="os", now_ms=self.gate.now_ms)

    def serve(self, **http: Any) -> Any:
        return server(self.folder, open_engine=self.engine, **http)


@pytest.fixture
def payments(tmp_path: Path) -> Payments:
    made = Payments(tmp_path / "data")
    with made.engine() as engine:
        engine.apply(PAYMENTS)
    return made


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One server for tests that leave no traces: each uses cards of its own."""
    with server(tmp_path_factory.mktemp("shared") / "data") as running:
        running.define(PAYMENTS)
        yield running


@pytest.fixture(scope="session")
def event() -> Callable[..., dict[str, Any]]:
    """Makes events with ids and cards of their own; `more`: their fields."""
    numbers = iter(range(10**9))

    def made(**more: Any) -> dict[str, Any]:
        number = next(numbers)
        own = {"tx_id": f"t{number}", "ts": int(time.time() * 1000), "card": f"c{number}", "amount": 1.5}
        return own | more

    return made
