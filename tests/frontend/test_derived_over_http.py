"""Derived metrics as clients see them: chosen alone, shown, ended; on an embedded engine and on Kafka."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.frontend.kafka.cluster import client_of

PAYMENTS = """
[streams.payments]
time = "ts"
id = "tx_id"
partitioners = ["card", "merchant"]
[streams.payments.fields]
tx_id = "string"
ts = "timestamp"
card = "string"
merchant = "string"
amount = "double"
[[metrics]]
sql = "SELECT count(*) AS n, sum(amount) AS total FROM payments GROUP BY card OVER SLIDING 7 DAYS"
[[metrics]]
sql = "SELECT count(*) AS here FROM payments GROUP BY merchant OVER SLIDING 7 DAYS"
[[metrics]]
sql = "DERIVE total / n AS mean, mean > 2e1 AS high, here - n AS others FROM payments"
"""
PLACE = "/v1/streams/payments"


@pytest.fixture(params=["embedded", "kafka"])
def client(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[httpx.Client]:
    kafka = request.getfixturevalue("kafka") if request.param == "kafka" else None
    with client_of(kafka, tmp_path, PAYMENTS) as found:
        yield found


def test_they_are_metrics_among_others(client: httpx.Client, event: Callable[..., dict[str, Any]]) -> None:
    def score(query: str = "", **fields: Any) -> dict[str, Any]:
        sent = event(**({"card": "c", "merchant": "m", "amount": 30.0} | fields))
        answer = client.post(f"{PLACE}/events{query}", json=sent)
        assert answer.status_code == 200, answer.text
        return dict(answer.json()["metrics"])

    everything = score()
    assert list(everything) == ["n", "total", "here", "mean", "high", "others"]
    assert everything == {"n": 1, "total": 30.0, "here": 1, "mean": 30.0, "high": True, "others": 0}
    assert score("?metrics=high", amount=10.0) == {"high": False}
    assert score("?metrics=others,n", card="d") == {"n": 1, "others": 2}
    assert client.post(f"{PLACE}/events?metrics=higher", json=event()).status_code == 422
    shown = client.get(f"{PLACE}/metrics").json()["metrics"]
    assert [(each["name"], each["home"], each["warming"], each["filled"]) for each in shown[2:4]] == [
        ("here", "merchant", False, 1.0),
        ("mean", None, False, 1.0),
    ]
    assert client.get(f"{PLACE}/metrics/high").json()["sql"] == "DERIVE mean > 20.0e0 AS high FROM payments"
    refused = client.delete(f"{PLACE}/metrics/mean")
    assert refused.status_code == 409
    assert "mean is read by the derived metric high: drop that first" in refused.json()["detail"]
    again = client.post(f"{PLACE}/metrics", json={"sql": "DERIVE total / n AS mean FROM payments"})
    assert again.status_code == 200
    for sql, status, said in (
        ("DERIVE total AS mean FROM payments", 409, "mean"),
        ("DERIVE a AS b, b AS a FROM payments", 422, "in a circle"),
        ("DERIVE totl AS x FROM payments", 422, "did you mean total?"),
        ("DERIVE card + 1 AS x FROM payments", 422, "line 1, column 8"),
    ):
        answer = client.post(f"{PLACE}/metrics", json={"sql": sql})
        assert (answer.status_code, said in answer.json()["detail"]) == (status, True), answer.text
    plan = client.post(f"{PLACE}/explain", json={"sql": "DERIVE n + 1 AS next FROM payments"}).json()
    assert [each["name"] for each in plan["streams"][0]["derived"]] == ["mean", "high", "others", "next"]
    registered = client.get(f"{PLACE}/plan").json()
    assert [each["name"] for each in registered["streams"][0]["derived"]] == ["mean", "high", "others"]
    assert client.delete(f"{PLACE}/metrics/high").status_code == 204
    assert list(score()) == ["n", "total", "here", "mean", "others"]
