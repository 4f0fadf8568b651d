"""`GET /v1/live` of a front-end on Kafka: events of both ways, what units report, and looks at the cluster."""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from frontend.backend.live_figures import InputStanding
from frontend.kafka.configuration import FrontEndConfiguration
from frontend.kafka.deadlines import DEADLINES, Deadlines
from frontend.live import live as live_answers
from frontend.live import models
from railgun.messaging.errors import TransportUnavailableError
from tests.frontend.access.callers import bearer, tokens
from tests.frontend.conftest import PAYMENTS
from tests.frontend.kafka.cluster import LocalCluster, RunningFrontEnd, front_end
from tests.frontend.serving import until
from tests.frontend.topics.input_topic import InputTopic
from tests.frontend.topics.test_input_topic import define
from tests.node.leader.conftest import nodes as nodes
from tests.node.leader.leading_nodes import Nodes
from tests.unit.local_units import quick_settings

Event = Callable[..., dict[str, Any]]
SECRET = """
[streams.ledger_x]
partitioners = ["secret_key"]
[streams.ledger_x.fields]
secret_key = "string"
[[metrics]]
sql = "SELECT count(*) AS secret_metric FROM ledger_x GROUP BY secret_key OVER INFINITE"
"""


@pytest.fixture(autouse=True)
def _looks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_answers, "CLUSTER_S", 0.2)


@pytest.fixture
def cluster(kafka: str, tmp_path: Path) -> Iterator[LocalCluster]:
    with LocalCluster(kafka, tmp_path, deadlines=Deadlines(silent_s=3.0)) as made:
        define(made, PAYMENTS + SECRET)
        yield made


def live(served: RunningFrontEnd, **headers: str) -> dict[str, Any]:
    response = served.client.get("/v1/live", headers=headers)
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    assert models.Live.model_validate(found).model_dump(exclude_unset=True) == found
    return found


def stream(served: RunningFrontEnd, name: str = "payments") -> dict[str, Any]:
    (found,) = [each for each in live(served)["streams"] if each["name"] == name]
    return dict(found)


def test_events_over_http_and_of_topics_are_apart(cluster: LocalCluster, event: Event) -> None:
    cluster.start_units(1)
    with InputTopic(cluster.broker, cluster.prefix, "payments") as topic:
        served = cluster.serve()
        own = event()
        for each in (own, own, event()):
            served.score("payments", each)
        topic.send([event() for _ in range(40)] + [b"{"])
        topic.await_replies(40)
        # More answers are known than came over HTTP.
        answered = "/v1/streams/payments/metrics/everyone/answered"
        until(lambda: served.client.get(answered).json()["rows"] > 3)
        assert stream(served)["nulls"]["shares"] == {"n7": 0, "s7": 0, "l7": 1, "p7": 1, "everyone": 0}

        def events() -> tuple[int, int]:
            found = stream(served)
            return tuple(
                0 if found[way] is None else found[way]["last_60_s"]["events"] for way in ("http", "topics")
            )  # type: ignore[return-value]

        until(lambda: events() == (3, 40))
        until(lambda: stream(served)["topics"]["last_60_s"]["latency"]["count"] == 41)
        found = stream(served)
        # The ends of topics are looked at now and then.
        until(lambda: served.backend.live_figures.inputs() == {"payments": InputStanding(0, 41)})
        assert live(served)["process"]["warnings"] == []
    assert found["http"]["last_60_s"]["duplicate"] == {"card": 1, "*": 1}
    assert found["http"]["last_60_s"]["latency"]["count"] == 3
    # Each record counts, however many were read together; the one that was no JSON has a letter.
    assert found["topics"]["last_60_s"]["refused"] == {"malformed": 1}
    assert found["topics"]["last_60_s"]["latency"]["p999_ms"] > 0
    assert stream(served, "ledger_x")["topics"] is None


def test_tasks_that_nobody_answers(cluster: LocalCluster, event: Event) -> None:
    cluster.start_units(1)
    served = cluster.serve()
    served.score("payments", event())
    until(lambda: live(served)["cluster"]["unanswered"] == 0)
    assert [each["unanswered"] for each in live(served)["streams"]] == [0, 0]
    cluster.stop_units(checkpoint=False)
    until(lambda: live(served)["cluster"]["unanswered"] == 3)
    found = live(served)
    assert found["cluster"]["unanswered_tasks"] == [
        "payments/card/0",
        "payments/*/0",
        "ledger_x/secret_key/0",
    ]
    assert [each["unanswered"] for each in found["streams"]] == [2, 1]
    assert (found["process"]["ready"], found["process"]["disk"]) == (False, None)
    assert "no task of any stream is answered" in found["process"]["reason"]
    served.post("/v1/streams/payments/events?timeout_ms=100", event())
    until(lambda: stream(served)["http"]["last_60_s"]["refused"].get("timeout") == 1)


def test_metrics_that_warm(cluster: LocalCluster, event: Event) -> None:
    served = cluster.serve()
    # No unit has come to them, so none answers.
    until(lambda: (stream(served)["warming"] or {}).get("count") == 5)
    least = stream(served)["warming"]["least"]
    assert {each["name"]: each["filled"] for each in least} == dict.fromkeys(
        ("n7", "s7", "l7", "p7", "everyone"), 0.0
    )
    cluster.start_units(1)
    until(lambda: stream(served)["warming"]["count"] == 0)


def test_topics_that_are_not_read_are_named_without_the_reason(cluster: LocalCluster) -> None:
    define(
        cluster,
        """
        [streams.named]
        partitioners = ["card"]
        [streams.named.input]
        topics = ["nowhere"]
        [streams.named.fields]
        card = "string"
        """,
    )
    served = cluster.serve()
    until(lambda: bool(stream(served, "named")["warnings"]))
    assert stream(served, "named")["warnings"] == ["the topic nowhere is not read: /v1/status says why"]
    assert stream(served)["warnings"] == []


def test_a_token_of_one_stream(cluster: LocalCluster, event: Event) -> None:
    """Nothing of another stream shows, its tasks that nobody answers and its warming metrics included."""
    with front_end(cluster.where, tokens=tokens()) as served:
        all_headers = {"Authorization": bearer("all")}
        until(lambda: live(served, **all_headers)["cluster"]["unanswered"] == 3)
        own = served.client.get("/v1/live", headers={"Authorization": bearer("read-own")})
        every = served.client.get("/v1/live", headers=all_headers)
    for secret in ("ledger_x", "secret_key", "secret_metric"):
        assert secret in every.text
        assert secret not in own.text
    assert set(own.json()) == {"front_end", "as_of_ms", "streams"}
    assert [each["unanswered"] for each in own.json()["streams"]] == [2]


def test_nodes_and_copies_in_numbers(kafka: str, nodes: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    deadlines = replace(DEADLINES, silent_s=1.0)
    where = FrontEndConfiguration(quick_settings(kafka), nodes.prefix, deadlines=deadlines)
    with front_end(where) as served:
        assert live(served)["cluster"]["nodes"] == {}
        nodes.start(1)
        nodes.start(2)
        until(lambda: live(served)["cluster"]["nodes"] == {"live": 2})
        until(lambda: live(served)["cluster"]["copies"] == {"unheard": 8})
        found = live(served)["cluster"]
        assert (found["wanted"], found["moves"]) == (2, 0)
        assert found["leader"] in ("node-1", "node-2"), "whichever came first"
        until(lambda: live(served)["cluster"]["unanswered"] == 4)
        until(lambda: any("nobody answers" in each for each in live(served)["cluster"]["warnings"]))
        assert live(served)["front_end"]["name"] == where.front_end.name

        # What was seen stays, with its age and the reason, when the cluster cannot be looked at any more.
        def away(*_: Any, **more: Any) -> Any:
            raise TransportUnavailableError("broker", "it does not answer", "wait")

        parts = served.backend.running.parts
        assert parts is not None
        monkeypatch.setattr(parts.cluster_state, "overview", away)
        until(lambda: "cannot be looked at" in "".join(live(served)["cluster"]["warnings"]))
        outdated = live(served)["cluster"]
        assert outdated["nodes"] == {"live": 2}
        time.sleep(1.1)
        assert live(served)["cluster"]["as_of_ms"] == pytest.approx(outdated["as_of_ms"], abs=500)
