"""What pages answer for a part that the backend does not have: the cluster of one process, deepenings over Kafka."""

import asyncio
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from frontend.http.pages import pages_of
from railgun.config.settings import HttpSettings
from tests.frontend.no_backend import NO_BACKEND

NO_CLUSTER = (
    "this server scores in its own process and has no nodes; "
    "`railgun frontend` and `railgun node` make a cluster"
)
ON_KAFKA = (
    "a stream whose log is Kafka is deepened by its units: railgun backfill --deepen --broker HOST:PORT --data with "
    "the data folder of their node"
)
TASK = {"stream": "s", "partitioner": "k", "partition": 0}


@pytest.fixture(scope="module")
def pages() -> FastAPI:
    return pages_of(NO_BACKEND, HttpSettings(), {}, lambda *_: None)


def asked(pages: FastAPI, method: str, path: str, body: Any = None) -> tuple[int, str]:
    async def ask() -> httpx.Response:
        transport = httpx.ASGITransport(pages)
        async with httpx.AsyncClient(transport=transport, base_url="http://server") as client:
            return await client.request(method, path, json=body)

    response = asyncio.run(ask())
    assert response.headers["content-type"] == "application/problem+json"
    return response.status_code, response.json()["detail"]


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "", None),
        ("GET", "/plan?what_if=add=1", None),
        ("POST", "/nodes/n/drain", None),
        ("POST", "/nodes/n/undrain", None),
        ("POST", "/accept-cut", TASK),
        ("POST", "/accept-gap", TASK),
    ],
)
def test_a_server_without_nodes(pages: FastAPI, method: str, path: str, body: Any) -> None:
    assert asked(pages, method, f"/v1/cluster{path}", body) == (409, NO_CLUSTER)


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [("POST", "", {}), ("GET", "", None), ("DELETE", "", None), ("POST", "/install", None)],
)
def test_streams_that_units_deepen(pages: FastAPI, method: str, path: str, body: Any) -> None:
    assert asked(pages, method, f"/v1/streams/s/deepening{path}", body) == (409, ON_KAFKA)


def test_a_wrong_request_is_told_first(pages: FastAPI) -> None:
    assert asked(pages, "POST", "/v1/cluster/accept-cut", {**TASK, "partition": -1})[0] == 422
    assert asked(pages, "POST", "/v1/cluster/accept-gap", {**TASK, "dry_run": 1})[0] == 422
    assert asked(pages, "POST", "/v1/cluster/accept-gap", {**TASK, "from": 1})[0] == 422
    assert asked(pages, "POST", "/v1/cluster/nodes/n/drain", {"fewer_copies": 1})[0] == 422
    assert asked(pages, "POST", "/v1/streams/s/deepening", {"cut_ms": "soon"})[0] == 422
    assert asked(pages, "POST", "/v1/streams/s/deepening")[0] == 415
    assert asked(pages, "GET", "/v1/streams/s/deepening?x=1")[0] == 422
