"""A server killed with -9 under load: what was answered counts once, what was not counts once it is sent again."""

import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.frontend.conftest import PAYMENTS
from tests.frontend.serving_process import process
from tests.oracle.compare import differences
from tests.oracle.stream import Oracle

EVENTS = "/v1/streams/payments/events"
CARDS = 7
Batch = list[dict[str, Any]]


class Load:
    """One client that waits for each answer. What it gets is compared with the oracle, whatever was killed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.oracle = Oracle(PAYMENTS).streams["payments"]
        self.first_ms = int(time.time() * 1000) - 3_600_000
        self.sent = 0
        self.unanswered: Batch | None = None
        self.compared = self.counted_before = 0

    def next_batch(self) -> Batch:
        return [self._event() for _ in range(self.random.randint(1, 12))]

    def _event(self) -> dict[str, Any]:
        self.sent += 1
        return {
            "tx_id": f"t{self.sent}",
            "ts": self.first_ms + 10 * self.sent - self.random.choice((0, 0, 40, 7_000)),
            "card": None if self.random.random() < 0.05 else f"c{self.random.randrange(CARDS)}",
            "amount": self.random.uniform(-1e6, 1e6),
            "n": self.random.randint(-(2**62), 2**62),
            "price": f"{self.random.randrange(10**6)}.25",
        }

    def run(self, client: httpx.Client) -> None:
        """Send until the server is gone. What was not answered is sent again first, by the next run."""
        try:
            for batch in self._batches():
                self.unanswered, is_repeated = batch, batch is self.unanswered
                response = client.post(EVENTS, json=batch)
                assert response.status_code == 200, response.text
                self.unanswered = None
                self._compare(batch, response.json(), is_repeated=is_repeated)
        except httpx.TransportError:
            return

    def _batches(self) -> Iterator[Batch]:
        if self.unanswered is not None:
            yield self.unanswered
        while True:
            yield self.next_batch()

    def _compare(self, batch: Batch, replies: list[Any], *, is_repeated: bool) -> None:
        for event, reply in zip(batch, replies, strict=True):
            if reply.get("duplicate"):
                assert is_repeated, f"{event['tx_id']} was sent once"
                # It came through before the kill, everywhere, in the order in which it was sent.
                self.oracle.score(event)
                self.counted_before += 1
        for event, reply in zip(batch, replies, strict=True):
            assert not differences(self.oracle.score(event), reply), (event, reply)
            self.compared += 1


def kill_again_and_again(folder: Path, seed: int, times: int) -> Load:
    """Kill a server on one data folder so many times, each at a moment of its own."""
    load = Load(seed)
    for _ in range(times):
        with process(folder / "data") as (child, client):
            timer = threading.Timer(load.random.uniform(0.02, 0.5), child.kill)
            timer.start()
            load.run(client)
            timer.join()
            child.wait()
    return load


def test_killed_five_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAILGUN_ENGINE__DURABILITY", "os")
    assert kill_again_and_again(tmp_path, 1, 5).compared > 5


@pytest.mark.torture
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("seed", range(5))
def test_killed_fifty_times(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAILGUN_ENGINE__DURABILITY", "os" if seed % 2 else "fsync")
    load = kill_again_and_again(tmp_path, 100 + seed, 10)
    assert load.compared > 50
