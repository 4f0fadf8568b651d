"""From a page of another site a real browser reads, sends and changes nothing on a server."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from tests.browser.chromium import FOREIGN_NAME
from tests.browser.unprotected import AS_SCRIPT, foreign_site, unprotected
from tests.frontend.conftest import PAYMENTS
from tests.frontend.serving import Server, server, until

EVENTS = "/v1/streams/payments/events"
EVENT = json.dumps({"tx_id": "forged", "ts": 1_700_000_000_000, "card": "c1", "amount": 1})
_LATE_MS = 30_000
# A browser does not always tell a page of what it has refused.
_UNTOLD_MS = 2_000
# What stands between the two halves of a form's field, its equals sign, comes into a string.
FIELD, REST = '{"tx_id": "forged", "ts": 1700000000000, "amount": 1, "card": "', '"}'

_POST = "method: 'POST', body: event"
_JSON = "headers: {'content-type': 'application/json'}"
_FORM = """
    const form = document.createElement('form'), frame = document.createElement('iframe'),
        field = document.createElement('textarea');
    frame.name = 'answer';
    Object.assign(form, {method: 'POST', action: target + events, enctype: ENCTYPE, target: 'answer'});
    Object.assign(field, {name: field_name, value: rest});
    form.append(field);
    document.body.append(frame, form);
    await new Promise(done => { frame.onload = done; form.submit(); });
"""
_ELEMENT = """
    const element = document.createElement(TAG);
    const outcome = new Promise(done => {
        element.onload = () => done('loaded');
        element.onerror = () => done('refused');
    });
    element.src = target + PATH;
    document.body.append(element);
    return await outcome;
"""
READS = {
    "fetch": "return await (await fetch(target + '/v1/streams')).text();",
    "fetch with credentials": (
        "return await (await fetch(target + '/v1/streams', {credentials: 'include'})).text();"
    ),
    "fetch of the log": "return await (await fetch(target + '/v1/log')).text();",
}
"""Scripts that return what they could read."""
CHANGES = {
    "fetch, simple": f"await fetch(target + events, {{{_POST}}});",
    "fetch, no-cors": f"await fetch(target + events, {{{_POST}, mode: 'no-cors'}});",
    "fetch, no-cors with credentials": (
        f"await fetch(target + events, {{{_POST}, mode: 'no-cors', credentials: 'include'}});"
    ),
    "fetch, JSON": f"await fetch(target + events, {{{_POST}, {_JSON}}});",
    "fetch, JSON with credentials": (
        f"await fetch(target + events, {{{_POST}, {_JSON}, credentials: 'include'}});"
    ),
    "fetch, delete": "await fetch(target + '/v1/streams/payments', {method: 'DELETE'});",
    "beacon": "navigator.sendBeacon(target + events, event);",
    "form, urlencoded": _FORM.replace("ENCTYPE", "'application/x-www-form-urlencoded'"),
    "form, text/plain": _FORM.replace("ENCTYPE", "'text/plain'"),
    "image": _ELEMENT.replace("TAG", "'img'").replace(
        "PATH", "events + '?event=' + encodeURIComponent(event)"
    ),
}
"""Scripts that would have an event count, or remove the stream."""
_SCRIPT_TAG = _ELEMENT.replace("TAG", "'script'").replace("PATH", "'/v1/streams'")
_FRAME = _ELEMENT.replace("TAG", "'iframe'").replace("PATH", "'/docs'")


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Server]:
    with server(tmp_path / "data") as found:
        found.define(PAYMENTS)
        yield found


@pytest.fixture(params=[FOREIGN_NAME, "127.0.0.1"], ids=["another site", "the same site"])
def page(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Page]:
    """One of another origin: of another site, or of another port of this machine."""
    with foreign_site() as port:
        context = browser.new_context()
        found = context.new_page()
        found.goto(f"http://{request.param}:{port}/")
        yield found
        context.close()


def play(page: Page, script: str, target: str, late_ms: int = _LATE_MS) -> str:
    """Run a script in a page; what it returns, or the error that the browser gives it."""
    values = {"target": target, "events": EVENTS, "event": EVENT, "field_name": FIELD, "rest": REST}
    found: Any = page.evaluate(
        f"""async ({{target, events, event, field_name, rest}}) => {{
            const late = new Promise(done => setTimeout(() => done('error: late'), {late_ms}));
            const played = async () => {{ {script} }};
            try {{ return await Promise.race([played(), late]); }} catch (error) {{ return 'error: ' + error.message; }}
        }}""",
        values,
    )
    return "" if found is None else str(found)


def state(running: Server) -> dict[str, Any]:
    """What there is: streams, changes, the events that count."""
    streams = running.client.get("/v1/streams").json()
    counted = None
    if streams["streams"]:
        values = running.client.get("/v1/streams/payments/values?card=c1").json()
        counted = values["metrics"]["everyone"]
    return {"streams": streams, "log": running.client.get("/v1/log").json(), "counted": counted}


# --- what a page may not ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", READS)
def test_nothing_is_read(name: str, page: Page, running: Server) -> None:
    assert play(page, READS[name], running.service.url).startswith("error: ")
    with unprotected(running.service.url) as port:
        assert "payments" in play(page, READS[name], f"http://127.0.0.1:{port}"), "the canary"


@pytest.mark.parametrize("name", CHANGES)
def test_nothing_is_changed(name: str, page: Page, running: Server) -> None:
    before = state(running)
    play(page, CHANGES[name], running.service.url, _UNTOLD_MS)
    # Until the browser has sent what it sends later, a beacon for one: what comes after it is answered after it.
    play(page, "await fetch(target + '/healthz', {mode: 'no-cors'});", running.service.url)
    assert state(running) == before
    with unprotected(running.service.url) as port:
        play(page, CHANGES[name], f"http://127.0.0.1:{port}", _UNTOLD_MS)
        until(lambda: state(running) != before)


def test_nothing_is_run_as_a_script(page: Page, running: Server) -> None:
    assert play(page, _SCRIPT_TAG, running.service.url) == "refused"
    with unprotected(running.service.url) as port:
        assert play(page, _SCRIPT_TAG, f"http://127.0.0.1:{port}{AS_SCRIPT}") == "loaded", "the canary"


def test_nothing_is_shown_in_a_frame(page: Page, running: Server) -> None:
    def shown(target: str) -> bool:
        play(page, _FRAME, target)
        return page.frames[-1].url.startswith(target)

    assert not shown(running.service.url)
    with unprotected(running.service.url) as port:
        assert shown(f"http://127.0.0.1:{port}"), "the canary"


def test_a_name_that_is_led_here_later(browser: Browser, running: Server) -> None:
    """DNS rebinding: for the browser, the server is the page's own site."""

    def seen_by(port: int) -> list[str]:
        page = browser.new_page()
        page.goto(f"http://{FOREIGN_NAME}:{port}/v1/streams")
        shown = page.content()
        read = play(page, READS["fetch"], "")
        play(page, CHANGES["fetch, JSON"], "")
        page.close()
        return [shown, read]

    before = state(running)
    for each in seen_by(running.address[1]):
        assert "payments" not in each
        assert "http.hosts" in each
    assert state(running) == before
    with unprotected(running.service.url) as port:
        assert all("payments" in each for each in seen_by(port)), "the canary"
    assert state(running)["counted"] == 1


# --- the page of routes -----------------------------------------------------------------------------


def test_the_page_of_routes_works_under_its_policy(browser: Browser, running: Server) -> None:
    page = browser.new_page()
    wrong: list[str] = []
    page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("requestfailed", lambda request: wrong.append(request.url))
    page.goto(running.service.url + "/docs")
    assert "/v1/streams/{stream}/events" in page.inner_text("body")
    font = "getComputedStyle(document.body).fontFamily"
    styled = page.evaluate(font)
    assert not wrong
    # A script that somebody brings in is not run: the browser says so, and the test hears it.
    page.evaluate(
        "document.body.append(Object.assign(document.createElement('script'), {textContent: 'x = 1'}))"
    )
    until(lambda: any("Content Security Policy" in each for each in wrong))
    assert page.evaluate("typeof x") == "undefined"
    # It is shown as its own style says.
    page.evaluate("document.querySelector('link[rel=stylesheet]').remove()")
    assert page.evaluate(font) != styled
    page.close()
