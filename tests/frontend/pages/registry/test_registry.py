"""Registration over HTTP: streams and metrics made, shown, changed, ended; problems with places; the pages."""

import re
from typing import Any

import pytest

from railgun.client.client import Client
from tests.frontend.serving import Server, until

FIELDS = {"id": "string", "ts": "timestamp", "k": "string", "x": "double"}
STREAM = {"time": "ts", "id": "id", "partitioners": ["k"], "fields": FIELDS}
COUNT = "SELECT count(*) AS n FROM {} GROUP BY k OVER SLIDING 1 HOUR"


def made(server: Server, name: str, **more: Any) -> str:
    response = server.post("/v1/streams", {"name": name, **STREAM, **more})
    assert response.status_code == 201, response.text
    return f"/v1/streams/{name}"


def refused(response: Any, status: int) -> dict[str, Any]:
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    problem = dict(response.json())
    assert problem["status"] == status
    assert problem["title"]
    return problem


def test_a_stream_through_its_life(shared: Server) -> None:
    place = made(shared, "life", lateness="2s")
    shown = shared.client.get(place).json()
    assert {key: shown[key] for key in (*STREAM, "name", "lateness", "retention")} == {
        **STREAM,
        "name": "life",
        "lateness": "2s",
        "retention": "30d",
    }
    assert "life" in [each["name"] for each in shared.client.get("/v1/streams").json()["streams"]]
    assert shared.post("/v1/streams", {"name": "life", **STREAM, "lateness": "2s"}).status_code == 200
    assert shared.client.delete(place).status_code == 204
    refused(shared.client.get(place), 404)
    refused(shared.client.delete(place), 404)
    refused(shared.post(f"{place}/events", {}), 404)
    made(shared, "life")


def test_how_long_logs_are_kept_is_shown_though_it_has_no_effect_here(shared: Server) -> None:
    """So that one file of definitions serves a cluster and an engine."""
    place = made(shared, "kept", log_retention="7d")
    assert shared.client.get(place).json()["log_retention"] == "7d"
    assert shared.post("/v1/streams", {"name": "kept", **STREAM}).status_code == 200
    changed = shared.client.patch(place, json={"log_retention": "forever"})
    assert (changed.status_code, changed.json()["log_retention"]) == (200, "forever")
    listed = {each["name"]: each for each in shared.client.get("/v1/streams").json()["streams"]}
    assert listed["kept"]["log_retention"] == "forever"
    assert "log_retention" not in shared.client.get(made(shared, "unsaid")).json()
    told = refused(shared.client.patch(place, json={"log_retention": "10m"}), 422)
    assert told["errors"][0]["loc"] == ["log_retention"]
    # A null takes it back. Without the key it stays as it is.
    shared.client.patch(place, json={"lateness": "2s"})
    assert shared.client.get(place).json()["log_retention"] == "forever"
    unset = shared.client.patch(place, json={"log_retention": None})
    assert (unset.status_code, "log_retention" in unset.json()) == (200, False)
    assert "log_retention" not in shared.client.get(place).json()


def test_where_replies_go_is_shown_though_it_has_no_effect_here(shared: Server) -> None:
    output = {"topic": "prod.scored", "dead": "prod.rejected", "key": "input", "include": ["id", "k"]}
    place = made(shared, "out", output=output)
    assert shared.client.get(place).json()["output"] == output
    assert shared.post("/v1/streams", {"name": "out", **STREAM, "output": output}).status_code == 200
    told = refused(shared.post("/v1/streams", {"name": "out", **STREAM}), 409)
    assert "output is topic prod.scored; dead prod.rejected; key input; include id, k" in told["detail"]
    # What is said anew takes the place of all of it.
    changed = shared.client.patch(place, json={"output": {"include": ["k"]}})
    assert (changed.status_code, changed.json()["output"]) == (200, {"include": ["k"]})
    told = refused(shared.client.patch(place, json={"output": {"topic": "a b"}}), 422)
    assert told["errors"][0]["loc"] == ["output", "topic"]
    shared.client.patch(place, json={"lateness": "2s"})
    assert shared.client.get(place).json()["output"] == {"include": ["k"]}
    unset = shared.client.patch(place, json={"output": None})
    assert (unset.status_code, "output" in unset.json()) == (200, False)


def test_a_stream_that_is_there_otherwise(shared: Server) -> None:
    made(shared, "other")
    told = refused(shared.post("/v1/streams", {"name": "other", **STREAM, "lateness": "7s"}), 409)
    assert "lateness" in told["detail"]
    assert "7s" in told["errors"][0]["msg"]
    for fields in ({**FIELDS, "y": "long"}, {name: FIELDS[name] for name in ("id", "ts", "k")}):
        told = refused(shared.post("/v1/streams", {"name": "other", **STREAM, "fields": fields}), 409)
        assert told["errors"][0]["loc"] == ["fields"]


@pytest.mark.parametrize(
    ("change", "loc", "said"),
    [
        ({"lateness": "soon"}, ["lateness"], "soon"),
        ({"latenes": "1s"}, ["latenes"], "lateness"),
        ({"partitioners": ["card"]}, ["partitioners"], "card"),
        ({"partitioners": ["all", "*"], "fields": {**FIELDS, "all": "string"}}, ["partitioners"], "rename"),
        ({"fields": {**FIELDS, "y": "longer"}}, ["fields", "y"], "longer"),
        ({"name": "1"}, ["name"], "1"),
        ({"name": "replies"}, ["name"], "replies"),
        ({"partitions": "many"}, ["partitions"], "whole number"),
        ({"time": "x"}, ["time"], "double"),
    ],
)
def test_a_definition_with_a_mistake(
    shared: Server, change: dict[str, Any], loc: list[str], said: str
) -> None:
    told = refused(shared.post("/v1/streams", {"name": "mistaken", **STREAM, **change}), 422)
    assert told["errors"][0]["loc"] == loc
    assert said in told["detail"]


def test_evolution(shared: Server) -> None:
    place = made(shared, "evolving")
    changed = shared.client.patch(
        place, json={"fields": {"y": "long"}, "lateness": "9s", "retention": "forever"}
    )
    assert changed.status_code == 200
    assert changed.json()["fields"] == {**FIELDS, "y": "long"}
    assert (changed.json()["lateness"], changed.json()["retention"]) == ("9s", "forever")
    assert shared.client.get(place).json() == changed.json()
    assert shared.client.patch(place, json={"fields": {"y": "long"}}).json() == changed.json()
    assert refused(shared.client.patch(place, json={"fields": {"y": "double"}}), 422)["errors"][0]["loc"] == [
        "fields",
        "y",
    ]
    refused(shared.client.patch(place, json={"partitions": 2}), 422)
    refused(shared.client.patch(place, json={"lateness": 5}), 422)
    refused(shared.client.patch("/v1/streams/evolvin", json={"lateness": "5s"}), 404)
    sent = {"id": "1", "ts": 1, "k": "a", "y": 2**40}
    assert shared.score("evolving", sent)["id"] == "1"


def test_metrics_through_their_lives(shared: Server) -> None:
    place = made(shared, "measured")
    shared.score("measured", {"id": "1", "ts": 1, "k": "a", "x": 2})
    sql = "SELECT count(*) AS n, sum(x) AS s FROM measured GROUP BY k OVER SLIDING 1 HOUR"
    response = shared.post(f"{place}/metrics", {"sql": sql})
    assert response.status_code == 201
    assert [each["name"] for each in response.json()["metrics"]] == ["n", "s"]
    assert shared.post(f"{place}/metrics", {"sql": sql}).status_code == 200
    until(
        lambda: not any(each["warming"] for each in shared.client.get(f"{place}/metrics").json()["metrics"])
    )
    shown = shared.client.get(f"{place}/metrics/s").json()
    assert (shown["home"], shown["warming"], shown["filled"]) == ("k", False, 1.0)
    assert shown["sql"] == "SELECT sum(x) AS s FROM measured GROUP BY k OVER SLIDING 1 HOUR"
    assert shared.score("measured", {"id": "2", "ts": 2, "k": "a", "x": 3})["metrics"] == {"n": 2, "s": 5.0}
    assert shared.client.delete(f"{place}/metrics/s").status_code == 204
    assert shared.score("measured", {"id": "3", "ts": 3, "k": "a"})["metrics"] == {"n": 3}
    assert "n" in refused(shared.client.get(f"{place}/metrics/m"), 404)["detail"]
    refused(shared.client.delete(f"{place}/metrics/s"), 404)


def test_a_metric_that_is_there_otherwise(shared: Server) -> None:
    place = made(shared, "twice")
    assert shared.post(f"{place}/metrics", {"sql": COUNT.format("twice")}).status_code == 201
    other = "SELECT count(*) AS n, max(x) AS m FROM twice GROUP BY k OVER SLIDING 2 HOURS"
    told = refused(shared.post(f"{place}/metrics", {"sql": other}), 409)
    assert told["errors"][0]["loc"] == ["metric n"]
    assert "1 HOUR" in told["errors"][0]["msg"]
    assert [each["name"] for each in shared.client.get(f"{place}/metrics").json()["metrics"]] == ["n"]


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SELECT count(* FROM wrong OVER INFINITE", "column"),
        ("SELECT sum(k) AS s FROM wrong GROUP BY k OVER INFINITE", "string"),
        ("SELECT sum(z) AS s FROM wrong GROUP BY k OVER INFINITE", "z"),
        ("SELECT count(*) AS n FROM wrong OVER INFINITE", "home"),
        ("SELECT count(*) AS n FROM wrung GROUP BY k OVER INFINITE", "wrong"),
        (7, "text"),
    ],
)
@pytest.mark.parametrize("route", ["metrics", "explain"])
def test_a_query_with_a_mistake(shared: Server, sql: Any, said: str, route: str) -> None:
    if shared.client.get("/v1/streams/wrong").status_code == 404:
        made(shared, "wrong")
    told = refused(shared.post(f"/v1/streams/wrong/{route}", {"sql": sql}), 422)
    assert told["errors"][0]["loc"] == ["sql"]
    assert said in told["detail"]


def test_explain_registers_nothing(shared: Server) -> None:
    place = made(shared, "planned")
    shared.post(f"{place}/metrics", {"sql": COUNT.format("planned")})
    body = {"sql": "SELECT avg(x) AS a FROM planned GROUP BY k OVER SLIDING 1 HOUR"}
    plan = shared.post(f"{place}/explain", body).json()
    (partitioner,) = plan["streams"][0]["partitioners"]
    assert (partitioner["partitioner"], partitioner["metrics"], len(partitioner["windows"])) == ("k", 2, 1)
    assert [each["name"] for each in shared.client.get(f"{place}/metrics").json()["metrics"]] == ["n"]
    refused(shared.post("/v1/streams/planed/explain", body), 404)


def test_the_plan_of_what_is_registered(shared: Server) -> None:
    """It is what `explain` says of a query that is registered already."""
    place = made(shared, "shared_plan")
    (empty,) = shared.client.get(f"{place}/plan").json()["streams"]
    assert (empty["name"], [each["metrics"] for each in empty["partitioners"]]) == ("shared_plan", [0])
    for sql in (COUNT.format("shared_plan"), "DERIVE n + 1 AS next FROM shared_plan"):
        assert shared.post(f"{place}/metrics", {"sql": sql}).status_code == 201
    plan = shared.client.get(f"{place}/plan").json()
    assert plan == shared.post(f"{place}/explain", {"sql": COUNT.format("shared_plan")}).json()
    (stream,) = plan["streams"]
    assert [each["name"] for each in stream["derived"]] == ["next"]
    with Client(str(shared.client.base_url)) as client:
        assert client.plan("shared_plan") == plan
    shared.client.delete(f"{place}/metrics/next")
    assert shared.client.get(f"{place}/plan").json()["streams"][0]["derived"] == []
    told = refused(shared.client.get("/v1/streams/shared_pla/plan"), 404)
    assert "did you mean shared_plan?" in told["detail"]


@pytest.mark.parametrize(
    ("content", "content_type", "status"),
    [
        (b"{", "application/json", 400),
        (b'{"sql": "\xff"}', "application/json", 400),
        (b"[" * 10**5, "application/json", 400),
        (b"{}", "text/plain", 415),
    ],
)
def test_bodies_that_are_no_definition(
    shared: Server, content: bytes, content_type: str, status: int
) -> None:
    headers = {"Content-Type": content_type}
    refused(shared.client.post("/v1/streams", content=content, headers=headers), status)
    refused(shared.client.patch("/v1/streams/payments", content=content, headers=headers), status)
    refused(shared.client.post("/v1/streams/payments/metrics", content=content, headers=headers), status)


def test_no_route_passes_over_a_parameter(shared: Server) -> None:
    for method in ("GET", "DELETE"):
        answer = shared.client.request(method, "/v1/streams/payments?force=1")
        refused(answer, 422)
        assert "force" in answer.json()["detail"]
    assert shared.client.get("/v1/streams/payments").status_code == 200


def test_status(shared: Server) -> None:
    made(shared, "standing")
    (stream,) = [
        each for each in shared.client.get("/v1/status").json()["streams"] if each["name"] == "standing"
    ]
    assert [task["partitioner"] for task in stream["tasks"]] == ["k"]


def test_the_description_names_every_route(shared: Server) -> None:
    described = shared.client.get("/openapi.json").json()
    streams, metrics = "/v1/streams/{stream}", "/v1/streams/{stream}/metrics"
    routes = {(path, method) for path, of in described["paths"].items() for method in of}
    assert routes == {
        ("/v1/streams", "get"),
        ("/v1/streams", "post"),
        (streams, "get"),
        (streams, "patch"),
        (streams, "delete"),
        (metrics, "get"),
        (metrics, "post"),
        (f"{metrics}/{{name}}", "get"),
        (f"{metrics}/{{name}}", "delete"),
        (f"{streams}/explain", "post"),
        (f"{streams}/plan", "get"),
        (f"{metrics}/{{name}}/answered", "get"),
        (f"{streams}/values", "get"),
        (f"{streams}/values", "post"),
        (f"{streams}/deepening", "post"),
        (f"{streams}/deepening", "get"),
        (f"{streams}/deepening", "delete"),
        (f"{streams}/deepening/install", "post"),
        (f"{streams}/events", "post"),
        ("/v1/status", "get"),
        ("/v1/live", "get"),
        ("/v1/support", "get"),
        (f"{streams}/samples", "get"),
        (f"{streams}/dead", "get"),
        ("/v1/whoami", "get"),
        ("/v1/log", "get"),
        ("/v1/cluster", "get"),
        ("/v1/cluster/plan", "get"),
        ("/v1/cluster/nodes/{node}/drain", "post"),
        ("/v1/cluster/nodes/{node}/undrain", "post"),
        ("/v1/cluster/accept-cut", "post"),
        ("/v1/cluster/accept-gap", "post"),
        ("/healthz", "get"),
        ("/readyz", "get"),
        ("/metrics", "get"),
    }
    known = set(described["components"]["schemas"])
    assert set(re.findall(r'#/components/schemas/(\w+)"', shared.client.get("/openapi.json").text)) <= known


def test_the_page_needs_nothing_from_elsewhere(shared: Server) -> None:
    page = shared.client.get("/docs").text
    assert "http://" not in page
    assert "https://" not in page
    assert "src=" not in page
    assert "/v1/streams/{stream}/events" in page
    assert "timeout_ms" in page


def test_liveness(shared: Server) -> None:
    assert shared.client.get("/healthz").json() == {"status": "alive"}
    assert shared.client.head("/healthz").status_code == 200
    assert shared.client.get("/readyz").json() == {"status": "ready"}


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("/v1/streams", "GET, HEAD, POST"),
        ("/v1/streams/payments", "DELETE, GET, HEAD, PATCH"),
        ("/v1/streams/payments/events", "POST"),
        ("/healthz", "GET, HEAD"),
        ("/metrics", "GET, HEAD"),
    ],
)
def test_other_methods(shared: Server, path: str, allowed: str) -> None:
    response = shared.client.put(path)
    refused(response, 405)
    assert response.headers["allow"] == allowed


SUM = "SELECT sum(x) AS s FROM {} GROUP BY k OVER SLIDING 1 HOUR"
RATE = "DERIVE s / n AS mean FROM {}"


def of(name: str, *queries: str) -> list[str]:
    return [each.format(name) for each in queries]


def test_a_stream_is_made_with_its_metrics(shared: Server) -> None:
    queries = of("whole", RATE, COUNT, SUM)
    place = made(shared, "whole", metrics=queries)
    assert [each["name"] for each in shared.client.get(f"{place}/metrics").json()["metrics"]] == [
        "n",
        "s",
        "mean",
    ]
    event = {"id": "1", "ts": 1, "k": "a", "x": 3}
    assert shared.score("whole", event)["metrics"] == {"n": 1, "s": 3.0, "mean": 3.0}
    body = {"name": "whole", **STREAM}
    for same in (queries, queries[1:2], [], None):
        assert shared.post("/v1/streams", {**body, "metrics": same}).status_code == 200
    # What a stream that is there lacks is added.
    more = of("whole", "SELECT max(x) AS most FROM {} GROUP BY k OVER INFINITE")
    assert shared.post("/v1/streams", {**body, "metrics": queries + more}).status_code == 201
    assert len(shared.client.get(f"{place}/metrics").json()["metrics"]) == 4
    other = of("whole", "SELECT count(*) AS n FROM {} GROUP BY k OVER INFINITE", *more)
    told = refused(shared.post("/v1/streams", {**body, "metrics": other}), 409)
    assert told["errors"][0]["loc"] == ["metric n"]
    told = refused(shared.post("/v1/streams", {**body, "lateness": "9s", "metrics": queries}), 409)
    assert [each["loc"] for each in told["errors"]] == [["lateness"]]
    retyped = {**body, "fields": {**FIELDS, "x": "long"}, "metrics": of("whole", SUM.replace("AS s", "AS z"))}
    told = refused(shared.post("/v1/streams", retyped), 409)
    assert [each["loc"] for each in told["errors"]] == [["field x"]]


@pytest.mark.parametrize(
    ("metrics", "loc", "said"),
    [
        ("SELECT", ["metrics"], "a list of queries"),
        (0, ["metrics"], "a list of queries"),
        ([COUNT.format("half"), 7], ["metrics", 1], "a query is text"),
        ([COUNT.format("half"), "SELECT what"], ["metrics", 1], "line 1, column"),
        (of("half", COUNT, SUM, SUM), ["metrics", 2], "s is the name of a metric of metrics.1 too"),
        (of("half", COUNT, "SELECT sum(y) AS s FROM {} GROUP BY k OVER INFINITE"), ["metrics", 1], "y"),
        (of("half", COUNT, "SELECT sum(x) AS s FROM {} GROUP BY x OVER INFINITE"), ["metrics", 1], "no home"),
        (of("half", COUNT, RATE), ["metrics", 1], "s"),
        ([COUNT.format("half")] * 1_001, ["metrics"], "at most 1,000 metrics, not 1,001"),
        (
            ["SELECT " + "count(*), " * 99 + "count(*) FROM half GROUP BY k OVER INFINITE"] * 11,
            ["metrics"],
            "at most 1,000 metrics, not 1,100",
        ),
        (["SELECT count(*) AS n FROM other GROUP BY k OVER INFINITE"], ["metrics", 0], "write FROM half"),
    ],
)
def test_nothing_is_made_if_a_metric_is_wrong(
    shared: Server, metrics: object, loc: list[object], said: str
) -> None:
    told = refused(shared.post("/v1/streams", {"name": "half", **STREAM, "metrics": metrics}), 422)
    assert told["errors"][0]["loc"] == loc
    assert said in told["detail"]
    refused(shared.client.get("/v1/streams/half"), 404)


def test_input_topics_that_nobody_reads_are_told_of(shared: Server, caplog: pytest.LogCaptureFixture) -> None:
    """A server without a broker keeps them, so that one file of definitions serves it and a cluster."""
    place = made(shared, "unread", input={"topics": ["prod.a", "prod.b"]})
    said = "stream unread: its input topics (prod.a, prod.b) are not read: this server has no broker"
    assert [each.getMessage() for each in caplog.records if "input topics" in each.getMessage()] == [said]
    shown = {each["name"]: each.get("input") for each in shared.client.get("/v1/status").json()["streams"]}
    why = "this server has no broker"
    assert shown["unread"] == [{"topic": each, "not_read": why} for each in ("prod.a", "prod.b")]
    caplog.clear()
    shared.client.patch(place, json={"lateness": "2s"})
    assert "input topics" not in caplog.text
    shared.client.patch(place, json={"input": {"topics": ["prod.c"]}})
    assert "stream unread: its input topics (prod.c) are not read" in caplog.text
    assert shared.client.get("/v1/whoami").json()["topic_prefix"] is None
