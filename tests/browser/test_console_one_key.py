"""From a key to its last events and back; which conditions hold; names and rows in a narrow window."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.console_tab import PATIENCE_MS, Tab, tab
from tests.browser.test_console_access import found as wrong_for_axe
from tests.browser.test_console_live import T, names, opened, serving
from tests.browser.test_console_lookup import place
from tests.frontend.serving import Server

STREAM = """
[streams.payments]
time = "ts"
id = "tx_id"
partitioners = ["card", "merchant"]
[streams.payments.fields]
tx_id = "string"
ts = "timestamp"
card = "string"
merchant = "string"
card_country = "string"
amount = "decimal(9,2)"
[[metrics]]
sql = '''SELECT count(*) AS card_payments_10m, max(amount) AS card_most FROM payments
         GROUP BY card OVER SLIDING 10 MINUTES'''
[[metrics]]
sql = "SELECT count(*) AS merchant_payments_1h FROM payments GROUP BY merchant OVER SLIDING 1 HOUR"
[[metrics]]
sql = "SELECT count(*) AS card_at_merchant FROM payments GROUP BY card, merchant OVER INFINITE"
[[metrics]]
sql = "DERIVE card_payments_10m >= 100 AS start_very_many, card_most > 1000.0 AS start_much FROM payments"
[[metrics]]
sql = "DERIVE card_payments_10m >= 2 AS start_many, merchant_payments_1h + 1 AS next FROM payments"
"""
NONE = "None of the events is like that."


def payment(number: int, **more: Any) -> dict[str, Any]:
    own = {"tx_id": f"t{number}", "ts": T + number, "card": "c1", "merchant": "m1", "card_country": "PT"}
    return {**own, "amount": "5.00", **more}


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Server]:
    """A server that has answered two payments of a card, and one of another between them."""
    with serving(tmp_path) as made:
        made.define(STREAM)
        for each in (payment(1, amount=None), payment(2, card="c2"), payment(3, amount=None)):
            made.score("payments", each)
        yield made


@pytest.fixture
def shown(browser: Browser, running: Server) -> Iterator[Tab]:
    with tab(browser, running.service.url) as made:
        yield made


def look_up(shown: Tab, **key: Any) -> None:
    shown.open(place("payments", {"keys": [key]}))
    expect(shown.rows("Values")).not_to_have_count(0, timeout=PATIENCE_MS)


def test_beside_the_values_stands_as_of_which_event_they_are(shown: Tab) -> None:
    look_up(shown, card="c1", merchant="m1")
    at = "as of the event time 2023-11-14 22:13:20"
    beside = shown.page.locator("header.head", has_text="Values").locator("li")
    expect(beside).to_have_count(2)
    for text in (f"card: {at}", f"merchant: {at}"):
        expect(beside.filter(has_text=text)).to_have_count(1)


def test_a_condition_that_is_not_known_is_counted_and_named(shown: Tab) -> None:
    said = shown.page.locator("[data-key=conditions]")
    look_up(shown, card="c1")
    expect(said).to_have_text("True: start_many. 1 is not known: start_much.")
    look_up(shown, card="c2")
    expect(said).to_have_text("Of 3 true-or-false metrics none is true.")
    look_up(shown, card="nobody")
    expect(said).to_have_text("Of 3 true-or-false metrics none is true. 1 is not known: start_much.")
    look_up(shown, merchant="m1")
    expect(said).to_have_count(0)


def test_from_a_key_to_its_last_events(shown: Tab) -> None:
    look_up(shown, card="c1")
    shown.page.get_by_role("link", name="Some of its last events").click()
    shown.sees("Only those with card: c1.")
    shown.sees("2 of 3")
    assert names(shown) == ["t3", "t1"]
    # The address alone has the filter, also what is typed and chosen here.
    shown.page.get_by_label("Find").fill("T3")
    shown.sees("1 of 3")
    shown.page.get_by_label("Show").select_option("late")
    shown.sees("None of the events is like that.")
    shown.page.get_by_label("Show").select_option("with a metric that is true")
    shown.sees("1 of 3")
    shown.page.reload()
    shown.sees("1 of 3")
    assert names(shown) == ["t3"]
    assert shown.page.get_by_label("Find").input_value() == "T3"
    expect(shown.page.get_by_label("Show")).to_have_value("true")
    opened(shown, "t3")
    shown.page.get_by_role("link", name="look up card c1").click()
    shown.sees('{"card": "c1"}')
    shown.page.go_back()
    shown.sees("1 of 3")
    shown.page.get_by_role("link", name="Show all events").click()
    shown.sees("3 of 3")
    assert shown.page.url == f"{shown.url}/#/live/payments"


def test_what_is_typed_stands_in_the_address_at_once(shown: Tab) -> None:
    look_up(shown, card="c1")
    shown.page.get_by_role("link", name="Some of its last events").click()
    shown.sees("2 of 3")
    find = shown.page.get_by_label("Find")
    find.press_sequentially("T3")
    shown.sees("1 of 3")
    expect(find).to_be_focused()
    filtered = json.loads(unquote(shown.page.url.partition("#/live/payments/")[2]))
    assert filtered == {"fields": {"card": "c1"}, "text": "T3"}
    # What was typed before is no place to go back to.
    shown.page.go_back()
    shown.sees('{"card": "c1"}')


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"crad": "c1"}, f"{NONE} The stream payments has no field crad; did you mean card?"),
        (
            {"card": "c1", "x": 1},
            f"{NONE} The stream payments has no field x. It has tx_id, ts, card, merchant, card_country, amount.",
        ),
        ({"card": "C1"}, NONE),
    ],
)
def test_a_field_that_the_stream_does_not_have(shown: Tab, fields: dict[str, Any], said: str) -> None:
    shown.open(f"live/payments/{quote(json.dumps({'fields': fields}), safe='')}")
    expect(shown.page.locator("[data-key=none]")).to_have_text(said, timeout=PATIENCE_MS)


def test_a_masked_field_is_not_looked_for(browser: Browser, tmp_path: Path) -> None:
    with serving(tmp_path, "payments.card") as running, tab(browser, running.service.url) as shown:
        running.define(STREAM)
        running.score("payments", payment(1))
        shown.open(f"live/payments/{quote(json.dumps({'fields': {'card': 'c1'}}), safe='')}")
        shown.sees(f"{NONE} card is masked: events are shown without it.")


def test_of_more_events_than_are_taken_some_are_shown(shown: Tab, running: Server) -> None:
    newest = "SELECT last(ts) AS newest FROM payments GROUP BY card OVER INFINITE"
    assert running.post("/v1/streams/payments/metrics", {"sql": newest}).status_code == 201
    look_up(shown, card="c1")
    beside = shown.page.locator("[data-key=events]")
    expect(beside).to_contain_text("The last one is of 2023-11-14 22:13:20", timeout=PATIENCE_MS)
    expect(beside).to_contain_text("it has answered 3 events of the stream, and has taken all of them.")
    batch = [payment(1_000 * number, card="c1" if number < 9 else "c2") for number in range(4, 104)]
    assert running.post("/v1/streams/payments/events", batch).status_code == 200
    taken = running.client.get("/v1/streams/payments/samples?limit=1").json()
    assert taken["answered"] == 103 > taken["last"]
    name, last = taken["front_end"]["name"], taken["last"]
    some = f"Since {name} started, it has answered 103 events of the stream, and has taken {last} of them"
    expect(beside).to_contain_text(f"{some}.", timeout=PATIENCE_MS)
    expect(beside).to_contain_text("The last one is of 2023-11-14 22:13:28", timeout=PATIENCE_MS)
    shown.page.get_by_role("link", name="Some of its last events").click()
    shown.sees(f"{some}. At most 20 of a second are taken")
    assert names(shown) == ["t3", "t1"]
    # The key is one of two fields, of which no metric has the last time.
    look_up(shown, card="c1", merchant="m1")
    expect(beside).to_have_text(f"Some of its last events{some}.", timeout=PATIENCE_MS)


def test_a_key_of_several_fields(shown: Tab, running: Server) -> None:
    running.score("payments", payment(4, card=None))
    look_up(shown, card="c1", merchant="m1")
    shown.page.get_by_role("link", name="Some of its last events").click()
    shown.sees("Only those with card: c1, merchant: m1.")
    assert names(shown) == ["t3", "t1"]
    look_up(shown, card=None)
    shown.page.get_by_role("link", name="Some of its last events").click()
    shown.sees("Only those with card: null.")
    assert names(shown) == ["t4"]


@pytest.mark.parametrize(
    "text",
    [
        *("%7B", "7", "[]", "null", '{"kind":"x"}', '{"kind":["all"]}', '{"text":1}', '{"fields":7}'),
        *('{"fields":null}', '{"fields":{"a":{"toString":1}}}', r'{"fields":{"a":{"\u0000digits":{}}}}'),
    ],
)
def test_an_address_that_has_no_filter(shown: Tab, text: str) -> None:
    shown.open(f"live/payments/{text}")
    shown.sees("The address has no filter that can be read, so all events are shown.")
    assert names(shown) == ["t3", "t2", "t1"]
    shown.page.get_by_label("Find").fill("T3")
    shown.sees("1 of 3")
    shown.misses("The address has no filter")


def test_a_masked_key_has_no_last_events(browser: Browser, tmp_path: Path) -> None:
    with serving(tmp_path, "payments.card") as running, tab(browser, running.service.url) as shown:
        running.define(STREAM)
        running.score("payments", payment(1))
        look_up(shown, card="c1", merchant="m1")
        expect(shown.page.get_by_role("link", name="Some of its last events")).to_have_count(0)
        look_up(shown, merchant="m1")
        expect(shown.page.get_by_role("link", name="Some of its last events")).to_have_count(1)


def test_a_masked_time_is_not_shown_beside_the_values(browser: Browser, tmp_path: Path) -> None:
    with serving(tmp_path, "payments.ts") as running, tab(browser, running.service.url) as shown:
        running.define(STREAM)
        running.score("payments", payment(1))
        look_up(shown, card="c1")
        beside = shown.page.locator("header.head", has_text="Values").locator("li")
        expect(beside).to_have_text(re.compile(r"^card: offset \d+$"))
        assert "2023-11-14" not in shown.page.inner_text("main")


def test_of_an_event_what_is_true_comes_first(shown: Tab) -> None:
    shown.open("live/payments")
    shown.sees("t3")
    opened(shown, "t3")
    said = shown.page.locator(".one > *").nth(1)
    expect(said).to_have_text("True: start_many. 1 is not known: start_much.")
    roots = shown.page.locator(".derived").first.locator(":scope > li > span").all_inner_texts()
    assert roots == ["start_many = true", "start_very_many = false", "start_much = null", "next = 4"]
    expect(shown.page.locator(".holds")).to_have_count(1)
    opened(shown, "t2")
    expect(said).to_have_text("Of 3 true-or-false metrics none is true.")
    expect(shown.page.locator(".holds")).to_have_count(0)


LINES = """each => [...each.childNodes].filter(part => part.nodeType === Node.TEXT_NODE).map(part => {
    const range = document.createRange();
    range.selectNodeContents(part);
    return [part.data, new Set([...range.getClientRects()].map(({ top }) => Math.round(top))).size];
})"""
"""The parts of a name between which it may be broken, each with how many lines it takes."""


@pytest.mark.parametrize("width", [320, 400, 800, 1280])
def test_names_are_broken_between_words(shown: Tab, width: int) -> None:
    shown.page.set_viewport_size({"width": width, "height": 900})
    for where in (place("payments", {"keys": [{"card": "c1"}]}), "live/payments"):
        shown.open(where)
        if where == "live/payments":
            shown.sees("t3")
            opened(shown, "t3")
        expect(shown.page.locator("td, th", has_text="card_payments_10m").first).to_be_visible(
            timeout=PATIENCE_MS
        )
        parts = [part for each in shown.page.locator(".named").all() for part in each.evaluate(LINES)]
        # Those of the metrics that the key does not tell are not unfolded, and take none.
        assert max(lines for _, lines in parts) == 1, parts
        assert ["card_", 1] in parts
        if width == 1280 and where != "live/payments":
            tall = [each.bounding_box() for each in shown.page.locator("td .named, th .named").all()]
            assert len({round(box["height"]) for box in tall if box}) == 1
        shown.check_layout()


def test_a_narrow_window_shows_all_of_the_last_events(shown: Tab) -> None:
    shown.page.set_viewport_size({"width": 400, "height": 900})
    shown.open("live/payments")
    shown.sees("t3")
    row = shown.rows("Last events").first
    for text in ("t3", "card_country:", "8 metrics", "start_many", "HTTP"):
        box = row.get_by_text(text).first.bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 400, text
    for label, place_of in (("Find", "find"), ("Show", "kind")):
        beside = shown.page.locator(f"label[for={place_of}]").bounding_box()
        box = shown.page.get_by_label(label).bounding_box()
        assert beside is not None
        assert box is not None
        assert box["y"] <= beside["y"] + beside["height"] / 2 <= box["y"] + box["height"]
    assert wrong_for_axe(shown.page) == []
    shown.check_layout()
