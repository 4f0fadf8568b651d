"""Answers of another release, as behind a balancer while nodes are replaced: pages show them, or say they cannot."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Route, expect

from tests.browser.console_tab import PATIENCE_MS, Tab, tab
from tests.browser.some_cluster import ShownBackend
from tests.browser.some_live import Fed, troubled
from tests.browser.test_console_live import STREAM, event, names, opened, serving
from tests.browser.test_console_lookup import place
from tests.frontend.serving import Server, until

LATER = {"answered", "conditions", "lately", "looked_ms", "overdue"}
"""What the answers of an earlier release did not have."""
OF_A_CARD = place("payments", {"keys": [{"card": "c1"}]})
UNSHOWN = "An answer cannot be shown"


@pytest.fixture
def running(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """A server with a cluster that is not real, which has answered two events."""
    monkeypatch.setattr("tests.frontend.serving.EmbeddedBackend", ShownBackend)
    with serving(tmp_path) as made:
        made.define(STREAM)
        made.score("payments", event(1))
        made.score("payments", event(2))
        yield made


@pytest.fixture
def shown(browser: Browser, running: Server) -> Iterator[Tab]:
    with tab(browser, running.service.url) as made:
        yield made


def earlier(found: Any, left_out: set[str] = LATER) -> Any:
    """What an earlier release would have answered."""
    if isinstance(found, dict):
        return {name: earlier(each, left_out) for name, each in found.items() if name not in left_out}
    return [earlier(each, left_out) for each in found] if isinstance(found, list) else found


def answer_earlier(route: Route) -> None:
    answer = route.fetch()
    route.fulfill(response=answer, json=earlier(answer.json()))


def test_events_and_values_of_an_earlier_release(shown: Tab) -> None:
    shown.page.route("**/v1/streams/**", answer_earlier)
    shown.open("live/payments")
    shown.sees("2 of 2")
    assert names(shown) == ["p2", "p1"]
    opened(shown, "p1")
    shown.sees("twice = 25.0", ".derived")
    # How many were taken is not said, and no condition is named.
    shown.misses("it has answered")
    expect(shown.page.locator("[data-key=conditions]")).to_have_count(0)
    shown.open(OF_A_CARD)
    shown.sees("spent", "table")
    expect(shown.page.locator("[data-key=events]")).to_have_text("Some of its last events")
    shown.page.unroute_all(behavior="wait")


@pytest.mark.parametrize("left_out", [LATER, {"looked_ms", "overdue"}], ids=["nothing noted", "no looks"])
def test_a_cluster_of_an_earlier_release(shown: Tab, left_out: set[str]) -> None:
    Fed(shown.page, earlier(troubled(), left_out))
    shown.page.route(
        "**/v1/cluster", lambda route: route.fulfill(json=earlier(route.fetch().json(), left_out))
    )
    for where, texts in (
        ("overview", ("logins", "Front-end")),
        ("cluster", ("payments/merchant/1", "Leader")),
    ):
        shown.open(where)
        for text in texts:
            expect(shown.page.locator("main")).to_contain_text(text, timeout=PATIENCE_MS)
        noted = "node-3 was lost"
        if "lately" in left_out:
            shown.misses(noted)
        else:
            shown.sees(noted)
            shown.sees("Noted by this front-end since")
            shown.misses("last look")
    shown.page.unroute_all(behavior="wait")


class Broken:
    """Answers a tab with what no page can show, as long as `is_on`. asked: how often it did."""

    def __init__(self, shown: Tab, path: str, body: object) -> None:
        self.is_on, self.asked, self._body = True, 0, body
        shown.page.route(path, self._answer)

    def _answer(self, route: Route) -> None:
        if self.is_on:
            self.asked += 1
            route.fulfill(json=self._body)
        else:
            route.continue_()


EMPTY = {"front_end": {"name": "another", "started_ms": 1}, "kept": 5, "last": 0, "events": []}
BROKEN = (
    ("overview", "**/v1/live", {"streams": 7}, "payments"),
    ("streams", "**/v1/streams", {}, "payments"),
    ("streams/payments", "**/payments/metrics", {"metrics": [{"name": 7}]}, "all_n"),
    (OF_A_CARD, "**/payments/values", [], "all_n"),
    ("live/payments", "**/samples?*", EMPTY, "p2"),
    ("cluster", "**/v1/cluster", {"warnings": []}, "node-3"),
    ("changes", "**/v1/log?*", {}, "payments"),
)
"""Pages, each with the route whose answer is broken, and what is seen once it is whole."""
QUICKLY = "() => setInterval(() => document.dispatchEvent(new Event('visibilitychange')), 200)"
"""Has a page ask more often: one that comes to the front asks at once."""


@pytest.mark.parametrize(("where", "path", "body", "text"), BROKEN, ids=[each[1] for each in BROKEN])
def test_a_page_says_what_it_cannot_show_and_goes_on(
    browser: Browser, running: Server, where: str, path: str, body: object, text: str
) -> None:
    made = Tab(browser, running.service.url)
    broken = Broken(made, path, body)
    made.open(where)
    made.page.evaluate(QUICKLY)
    made.sees(UNSHOWN)
    # It goes on asking, and says it once.
    asked = broken.asked
    until(lambda: made.page.wait_for_timeout(100) or broken.asked >= asked + 2)
    expect(made.page.locator("[data-key=unshown]")).to_have_count(1)
    broken.is_on = False
    made.misses(UNSHOWN)
    made.sees(text)
    # The same of an answer between good ones: what was shown stays.
    broken.is_on = True
    made.sees(UNSHOWN)
    made.sees(text)
    broken.is_on = False
    made.misses(UNSHOWN)
    # Somebody who looks for the fault finds it in the browser's console.
    assert made.wrong
    assert all("TypeError" in each for each in made.wrong), made.wrong
    made.page.unroute_all(behavior="wait")
    made.context.close()


def test_a_panel_goes_on_after_what_it_cannot_show(browser: Browser, running: Server) -> None:
    made = Tab(browser, running.service.url)
    broken = Broken(made, "**/answered", {"rows": 5})
    made.open("streams/payments")
    made.page.evaluate(QUICKLY)
    made.page.get_by_role("button", name="values of all_n").click()
    until(lambda: made.page.wait_for_timeout(100) or broken.asked >= 3)
    broken.is_on = False
    made.sees(re.compile("in some of the replies that|is not known"), "console-answered")
    assert all("TypeError" in each for each in made.wrong), made.wrong
    made.page.unroute_all(behavior="wait")
    made.context.close()
