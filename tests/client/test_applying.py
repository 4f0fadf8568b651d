"""What `railgun apply` asks of a server: how much at once, and nothing that others have changed meanwhile."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from railgun.catalog.definitions import METRICS_AT_ONCE_LIMIT, parse_definitions
from railgun.client.applying import carry_out, plan
from railgun.client.client import Client
from tests.frontend.serving import Server, server

STREAM = """
[streams.s]
partitioners = ["card"]
[streams.s.fields]
card = "string"
amount = "double"
"""
FORMS = """
[streams.s]
id = "id"
partitioners = ["card"]
[streams.s.fields]
id = "string"
card = { type = "string", from = "header.card" }
amount = "double"
seen = { type = "timestamp", from = "header.seen" }
"""


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Server]:
    with server(tmp_path / "data") as made:
        yield made


@pytest.fixture
def client(running: Server) -> Iterator[Client]:
    with Client(running.service.url) as made:
        yield made


def metric(name: str, condition: str = "") -> str:
    where = f" WHERE {condition}" if condition else ""
    return f'[[metrics]]\nsql = "SELECT count(*) AS {name} FROM s{where} GROUP BY card OVER INFINITE"\n'


def applied(client: Client, text: str) -> list[str]:
    return list(carry_out(client, plan(client, parse_definitions(text))))


def test_a_stream_with_more_metrics_than_one_request_takes(client: Client) -> None:
    names = [f"m{i}" for i in range(METRICS_AT_ONCE_LIMIT + 2)]
    derived = '[[metrics]]\nsql = "DERIVE m0 + m1001 AS both FROM s"\n'
    said = applied(client, STREAM + "".join(map(metric, names)) + derived)
    assert said == ["stream s", *(f"metric s.{each}" for each in [*names, "both"])]
    assert [each["name"] for each in client.metrics("s")] == [*names, "both"]


def test_a_stream_with_metrics_of_more_bytes_than_one_request_takes(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = list[int]()
    create = client.create_stream

    def counting(definition: dict[str, object]) -> None:
        sent.append(len(definition["metrics"]))  # type: ignore[arg-type]
        create(definition)

    monkeypatch.setattr(client, "create_stream", counting)
    # 15 KB each: a letter has two bytes.
    long = "é" * 7_500
    names = [f"m{i}" for i in range(72)]
    text = STREAM + "".join(metric(name, f"card = '{name}{long}'") for name in names)
    said = applied(client, text)
    assert said == ["stream s", *(f"metric s.{each}" for each in names)]
    assert [each["name"] for each in client.metrics("s")] == names
    # 69 of 15,080 bytes are less than 1 MiB, and 70 are more.
    assert sent == [69]


def test_a_mapping_that_was_changed_meanwhile_stays(client: Client) -> None:
    applied(client, FORMS)
    planned = plan(client, parse_definitions(FORMS + 'note = "string"\nhalf = { as = "amount / 2" }\n'))
    changed = {"amount": {"type": "double", "from": "payment.value"}}
    changed["seen"] = {"type": "timestamp", "from": "header.seen", "unit": "us"}
    client.evolve_stream("s", {"fields": changed})
    assert list(carry_out(client, planned)) == ["stream s, fields"]
    (found,) = client.streams()
    assert {name: found["fields"][name] for name in changed} == changed
    assert {"note", "half"} < set(found["fields"])


@pytest.mark.parametrize(
    ("there", "wanted", "can_change"),
    [
        ('amount = "double"', 'amount = { type = "double", from = "payment.value" }', True),
        ('from = "header.seen" }', 'from = "header.seen", unit = "us" }', True),
        ("[streams.s.fields]", '[streams.s.input]\nwhere = "amount > 1"\n[streams.s.fields]', True),
        # A partitioner, and another type.
        ("header.card", "header.pan", False),
        ('amount = "double"', 'amount = "long"', False),
        ('amount = "double"', 'amount = { as = "1.5" }', False),
        ('id = "id"', 'id = "id"\ndedup_events = 7', False),
    ],
)
def test_a_difference_tells_whether_what_is_registered_can_change(
    client: Client, there: str, wanted: str, can_change: bool
) -> None:
    applied(client, FORMS)
    assert there in FORMS
    (difference,) = plan(client, parse_definitions(FORMS.replace(there, wanted, 1))).differences
    assert difference.can_change is can_change
