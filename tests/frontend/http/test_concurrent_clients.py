"""Many clients at once, each with cards of its own: every reply is what the oracle says of that client alone."""

import json
import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx

from tests.frontend.serving import Server, server
from tests.oracle.compare import differences
from tests.oracle.stream import Oracle

DEFINITIONS = """
[streams.s]
time = "ts"
id = "id"
partitioners = ["card"]
lateness = "1h"
partitions = 3
[streams.s.fields]
id = "string"
ts = "timestamp"
card = "string"
x = "double"
n = "long"
[[metrics]]
sql = "SELECT count(*) AS n5, sum(x) AS s5, max(n) AS m5, stddev(x) AS d5 FROM s GROUP BY card OVER INFINITE"
[[metrics]]
sql = "SELECT prev(n) AS p, count_distinct(n) AS u FROM s WHERE x > 0 GROUP BY card OVER INFINITE"
"""
CLIENTS, REQUESTS = 8, 40
START_MS = 1_700_000_000_000


def events(client: int, rng: random.Random) -> list[list[dict[str, Any]]]:
    """What a client sends, request by request: single events, some bad, and batches."""
    found: list[list[dict[str, Any]]] = []
    for request in range(REQUESTS):
        batch = []
        for place in range(rng.choice([1, 1, 1, 5, 200])):
            batch.append(
                {
                    "id": f"{client}-{request}-{place}",
                    "ts": START_MS + rng.randrange(3_000_000),
                    "card": f"card {client} {rng.randrange(3)}",
                    "x": rng.choice([rng.random(), -1.5, 1e300, None]),
                    "n": rng.randrange(-5, 5),
                }
            )
            if rng.random() < 0.05:
                batch[-1]["n"] = "no number"
        found.append(batch)
    return found


def send(running: Server, number: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """What one client sent and was answered, event by event."""
    rng = random.Random(number)
    sent: list[dict[str, Any]] = []
    answered: list[dict[str, Any]] = []
    with httpx.Client(base_url=running.service.url, timeout=60, trust_env=False) as client:
        for batch in events(number, rng):
            sent += batch
            if rng.random() < 0.5:
                body = "".join(json.dumps(event) + "\n" for event in batch).encode()
                headers = {"Content-Type": "application/x-ndjson"}
                response = client.post("/v1/streams/s/events", content=body, headers=headers)
                answered += [json.loads(line) for line in response.content.splitlines()]
            elif len(batch) == 1:
                answered.append(client.post("/v1/streams/s/events", json=batch[0]).json())
            else:
                answered += client.post("/v1/streams/s/events", json=batch).json()
    return sent, answered


def test_each_client_gets_its_own(tmp_path: Path) -> None:
    with server(tmp_path / "data") as running, ThreadPoolExecutor(CLIENTS) as pool:
        running.define(DEFINITIONS)
        everything = list(pool.map(lambda number: send(running, number), range(CLIENTS)))
    checked = refused = 0
    for sent, answered in everything:
        assert len(sent) == len(answered)
        # Nothing is late, groups are a client's own: what others send changes nothing.
        model = Oracle(DEFINITIONS).streams["s"]
        for event, reply in zip(sent, answered):
            if event["n"] == "no number":
                assert reply["status"] == 422
                refused += 1
                continue
            assert differences(model.score(event), reply) == []
            checked += 1
    assert checked > 2_000
    assert refused > 50
