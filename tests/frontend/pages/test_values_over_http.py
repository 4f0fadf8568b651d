"""Values without an event as clients get them, on an embedded engine and on Kafka; and by the command."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from railgun.cli import server_url
from railgun.cli.main import main
from railgun.client.client import Client
from railgun.engine.engine import Engine
from railgun.task.queries import QueryWork
from tests.frontend.kafka.cluster import LocalCluster, client_of, define, warming
from tests.frontend.serving import Server, server, until
from tests.oracle.compare import metric_differences

PAYMENTS = """
[streams.payments]
time = "ts"
id = "tx_id"
partitioners = ["card", "merchant"]
partitions = 2
[streams.payments.fields]
tx_id = "string"
ts = "timestamp"
card = "string"
merchant = "long"
amount = "decimal(9,2)"
day = "timestamp"
metrics = "string"
[[metrics]]
sql = "SELECT count(*) AS n, sum(amount) AS total FROM payments GROUP BY card OVER SLIDING 7 DAYS"
[[metrics]]
sql = "SELECT count(*) AS here FROM payments GROUP BY merchant OVER SLIDING 7 DAYS"
[[metrics]]
sql = "SELECT count(*) AS on_day FROM payments GROUP BY card, day, amount OVER INFINITE"
[[metrics]]
sql = "SELECT count(*) AS named FROM payments GROUP BY card, metrics OVER INFINITE"
[[metrics]]
sql = "DERIVE total / n AS mean, amount - total AS left FROM payments"
"""
PLACE = "/v1/streams/payments"
VALUES = f"{PLACE}/values"


@pytest.fixture(params=["embedded", "kafka"])
def client(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[httpx.Client]:
    kafka = request.getfixturevalue("kafka") if request.param == "kafka" else None
    with client_of(kafka, tmp_path, PAYMENTS, units=2) as found:
        yield found


def event(number: int, **fields: Any) -> dict[str, Any]:
    sent = {"tx_id": f"t{number}", "ts": 1_700_000_000_000 + number, "card": "c1", "merchant": 7}
    return sent | {"amount": "5.00"} | fields


def problem(response: httpx.Response, status: int = 422) -> tuple[str, list[Any]]:
    assert response.status_code == status, response.text
    found = response.json()
    return found["detail"], [each["loc"] for each in found["errors"]]


def test_they_are_those_of_a_duplicate(client: httpx.Client) -> None:
    for number in range(3):
        client.post(f"{PLACE}/events", json=event(number))
    values = client.get(f"{VALUES}?card=c1&merchant=7").json()
    again = client.post(f"{PLACE}/events", json=event(2)).json()
    assert again["duplicate"] == ["card", "merchant"]
    expected = {name: again["metrics"][name] for name in ("n", "total", "here", "mean")}
    assert list(metric_differences(expected, values["metrics"])) == []
    assert values["key"] == {"card": "c1", "merchant": 7}
    assert {place["time"] for place in values["as_of"].values()} == {1_700_000_000_002}


def test_what_is_acknowledged_is_in_them(client: httpx.Client) -> None:
    """Without its reply too: the next query waits for it."""
    for number in range(20):
        answer = client.post(f"{PLACE}/events?reply=none", json=event(number))
        assert answer.status_code == 202
        assert client.get(f"{VALUES}?card=c1&metrics=n").json()["metrics"] == {"n": number + 1}


def test_texts_are_read_as_their_fields_types(client: httpx.Client) -> None:
    client.post(f"{PLACE}/events", json=event(1, day="2026-01-31T00:00:00Z", amount="5.10"))
    for day in ("2026-01-31T00:00:00Z", "1769817600000", "2026-01-31T01:00:00%2B01:00"):
        found = client.get(f"{VALUES}?card=c1&day={day}&amount=5.1").json()
        assert found["metrics"]["on_day"] == 1
        assert found["key"] == {"card": "c1", "day": 1_769_817_600_000, "amount": "5.10"}
    by_post = client.post(VALUES, json={"keys": [{"card": "c1", "day": 1_769_817_600_000, "amount": 5.1}]})
    assert by_post.json()[0]["metrics"]["on_day"] == 1


def test_the_empty_string_and_null_are_different(client: httpx.Client) -> None:
    client.post(f"{PLACE}/events", json=event(1, card=""))
    client.post(f"{PLACE}/events", json=event(2, card=None))
    assert client.get(f"{VALUES}?card=").json()["metrics"]["n"] == 1
    (of_null,) = client.post(VALUES, json={"keys": [{"card": None}]}).json()
    assert of_null["metrics"] == {"n": None, "total": None, "mean": None}
    assert of_null["as_of"] == {}


def test_a_field_called_as_a_parameter_goes_by_post(client: httpx.Client) -> None:
    client.post(f"{PLACE}/events", json=event(1, metrics="m"))
    (found,) = client.post(
        VALUES, json={"keys": [{"card": "c1", "metrics": "m"}], "metrics": ["named"]}
    ).json()
    assert found["metrics"] == {"named": 1}


def test_many_keys_keep_their_order(client: httpx.Client) -> None:
    for number in range(30):
        client.post(f"{PLACE}/events", json=event(number, card=f"c{number % 3}", merchant=number % 2))
    keys: list[dict[str, Any]] = [{"card": f"c{number % 4}"} for number in range(300)]
    keys[100] = {"merchant": 1}
    found = client.post(VALUES, json={"keys": keys}).json()
    assert [each["key"] for each in found] == keys
    assert [each["metrics"].get("n") for each in found[:4]] == [10, 10, 10, 0]
    assert found[100]["metrics"] == {"here": 15}
    assert client.post(VALUES, json={"keys": []}).json() == []


URLS: list[tuple[str, str, list[str]]] = [
    ("", "a key of no field determines no metric of payments; its metrics group by", ["query"]),
    ("crd=c1", "crd: payments has no such field; did you mean card?", ["query", "crd"]),
    ("merchant=seven", "merchant: 'seven' is not a long", ["query", "merchant"]),
    ("ts=1", "ts: no metric of payments groups by it", ["query", "ts"]),
    ("card=c1&metrics=here", "here groups by merchant; the key lacks merchant", ["query"]),
    ("card=c1&metrics=left", "left reads amount of an event", ["query", "metrics"]),
    ("card=c1&metrics=m", "payments has no metric 'm'", ["query", "metrics"]),
    ("card=c1&card=c2", "card: it is there twice", ["query", "card"]),
    ("card=c1&at=5", "at: it is kept for a time", ["query", "at"]),
    ("card=c1&timeout_ms=soon", "'soon' is no whole number", ["query", "timeout_ms"]),
]
BODIES: list[tuple[Any, str, list[Any]]] = [
    ({}, "the key keys is missing", []),
    ({"keys": {"card": "c1"}}, "a list of keys belongs here", ["keys"]),
    ({"keys": ["c1"]}, "a key is an object", ["keys", 0]),
    (
        {"keys": [{"card": "c1"}, {"card": 1}]},
        "key 1 card: the number 1 is not a string",
        ["keys", 1, "card"],
    ),
    ({"keys": [{"card": "c1"}], "metrics": "n"}, "a list of names of metrics", ["metrics"]),
    ({"keys": [{"card": "c1"}], "metrics": ["here"]}, "the key lacks merchant", ["keys", 0]),
    ({"keys": [], "at": 1}, "unknown key", ["at"]),
]


def test_what_is_refused(client: httpx.Client) -> None:
    for query, says, where in URLS:
        detail, places = problem(client.get(f"{VALUES}?{query}"))
        assert says in detail
        assert places == [where]
    for body, says, where in BODIES:
        detail, places = problem(client.post(VALUES, json=body))
        assert says in detail
        assert places == [where]


def test_other_refusals(client: httpx.Client) -> None:
    assert "did you mean payments?" in problem(client.get("/v1/streams/payment/values?card=c1"), 404)[0]
    assert "application/json" in problem(client.post(VALUES, content=b"{}"), 415)[0]
    problem(client.post(VALUES, content=b"{", headers={"Content-Type": "application/json"}), 400)
    too_many = {"keys": [{"card": "c1"}] * 10_001}
    assert "at most 10000 are taken" in problem(client.post(VALUES, json=too_many), 413)[0]
    assert "no such parameter" in problem(client.post(f"{VALUES}?card=c1", json={"keys": []}))[0]


def test_units_that_are_away_are_said(kafka: str, tmp_path: Path) -> None:
    with LocalCluster(kafka, tmp_path) as cluster:
        served = cluster.serve()
        define(served.client, PAYMENTS)
        cluster.start_units(1)
        until(lambda: not warming(served.client, "payments"))
        assert served.client.get(f"{VALUES}?card=c1").status_code == 200
        cluster.stop_units()
        late = served.client.get(f"{VALUES}?card=c1&merchant=1&timeout_ms=300")
        assert "no answer within 300 ms" in problem(late, 504)[0]
        assert late.json()["partitioners"] == ["card", "merchant"]
        cluster.start_units(1)
        # It is asked again until somebody answers.
        assert served.client.get(f"{VALUES}?card=c1&timeout_ms=60000").status_code == 200


def test_changes_are_in_force_in_them(client: httpx.Client) -> None:
    """A metric that was registered is in the values from then on, one that was dropped is not."""
    for number in range(5):
        sql = f"SELECT count(*) AS added{number} FROM payments GROUP BY card OVER INFINITE"
        assert client.post(f"{PLACE}/metrics", json={"sql": sql}).status_code == 201
        assert f"added{number}" in client.get(f"{VALUES}?card=c1").json()["metrics"]
        assert client.delete(f"{PLACE}/metrics/added{number}").status_code == 204
        assert f"added{number}" not in client.get(f"{VALUES}?card=c1").json()["metrics"]
    client.post(f"{PLACE}/events", json=event(1))
    assert client.delete(PLACE).status_code == 204
    problem(client.get(f"{VALUES}?card=c1"), 404)
    define(client, PAYMENTS)
    assert client.get(f"{VALUES}?card=c1&metrics=n&timeout_ms=60000").json()["metrics"] == {"n": 0}


def test_an_engine_that_is_busy_is_not_waited_for(tmp_path: Path) -> None:
    with server(tmp_path / "data") as running:
        define(running.client, PAYMENTS)
        with running.engine()._lock:
            detail, _ = problem(running.client.get(f"{VALUES}?card=c1&timeout_ms=100"), 504)
        assert "no answer within 100 ms" in detail
        assert running.client.get(f"{VALUES}?card=c1").status_code == 200


def test_they_are_counted(client: httpx.Client) -> None:
    for query in ("card=c1", "card=c1", "crd=c1"):
        client.get(f"{VALUES}?{query}")
    text = client.get("/metrics").text
    assert 'railgun_value_queries_total{outcome="answered",stream="payments"} 2.0' in text
    assert 'railgun_value_queries_total{outcome="refused",stream="payments"} 1.0' in text
    assert 'railgun_value_query_seconds_count{stream="payments"} 3.0' in text


def test_a_task_that_cannot_answer_harms_no_event(
    kafka: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with LocalCluster(kafka, tmp_path) as cluster:
        served = cluster.serve()
        define(served.client, PAYMENTS)
        cluster.start_units(1)
        until(lambda: not warming(served.client, "payments"))

        def fails(*_: Any) -> None:
            raise ValueError("a secret of the program")

        with monkeypatch.context() as patch:
            patch.setattr(QueryWork, "answer", fails)
            detail, _ = problem(served.client.get(f"{VALUES}?card=c1"), 500)
        assert "cannot answer; the log of its node says why" in detail
        assert served.score("payments", event(1))["metrics"]["n"] == 1
        assert served.client.get(f"{VALUES}?card=c1").json()["metrics"]["n"] == 1


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Server]:
    with server(tmp_path / "data", open_engine=lambda: Engine(tmp_path / "data", durability="os")) as running:
        define(running.client, PAYMENTS)
        running.client.post(f"{PLACE}/events", json=event(1))
        yield running


def test_the_command(served: Server, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["values", "payments", "--key", "card=c1", "--url", served.service.url]
    assert main(words) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split() for line in lines[:4]] == [
        ["metric", "value"], ["n", "1"], ["total", "5.00"], ["mean", "5.0"]
    ]  # fmt: skip
    assert lines[4].startswith("  card: as of 2023-11-14T22:13:20.001Z, offset ")
    assert main([*words, "--metrics", "n", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["metrics"] == {"n": 1}


def test_the_command_says_that_it_waits(
    served: Server, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["values", "payments", "--key", "card=c1", "--url", served.service.url]
    assert main(words) == 0
    prompt = capsys.readouterr()
    monkeypatch.setattr(server_url, "_LATE_S", 0.0)
    asked, said = Client.values_of_text, list[str]()

    def late(*arguments: Any) -> dict[str, Any]:
        until(lambda: said.append(capsys.readouterr().err) or any(said))
        return asked(*arguments)

    monkeypatch.setattr(Client, "values_of_text", late)
    assert main(words) == 0
    assert (prompt.err, capsys.readouterr().out) == ("", prompt.out)
    assert "".join(said).endswith("`railgun status` says whether somebody answers the tasks of payments\n")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--key", "card"], "as in card=c1"),
        (["--key", "card=c1", "--key", "card=c2"], "card is there twice"),
        (["--key", "metrics=m"], "goes by POST"),
        (["--key", "crd=c1"], "did you mean card?"),
        (
            [],
            "by merchant; give a key with --key, as in --key card=c1",
        ),
    ],
)
def test_what_the_command_refuses(
    words: list[str], says: str, served: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["values", "payments", *words, "--url", served.service.url]) == 2
    assert says in capsys.readouterr().err
