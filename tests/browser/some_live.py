"""Answers of `GET /v1/live` in every state that the console shows, given to a tab in place of the server's."""

import copy
import json
import time
from collections.abc import Callable
from typing import Any

from playwright.sync_api import Page, Route

Live = dict[str, Any]
STARTED_MS = 1_780_000_000_000
ROUTE = "**/v1/live"
LATELY = {
    "since_ms": STARTED_MS,
    "looked_ms": STARTED_MS + 60_000,
    "overdue": False,
    "entries": [
        {
            "kind": "node_lost",
            "at_ms": STARTED_MS + 30_000,
            "first_ms": STARTED_MS + 30_000,
            "times": 1,
            "text": "node-3 was lost: it fell silent without closing its copies; node-1 took over 12 tasks, node-2 3",
        }
    ],
}


def window(seconds: float, events: int = 0, **more: Any) -> dict[str, Any]:
    own = {"seconds": seconds, "events": events, "events_per_s": round(events / seconds, 3)}
    latency = {"count": 0, "p50_ms": None, "p99_ms": None, "p999_ms": None}
    if events:
        latency = {"count": events, "p50_ms": 0.612, "p99_ms": 4.75, "p999_ms": 31.4}
    return {**own, "late": {}, "duplicate": {}, "refused": {}, "latency": latency, **more}


def windows(events: int = 0, **more: Any) -> dict[str, Any]:
    """A minute of as many events in each 10 s. more: in the whole minute."""
    return {"last_10_s": window(10.0, events), "last_60_s": window(60.0, 6 * events, **more)}


def stream(name: str, **more: Any) -> dict[str, Any]:
    own = {"name": name, "http": windows(), "topics": None, "metrics": 4, "unanswered": 0, "warnings": []}
    return {**own, "warming": warming(), **more}


def warming(**filled: float) -> dict[str, Any]:
    least = [
        {"name": name, "filled": share} for name, share in sorted(filled.items(), key=lambda each: each[1])
    ]
    return {"count": len(least), "least": least, "as_of_ms": 0}


def live(*streams: dict[str, Any], **more: Any) -> Live:
    """A server in one process with the scope `metrics`."""
    disk = {
        "events_bytes": 31_021_000,
        "state_bytes": 48_221_000,
        "log_bytes": 9_100,
        "free_bytes": 88 * 10**9,
    }
    process = {
        "release": "0.1.0",
        "ready": True,
        "reason": None,
        "in_flight_events": 3,
        "in_flight_bytes": 2_400,
    }
    return {
        "front_end": {"name": "node-1", "started_ms": STARTED_MS},
        "as_of_ms": 0,
        "process": {**process, "waiting": None, "disk": {**disk, "as_of_ms": -42_000}},
        "cluster": None,
        "streams": list(streams),
        **more,
    }


def troubled() -> Live:
    """A cluster in trouble: everything that there is to show."""
    cluster = {
        "unanswered": 2,
        "unanswered_tasks": ["logins/device/0", "logins/device/3"],
        "leader": "node-2",
        "wanted": 2,
        "moves": 1,
        "nodes": {"live": 2, "away": 1},
        "copies": {"answering": 10, "silent": 7, "behind": 2, "failed": 1, "unheard": 4},
        "warnings": [
            "1 copy has failed: logins/device/0 on node-2/0: no space left on device",
            "1 node is away: node-3",
            "5 tasks have fewer than 2 copies that could answer: logins/device/0, payments/*/1 and 3 more",
            "nobody answers 2 tasks: logins/device/0, logins/device/3",
        ],
        "lately": LATELY,
        "as_of_ms": -3_000,
    }
    payments = stream(
        "payments",
        http=windows(5_000, late={"card": 12, "merchant": 3}, duplicate={"card": 7}, refused={"invalid": 4}),
        topics=windows(120_000, refused={"malformed": 2, "invalid": 31}),
        metrics=40,
        warming=warming(spent_30d=0.42, cards_1d=0.973),
    )
    logins = stream(
        "logins",
        http=windows(70, late={"account": 1}),
        unanswered=2,
        metrics=6,
        warnings=["the topic logins.events is not read: /v1/status says why"],
        warming=None,
    )
    found = live(payments, logins, stream("transfers", metrics=12), cluster=cluster)
    found["process"].update(disk=None, waiting={"events": 140, "bytes": 61_000, "oldest_s": 8.2})
    return found


class Fed:
    """Answers a tab as it is told. live: the answer, with times since now.  asked: how often it was asked."""

    def __init__(self, page: Page, answer: Live | Callable[[int], Live]) -> None:
        self.answer, self.asked = answer, 0
        page.route(ROUTE, self._answer)

    def _answer(self, route: Route) -> None:
        answer = self.answer
        found = answer(self.asked) if callable(answer) else answer
        self.asked += 1
        route.fulfill(content_type="application/json", body=json.dumps(_as_of_now(found)))


def _as_of_now(found: Live) -> Live:
    """The same with all times of looks, which are said from now, as times of the wall."""
    dated, now_ms = copy.deepcopy(found), round(1_000 * time.time())
    process = dated.get("process") or {}
    for part in (dated, process.get("disk"), dated.get("cluster"), *(s["warming"] for s in dated["streams"])):
        if part is not None and part["as_of_ms"] is not None:
            part["as_of_ms"] += now_ms
    return dated
