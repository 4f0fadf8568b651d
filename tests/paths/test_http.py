"""Nested events over HTTP: one by one, in arrays and as lines. Equal values, and equal errors."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from railgun.catalog.definitions import parse_definitions
from railgun.catalog.stream_reading import definition_to_json
from tests.frontend.kafka.cluster import define
from tests.frontend.serving import Server, server
from tests.paths.test_doors import JUNK, PLACES, VALUES, Place, expected_of, stream_at, texts_at

DEFINITIONS = """
[streams.s]
id = "id"
time = "ts"
[streams.s.fields]
id = { type = "string", from = "header.id" }
ts = { type = "timestamp", from = "header['created-at']", unit = "s" }
amount = { type = "decimal(9,2)", from = "payments[1].amount" }
[[metrics]]
sql = "SELECT last(amount) AS amount, last(ts) AS at FROM s OVER INFINITE"
"""
AT = "/v1/streams/s/events"


def _event(number: int, **more: Any) -> dict[str, Any]:
    header = {"id": f"e{number}", "created-at": 1_700_000_000 + number + 0.5}
    return {"header": header, "payments": [7, {"amount": f"{number}.50"}], "other": [{"x": 1}], **more}


EVENTS = [
    _event(1),
    _event(2, payments=[{}]),
    _event(3, payments=None),
    _event(4, payments=[7, {"amount": 4.5}]),
    _event(5, payments={"1": {}}),
    _event(6, header="x"),
    _event(7, header={"id": "e7"}, payments=[1, 2]),
    _event(8, payments=[7, {"amount": 8}]),
]
WRONG = {
    4: [("payments[1].amount", "the object {'1': {}} is not an array, at payments")],
    5: [
        ("header.id", "the string 'x' is not an object, at header"),
        ("header['created-at']", "the string 'x' is not an object, at header"),
    ],
    6: [
        ("header['created-at']", "the time of an event is needed"),
        ("payments[1].amount", "the number 2 is not an object, at payments[1]"),
    ],
}
METRICS = {0: "1.50", 1: "1.50", 2: "1.50", 3: "4.50", 7: "8.00"}


def _check(answers: list[Any]) -> None:
    for place, answer in enumerate(answers):
        if place in WRONG:
            assert [(*each["loc"], each["msg"]) for each in answer["errors"]] == WRONG[place]
        else:
            time_ms = 1_700_000_000_500 + 1_000 * (place + 1)
            assert answer["id"] == f"e{place + 1}"
            assert answer["time"] == time_ms
            assert answer["metrics"] == {"amount": METRICS[place], "at": time_ms}


def _serve(folder: Path, send: Any) -> None:
    with server(folder / "data") as served:
        client: httpx.Client = served.client
        define(client, DEFINITIONS)
        stream = parse_definitions(DEFINITIONS).streams["s"]
        assert client.get("/v1/streams/s").json()["fields"] == definition_to_json(stream)["fields"]
        _check(send(client))


def test_one_by_one(tmp_path: Path) -> None:
    _serve(tmp_path, lambda client: [client.post(AT, json=event).json() for event in EVENTS])


def test_an_array(tmp_path: Path) -> None:
    _serve(tmp_path, lambda client: client.post(AT, json=EVENTS).json())


def test_lines(tmp_path: Path) -> None:
    lines = "".join(json.dumps(event) + "\n" for event in EVENTS).encode()
    headers = {"Content-Type": "application/x-ndjson"}

    def send(client: httpx.Client) -> list[Any]:
        return [json.loads(line) for line in client.post(AT, content=lines, headers=headers).iter_lines()]

    _serve(tmp_path, send)


# --- the table -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with server(tmp_path_factory.mktemp("table") / "data") as running:
        yield running


def posted(client: httpx.Client, at: str, text: str, kind: str = "json") -> httpx.Response:
    return client.post(at, content=text.encode(), headers={"Content-Type": f"application/{kind}"})


def one_by_one(client: httpx.Client, at: str, texts: list[str]) -> list[Any]:
    return [posted(client, at, text).json() for text in texts]


def as_array(client: httpx.Client, at: str, texts: list[str]) -> list[Any]:
    found: list[Any] = posted(client, at, f"[{', '.join(texts)}]").json()
    return found


def as_lines(client: httpx.Client, at: str, texts: list[str]) -> list[Any]:
    lines = posted(client, at, "".join(f"{text}\n" for text in texts), "x-ndjson").iter_lines()
    return list(map(json.loads, lines))


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place[0])
def test_the_table(served: Server, place: Place) -> None:
    """Each event is alone in its group, so that its metric is its own field."""
    of_place = PLACES.index(place)
    for type_ in VALUES if of_place < 3 else list(VALUES)[of_place % 3 :: 3]:
        name = f"s{of_place}_{list(VALUES).index(type_)}"
        served.define(
            f"""
            [streams.{name}]
            id = "id"
            partitioners = ["id"]
            [streams.{name}.fields]
            id = {{ type = "string", from = "the_id" }}
            x = {{ type = "{type_}", from = {json.dumps(place[0], ensure_ascii=False)} }}
            [[metrics]]
            sql = "SELECT last(x) AS x FROM {name} GROUP BY id OVER INFINITE"
            """
        )
        _, oracle = stream_at(type_, place[0])
        texts = texts_at(place, *VALUES[type_])
        texts.append(f'{{"junk": {JUNK}, {texts[0][1:]}')
        expected = [expected_of(oracle, text) for text in texts]
        for way in (one_by_one, as_array, as_lines):
            sent = [
                f'{{"the_id": "{way.__name__} {at}"{", " if text != "{}" else ""}{text[1:]}'
                for at, text in enumerate(texts)
            ]
            found = way(served.client, f"/v1/streams/{name}/events", sent)
            assert len(found) == len(texts)
            for text, answer, wanted in zip(texts, found, expected):
                where = f"{way.__name__}: {type_} at {place[0]} of {text[:200]}: {str(answer)[:400]}"
                if wanted is None:
                    assert [each["loc"] for each in answer["errors"]] == [[place[0]]], where
                else:
                    assert "errors" not in answer, where
                    assert _unscaled(answer["metrics"]["x"], type_) == wanted[0], where


def _unscaled(value: Any, type_: str) -> Any:
    return int(value.replace(".", "")) if type_.startswith("decimal") and value is not None else value
