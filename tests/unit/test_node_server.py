"""The table of a node's routes: each row is answered, and nothing else is."""

from collections.abc import Iterator

import httpx
import pytest
from prometheus_client import Gauge

from railgun.access.guard import Guard
from railgun.config.settings import HttpSettings
from railgun.unit.node_server import ROUTES, serving

ANSWERS = {"metrics": b"# HELP seen ", "alive": b"alive\n", "ready": b"ready\n"}


@pytest.fixture
def client() -> Iterator[httpx.Client]:
    with (
        serving(
            "127.0.0.1",
            0,
            Gauge("seen", "what is measured", registry=None),
            lambda: None,
            HttpSettings(),
            Guard(),
        ) as url,
        httpx.Client(base_url=url, trust_env=False) as made,
    ):
        yield made


def test_each_row_is_answered(client: httpx.Client) -> None:
    assert [row.handler for row in ROUTES] == list(ANSWERS)
    for row in ROUTES:
        for path in (row.path, row.path + "?more=1"):
            answer = client.request(row.method, path)
            assert answer.status_code == 200
            assert answer.content.startswith(ANSWERS[row.handler])


@pytest.mark.parametrize(
    "path", ["", "/", "/more", *(row.path + end for row in ROUTES for end in ("/", "x", "/x"))]
)
def test_nothing_else_is_answered(client: httpx.Client, path: str) -> None:
    answer = client.get(path)
    assert (answer.status_code, answer.text) == (404, "there are /metrics, /healthz and /readyz\n")


def test_a_head_is_answered_as_a_get_without_a_body(client: httpx.Client) -> None:
    for row in ROUTES:
        answer = client.head(row.path)
        assert (answer.status_code, answer.content) == (200, b"")
        assert int(answer.headers["content-length"]) > 0


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_other_methods(client: httpx.Client, method: str) -> None:
    for row in ROUTES:
        assert client.request(method, row.path).status_code == 501
