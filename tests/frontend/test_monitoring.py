"""`/metrics` of a running server: what it counts is what clients saw."""

from collections.abc import Iterator
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families as parse

from railgun.telemetry.families import SERVED
from tests.frontend.serving import Server, load_kernels, server, until

PAYMENTS = """
[streams.payments]
time = "ts"
id = "tx_id"
partitioners = ["card", "merchant"]
lateness = "1s"
late_policy = "discard"
[streams.payments.fields]
tx_id = "string"
ts = "timestamp"
card = "string"
merchant = "string"
[[metrics]]
sql = "SELECT count(*) AS n FROM payments GROUP BY card OVER SLIDING 1 HOUR"
"""
EVENTS = "/v1/streams/payments/events"
NOW_MS = 1_700_000_000_000


@pytest.fixture(scope="module")
def payments(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with server(tmp_path_factory.mktemp("payments") / "data", in_flight_limit_events=50) as running:
        load_kernels()
        running.define(PAYMENTS)
        yield running


def _event(place: int, ts: int = NOW_MS, **more: Any) -> dict[str, Any]:
    return {"tx_id": f"t{place}", "ts": ts, "card": "c", "merchant": "m", **more}


def _scraped(server: Server) -> dict[str, float]:
    """Samples by `name{label=value,…}`, labels in order."""
    response = server.client.get("/metrics")
    assert response.status_code == 200
    return {
        f"{sample.name}{{{','.join(f'{k}={v}' for k, v in sorted(sample.labels.items()))}}}": sample.value
        for family in parse(response.text)
        for sample in family.samples
    }


def test_it_counts_what_clients_saw(payments: Server) -> None:
    before = _scraped(payments)
    lines = [_event(1), _event(1), _event(2, merchant=None), {"tx_id": 5}, "x"]
    payments.post(EVENTS, lines)
    payments.client.post(EVENTS, content=b"{", headers={"content-type": "application/json"})
    assert payments.post(EVENTS, _event(3, ts=NOW_MS - 5_000)).json()["late"] == {
        "card": "discarded",
        "merchant": "discarded",
    }
    assert payments.post(EVENTS, [_event(100 + place) for place in range(51)]).status_code in (413, 429)
    after = _scraped(payments)

    def grown(sample: str) -> float:
        return after.get(sample, 0.0) - before.get(sample, 0.0)

    assert grown("railgun_events_total{stream=payments}") == 4
    assert grown("railgun_events_refused_total{reason=malformed,stream=payments}") == 1
    assert grown("railgun_events_refused_total{reason=invalid,stream=payments}") == 2
    for partitioner in ("card", "merchant"):
        assert grown(f"railgun_events_duplicate_total{{partitioner={partitioner},stream=payments}}") == 1
        assert (
            grown(f"railgun_events_late_total{{outcome=discarded,partitioner={partitioner},stream=payments}}")
            == 1
        )
    assert grown("railgun_batch_events_sum{stream=payments}") == 4
    for stage in ("queue", "admission", "process", "durable", "encode", "total"):
        assert grown(f"railgun_stage_seconds_count{{stage={stage},stream=payments}}") == 3
    whole = grown("railgun_stage_seconds_sum{stage=total,stream=payments}")
    parts = ("queue", "admission", "process", "durable", "encode")
    assert (
        0
        < sum(grown(f"railgun_stage_seconds_sum{{stage={stage},stream=payments}}") for stage in parts)
        <= whole
    )
    assert after["railgun_ready{}"] == 1
    assert after["railgun_in_flight_events{}"] == after["railgun_in_flight_bytes{}"] == 0


def test_tasks_are_read(payments: Server) -> None:
    payments.score("payments", _event(1_000))
    position = "railgun_task_position{partition=0,partitioner=card,stream=payments}"
    until(lambda: _scraped(payments).get(position, 0.0) >= 1)
    found = _scraped(payments)
    assert found["railgun_metrics{partition=0,partitioner=card,stream=payments}"] == 1
    assert found["railgun_metrics{partition=0,partitioner=merchant,stream=payments}"] == 0
    assert found["railgun_reading_age_seconds{}"] >= 0
    assert found["railgun_disk_free_bytes{}"] > 0


def test_refused_for_want_of_room(payments: Server) -> None:
    payments.service.application.in_flight.take(50, 0)
    try:
        assert payments.post(EVENTS, _event(2_000)).status_code == 429
        found = _scraped(payments)
    finally:
        payments.service.application.in_flight.release(50, 0)
    assert found["railgun_events_refused_total{reason=full,stream=payments}"] == 1
    assert found["railgun_in_flight_events{}"] == 50


def test_a_stream_that_is_gone_is_not_shown(payments: Server) -> None:
    payments.define(PAYMENTS.replace("payments", "others"))
    payments.score("others", _event(1))
    assert "railgun_events_total{stream=others}" in _scraped(payments)
    assert payments.client.delete("/v1/streams/others").status_code < 300
    assert not [sample for sample in _scraped(payments) if "events_total{stream=others}" in sample]
    assert payments.post("/v1/streams/nothing/events", _event(1)).status_code == 404
    assert not [sample for sample in _scraped(payments) if "nothing" in sample]


def test_every_family_is_scraped(payments: Server) -> None:
    text = payments.client.get("/metrics").text
    assert [family.name for family in SERVED if f"# TYPE {family.name} {family.kind}\n" not in text] == []
