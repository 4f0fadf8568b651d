"""The console's first page holds no more memory however long somebody looks."""

from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, CDPSession

from tests.browser.console_tab import tab
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


def held(session: CDPSession) -> dict[str, Any]:
    """What the page holds once what is held by nobody is gone."""
    for _ in range(3):
        session.send("HeapProfiler.collectGarbage")
    found = {each["name"]: each["value"] for each in session.send("Performance.getMetrics")["metrics"]}
    return {key: found[key] for key in ("JSHeapUsedSize", "Nodes", "JSEventListeners")}


def test_memory_stays_as_it_is(browser: Browser, tmp_path: Path) -> None:
    with server(tmp_path / "data") as running, tab(browser, running.service.url) as shown:
        fed = Fed(shown.page, snapshot)
        shown.open()
        shown.sees("stream_0")
        # A tab that comes to the front asks at once.
        turn = f"setInterval(() => document.dispatchEvent(new Event('visibilitychange')), {1_000 // PER_S})"
        session = shown.context.new_cdp_session(shown.page)
        session.send("Performance.enable")

        def feed(count: int) -> dict[str, Any]:
            shown.page.evaluate(f"window.turn = {turn}")
            for _ in range(count // STEP):
                enough = fed.asked + STEP
                until(lambda enough=enough: shown.page.wait_for_timeout(20) or fed.asked >= enough)
            shown.page.evaluate("clearInterval(window.turn)")
            fed.answer = snapshot(0)
            asked = fed.asked
            until(lambda: shown.page.wait_for_timeout(50) or fed.asked >= asked + 2)
            fed.answer = snapshot
            return held(session)

        before = feed(WARM)
        after = feed(SNAPSHOTS)
    assert after["Nodes"] == before["Nodes"]
    # A poll that waits for its turn has one.
    assert after["JSEventListeners"] <= before["JSEventListeners"] + 1
    assert after["JSHeapUsedSize"] <= (1 + GROWTH_MAX) * before["JSHeapUsedSize"], (before, after)
