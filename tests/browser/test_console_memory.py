"""The console's first page holds no more memory however long somebody looks."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from tests.browser.console_tab import Tab, tab
from tests.browser.some_live import Fed, Live, live, stream, troubled, warming, windows
from tests.counts import examples
from tests.frontend.serving import server, until

SNAPSHOTS = examples(300, 3_600)
PER_S = 20
# Until the browser has compiled what runs often, and noted as many requests as it notes.
WARM = 300
# How many are waited for at a time.
STEP = 100
GROWTH_MAX = 0.05
STREAMS = 50


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


class Looked:
    """A tab of the first page that is answered quickly."""

    def __init__(self, shown: Tab) -> None:
        self._page, self._fed = shown.page, Fed(shown.page, snapshot)
        shown.open()
        shown.sees("stream_0")
        self._session = shown.context.new_cdp_session(shown.page)
        self._session.send("Performance.enable")

    def feed(self, count: int) -> dict[str, Any]:
        """Have it show so many answers. Return what it holds then, without what is held by nobody."""
        # A tab that comes to the front asks at once.
        turn = "() => document.dispatchEvent(new Event('visibilitychange'))"
        self._page.evaluate(f"window.turn = setInterval({turn}, {1_000 // PER_S})")
        for _ in range(count // STEP):
            self._await_asked(STEP)
        self._page.evaluate("clearInterval(window.turn)")
        # It is measured as it shows the same each time.
        self._fed.answer = snapshot(0)
        self._await_asked(2)
        self._fed.answer = snapshot
        for _ in range(3):
            self._session.send("HeapProfiler.collectGarbage")
        found = self._session.send("Performance.getMetrics")["metrics"]
        return {each["name"]: each["value"] for each in found}

    def _await_asked(self, count: int) -> None:
        enough = self._fed.asked + count
        until(lambda: self._page.wait_for_timeout(20) or self._fed.asked >= enough)


@pytest.fixture
def shown(browser: Browser, tmp_path: Path) -> Iterator[Tab]:
    with server(tmp_path / "data") as running, tab(browser, running.service.url) as made:
        yield made


@pytest.mark.timeout(600)
def test_memory_stays_as_it_is(shown: Tab) -> None:
    looked = Looked(shown)
    before = looked.feed(WARM)
    after = looked.feed(SNAPSHOTS)
    assert after["Nodes"] == before["Nodes"]
    # A poll that waits for its turn has one.
    assert after["JSEventListeners"] <= before["JSEventListeners"] + 1
    assert after["JSHeapUsedSize"] <= (1 + GROWTH_MAX) * before["JSHeapUsedSize"]


def test_what_is_kept_is_seen(shown: Tab) -> None:
    """A canary: a page that keeps each answer, and what it has made of it."""
    looked = Looked(shown)
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
