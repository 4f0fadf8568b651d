"""Front-ends beside each other: the same streams, changes of one catalogue, units that come and go."""

import math
import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from railgun.catalog.definitions import parse_definitions
from railgun.catalog.stream_reading import stream_to_json
from tests.frontend.conftest import PAYMENTS
from tests.frontend.kafka.cluster import LocalCluster, RunningFrontEnd
from tests.frontend.serving import until

EVENTS = "/v1/streams/payments/events"
METRICS = "/v1/streams/payments/metrics"
Event = Callable[..., dict[str, Any]]


def test_concurrent_registrations_come_in_one_order(kafka: str, tmp_path: Path, event: Event) -> None:
    definitions = parse_definitions(PAYMENTS)
    body = stream_to_json(definitions.streams["payments"])
    queries = [
        f"SELECT count(*) AS x{n} FROM payments GROUP BY card OVER SLIDING {n + 1} DAYS" for n in range(4)
    ]
    with LocalCluster(kafka, tmp_path) as cluster:
        cluster.start_units(1)
        front_ends = [cluster.serve(), cluster.serve()]

        def register(served: RunningFrontEnd) -> list[int]:
            made = [served.post("/v1/streams", body).status_code]
            return made + [served.post(METRICS, {"sql": sql}).status_code for sql in queries]

        with ThreadPoolExecutor(2) as pool:
            codes = list(pool.map(register, front_ends))
        assert [sorted(pair) for pair in zip(*codes)] == [[200, 201]] * 5
        until(lambda: front_ends[0].backend.place == front_ends[1].backend.place)
        listed = [served.client.get(METRICS).json()["metrics"] for served in front_ends]
        assert [each["name"] for each in listed[0]] == [each["name"] for each in listed[1]]
        assert {each["name"] for each in listed[0]} == {"x0", "x1", "x2", "x3"}
        plans = [served.client.get("/v1/streams/payments/plan").json() for served in front_ends]
        assert plans[0] == plans[1]
        assert [each["metrics"] for each in plans[0]["streams"][0]["partitioners"]] == [4, 0]
        assert front_ends[0].client.get("/v1/streams/payment/plan").status_code == 404
        other = {**body, "lateness": "7s"}
        assert front_ends[1].post("/v1/streams", other).status_code == 409
        assert list(front_ends[1].score("payments", event())["metrics"]) == [
            each["name"] for each in listed[0]
        ]


def test_events_through_all_of_them_while_units_crash(kafka: str, tmp_path: Path, event: Event) -> None:
    """Each client has cards of its own and sends through both in turns: every reply is what its card had by then."""
    definitions = parse_definitions(PAYMENTS)
    with LocalCluster(kafka, tmp_path) as cluster:
        cluster.start_units(2)
        front_ends = [cluster.serve(), cluster.serve()]
        stream = stream_to_json(definitions.streams["payments"])
        assert front_ends[0].post("/v1/streams", {**stream, "partitions": 3}).status_code == 201
        for metric in (*definitions.metrics, *definitions.derived):
            assert front_ends[0].post(METRICS, {"sql": metric.sql}).status_code == 201
        until(lambda: front_ends[0].backend.place == front_ends[1].backend.place)

        def client(number: int) -> int:
            chosen, amounts, sent = random.Random(number), dict[str, list[float]](), 0
            for turn in range(30):
                cards = [f"k{number}-{chosen.randrange(4)}" for _ in range(chosen.randrange(1, 30))]
                events = [event(card=card, amount=chosen.random() * 10) for card in cards]
                replies = front_ends[turn % 2].post(EVENTS, events).json()
                for one, reply in zip(events, replies, strict=True):
                    amounts.setdefault(one["card"], []).append(one["amount"])
                    assert reply["id"] == one["tx_id"]
                    assert reply["metrics"]["n7"] == len(amounts[one["card"]])
                    assert reply["metrics"]["s7"] == math.fsum(amounts[one["card"]])
                sent += len(events)
            return sent

        with ThreadPoolExecutor(3) as pool:
            clients = [pool.submit(client, number) for number in range(3)]
            for _ in range(2):
                cluster.stop_units(checkpoint=False)
                cluster.start_units(2)
            total = sum(each.result() for each in clients)
        assert front_ends[0].score("payments", event())["metrics"]["everyone"] == total + 1
