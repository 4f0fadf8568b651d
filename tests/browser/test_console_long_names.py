"""Names of 63 characters, the longest that there are, and ids and keys of 300: pages are as wide as a narrow window."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, Locator, expect

from railgun.language.limits import NAME_LIMIT
from tests.browser.console_tab import PATIENCE_MS, Tab, tab
from tests.browser.test_console_live import serving
from tests.browser.test_console_lookup import place
from tests.frontend.serving import Server

WIDTH = 400
ID, CARD_ID, SHOP_ID = "I" * 300, "c-1 " + "M" * 296, "s" * 300


def long(name: str) -> str:
    """A name without a place to break it at."""
    return name + "W" * (NAME_LIMIT - len(name))


STREAM, CARD, SHOP, N, SEEN, BOTH, OFTEN, NEXT = map(
    long, ("payments", "card", "shop", "n", "seen", "both", "often", "next")
)
DEFINITIONS = f"""
[streams.{STREAM}]
time = "ts"
id = "{long("id")}"
partitioners = ["{CARD}", "*"]
[streams.{STREAM}.fields]
{long("id")} = "string"
ts = "timestamp"
{CARD} = "string"
{SHOP} = "string"
[[metrics]]
sql = "SELECT count(*) AS {N}, last(ts) AS {SEEN} FROM {STREAM} GROUP BY {CARD} OVER INFINITE"
[[metrics]]
sql = "SELECT count(*) AS {BOTH} FROM {STREAM} GROUP BY {CARD}, {SHOP} OVER INFINITE"
[[metrics]]
sql = "DERIVE {N} >= 1 AS {OFTEN}, {BOTH} + 1 AS {NEXT} FROM {STREAM}"
"""
QUERY = f"SELECT max({SHOP}) AS {long('most')} FROM {STREAM} GROUP BY {CARD} OVER SLIDING 1 DAY"


def live_with(fields: dict[str, Any]) -> str:
    return f"live/{STREAM}/{quote(json.dumps({'fields': fields}), safe='')}"


PAGES = (
    ("overview", STREAM),
    ("streams", STREAM),
    ("lookup", STREAM),
    (f"lookup/{STREAM}", CARD),
    (place(STREAM, {"keys": [{CARD: CARD_ID}]}), "The last one is of"),
    (place(STREAM, {"keys": [{CARD: CARD_ID, SHOP: SHOP_ID}]}), NEXT),
    (place(STREAM, {"keys": [{CARD: CARD_ID}], "metrics": [long("none")]}), "has no metric"),
    ("live", STREAM),
    (live_with({CARD: CARD_ID, SHOP: SHOP_ID}), "1 of 2"),
    (live_with({long("cord"): CARD_ID}), "did you mean"),
    ("dead", "reads an input topic of no stream"),
    (f"dead/{STREAM}", "scores in its own process"),
    ("changes", STREAM),
    (f"streams/{long('nothing')}", "Not Found"),
)
"""Each with a text that it shows once it is whole."""


@pytest.fixture
def shown(browser: Browser, tmp_path: Path) -> Iterator[Tab]:
    with serving(tmp_path) as running, tab(browser, running.service.url) as made:
        send(running)
        made.page.set_viewport_size({"width": WIDTH, "height": 800})
        yield made


def send(running: Server) -> None:
    running.define(DEFINITIONS)
    running.score(STREAM, {long("id"): ID, "ts": 1_700_000_000_000, CARD: CARD_ID, SHOP: SHOP_ID})
    # Its text is in the answer, and in the list.
    refused = {long("id"): ID, "ts": "x" * 300, CARD: CARD_ID}
    assert running.post(f"/v1/streams/{STREAM}/events", refused).status_code == 422


def check_width(shown: Tab) -> None:
    found, room = shown.page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert found <= room == WIDTH


def check_within(found: Locator) -> None:
    """An element is seen whole, also where what it stands in would scroll."""
    box = found.bounding_box()
    assert box is not None
    assert 0 <= box["x"] <= box["x"] + box["width"] <= WIDTH


def test_pages_are_as_wide_as_the_window(shown: Tab) -> None:
    for where, text in PAGES:
        shown.open(where)
        shown.sees(text)
        check_width(shown)


def test_an_event_with_a_long_id(shown: Tab) -> None:
    shown.open(f"live/{STREAM}")
    shown.sees("2 of 2")
    for row in shown.rows("Last events").all():
        button = row.get_by_role("button")
        check_within(button)
        button.click()
        expect(shown.page.locator(".one")).to_have_count(1)
        check_width(shown)
        check_within(shown.page.locator(".one h2"))
        check_within(shown.page.locator(".one").get_by_role("button", name="Close"))
    expect(shown.page.locator(".one h2")).to_have_text(ID, timeout=PATIENCE_MS)
    check_within(shown.page.get_by_role("link", name=f"Look up {CARD}, {SHOP} together"))


def test_a_stream_with_long_names(shown: Tab) -> None:
    shown.open(f"streams/{STREAM}")
    shown.sees("5 metrics")
    check_width(shown)
    shown.page.get_by_role("button", name=f"values of {N}").click()
    shown.sees("was answered lately")
    shown.page.get_by_label("A query, or a DERIVE").fill(QUERY)
    shown.sees(long("most"), "console-query")
    check_width(shown)
    check_within(shown.page.locator("console-answered h2"))
    shown.page.get_by_label("Find by name or SQL").fill(long("nothing"))
    shown.sees("0 of 5 metrics")
    check_width(shown)
