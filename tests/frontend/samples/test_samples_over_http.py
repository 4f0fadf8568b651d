"""`GET /v1/streams/{stream}/samples` of a server that scores in its own process."""

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

import railgun
from frontend.pages.samples import models
from frontend.samples import values
from frontend.samples.ring import PER_SECOND_MAX
from frontend.samples.samples import SHOWN_TEXT_BYTES_MAX, TEXT_BYTES_MAX
from railgun.config.settings import ConsoleSettings
from tests.frontend.serving import Server, load_kernels, server, until

STREAM = """
[streams.payments]
time = "ts"
id = "pid"
partitioners = ["card", "*"]
lateness = "1s"
[streams.payments.fields]
pid = "string"
ts = "timestamp"
card = "string"
amount = "decimal(10,2)"
shop = { type = "string", from = "at.shop" }
bin = { as = "SUBSTR(card, 1, 2)" }
[[metrics]]
sql = "SELECT count(*) AS n, sum(amount) AS spent FROM payments GROUP BY card OVER SLIDING 1 DAY"
[[metrics]]
sql = "SELECT count(*) AS all_n, max(shop) AS top FROM payments OVER INFINITE"
[[metrics]]
sql = "DERIVE n / all_n AS share, share > 0.5 AS much FROM payments"
[[metrics]]
sql = "DERIVE all_n + 1 AS next FROM payments"
"""
T = 1_700_000_000_000
FOLDER = "/v1/streams/payments"
MASKED = ("payments.card",)


def event(number: int, **more: Any) -> dict[str, Any]:
    return {
        "pid": f"p{number}",
        "ts": T + number,
        "card": "4111",
        "amount": "12.50",
        "at": {"shop": "s1"},
        **more,
    }


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Server]:
    with serving(tmp_path) as found:
        yield found


def serving(folder: Path, *masks: str, samples: int = 50) -> AbstractContextManager[Server]:
    load_kernels()
    return server(folder / "data", console=ConsoleSettings(samples=samples, masks=masks), timeout_ms=60_000)


def samples(running: Server, query: str = "") -> dict[str, Any]:
    response = running.client.get(f"{FOLDER}/samples{query}")
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    assert models.LastEvents.model_validate(found).model_dump(exclude_unset=True) == found
    return found


def events(running: Server, query: str = "") -> list[dict[str, Any]]:
    return list(samples(running, query)["events"])


def test_events_of_every_way_are_there_with_their_replies(running: Server) -> None:
    running.define(STREAM)
    replies = [running.score("payments", event(1))]
    replies += running.post(f"{FOLDER}/events", [event(2), event(3, amount="x")]).json()
    lines = "\n".join(json.dumps(each) for each in (event(4), event(5)))
    ndjson = {"content-type": "application/x-ndjson"}
    found = running.client.post(f"{FOLDER}/events", content=lines, headers=ndjson)
    replies += [json.loads(line) for line in found.text.splitlines()]
    for body in (b"{", b'{"pid": 1}', json.dumps(event(6)).encode() + b" " * 20_000):
        answer = running.client.post(
            f"{FOLDER}/events", content=body, headers={"content-type": "application/json"}
        )
        replies.append(answer.json())
    assert running.post(f"{FOLDER}/events?reply=none", event(7)).status_code == 202
    replies.append(None)

    kept = events(running)[::-1]
    assert [each["number"] for each in kept] == list(range(1, len(replies) + 1))
    for each, reply in zip(kept, replies, strict=True):
        is_refused = reply is not None and "status" in reply
        assert each["reply"] == (None if is_refused else reply)
        assert each["problem"] == (reply if is_refused else None)
        assert each["status"] == (reply["status"] if is_refused else 200)
        assert (each["fields"] is None) == is_refused
        assert (each["text"] is None) == (not is_refused)
    assert kept[0]["fields"] == {
        "pid": "p1",
        "ts": T + 1,
        "card": "4111",
        "amount": "12.50",
        "shop": "s1",
        "bin": "41",
    }
    assert kept[2]["text"] == json.dumps(event(3, amount="x"), separators=(",", ":"))
    assert [each["text"] for each in kept[5:7]] == ["{", '{"pid": 1}']
    assert kept[0]["topic"] is kept[0]["partition"] is kept[0]["offset"] is None


def test_marks_and_a_choice_of_metrics_are_as_the_client_saw_them(running: Server) -> None:
    running.define(STREAM)
    running.score("payments", event(10_000))
    late = running.score("payments", event(1))
    duplicate = running.post(f"{FOLDER}/events?metrics=n", event(10_000)).json()
    kept = events(running)
    assert late["late"] == {"card": "rewritten", "*": "rewritten"}
    assert duplicate == {"id": "p10000", "time": T + 10_000, "metrics": {"n": 2}, "duplicate": ["card", "*"]}
    assert [each["reply"] for each in kept[:2]] == [duplicate, late]


def test_only_newer_ones_and_no_more_than_wanted(running: Server) -> None:
    running.define(STREAM)
    for number in range(6):
        running.score("payments", event(number))
    assert [each["number"] for each in events(running, "?limit=2")] == [6, 5]
    assert [each["number"] for each in events(running, "?after=4")] == [6, 5]
    assert events(running, "?after=6&limit=5") == []


def test_it_says_how_many_events_were_taken_of_how_many(running: Server) -> None:
    running.define(STREAM)
    assert (samples(running)["answered"], samples(running)["last"]) == (0, 0)
    running.post(f"{FOLDER}/events", [event(number) for number in range(60)])
    assert running.post(f"{FOLDER}/events?reply=none", event(60)).status_code == 202
    found = samples(running, "?limit=1")
    assert found["answered"] == 61
    # Of each second, the last ones.
    assert PER_SECOND_MAX <= found["last"] <= PER_SECOND_MAX + 1


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("?limit=0", "limit"),
        ("?limit=1001", "limit"),
        ("?after=x", "after"),
        ("?limit=1&limit=2", "twice"),
        ("?before=1", "no such parameter"),
    ],
)
def test_wrong_parameters(running: Server, query: str, says: str) -> None:
    running.define(STREAM)
    answer = running.client.get(f"{FOLDER}/samples{query}")
    assert answer.status_code == 422
    assert says in answer.json()["detail"]


def test_a_stream_that_there_is_not(running: Server) -> None:
    assert running.client.get(f"{FOLDER}/samples").status_code == 404


def test_by_default_nothing_is_kept(tmp_path: Path) -> None:
    with server(tmp_path / "data") as running:
        running.define(STREAM)
        running.score("payments", event(1))
        found = samples(running)
        assert (found["kept"], found["events"]) == (0, [])
        assert running.backend.samples.or_none is None


def test_it_says_who_answers_and_what_derived_metrics_read(running: Server) -> None:
    running.define(STREAM)
    found = samples(running)
    assert found["kept"] == 50
    assert found["front_end"] == running.client.get("/v1/live").json()["front_end"]
    assert found["derived"] == {
        "share": {"expression": "n / all_n", "reads": ["n", "all_n"]},
        "much": {"expression": "share > 0.5", "reads": ["share"]},
        "next": {"expression": "all_n + 1", "reads": ["all_n"]},
    }
    assert found["times"] == ["ts"]
    assert found["conditions"] == ["much"]
    assert found["masked"] == {"fields": [], "metrics": [], "texts": False}


def test_events_are_read_by_the_mapping_of_their_time(
    running: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So the fields are those that the reply was made of. What reads them is made once."""
    made = []
    intake = values.Intake
    monkeypatch.setattr(values, "Intake", lambda *given: made.append(given) or intake(*given))

    def moved(place: str) -> None:
        fields = {"shop": {"type": "string", "from": place}}
        answer = running.client.patch(FOLDER, json={"fields": fields})
        assert answer.status_code == 200, answer.text

    def shops() -> list[tuple[str, str]]:
        return [(each["fields"]["shop"], each["reply"]["metrics"]["top"]) for each in events(running)]

    running.define(STREAM)
    sent = {"at": {"shop": "s1"}, "other": {"shop": "s2"}, "third": {"shop": "s3"}}
    running.score("payments", event(1, **sent))
    assert shops() == shops() == [("s1", "s1")]
    assert len(made) == 1
    moved("other.shop")
    running.score("payments", event(2, **sent))
    moved("third.shop")
    running.score("payments", event(3, **sent))
    running.score("payments", event(4, **sent))
    for _ in range(3):
        assert shops() == [("s3", "s3"), ("s3", "s3"), ("s2", "s2"), ("s1", "s1")]
    assert len(made) == 4


def test_a_defect_of_what_keeps_events_harms_no_answer(
    running: Server, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    running.define(STREAM)
    monkeypatch.setattr(running.backend.samples, "masks", None)
    running.score("payments", event(1))
    lines = "\n".join(json.dumps(event(number)) for number in (2, 3))
    ndjson = {"content-type": "application/x-ndjson"}
    found = running.client.post(f"{FOLDER}/events", content=lines, headers=ndjson)
    assert len(found.text.splitlines()) == 2
    assert running.post(f"{FOLDER}/events", [event(4)]).json()[0]["metrics"]["n"] == 4
    assert caplog.text.count("a defect: ") == 1


def test_large_events_are_not_kept_whole(running: Server) -> None:
    running.define(STREAM)
    long = "x" * (TEXT_BYTES_MAX + 1)
    running.score("payments", event(1, other=long))
    running.post(f"{FOLDER}/events", event(2, card=7, other=long))
    refused, taken = events(running)
    assert taken["fields"] is None
    assert taken["reply"]["metrics"]["n"] == 1
    assert taken["size_bytes"] > TEXT_BYTES_MAX
    assert len(refused["text"]) == SHOWN_TEXT_BYTES_MAX
    assert refused["size_bytes"] > TEXT_BYTES_MAX


def test_a_dropped_streams_events_go_with_it(running: Server) -> None:
    running.define(STREAM)
    running.score("payments", event(1))
    assert len(events(running)) == 1
    assert running.client.delete(FOLDER).status_code == 204
    running.backend.samples.forget_dropped()
    assert running.backend.samples._rings == {}
    running.define(STREAM)
    assert events(running) == []
    running.score("payments", event(2))
    assert [each["number"] for each in events(running)] == [1]


def test_nothing_of_a_masked_field_is_shown(tmp_path: Path) -> None:
    secret = "4111222233334444"
    with serving(tmp_path, *MASKED) as running:
        running.define(STREAM)
        running.score("payments", event(1, card=secret))
        running.post(f"{FOLDER}/events", [event(2, card=secret, amount=secret), event(3, card=secret)])
        for body in (f'{{"card": "{secret}"', f'{{"{secret}": 1}}', f'{{"pid": "p", "card": ["{secret}"]}}'):
            headers = {"content-type": "application/json"}
            running.client.post(f"{FOLDER}/events", content=body, headers=headers)
        found = samples(running)
        assert secret not in json.dumps(found)
        assert len(found["events"]) == 6
        assert found["masked"] == {
            "fields": ["bin", "card"],
            "metrics": ["much", "n", "share", "spent"],
            "texts": True,
        }
        taken, refused = found["events"][-1], found["events"][-2]
        assert taken["fields"] == {"pid": "p1", "ts": T + 1, "amount": "12.50", "shop": "s1"}
        assert taken["reply"]["metrics"] == {"all_n": 1, "top": "s1", "next": 2}
        assert refused["problem"] == {
            "title": "Unprocessable Entity",
            "status": 422,
            "detail": None,
            "errors": [],
        }
        assert refused["text"] is None
        # What the client gets is not masked.
        assert running.score("payments", event(9, card=secret))["metrics"]["n"] == 3


def test_a_masked_id_and_time_are_not_shown(tmp_path: Path) -> None:
    with serving(tmp_path, "payments.pid", "payments.ts") as running:
        running.define(STREAM)
        running.score("payments", event(77))
        (found,) = events(running)
        assert "p77" not in json.dumps(found)
        assert str(T + 77) not in json.dumps(found)
        assert (found["reply"]["id"], found["reply"]["time"]) == (None, None)


def test_a_metric_that_was_masked_when_an_event_came_stays_so_for_it(tmp_path: Path) -> None:
    """Its name may be that of another metric by now, which is not masked."""
    with serving(tmp_path, *MASKED) as running:
        running.define(STREAM)
        post = f"{FOLDER}/metrics"
        running.post(post, {"sql": "SELECT last(card) AS last FROM payments OVER INFINITE"})
        running.score("payments", event(1))
        assert running.client.delete(f"{post}/last").status_code == 204
        running.post(post, {"sql": "SELECT last(amount) AS last FROM payments OVER INFINITE"})
        until(lambda: not running.client.get(f"{post}/last").json()["warming"])
        running.score("payments", event(2))
        newer, older = events(running)
        assert newer["reply"]["metrics"]["last"] == "12.50"
        assert "last" not in older["reply"]["metrics"]


def test_a_metric_that_is_added_later_is_masked_in_earlier_events_too(tmp_path: Path) -> None:
    with serving(tmp_path, *MASKED) as running:
        running.define(STREAM)
        post = f"{FOLDER}/metrics"
        running.post(post, {"sql": "SELECT last(shop) AS last FROM payments OVER INFINITE"})
        running.score("payments", event(1))
        assert running.client.delete(f"{post}/last").status_code == 204
        running.post(post, {"sql": "SELECT last(card) AS last FROM payments OVER INFINITE"})
        assert "last" not in events(running)[0]["reply"]["metrics"]


def test_the_client_has_them(running: Server) -> None:
    running.define(STREAM)
    for number in range(3):
        running.score("payments", event(number))
    with railgun.Client(running.service.url) as client:
        assert [each["number"] for each in client.samples("payments")["events"]] == [3, 2, 1]
        assert [each["number"] for each in client.samples("payments", limit=1)["events"]] == [3]
        assert [each["number"] for each in client.samples("payments", after=2)["events"]] == [3]
