"""One client of a server that may go away: what it gets is compared with the oracle, whatever happened in between."""

import random
import time
from collections.abc import Iterator
from itertools import islice
from typing import Any

import httpx

from tests.frontend.conftest import PAYMENTS
from tests.oracle.compare import differences
from tests.oracle.stream import Oracle

EVENTS = "/v1/streams/payments/events"
CARDS = 7
Batch = list[dict[str, Any]]


class Load:
    """Waits for each answer. What was answered counts once; what was not counts once it is sent again."""

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

    def run(self, client: httpx.Client, batches: int | None = None) -> httpx.Response | None:
        """Send so many batches (None: for ever), until the server is gone; the answer with which it refused one.

        What was not answered is sent again first, by the next run.
        """
        try:
            for batch in islice(self._batches(), batches):
                self.unanswered, is_repeated = batch, batch is self.unanswered
                response = client.post(EVENTS, json=batch)
                if response.status_code != httpx.codes.OK:
                    return response
                self.unanswered = None
                self._compare(batch, response.json(), is_repeated=is_repeated)
        except httpx.TransportError:
            pass
        return None

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
