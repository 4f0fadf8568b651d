"""Events that some of their partitioners have answered when their time is over: `on_timeout=partial`."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from frontend.exchange.pending import Homes, PendingRequest
from frontend.exchange.streams import StreamIntake
from frontend.exchange.timeline import Timeline
from frontend.problems import Problem
from railgun.catalog.catalog import Catalog
from railgun.catalog.definitions import parse_definitions
from railgun.ingest.replies import Reply
from railgun.registry import evolution
from railgun.wire.reply import ReplyMetric, ReplySource, Shape
from tests.frontend.http.test_scoring_route import NDJSON, lines
from tests.frontend.kafka.cluster import LocalCluster, define
from tests.frontend.kafka.test_gathered import record
from tests.frontend.topics.input_topic import InputTopic

PAYMENTS = """
[streams.payments]
time = "ts"
id = "tx_id"
partitioners = ["merchant", "card"]
record_replies = true
[streams.payments.fields]
tx_id = "string"
ts = "timestamp"
card = "string"
merchant = "string"
[[metrics]]
sql = "SELECT count(*) AS m FROM payments GROUP BY merchant OVER INFINITE"
[[metrics]]
sql = "SELECT count(*) AS c FROM payments GROUP BY card OVER INFINITE"
"""
EVENTS = "/v1/streams/payments/events"
# On a busy machine those that do answer take a second or more.
SOON = "timeout_ms=5000"
MERCHANT, CARD = range(2)
"""The unit that has the task of each, of two units."""
Event = Callable[..., dict[str, Any]]

CATALOG = Catalog(evolution.missing(Catalog(), parse_definitions(PAYMENTS)))
NAMES = {"merchant": "m", "card": "c"}
SOURCES = {
    partitioner: ReplySource("payments", partitioner, 0, (ReplyMetric(name, "long", 0, 0, Shape.WORD),))
    for partitioner, name in NAMES.items()
}
# Of an event and a partitioner: whether the event was sent there, and whether that has answered.
STATES = st.sampled_from([(False, False), (True, False), (True, True)])


@given(st.lists(st.fixed_dictionaries(dict.fromkeys(NAMES, STATES)), min_size=1, max_size=6), st.data())
def test_what_there_is_to_say_of_each_event(
    events: list[dict[str, tuple[bool, bool]]], data: st.DataObject
) -> None:
    texts = [
        json.dumps({"tx_id": f"t{row}", "ts": 1, **{name: "x" for name in NAMES if event[name][0]}})
        for row, event in enumerate(events)
    ]
    entry = CATALOG.streams["payments"]
    accepted = StreamIntake(entry).take([text.encode() for text in texts], 1_000)
    pending = PendingRequest(
        1,
        "payments",
        accepted,
        Homes.of(entry, Timeline(entry, CATALOG.last_place), CATALOG.last_place),
        lambda _: None,
        50,
    )
    for name, source in SOURCES.items():
        rows = [row for row, event in enumerate(events) if event[name][1]]
        if rows:
            said = record(source, [5 * row + 1 for row in rows])
            assert pending.gather(said, 0, len(rows), np.array(rows, np.int64)) == len(rows)
    selection = data.draw(st.sampled_from([None, ("c",), ("m", "c")]))
    answers = pending.answers(selection, takes_partial=True)
    whole = pending.answers(selection)
    for row, event in enumerate(events):
        missing = [name for name in sorted(NAMES) if event[name] == (True, False)]
        answer = answers[row]
        if not missing:
            assert answer == whole[row]
            assert isinstance(answer, Reply)
            continue
        assert isinstance(whole[row], Problem)
        if not any(event[name] == (True, True) for name in NAMES):
            assert answer == whole[row]
            continue
        assert isinstance(answer, Reply)
        shown = json.loads(msgspec.json.encode(answer))
        chosen = [name for name in NAMES if selection is None or NAMES[name] in selection]
        assert shown == {
            "id": f"t{row}",
            "time": 1,
            "metrics": {
                NAMES[name]: -(5 * row + 1) if event[name][0] else None
                for name in chosen
                if name not in missing
            },
            "missing": missing,
        }


def test_of_events_whose_merchants_task_nobody_answers(kafka: str, tmp_path: Path, event: Event) -> None:
    with LocalCluster(kafka, tmp_path) as cluster:
        served = cluster.serve()
        define(served.client, PAYMENTS)
        cluster.start_units(2)
        fields = {"card": "c", "merchant": "m"}

        def payment(**more: Any) -> dict[str, Any]:
            made = event(**(fields | more))
            del made["amount"]
            return made

        first = payment()
        whole = [served.score("payments", first)]
        assert whole[0] == {"id": first["tx_id"], "time": first["ts"], "metrics": {"m": 1, "c": 1}}
        cluster.stop_unit(MERCHANT)

        partial, sent = f"{EVENTS}?{SOON}&on_timeout=partial", payment()
        for error in (f"{EVENTS}?{SOON}", f"{EVENTS}?{SOON}&on_timeout=error"):
            refused = served.post(error, sent)
            assert (refused.status_code, refused.json()["partitioners"]) == (504, ["merchant"])
        answer = served.post(partial, sent)
        assert answer.status_code == 200
        assert answer.headers["content-type"] == "application/json"
        at = {"id": sent["tx_id"], "time": sent["ts"]}
        assert answer.json() == at | {"metrics": {"c": 2}, "duplicate": ["card"], "missing": ["merchant"]}
        # One that nobody answers, and one that the merchant's task is not asked about.
        nothing = served.post(partial, payment(card=None))
        assert (nothing.status_code, nothing.json()["partitioners"]) == (504, ["merchant"])
        whole.append(served.post(f"{EVENTS}?on_timeout=partial", payment(merchant=None)).json())
        assert whole[-1]["metrics"] == {"m": None, "c": 3}
        assert "missing" not in whole[-1]

        mixed = [payment(), payment(merchant=None), payment(card=None), {"ts": 1}]
        array = served.post(partial, mixed)
        assert array.status_code == 200
        mixed = [payment(), payment(merchant=None), payment(card=None), {"ts": 1}]
        ndjson = served.client.post(partial, content=lines(*mixed), headers=NDJSON)
        for count, each in (
            (4, array.json()),
            (6, [json.loads(line) for line in ndjson.content.splitlines()]),
        ):
            assert each[0]["metrics"] == {"c": count}
            assert each[0]["missing"] == ["merchant"]
            assert each[1]["metrics"] == {"m": None, "c": count + 1}
            assert [problem["status"] for problem in each[2:]] == [504, 422]
            whole.append(each[1])

        cluster.start_unit(MERCHANT, 2)
        again = served.score("payments", sent)
        assert again == at | {
            "metrics": {"m": again["metrics"]["m"], "c": 7},
            "duplicate": ["merchant", "card"],
        }
        assert again["metrics"]["m"] > 1
        whole.append(again)
        with InputTopic(kafka, cluster.prefix, "payments") as topic:
            assert topic.await_replies(len(whole)) == whole
