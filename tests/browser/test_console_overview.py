"""The console's first page, in a real browser: everything that it shows, of made answers and of real servers."""

import base64
import copy
import re
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Request, Route, expect

from railgun.engine.engine import Engine
from tests.browser.console_tab import PATIENCE_MS, Tab, tab
from tests.browser.some_cluster import HOSTILE
from tests.browser.some_live import LATELY, ROUTE, STARTED_MS, Fed, live, stream, troubled, warming, windows
from tests.frontend.access.callers import secret
from tests.frontend.conftest import PAYMENTS
from tests.frontend.serving import Server, server, until

ANOTHER = "another process answers than before"


@pytest.fixture
def shown(browser: Browser, opened: Server) -> Iterator[Tab]:
    with tab(browser, opened.service.url) as made:
        yield made


def figures(shown: Tab, section: str) -> dict[str, str]:
    """The figures of a part of the page."""
    part = shown.page.locator(f"section[data-key={section}]")
    return dict(zip(part.locator("dt").all_inner_texts(), part.locator("dd").all_inner_texts()))


DARKEST = """async (picture) => {
    const blob = await (await fetch(`data:image/png;base64,${picture}`)).blob();
    const bitmap = await createImageBitmap(blob);
    const context = new OffscreenCanvas(bitmap.width, bitmap.height).getContext("2d");
    context.drawImage(bitmap, 0, 0);
    return Math.min(...context.getImageData(0, 0, bitmap.width, bitmap.height).data);
}"""


def has_shadow(shown: Tab, table: Locator, *, is_right: bool) -> bool:
    """Whether a table has a shadow at an edge, within its padding, where there is no text."""
    table.scroll_into_view_if_needed()
    box = table.bounding_box()
    assert box is not None
    x = box["x"] + (box["width"] - 3 if is_right else 2)
    picture = shown.page.screenshot(clip={"x": x, "y": box["y"] + 4, "width": 1, "height": 8})
    # The policy of the console allows no such picture.
    reader = shown.context.new_page()
    darkest = reader.evaluate(DARKEST, base64.b64encode(picture).decode())
    reader.close()
    return int(darkest) < 0xE0


# --- everything that is shown -----------------------------------------------------------------------


def test_the_traffic_of_each_stream(shown: Tab) -> None:
    Fed(shown.page, troubled())
    shown.open()
    shown.sees("payments")
    latencies = ["0.612", "4.75", "31.4"]
    assert shown.cells("Traffic") == [
        ["payments", "HTTP", "10 s", "500", *latencies, "0", "0", "0", "40 2 warming"],
        ["60 s", "500", *latencies, "card 12 merchant 3", "card 7", "invalid 4"],
        ["topics", "10 s", "12,000", *latencies, "0", "0", "0"],
        ["60 s", "12,000", *latencies, "0", "0", "invalid 31 malformed 2"],
        [
            "logins nobody answers 2 tasks",
            "HTTP",
            "10 s",
            "7",
            *latencies,
            "0",
            "0",
            "0",
            "6 warming not known yet",
        ],
        ["60 s", "7", *latencies, "account 1", "0", "0"],
        ["transfers", "HTTP", "10 s", "0", "–", "–", "–", "0", "0", "0", "12"],
        ["60 s", "0", "–", "–", "–", "0", "0", "0"],
    ]
    assert shown.cells("Metrics that warm") == [
        ["spent_30d", "payments", "42 %"],
        ["cards_1d", "payments", "97 %"],
    ]
    assert re.search(r"as of \d+ s ago", shown.page.inner_text("header.head >> nth=0"))
    shown.check_layout()


def test_the_cluster_the_front_end_and_what_is_to_be_seen_to(shown: Tab) -> None:
    Fed(shown.page, troubled())
    shown.open()
    shown.sees("payments")
    assert figures(shown, "cluster") == {
        "Leader": "node-2",
        "Nodes live": "2",
        "Nodes away": "1",
        "Copies answering": "10",
        "Copies silent": "7",
        "Copies behind": "2",
        "Copies failed": "1",
        "No report": "4",
        "Copies wanted of each task": "2",
        "Moves left": "1",
    }
    # As old as the look at it, not as the answer.
    assert re.search(r"as of ([3-9]|\d\d) s ago", shown.page.inner_text("section[data-key=cluster]"))
    assert figures(shown, "front-end") == {
        "Release": "0.1.0",
        "In flight": "3 events, 2.4 KB",
        "Not answered by the cluster yet": "140 events, 61.0 KB, the oldest for 8 s",
    }
    shown.sees("Tasks that nobody answers: 2")
    shown.sees("logins/device/3", "section[data-key=unanswered]")
    warnings = shown.page.get_by_label("Warnings").locator("li")
    first, third = "#/cluster/logins%2Fdevice%2F0", "#/cluster/logins%2Fdevice%2F3"
    links = {
        "1 copy has failed: logins/device/0 on node-2/0: no space left on device. Cluster": [
            first,
            "#/cluster",
        ],
        "1 node is away: node-3. Cluster": ["#/cluster"],
        "5 tasks have fewer than 2 copies that could answer: logins/device/0, payments/*/1 and 3 more. Cluster": [
            first,
            "#/cluster/payments%2F*%2F1",
            "#/cluster",
        ],
        "Nobody answers 2 tasks: logins/device/0, logins/device/3. Cluster": [first, third, "#/cluster"],
        "The topic logins.events is not read: /v1/status says why. Stream logins": ["#/streams/logins"],
    }
    assert warnings.all_inner_texts() == list(links)
    hrefs = [each.get_attribute("href") for each in warnings.locator("a").all()]
    assert hrefs == [href for found in links.values() for href in found]
    warnings.get_by_role("link", name="Cluster").first.click()
    shown.sees("Cluster", "h1")


def test_the_newest_of_what_has_happened_lately(shown: Tab) -> None:
    fed = Fed(shown.page, troubled())
    shown.open()
    shown.sees("node-1 took over 12 tasks, node-2 3")
    assert [row[1] for row in shown.cells("Lately")] == [LATELY["entries"][0]["text"]]
    section = shown.page.locator("section[data-key=lately]")
    expect(section.locator("td .bad")).to_have_count(1)
    stale = troubled()
    stale["cluster"]["lately"] = {**LATELY, "overdue": True}
    fed.answer = stale
    shown.sees("Not looked since 2026-05-28", "section[data-key=lately]")
    shown.check_layout()
    section.get_by_role("link", name="Cluster").click()
    shown.sees("Cluster", "h1")


def test_a_server_in_one_process(shown: Tab) -> None:
    fed = Fed(shown.page, live(stream("quiet")))
    shown.open()
    shown.sees("Nothing to warn of.")
    assert figures(shown, "disk") == {
        "Events": "31.0 MB",
        "State": "48.2 MB",
        "Log": "9.1 KB",
        "Free": "88.0 GB",
    }
    assert re.search(r"as of [4-9]\d s ago", shown.page.inner_text("section[data-key=disk]"))
    assert shown.page.locator("section[data-key=cluster], section[data-key=warming]").count() == 0
    stopping = live(stream("quiet"))
    stopping["process"].update(ready=False, reason="the disk is full")
    fed.answer = stopping
    shown.sees("Not ready: the disk is full.")


def test_a_cluster_that_was_not_looked_at_yet(shown: Tab) -> None:
    fed = Fed(shown.page, troubled())
    fed.answer = troubled()
    fed.answer["cluster"].update(as_of_ms=None, nodes={}, copies={}, leader=None, warnings=[], lately=None)
    shown.open()
    shown.sees("not known yet", "section[data-key=cluster]")
    assert figures(shown, "cluster") == {}
    # Which tasks nobody answers is known all the same.
    shown.sees("logins/device/3")


def test_without_a_node_it_is_not_known_what_to_warn_of(shown: Tab) -> None:
    fed = Fed(shown.page, live(stream("quiet"), cluster=troubled()["cluster"]))
    cluster = {
        "unanswered": 0,
        "unanswered_tasks": [],
        "nodes": {},
        "copies": {},
        "warnings": [],
        "leader": None,
    }
    fed.answer["cluster"].update(cluster)
    shown.open()
    shown.sees("No node has reported yet: what to warn of is not known.")
    shown.misses("Nothing to warn of")
    fed.answer["cluster"].update(nodes={"live": 1}, leader="node-1")
    shown.sees("Nothing to warn of.")


def test_metrics_that_are_always_null_are_warned_of(shown: Tab) -> None:
    names = ["s7", *(f"m{number}" for number in range(7))]
    nulls = {"as_of_ms": 0, "shares": dict.fromkeys(names, 1.0), "always": names}
    Fed(
        shown.page, live(stream("payments", nulls=nulls), stream("quiet", nulls={**nulls, "always": ["one"]}))
    )
    shown.open()
    shown.sees(
        "8 metrics of payments were nothing but null lately, in some of the replies: s7 m0 m1 m2 m3 and 3 more"
    )
    shown.sees("1 metric of quiet was nothing but null lately, in some of the replies: one")
    shown.page.get_by_role("link", name="s7", exact=True).click()
    shown.sees("1 of 5 metrics")
    assert shown.page.get_by_label("Find by name or SQL").input_value() == "s7"
    assert [row[0] for row in shown.cells("Metrics")] == ["s7"]


@pytest.mark.parametrize("width", [400, 1280])
def test_a_table_that_goes_on_beyond_its_edge_says_so(browser: Browser, opened: Server, width: int) -> None:
    """By a shadow at that edge; where all of it is seen there is none."""
    with tab(browser, opened.service.url, viewport={"width": width, "height": 800}) as shown:
        Fed(shown.page, troubled())
        shown.open()
        traffic = shown.page.get_by_role("region", name="Traffic")
        expect(traffic).to_be_visible(timeout=PATIENCE_MS)
        is_cut = traffic.evaluate("(each) => each.scrollWidth > each.clientWidth")
        assert is_cut == (width == 400)
        assert has_shadow(shown, traffic, is_right=True) == is_cut
        assert not has_shadow(shown, traffic, is_right=False)
        traffic.evaluate("(each) => each.scrollTo(each.scrollWidth, 0)")
        assert not has_shadow(shown, traffic, is_right=True)
        assert has_shadow(shown, traffic, is_right=False) == is_cut


def test_many_metrics_that_warm(shown: Tab) -> None:
    some = stream("s", warming=warming(**{f"m{each:03}": each / 200 for each in range(100)}))
    some["warming"]["count"] = 250
    other = stream("t", warming=warming(first=0.0001))
    Fed(shown.page, live(some, other))
    shown.open()
    shown.sees("151 more are warming")
    found = shown.cells("Metrics that warm")
    assert len(found) == 100
    assert found[:2] == [["m000", "s", "0 %"], ["first", "t", "0 %"]]


def test_hostile_texts_are_shown_as_text(shown: Tab) -> None:
    def of(kind: str, count: int) -> dict[str, int]:
        return {f"{kind} {HOSTILE}{number}": number + 1 for number in range(count)}

    found = troubled()
    found["front_end"]["name"] = HOSTILE
    found["process"].update(release=HOSTILE, ready=False, reason="word " * 200_000)
    found["cluster"].update(
        leader=HOSTILE,
        nodes={HOSTILE: 1},
        copies={HOSTILE: 2, "y" * 400: 1},
        warnings=[HOSTILE, "w" * 1_000_000],
        unanswered_tasks=[HOSTILE, "t" * 500],
    )
    found["streams"] = [
        stream(
            f"{name}{HOSTILE}",
            http=windows(50, late=of("late", 9), duplicate={"d" * 300: 1}, refused=of("refused", 2)),
            warming=warming(**{f"{HOSTILE}{name}": 0.5, "m" * 300: 0.1}),
            warnings=[HOSTILE],
        )
        for name in ("a/b?#%", "x" * 200)
    ]
    Fed(shown.page, found)
    shown.open()
    shown.sees("characters more")
    shown.check_layout()
    text = shown.page.inner_text("main")
    assert "\\u202egnp.exe\\u0000</code>&amp;" in text
    assert "and 4 more" in text
    assert not {"\u202e", "\0", "\u2028"} & set(text)
    assert shown.page.locator("main img, main script").count() == 0
    assert shown.page.evaluate("typeof window.ran") == "undefined"
    # A link leads to the stream of that name and nowhere else.
    shown.page.locator(".traffic a").first.click()
    shown.sees("a/b?#%<img", "h1")
    assert shown.page.evaluate("typeof window.ran") == "undefined"


# --- whose figures these are ------------------------------------------------------------------------


def test_another_front_end_answers(shown: Tab) -> None:
    first = live(stream("payments", http=windows(5_000)))
    fed = Fed(shown.page, first)
    shown.open()
    shown.sees("node-1, started 2026-05-28")
    shown.misses(ANOTHER)
    second = live(stream("payments"), front_end={"name": "node-7", "started_ms": STARTED_MS + 60_000})
    second["streams"][0]["http"]["last_60_s"]["seconds"] = 4.2
    fed.answer = second
    shown.sees(
        re.compile(rf"Since \S+ \d\d:\d\d:\d\d UTC {ANOTHER}: node-7, started .*\. It was node-1, started ")
    )
    assert shown.cells("Traffic")[1][:2] == ["4 s", "0"]
    # What is said goes by itself, as the windows are full.
    shown.page.evaluate("window.now = Date.now; Date.now = () => window.now() + 61_000")
    shown.misses(ANOTHER)


def test_a_front_end_that_was_started_again(shown: Tab) -> None:
    fed = Fed(shown.page, live(stream("payments")))
    shown.open()
    shown.sees("payments")
    fed.answer = live(stream("payments"), front_end={"name": "node-1", "started_ms": STARTED_MS + 1})
    shown.sees(f"{ANOTHER}: node-1")


def test_a_server_that_goes_and_comes_back(browser: Browser, tmp_path: Path, port: int) -> None:
    with server(tmp_path / "data", port=port) as running:
        running.define(PAYMENTS)
        made = Tab(browser, running.service.url)
        made.open()
        made.sees("payments")
    made.sees("disconnected", ".banner")
    made.sees("payments")
    made.sees(re.compile(r"as of ([3-9]|\d\d) s ago"))
    with server(tmp_path / "data", port=port) as running:
        made.misses("disconnected", ".banner")
        made.sees(re.compile("as of [01] s ago"))
        made.sees(ANOTHER)
        made.sees("payments")
    made.context.close()


# --- errors and beginnings --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({"status": 500, "json": {"title": "Internal Server Error", "detail": "a defect"}}, "A defect."),
        ({"status": 502, "body": "<h1>a proxy</h1>"}, "The answer has the status 502"),
        ({"status": 200, "body": "<h1>a proxy</h1>"}, "The answer is no JSON"),
    ],
)
def test_an_error_is_shown_and_what_was_known_stays(shown: Tab, answer: dict[str, Any], said: str) -> None:
    Fed(shown.page, live(stream("payments")))
    shown.open()
    shown.sees("payments")

    def wrong(route: Route) -> None:
        route.fulfill(**answer)

    shown.page.route(ROUTE, wrong)
    shown.sees(said)
    shown.sees("payments")
    shown.page.unroute(ROUTE, wrong)
    shown.misses(said)


def test_an_answer_that_takes_long(shown: Tab) -> None:
    fed = Fed(shown.page, live(stream("payments")))
    shown.open()
    shown.sees("payments")
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    shown.page.route(ROUTE, hold)
    shown.sees(re.compile("waiting for an answer: [1-9] s"))
    shown.page.unroute(ROUTE, hold)
    held[0].abort()
    asked = fed.asked
    until(lambda: shown.page.wait_for_timeout(50) or fed.asked > asked)
    shown.misses("waiting for an answer")


def test_while_a_server_starts_nobody_is_told_to_begin(browser: Browser, tmp_path: Path) -> None:
    with server(tmp_path / "data") as running:
        running.define(PAYMENTS)
    may_open = threading.Event()

    def opening() -> Engine:
        may_open.wait()
        return Engine(tmp_path / "data", durability="os")

    with (
        server(tmp_path / "data", open_engine=opening, wait=False) as running,
        tab(browser, running.service.url) as shown,
    ):
        try:
            shown.open()
            shown.sees("Not ready: starting")
            shown.page.wait_for_timeout(1_500)
            shown.misses("There is no stream yet")
        finally:
            may_open.set()
        shown.sees("payments")
        shown.misses("Not ready")


def test_the_address_of_the_broker_is_asked_for_until_it_is_known(browser: Browser, tmp_path: Path) -> None:
    with server(tmp_path / "data") as running, tab(browser, running.service.url) as shown:
        shown.page.route("**/v1/status", lambda route: route.abort())
        shown.open()
        shown.sees("There is no stream yet")
        shown.page.wait_for_timeout(1_500)
        shown.misses("http://127.0.0.1:8081/")
        shown.page.unroute("**/v1/status")
        shown.sees("http://127.0.0.1:8081/")
        # Then it is known.
        asked = len([each for each in shown.requests if each.url.endswith("/v1/status")])
        until(lambda: shown.page.wait_for_timeout(100) or len(shown.requests) > asked + 8)
        assert len([each for each in shown.requests if each.url.endswith("/v1/status")]) == asked


# --- who sees what ----------------------------------------------------------------------------------


def test_a_token_sees_its_streams_alone(browser: Browser, guarded: Server) -> None:
    with tab(browser, guarded.service.url) as shown:
        shown.open()
        shown.give(secret("read-own"))
        shown.sees("payments")
        shown.sees("this token lacks the scope metrics.")
        assert [row[0] for row in shown.cells("Traffic")[::2]] == ["payments"]
        assert "ledger_x" not in shown.page.content()
        assert shown.page.locator("section[data-key=front-end], section[data-key=disk]").count() == 0


def test_a_token_that_sees_no_stream(browser: Browser, guarded: Server) -> None:
    with tab(browser, guarded.service.url) as shown:
        shown.open()
        shown.give(secret("metrics"))
        shown.sees("This token may not see any stream")
        shown.sees(re.compile(r"lacks the scope read:STREAM\."))
        shown.sees("Free", "section[data-key=disk]")
        assert "payments" not in shown.page.content()


def test_a_stream_whose_tasks_nobody_answers_for_who_may_not_see_the_cluster(shown: Tab) -> None:
    found = live(stream("logins", unanswered=1))
    del found["process"], found["cluster"]
    Fed(shown.page, found)
    shown.open()
    warning = shown.page.get_by_label("Warnings").locator("li")
    expect(warning).to_have_text("Nobody answers 1 task of it. Stream logins", timeout=PATIENCE_MS)


# --- while somebody looks ---------------------------------------------------------------------------


def event(number: int, **more: Any) -> dict[str, Any]:
    return {"tx_id": f"t{number}", "ts": 1_700_000_000_000 + number, "card": "c1", "amount": 2.5, **more}


def test_events_of_a_real_server(browser: Browser, opened: Server) -> None:
    with tab(browser, opened.service.url) as shown:
        shown.open()
        shown.sees("payments")
        opened.post("/v1/streams/payments/events", [event(0), event(0), event(1, n="x")])
        for number in range(2, 7):
            opened.score("payments", event(number))
        minute = shown.page.locator(".traffic .minute")
        expect(minute).to_contain_text("invalid 1", timeout=PATIENCE_MS)
        (_, row) = shown.cells("Traffic")
        assert all(float(each.replace(",", "")) > 0 for each in row[1:5])
        assert row[5:] == ["0", "card 1 * 1", "invalid 1"]
        expect(shown.page.locator("section[data-key=disk]")).to_contain_text("Free", timeout=PATIENCE_MS)


def test_the_eighth_tab_of_one_browser_loads_and_goes_on(shown: Tab) -> None:
    """A browser has six connections to a server for all of its tabs together."""
    tabs = [shown.page, *(shown.context.new_page() for _ in range(7))]
    answers = [0 for _ in tabs]

    def count(place: int, request: Request) -> None:
        answers[place] += request.url.endswith("/v1/live")

    for place, each in enumerate(tabs):
        each.on("requestfinished", partial(count, place))
        each.goto(f"{shown.url}/", wait_until="commit")
    for each in tabs:
        expect(each.locator(".traffic")).to_contain_text("payments", timeout=PATIENCE_MS)
    before = list(answers)
    until(lambda: shown.page.wait_for_timeout(50) or all(a >= b + 3 for a, b in zip(answers, before)))
    for each in tabs:
        age = each.locator("header.head").first
        expect(age).to_contain_text(re.compile("as of [01] s ago"), timeout=PATIENCE_MS)


def test_a_page_is_drawn_once_for_each_answer(shown: Tab) -> None:
    fed = Fed(shown.page, live(stream("payments")))
    shown.open()
    shown.sees("payments")
    shown.page.evaluate(
        """() => {
            const page = document.querySelector("page-overview"), draw = page.draw;
            window.drawn = 0;
            page.draw = () => { window.drawn += 1; draw.call(page); };
        }"""
    )
    asked = fed.asked
    until(lambda: shown.page.wait_for_timeout(50) or fed.asked >= asked + 8)
    # Once more for each that took longer than a second, where the machine is busy.
    assert shown.page.evaluate("window.drawn") <= 1.5 * (fed.asked - asked)


def test_a_page_that_nobody_sees_asks_nothing(shown: Tab) -> None:
    fed = Fed(shown.page, live(stream("payments")))
    shown.open()
    shown.sees("payments")
    shown.page.evaluate("Object.defineProperty(document, 'hidden', {value: true, configurable: true})")
    shown.page.wait_for_timeout(1_500)
    asked = fed.asked
    shown.page.wait_for_timeout(2_500)
    assert fed.asked == asked
    shown.page.evaluate("delete document.hidden; document.dispatchEvent(new Event('visibilitychange'))")
    until(lambda: shown.page.wait_for_timeout(50) or fed.asked > asked)


def test_what_somebody_is_at_stays(shown: Tab) -> None:
    """Elements are used again while figures change, streams come and go, and warnings end."""
    first, second = troubled(), live(stream("first"), *copy.deepcopy(troubled()["streams"]))
    fed = Fed(shown.page, lambda number: (first, second)[number % 2])
    shown.open()
    link = shown.page.get_by_role("link", name="logins", exact=True)
    link.focus()
    shown.page.evaluate("window.own = document.activeElement")
    asked = fed.asked
    until(lambda: shown.page.wait_for_timeout(50) or fed.asked >= asked + 4)
    expect(link).to_be_focused()
    assert shown.page.evaluate("window.own === document.activeElement && window.own.isConnected")
