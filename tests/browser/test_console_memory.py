"""The console's first page and that of the last events hold no more memory however long somebody looks."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Route

from tests.browser.console_tab import Tab, tab
from tests.browser.some_live import STARTED_MS, Fed, Live, live, stream, troubled, warming, windows
from tests.counts import seeds
from tests.frontend.serving import server, until

PER_S = 20
# Until the browser has compiled what runs often, and noted as many requests as it notes.
WARM = 300
# How many are waited for at a time.
STEP = 100
GROWTH_MAX = 0.05
STREAMS = 50
DERIVED = {
    f"derived_{number}": {"expression": f"n_{number} / {'1' * 100}", "reads": []} for number in range(1_000)
}
"""What comes with each answer of the last events, and is far more than one of these."""
LISTED = 200
"""How many events the page of the last events holds."""


def snapshot(number: int) -> Live:
    """Other figures each time; streams, metrics that warm, warnings and tasks come and go."""
    phase = number % 8
    streams = [
        stream(
            f"stream_{place}",
            http=windows(
                100 + 7 * ((number + place) % 97), late={"card": 1 + phase}, refused={"invalid": phase or 9}
            ),
            topics=windows(10 * number) if phase == 3 else None,
            warming=warming(**{f"m{each}": phase / 8 for each in range(phase)}),
        )
        for place in range(STREAMS - phase)
    ]
    found = live(*streams, cluster=troubled()["cluster"] if phase % 2 else None)
    found["process"]["in_flight_events"] = number % 13
    return found


class EventByEvent:
    """Answers the page of the last events with one new event each time. asked: how often."""

    def __init__(self, page: Page) -> None:
        self.asked = 0
        page.route("**/samples?*", self._answer)

    def _answer(self, route: Route) -> None:
        self.asked += 1
        route.fulfill(json=last_events(self.asked))


def last_events(number: int) -> dict[str, Any]:
    reply = {"id": f"p{number}", "time": STARTED_MS + number, "metrics": {"n": number}}
    by_http = {"topic": None, "partition": None, "offset": None, "text": None, "problem": None}
    answered = {"number": number, "at_ms": STARTED_MS, "status": 200, "size_bytes": 9}
    event = by_http | answered | {"fields": {"a": number}, "reply": reply}
    counts = {"kept": 1_000, "last": number, "answered": number, "as_of_ms": 0}
    known = {"derived": DERIVED, "times": [], "conditions": []}
    masked = {"fields": [], "metrics": [], "texts": False}
    front_end = {"name": "node-1", "started_ms": STARTED_MS}
    return counts | known | {"front_end": front_end, "masked": masked, "events": [event]}


class Looked:
    """A tab that is answered quickly. fed: answers it.  place, text: which page it is, and what that shows first."""

    def __init__(self, shown: Tab, fed: Fed | EventByEvent, place: str, text: str) -> None:
        self._page, self._fed = shown.page, fed
        shown.open(place)
        shown.sees(text)
        self._session = shown.context.new_cdp_session(shown.page)
        self._session.send("Performance.enable")

    def feed(self, count: int) -> None:
        """Have it show so many answers."""
        # A tab that comes to the front asks at once.
        turn = "() => document.dispatchEvent(new Event('visibilitychange'))"
        self._page.evaluate(f"window.turn = setInterval({turn}, {1_000 // PER_S})")
        for _ in range(count // STEP):
            self._await_asked(STEP)
        self._page.evaluate("clearInterval(window.turn)")
        self._await_asked(2)

    def held(self) -> dict[str, Any]:
        """Return what it holds, without what is held by nobody."""
        for _ in range(3):
            self._session.send("HeapProfiler.collectGarbage")
        found = self._session.send("Performance.getMetrics")["metrics"]
        return {each["name"]: each["value"] for each in found}

    def _await_asked(self, count: int) -> None:
        enough = self._fed.asked + count
        until(lambda: self._page.wait_for_timeout(20) or self._fed.asked >= enough)


class FirstPage:
    """A tab of the first page."""

    def __init__(self, shown: Tab) -> None:
        self._fed = Fed(shown.page, snapshot)
        self._looked = Looked(shown, self._fed, "", "stream_0")

    def feed(self, count: int) -> dict[str, Any]:
        """Have it show so many answers. Return what it holds then, as it shows the same each time."""
        self._fed.answer = snapshot
        self._looked.feed(count)
        self._fed.answer = snapshot(0)
        self._looked.feed(0)
        return self._looked.held()


@pytest.fixture
def shown(browser: Browser, tmp_path: Path) -> Iterator[Tab]:
    with server(tmp_path / "data") as running, tab(browser, running.service.url) as made:
        yield made


@pytest.mark.timeout(600)
@pytest.mark.parametrize("snapshots", seeds([300], [3_600]))
def test_memory_stays_as_it_is(shown: Tab, snapshots: int) -> None:
    looked = FirstPage(shown)
    before = looked.feed(WARM)
    # What comes and goes, as compiled code does, is not there each time.
    last = [looked.feed(each) for each in (snapshots, 1, 1)]
    after = {name: min(each[name] for each in last) for name in before}
    assert after["Nodes"] <= before["Nodes"]
    # A poll that waits for its turn has one.
    assert after["JSEventListeners"] <= before["JSEventListeners"] + 1
    assert after["JSHeapUsedSize"] <= (1 + GROWTH_MAX) * before["JSHeapUsedSize"]


def test_what_is_kept_is_seen(shown: Tab) -> None:
    """A canary: a page that keeps each answer, and what it has made of it."""
    looked = FirstPage(shown)
    shown.page.evaluate(
        """() => {
            const page = document.querySelector("page-overview"), made = page.content;
            window.kept = [];
            page.content = () => {
                const content = made.call(page);
                window.kept.push(content, structuredClone(page.live.data));
                return content;
            };
        }"""
    )
    before = looked.feed(STEP)
    after = looked.feed(STEP)
    assert after["Nodes"] > before["Nodes"] + STEP
    assert after["JSHeapUsedSize"] > (1 + GROWTH_MAX) * before["JSHeapUsedSize"]


def grown(shown: Tab, answers: int) -> float:
    """How many bytes more the page of the last events holds after so many answers, once its list is full."""
    looked = Looked(shown, EventByEvent(shown.page), "live/payments", "The last events that node-1")
    looked.feed(STEP)
    few = looked.held()["JSHeapUsedSize"]
    looked.feed(answers)
    shown.sees(f"{LISTED} of {LISTED}")
    found: float = looked.held()["JSHeapUsedSize"] - few
    return found


@pytest.mark.timeout(600)
def test_events_share_what_came_with_all_of_them(shown: Tab) -> None:
    """The list is filled twice. Each event comes with the derived metrics of its stream, which are held a few times."""
    shown.page.route("**/v1/streams/payments/metrics", lambda route: route.fulfill(json={"metrics": []}))
    assert grown(shown, 2 * LISTED) < 10 * len(json.dumps(DERIVED))


def test_what_each_event_holds_is_seen(shown: Tab) -> None:
    """A canary: a page that keeps what came with each event."""
    shown.page.route("**/v1/streams/payments/metrics", lambda route: route.fulfill(json={"metrics": []}))
    shown.page.add_init_script(
        """addEventListener("DOMContentLoaded", () => customElements.whenDefined("page-live").then((page) => {
            const made = page.prototype.content;
            window.kept = new Map();
            page.prototype.content = function () {
                const { data } = this.samples;
                window.kept.set(data?.last, data);
                return made.call(this);
            };
        }))"""
    )
    assert grown(shown, 2 * LISTED) > LISTED * len(json.dumps(DERIVED))
