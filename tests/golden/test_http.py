"""What clients get over HTTP: bodies of every route, and the description of the routes that programs are made from."""

from collections.abc import Iterator
from typing import Any

import httpx
import msgspec
import pytest

from frontend.http.asgi import encoder
from frontend.problems import problem
from railgun.catalog.changes import Warm
from railgun.catalog.definitions import parse_definitions
from railgun.catalog.stream_reading import stream_to_json
from railgun.engine.engine import Engine
from railgun.ingest.replies import Reply
from tests.frontend.serving import Server, server, until
from tests.golden.promises import held, masked, rooted
from tests.golden.stream import CUT_MS, DEFINITIONS

PLACE = "/v1/streams/payments"
EVENTS, METRICS, DEEPENING = f"{PLACE}/events", f"{PLACE}/metrics", f"{PLACE}/deepening"
BARE = {"name": "bare", "fields": {"k": "string"}}
SQL = "SELECT count(*) AS n_7d, sum(amount) AS sum_7d FROM payments GROUP BY card OVER SLIDING 7 DAYS"
PARTIAL = "SELECT count(*) AS ever FROM payments GROUP BY card OVER INFINITE"
SLOW = "SELECT count(*) AS slow FROM payments OVER INFINITE"
# Prose, which may be written better; titles are those of the Python that runs.
PROSE = ("title", "detail", "msg")


def event(number: int, **more: Any) -> dict[str, Any]:
    own = {"tx_id": f"t{number}", "ts": CUT_MS + 1_000 * number, "card": "c1", "n": 2**60, "amount": 12.5}
    return own | {"ok": True, "price": "1.50"} | more


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("served") / "data"

    def may_warm(warm: Warm) -> bool:
        return warm.name != "slow"

    def opening() -> Engine:
        return Engine(folder, durability="os", now_ms=lambda: CUT_MS + 86_400_000, may_warm=may_warm)

    with server(folder, open_engine=opening) as made:
        yield made


def shown(response: httpx.Response) -> dict[str, Any]:
    """Status, kind of body, body."""
    kind = response.headers.get("content-type", "").partition(";")[0]
    if kind == "application/x-ndjson":
        body: Any = [msgspec.json.decode(line) for line in response.content.splitlines()]
    else:
        body = response.json() if response.content else None
    return {"status": response.status_code, "type": kind, "body": masked(body, *PROSE)}


def warm(made: Server, name: str) -> bool:
    return not made.client.get(f"{METRICS}/{name}").json()["warming"]


def registered(made: Server) -> dict[str, Any]:
    """Streams and metrics."""
    client, found = made.client, {}
    definition = stream_to_json(parse_definitions(DEFINITIONS).streams["payments"])
    found["POST /v1/streams"] = shown(made.post("/v1/streams", definition))
    found["POST /v1/streams, what is left out"] = shown(made.post("/v1/streams", BARE))
    found["PATCH /v1/streams/{stream}"] = shown(
        client.patch(PLACE, json={"fields": {"note": "string"}, "lateness": "9s", "retention": "30d"})
    )
    found["GET /v1/streams/{stream}"] = shown(client.get(PLACE))
    found["GET /v1/streams"] = shown(client.get("/v1/streams"))
    found["DELETE /v1/streams/{stream}"] = shown(client.delete("/v1/streams/bare"))
    found["POST /v1/streams/{stream}/metrics"] = shown(made.post(METRICS, {"sql": SQL}))
    return found


def scored(made: Server) -> dict[str, Any]:
    """Replies, with everything that a reply may say."""
    found = {}
    found["POST an event"] = shown(made.post(EVENTS, event(0)))
    found["POST events"] = shown(made.post(EVENTS, [event(100), event(101, n="x"), event(1), event(100)]))
    lines = b"".join(encoder.encode(event(each)) + b"\n" for each in (102, 103)) + b"{\n"
    ndjson = {"Content-Type": "application/x-ndjson"}
    found["POST lines"] = shown(made.client.post(EVENTS, content=lines, headers=ndjson))
    found["POST events?reply=none"] = shown(
        made.post(f"{EVENTS}?reply=none", [event(104), event(105, n="x"), event(106)])
    )
    made.post(METRICS, {"sql": PARTIAL})
    until(lambda: warm(made, "ever"))
    made.post(METRICS, {"sql": SLOW})
    found["POST an event, one metric is warming"] = shown(made.post(EVENTS, event(107)))
    found["POST an event?metrics=ever"] = shown(made.post(f"{EVENTS}?metrics=ever", event(108)))
    return found


def standing(made: Server) -> dict[str, Any]:
    """How things stand."""
    client, found = made.client, {}
    found["GET /v1/streams/{stream}/metrics"] = shown(client.get(METRICS))
    found["GET /v1/streams/{stream}/metrics/{name}"] = shown(client.get(f"{METRICS}/n_7d"))
    found["DELETE /v1/streams/{stream}/metrics/{name}"] = shown(client.delete(f"{METRICS}/sum_7d"))
    found["GET a deepening, none"] = shown(client.get(DEEPENING))
    found["POST a deepening"] = shown(made.post(DEEPENING, {"cut_ms": CUT_MS}))
    found["GET a deepening"] = shown(client.get(DEEPENING))
    found["GET /v1/status"] = shown(client.get("/v1/status"))
    found["DELETE a deepening"] = shown(client.delete(DEEPENING))
    found["GET /healthz"] = shown(client.get("/healthz"))
    found["GET /readyz"] = shown(client.get("/readyz"))
    return masked(found, "filled", "history", "position", "checkpoint", "log_start", *DISK)


DISK = ("events_bytes", "state_bytes", "log_bytes", "free_bytes")


def refused(made: Server) -> dict[str, Any]:
    """A problem of each status that a request alone can bring about."""
    other = {**BARE, "name": "payments"}
    plain = {"Content-Type": "text/plain"}
    found = {
        "malformed": made.client.post(EVENTS, content=b"{", headers={"Content-Type": "application/json"}),
        "an event": made.post(EVENTS, event(9, n="x", other=1)),
        "no such stream": made.post("/v1/streams/none/events", {}),
        "no such route": made.client.get("/v1/nothing"),
        "a method": made.client.put(PLACE),
        "another definition": made.post("/v1/streams", other),
        "another kind of body": made.client.post("/v1/streams", content=b"{}", headers=plain),
        "a query": made.post(METRICS, {"sql": "SELECT count(*) AS a FROM payments"}),
        "a key": made.post(METRICS, {"sqll": SQL}),
        "a parameter": made.client.get("/v1/status?full=1"),
    }
    return {name: shown(response) for name, response in found.items()}


def test_bodies(running: Server) -> None:
    found = {
        "registered": registered(running),
        "scored": scored(running),
        "standing": rooted(standing(running), running.engine().folder),
        "refused": refused(running),
    }
    held("http.json", found)


def test_replies_and_problems_with_everything() -> None:
    said = msgspec.structs.replace(
        problem(504, "not answered", [(("a", 1), "why")]), id="t1", partitioners=("card",)
    )
    bare = Reply("t1", CUT_MS, {})
    full = Reply("t1", CUT_MS, {"n": 1}, {"card": "rewritten"}, ["card"], ["slow"], {"ever": CUT_MS})
    some = msgspec.structs.replace(full, missing=["merchant"])
    found = {"late": said, "a reply": bare, "a full reply": full, "a partial reply": some}
    held("replies.json", {name: msgspec.json.decode(encoder.encode(each)) for name, each in found.items()})


def test_the_description_of_the_routes(running: Server) -> None:
    """Its names are those of functions and models: clients are generated from them."""
    held("openapi.json", masked(running.client.get("/openapi.json").json(), "description", "version"))
