"""A node's port asks for tokens as a front-end does: every row by every token."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from prometheus_client import Gauge

from railgun.access.binding import ExposedError
from railgun.access.guard import Guard
from railgun.access.refusals import refusals
from railgun.config.access import guard_of
from railgun.config.settings import HttpSettings
from railgun.node.server import ROUTES, serving
from tests.frontend.access.callers import NOBODY, bearer, tokens

OPEN = {"alive", "ready"}
MEASURED = Gauge("seen_by_tokens", "what is measured", registry=None)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    http = HttpSettings(tokens=tokens())
    with serving("127.0.0.1", 0, MEASURED, lambda: "a secret reason", http, guard_of(http)) as made:
        yield made


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_nobody(url: str, method: str) -> None:
    for row in ROUTES:
        for kind in NOBODY:
            if kind.name == "empty":
                # The client does not send it.
                continue
            headers = [("Authorization", each) for each in kind.given]
            answer = httpx.request(method, url + row.path, headers=headers, trust_env=False)
            if row.handler in OPEN:
                assert answer.status_code == (503 if row.handler == "ready" else 200)
                assert "secret" not in answer.text
            else:
                assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer"), kind
                assert "seen_by_tokens" not in answer.text


def test_scopes(url: str) -> None:
    for name, status in (
        ("metrics", 200),
        ("operate", 200),
        ("all", 200),
        ("read-all", 403),
        ("define-all", 403),
    ):
        headers = {"Authorization": bearer(name)}
        answer = httpx.get(f"{url}/metrics", headers=headers, trust_env=False)
        assert answer.status_code == status
        assert ("seen_by_tokens" in answer.text) == (status == 200)
        assert "secret reason" in httpx.get(f"{url}/readyz", headers=headers, trust_env=False).text
    assert httpx.get(f"{url}/none", trust_env=False).status_code == 401
    assert httpx.get(f"{url}/none", headers=headers, trust_env=False).status_code == 404


def test_refusals_are_counted_and_callers_that_nobody_knows_are_logged(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    before = refusals.requests.copy()
    for name, path, status in (
        ("read-all", "/metrics", 403),
        ("wrong", "/metrics?x=1", 401),
        ("wrong", "/a%1B", 401),
    ):
        headers = {"Authorization": bearer(name)}
        assert httpx.get(url + path, headers=headers, trust_env=False).status_code == status
    logged = [each.__dict__["fields"] for each in caplog.records if each.name == "railgun.audit"]
    assert [(each["request"], each["status"], each["client"]) for each in logged] == [
        ("GET /metrics", 401, "127.0.0.1"),
        ("GET /a%1B", 401, "127.0.0.1"),
    ]
    headers = {"Authorization": bearer("metrics")}
    text = httpx.get(f"{url}/metrics", headers=headers, trust_env=False).text
    for status, count in ((401, 2), (403, 1), (421, 0)):
        assert f'railgun_requests_refused_total{{status="{status}"}} {before[status] + count}.0\n' in text


def test_browsers() -> None:
    with serving("127.0.0.1", 0, MEASURED, lambda: None, HttpSettings(), Guard()) as url:
        for path, status in (("/metrics", 421), ("/healthz", 200), ("/readyz", 200), ("/none", 421)):
            answer = httpx.get(url + path, headers={"Host": "evil.example.com"}, trust_env=False)
            assert answer.status_code == status
            assert answer.headers["x-content-type-options"] == "nosniff"


def test_where_it_may_listen(tmp_path: Path) -> None:
    with (
        pytest.raises(ExposedError, match="RAILGUN_HTTP__ANONYMOUS=true"),
        serving("0.0.0.0", 0, MEASURED, lambda: None, HttpSettings(), Guard()),
    ):
        raise AssertionError("it is served")
    for http in (HttpSettings(anonymous=True), HttpSettings(tokens=tokens())):
        with serving("0.0.0.0", 0, MEASURED, lambda: None, http, guard_of(http)) as url:
            assert httpx.get(f"{url}/healthz", trust_env=False).status_code == 200
