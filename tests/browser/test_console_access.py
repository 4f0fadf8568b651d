"""The console can be used by everybody: axe finds nothing, on any page, light or dark, wide or narrow."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

from tests.browser.console_tab import Tab, tab
from tests.browser.some_cluster import ShownBackend
from tests.browser.some_live import Fed, troubled
from tests.frontend.access.callers import bearer, secret, tokens
from tests.frontend.conftest import PAYMENTS
from tests.frontend.serving import Server, server

PLACES = {
    "overview": "Free",
    "streams": "payments",
    "streams/payments": "everyone",
    "streams/nothing": "Not Found",
    "lookup": "Look up a key of payments",
    "lookup/payments/%7B%22keys%22%3A%5B%7B%22card%22%3A%22c1%22%7D%5D%7D": "The same in Python",
    "lookup/payments/%7B%22keys%22%3A%5B%7B%22card%22%3A5%7D%5D%7D": "is not a string",
    "cluster": "payments/merchant/2",
    "changes": "metric added",
}


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tests.frontend.serving.EmbeddedBackend", ShownBackend)
        with server(tmp_path_factory.mktemp("all") / "data", tokens=tokens()) as found:
            found.define(PAYMENTS)
            events = [{"tx_id": f"e{n}", "ts": n, "card": "c", "amount": n} for n in range(1, 30)]
            sent = found.post("/v1/streams/payments/events", events, headers={"Authorization": bearer("all")})
            assert sent.status_code == 200
            yield found


def found(page: Page) -> list[str]:
    """What is wrong, with the elements that are meant."""
    wrong = Axe().run(page).response["violations"]
    return [f"{each['id']}: {node['html'][:200]}" for each in wrong for node in each["nodes"]]


def check_pages(shown: Tab) -> None:
    shown.open()
    shown.sees("A token is needed")
    assert found(shown.page) == []
    shown.give("railgun_wrong")
    shown.sees("The token is not known here")
    assert found(shown.page) == []
    shown.give(secret("all"))
    for place, text in PLACES.items():
        shown.open(place)
        shown.sees(text)
        assert found(shown.page) == [], place
    check_stream(shown)
    Fed(shown.page, troubled())
    shown.open("overview")
    shown.sees("logins/device/3")
    assert found(shown.page) == [], "a cluster in trouble"
    shown.page.unroute_all()
    shown.open("cluster")
    shown.page.get_by_role("button", name="drain node-1").click()
    shown.sees("would be made", "dialog")
    assert found(shown.page) == [], "the dialog"
    shown.page.keyboard.press("Escape")
    shown.page.get_by_role("button", name="Forget token").click()
    shown.give(secret("score-own"))
    shown.sees("This token may not see the cluster")
    assert found(shown.page) == [], "a lacking scope"


def check_stream(shown: Tab) -> None:
    """The form with a mistake and without one, the plan with it, a panel of values."""
    shown.open("streams/payments")
    shown.sees("The same as a table", "console-plan")
    field = shown.page.get_by_label("A query, or a DERIVE")
    field.fill("SELECT sum(amunt) AS x FROM payments OVER INFINITE")
    shown.sees("did you mean amount?", "#said")
    assert found(shown.page) == [], "a mistake"
    field.fill("SELECT sum(amount) AS x FROM payments OVER INFINITE")
    shown.sees("Register 1 metric", "console-query")
    for each in shown.page.locator("summary").all():
        if each.is_visible():
            each.click()
    shown.page.get_by_role("button", name="values of n7").click()
    shown.sees(re.compile("not known|some of the replies"), "console-answered")
    assert found(shown.page) == [], "a query, the plan, values"
    shown.check_layout()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_every_page(browser: Browser, running: Server, scheme: str, width: int) -> None:
    more = {"color_scheme": scheme, "viewport": {"width": width, "height": 800}}
    with tab(browser, running.service.url, **more) as shown:
        check_pages(shown)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_beginning_and_a_server_that_is_away(browser: Browser, tmp_path: Path, scheme: str) -> None:
    with server(tmp_path / "data") as started:
        shown = Tab(browser, started.service.url, color_scheme=scheme)
        shown.open()
        shown.sees("http://127.0.0.1:8081/")
        assert found(shown.page) == []
    shown.sees("disconnected", ".banner")
    assert found(shown.page) == []
    shown.context.close()


def test_something_that_is_wrong_is_found(browser: Browser, running: Server) -> None:
    """A canary."""
    with tab(browser, running.service.url) as shown:
        shown.open()
        shown.sees("A token is needed")
        shown.page.evaluate("document.querySelector('label').remove()")
        assert any(each.startswith("label: ") for each in found(shown.page))
