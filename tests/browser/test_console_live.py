"""The console's page of the last events: full, off, without the scope, with hostile payloads; stopped and filtered."""

import json
import re
from collections.abc import Iterator
from contextlib import AbstractContextManager
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from railgun.config.settings import ConsoleSettings
from tests.browser.console_tab import PATIENCE_MS, Tab, tab
from tests.browser.some_cluster import HOSTILE
from tests.browser.test_console_access import found as wrong_for_axe
from tests.frontend.access.callers import FOREIGN_STREAM, secret, token, tokens
from tests.frontend.kafka.cluster import LocalCluster
from tests.frontend.serving import Server, load_kernels, server, until
from tests.frontend.topics.input_topic import InputTopic
from tests.frontend.topics.test_input_topic import define

STREAM = """
[streams.payments]
time = "ts"
id = "pid"
partitioners = ["card", "*"]
lateness = "1s"
[streams.payments.fields]
pid = "string"
ts = "timestamp"
card = "string"
amount = "double"
note = "string"
[[metrics]]
sql = "SELECT count(*) AS n, sum(amount) AS spent FROM payments GROUP BY card OVER SLIDING 1 DAY"
[[metrics]]
sql = "SELECT count(*) AS all_n FROM payments OVER INFINITE"
[[metrics]]
sql = "DERIVE n / all_n AS share, share > 0.5 AS much, amount * 2.0 AS twice FROM payments"
"""
EXACT = """
[streams.exact]
id = "id"
partitioners = ["*"]
[streams.exact.fields]
id = "long"
n = "long"
x = "double"
[[metrics]]
sql = "SELECT max(n) AS most, sum(n) AS total FROM exact OVER INFINITE"
[[metrics]]
sql = "DERIVE most - 1 AS nearly FROM exact"
"""
WIDE = f"""
[streams.wide]
id = "id"
time = "ts"
partitioners = ["*"]
[streams.wide.fields]
id = "string"
ts = "timestamp"
{"".join(f'long_{number} = "string"' + chr(10) for number in range(20))}
amount = "double"
country = "string"
"""
KEYED = """
[streams.sales]
time = "at"
partitioners = ["card"]
[streams.sales.fields]
card = "string"
shop = "string"
at = "timestamp"
[[metrics]]
sql = "SELECT last(at) AS newest, count(*) AS n FROM sales GROUP BY card OVER INFINITE"
[[metrics]]
sql = "SELECT count(*) AS both FROM sales GROUP BY card, shop OVER INFINITE"
[[metrics]]
sql = "DERIVE n >= 1 AS burst FROM sales"
"""
T = 1_700_000_000_000
EVENTS = "/v1/streams/payments/events"


def event(number: int, **more: Any) -> dict[str, Any]:
    return {"pid": f"p{number}", "ts": T + number, "card": "c1", "amount": 12.5, "note": None, **more}


def serving(folder: Path, *masks: str, samples: int = 100, **http: Any) -> AbstractContextManager[Server]:
    load_kernels()
    console = ConsoleSettings(samples=samples, masks=masks)
    return server(folder / "data", console=console, timeout_ms=60_000, **http)


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Server]:
    with serving(tmp_path) as made:
        made.define(STREAM)
        yield made


def send(running: Server) -> None:
    """Events of every kind: plain, late, duplicate, refused."""
    running.score("payments", event(5_000))
    running.score("payments", event(5_000))
    running.score("payments", event(1))
    running.post(EVENTS, event(5_001, amount="much"))
    running.score("payments", event(5_002, card="c2"))


def names(shown: Tab) -> list[str]:
    return [row[1] for row in shown.cells("Last events")]


def opened(shown: Tab, name: str) -> None:
    """Open one event in full."""
    shown.page.get_by_role("region", name="Last events").get_by_role("button", name=name).first.click()
    expect(shown.page.locator(".one h2")).to_have_text(name, timeout=PATIENCE_MS)


def test_the_last_events_and_one_in_full(browser: Browser, running: Server) -> None:
    send(running)
    with tab(browser, running.service.url, timezone_id="Europe/Berlin") as shown:
        shown.open("live")
        shown.page.get_by_role("link", name="payments").click()
        shown.sees("p5002")
        assert names(shown) == ["p5002", "event 4", "p1", "p5000", "p5000"]
        answers = [row[3] for row in shown.cells("Last events")]
        assert answers == [
            *("6 metrics", "422 Unprocessable Entity"),
            *("late 6 metrics true much", "duplicate 6 metrics true much", "6 metrics true much"),
        ]
        assert shown.cells("Last events")[0][4] == "HTTP"
        # A new one comes by itself, in front.
        running.score("payments", event(5_003))
        shown.sees("p5003")
        assert names(shown)[0] == "p5003"
        opened(shown, "p1")
        expect(shown.page.locator(".one h2")).to_be_focused()
        shown.sees("card: rewritten, *: rewritten", ".one")
        shown.sees("2023-11-14 23:13:20", ".one")
        shown.sees("look up", ".one")
        at = f"2023-11-14 23:13:20 2023-11-14 22:13:20 UTC ({T + 1})"
        assert shown.cells("Fields")[:3] == [["pid", "p1", ""], ["ts", at, ""], ["card", "c1", "look up"]]
        assert shown.cells("Fields")[4] == ["note", "null", ""]
        assert shown.cells("Metrics") == [["n", "2"], ["spent", "25.0"], ["all_n", "2"]]
        shown.check_layout()
        shown.page.get_by_role("button", name="Close").click()
        expect(shown.page.locator(".one")).to_have_count(0)
        expect(shown.page.get_by_role("button", name="p1", exact=True)).to_be_focused()
        opened(shown, "event 4")
        shown.sees("amount: the string 'much' is not a double", ".one")
        shown.sees('"amount":"much"', ".one pre")


def test_derived_metrics_as_a_tree(browser: Browser, running: Server) -> None:
    send(running)
    with tab(browser, running.service.url) as shown:
        shown.open("live/payments")
        shown.sees("p5002")
        opened(shown, "p5002")
        tree = shown.page.locator(".derived").first
        roots = tree.locator(":scope > li > span").all_inner_texts()
        assert roots == ["much = false", "twice = 25.0"]
        much = tree.locator(":scope > li").first
        assert much.locator("li > span").all_inner_texts() == [
            "share = 0.3333333333333333",
            "n = 1",
            "all_n = 3",
        ]
        assert much.locator("small").all_inner_texts() == ["share > 0.5", "n / all_n"]
        twice = tree.locator(":scope > li").nth(1)
        assert twice.locator("li > span").all_inner_texts() == ["amount = 12.5"]


def test_what_is_short_is_listed_of_each_event(browser: Browser, tmp_path: Path) -> None:
    """What people look for, as an amount or a country, is short; what is long is cut. Times are times."""
    with serving(tmp_path, samples=500) as running:
        running.define(WIDE)
        long = {f"long_{number}": "L" * 300 for number in range(20)}
        running.score("wide", {"id": "w1", "ts": T, **long, "amount": 912.5, "country": "PT"})
        with tab(browser, running.service.url, timezone_id="Europe/Berlin") as shown:
            shown.open("live/wide")
            shown.sees("w1")
            listed = shown.cells("Last events")[0][2]
            assert listed.startswith("id: w1, ts: 2023-11-14 23:13:20, long_0: " + "L" * 40 + "…, ")
            assert listed.endswith("amount: 912.5, country: PT, … 13 more")
            # It says how many are listed, and that these alone are searched.
            shown.sees("at most 200, the newest first (it keeps 500)")
            shown.sees("Find and Show look at the events of this list alone.")
            opened(shown, "w1")
            shown.sees("There are none to show.", ".one")
            assert dict(shown.cells("Fields"))["long_19"] == "L" * 300
            expect(shown.page.locator(".one a")).to_have_count(0)


def test_from_an_event_to_its_keys(browser: Browser, running: Server) -> None:
    running.define(KEYED)
    running.score("sales", {"card": "c 1", "shop": "s1", "at": T})
    running.score("sales", {"card": "c 2", "shop": None, "at": T})
    with tab(browser, running.service.url) as shown:
        shown.open("live/sales")
        shown.sees("c 2")
        shown.rows("Last events").nth(0).get_by_role("button").click()
        shown.sees("look up", ".one")
        assert {row[0]: row[2] for row in shown.cells("Fields")} == {"card": "look up", "shop": "", "at": ""}
        shown.rows("Last events").nth(1).get_by_role("button").click()
        shown.sees("s1", ".one")
        # No metric is by the shop alone.
        assert {row[0]: row[2] for row in shown.cells("Fields")} == {"card": "look up", "shop": "", "at": ""}
        assert dict(shown.cells("Metrics"))["newest"] == f"2023-11-14 22:13:20 UTC ({T})"
        assert "true" in shown.page.locator(".derived li > span").first.inner_text()
        shown.page.get_by_role("link", name="Look up card, shop together").click()
        shown.sees('{"card": "c 1", "shop": "s1"}')
        shown.sees("both", "table")
        shown.page.go_back()
        shown.rows("Last events").nth(1).get_by_role("button").click()
        shown.page.get_by_role("link", name="look up card c 1").click()
        shown.sees('{"card": "c 1"}')
        shown.sees("newest", "table")


def test_without_the_scope_to_read_nothing_is_looked_up(browser: Browser, tmp_path: Path) -> None:
    with serving(tmp_path, tokens=tokens()) as running, tab(browser, running.service.url) as shown:
        running.define(STREAM)
        running.client.headers["Authorization"] = f"Bearer {secret('all')}"
        running.score("payments", event(1))
        shown.open("live/payments")
        shown.give(secret("inspect-own"))
        shown.sees("p1")
        opened(shown, "p1")
        assert shown.cells("Fields")[2] == ["card", "c1"]
        assert not [each for each in shown.requests if each.url.endswith("/metrics")]


def test_stop_and_go_on(browser: Browser, running: Server) -> None:
    running.score("payments", event(1))
    with tab(browser, running.service.url) as shown:
        shown.open("live/payments")
        shown.sees("p1")
        shown.page.get_by_role("button", name="Stop").click()
        shown.sees("1 of 1, stopped")
        asked = len(shown.requests)
        running.score("payments", event(2))
        shown.sees(re.compile(r"as of ([3-9]|\d\d) s ago"))
        assert len(shown.requests) == asked
        assert names(shown) == ["p1"]
        shown.page.get_by_role("button", name="Go on").click()
        shown.sees("p2")
        assert names(shown) == ["p2", "p1"]


def test_find_by_text_and_kind(browser: Browser, running: Server) -> None:
    send(running)
    running.post("/v1/streams/payments/metrics", {"sql": "SELECT count(*) AS x FROM payments OVER INFINITE"})
    with tab(browser, running.service.url) as shown:
        shown.open("live/payments")
        shown.sees("p5002")
        kind = shown.page.get_by_label("Show")
        for wanted, left in (
            ("late", ["p1"]),
            ("duplicate", ["p5000"]),
            ("with a metric that is true", ["p1", "p5000", "p5000"]),
            ("much", ["p1", "p5000", "p5000"]),
            ("refused or not answered", ["event 4"]),
            ("all events", ["p5002", "event 4", "p1", "p5000", "p5000"]),
        ):
            kind.select_option(wanted)
            expect(shown.rows("Last events")).to_have_count(len(left), timeout=PATIENCE_MS)
            assert names(shown) == left
        shown.page.get_by_label("Find").fill("C2")
        expect(shown.rows("Last events")).to_have_count(1, timeout=PATIENCE_MS)
        assert names(shown) == ["p5002"]
        kind.select_option("with warming metrics")
        shown.sees("None of the events is like that.")
        shown.sees("0 of 5")


def test_it_says_how_to_turn_it_on(browser: Browser, tmp_path: Path) -> None:
    with serving(tmp_path, samples=0) as running, tab(browser, running.service.url) as shown:
        running.define(STREAM)
        running.score("payments", event(1))
        shown.open("live/payments")
        shown.sees("keeps no events")
        shown.sees("RAILGUN_CONSOLE__SAMPLES=200")
        assert shown.page.locator("main pre").inner_text() == "[console]\nsamples = 200\n"
        assert wrong_for_axe(shown.page) == []
        shown.check_layout()


def test_before_the_first_event(browser: Browser, running: Server) -> None:
    with tab(browser, running.service.url) as shown:
        shown.open("live/payments")
        shown.sees("It has answered no event of this stream since it started")


def test_the_scope_that_is_lacking_is_named(browser: Browser, tmp_path: Path) -> None:
    both = token("both", "read:payments", "inspect:ledger_x")
    with serving(tmp_path, tokens=(*tokens(), both)) as running, tab(browser, running.service.url) as shown:
        running.define(STREAM + FOREIGN_STREAM)
        shown.open("live/payments")
        shown.give(secret("read-own"))
        shown.sees("This token may not see the last events of payments")
        shown.sees("lacks the scope inspect:payments.")
        shown.page.get_by_role("button", name="Forget token").click()
        shown.give(secret("inspect-own"))
        shown.sees("It has answered no event of this stream")
        shown.open("live")
        shown.sees("payments")
        assert shown.page.locator(".choice li").all_inner_texts() == ["Last events of payments"]
        shown.page.get_by_role("button", name="Forget token").click()
        shown.give(secret("both"))
        shown.sees("ledger_x")
        assert shown.page.locator(".choice li").all_inner_texts() == [
            "Last events of payments",
            "Last events of ledger_x",
        ]


def test_what_is_masked_is_not_there(browser: Browser, tmp_path: Path) -> None:
    masks = ("payments.card", "payments.pid")
    with serving(tmp_path, *masks) as running, tab(browser, running.service.url) as shown:
        running.define(STREAM)
        running.score("payments", event(77, card="secretcard"))
        running.post(EVENTS, event(78, card="secretcard", amount="secretcard"))
        shown.open("live/payments")
        shown.sees("Masked: card, pid, much, n, share, spent; and all texts that may quote an event.")
        assert names(shown) == ["event 2", "event 1"]
        opened(shown, "event 1")
        assert shown.cells("Metrics") == [["all_n", "1"]]
        assert shown.page.locator(".derived").first.locator("span").all_inner_texts() == [
            "twice = 25.0",
            "amount = 12.5",
        ]
        opened(shown, "event 2")
        shown.sees("422 Unprocessable Entity. Why is not shown: it may quote a masked field.", ".one")
        assert "secretcard" not in shown.page.content()
        assert "p77" not in shown.page.content()


@pytest.mark.parametrize("width", [320, 1280])
def test_hostile_payloads_are_shown_as_text(browser: Browser, running: Server, width: int) -> None:
    long = "W" * 60_000
    running.score("payments", event(1, note=HOSTILE))
    running.score("payments", event(2, pid=HOSTILE[:60], note=long))
    running.score("payments", event(3, other="M" * 900_000))
    for body in (
        json.dumps(event(4, amount=HOSTILE)).encode(),
        b"\0\x00\xff\xfe<script>window.ran = 1</script>",
        b"{" + b"L" * 1_000_000,
    ):
        headers = {"content-type": "application/json"}
        assert running.client.post(EVENTS, content=body, headers=headers).status_code in (400, 422)
    more = {"viewport": {"width": width, "height": 800}}
    with tab(browser, running.service.url, **more) as shown:
        shown.open("live/payments")
        shown.sees("p3")
        shown.check_layout()
        for row in range(6):
            shown.rows("Last events").nth(row).get_by_role("button").click()
            expect(shown.page.locator(".one")).to_have_count(1)
            shown.check_layout()
        shown.sees("<img src=x onerror=", ".one")
        shown.sees("\\u202egnp.exe", ".one")
        shown.rows("Last events").nth(0).get_by_role("button").click()
        shown.sees("It has 1.0 MB; this is how it begins.", ".one")
        shown.rows("Last events").nth(3).get_by_role("button").click()
        shown.sees("900 KB are too many to be kept", ".one")
        assert "\u202e" not in shown.page.inner_text("body")
        assert "\0" not in shown.page.inner_text("body")
        assert shown.page.locator("main img, main script").count() == 0
        assert shown.page.evaluate("typeof window.ran") == "undefined"


def test_another_front_end_begins_anew(browser: Browser, tmp_path: Path, port: int) -> None:
    with serving(tmp_path, port=port) as first:
        first.define(STREAM)
        first.score("payments", event(1))
        first.score("payments", event(2))
        made = Tab(browser, first.service.url)
        made.open("live/payments")
        made.sees("p2")
    made.sees("disconnected", ".banner")
    with serving(tmp_path, port=port) as second:
        second.score("payments", event(3))
        made.sees("another process answers than before")
        made.sees("p3")
        assert names(made) == ["p3"]
        # What is said goes by itself.
        made.page.evaluate("window.now = Date.now; Date.now = () => window.now() + 61_000")
        made.misses("another process answers than before")
        assert names(made) == ["p3"]
    made.context.close()


ASKED = "performance.getEntriesByType('resource').filter((each) => each.name.includes('/samples?'))"
"""When a tab began to ask for events, and when it had the answer, by its own clock."""


class Balancer:
    """Answers a tab in place of the server, each time as the next of some front-ends, which have events of their own.

    afters: the numbers after which it was asked for events, as the addresses have them.
    """

    def __init__(self, page: Page, answers: dict[str, Any], *front_ends: str) -> None:
        self.front_ends, self.answers = front_ends, answers
        self.afters: list[int] = []
        page.route("**/samples?*", self._answer)

    def _answer(self, route: Route) -> None:
        after = int(dict(parse_qsl(urlsplit(route.request.url).query)).get("after", 0))
        place = len(self.afters)
        self.afters.append(after)
        name = self.front_ends[place % len(self.front_ends)]
        events = [
            each | {"reply": each["reply"] | {"id": f"{name} {each['number']}"}}
            for each in self.answers["events"]
            if each["number"] > after
        ]
        more = {"front_end": {"name": name, "started_ms": T}, "events": events}
        route.fulfill(json=self.answers | more)


@pytest.mark.parametrize("count", [2, 3])
def test_behind_a_balancer_the_events_of_one_are_shown(browser: Browser, running: Server, count: int) -> None:
    running.score("payments", event(1))
    running.score("payments", event(2))
    answers = running.client.get("/v1/streams/payments/samples").json()
    front_ends = ("ann", "bob", "cid")[:count]
    with tab(browser, running.service.url) as shown:
        balancer = Balancer(shown.page, answers, *front_ends)
        shown.open("live/payments")
        shown.sees("ann 2")
        # What somebody has opened stays, whoever answers.
        opened(shown, "ann 1")
        texts = set()
        until(lambda: texts.add(shown.page.inner_text("main")) or len(balancer.afters) >= 6)
        assert not [each for each in texts if "no event of this stream" in each]
        shown.sees("another process answers than before")
        found = names(shown)
        assert [each.partition(" ")[2] for each in found] == ["2", "1"], found
        assert len({each.partition(" ")[0] for each in found}) == 1, found
        expect(shown.page.locator(".one h2")).to_have_text("ann 1")
        assert balancer.afters[:5] == [0, 2, 0, 2, 0]
        # Where another one answers, all of its events are asked for at once.
        asked = shown.page.evaluate(ASKED)
        waits = [later["startTime"] - sooner["responseEnd"] for sooner, later in pairwise(asked)]
        assert max(waits[1], waits[3]) < 2_000 <= min(waits[0], waits[2]), waits
        shown.page.unroute_all(behavior="wait")


def test_numbers_keep_their_digits(browser: Browser, running: Server) -> None:
    """As the page that looks values up has it: a number of JavaScript would be rounded."""
    big = 2**62 + 1
    running.define(EXACT)
    for number in range(3):
        running.score("exact", {"id": big + number, "n": big, "x": 5.0})
    with tab(browser, running.service.url) as shown:
        shown.open("live/exact")
        shown.sees(str(big + 2))
        assert [row[1] for row in shown.cells("Last events")] == [str(big + each) for each in (2, 1, 0)]
        assert f"n: {big}" in shown.cells("Last events")[0][2]
        opened(shown, str(big + 2))
        assert dict(shown.cells("Fields"))["n"] == str(big)
        assert dict(shown.cells("Metrics")) == {"most": str(big), "total": str(3 * big)}
        tree = shown.page.locator(".derived li > span").all_inner_texts()
        assert f"most = {big}" in tree
        shown.page.get_by_label("Find").fill(str(3 * big))
        shown.sees("1 of 3")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_everybody_can_use_it(browser: Browser, running: Server, scheme: str, width: int) -> None:
    send(running)
    more = {"color_scheme": scheme, "viewport": {"width": width, "height": 800}}
    with tab(browser, running.service.url, **more) as shown:
        shown.open("live")
        shown.sees("payments")
        assert wrong_for_axe(shown.page) == []
        shown.open("live/payments")
        shown.sees("p5002")
        for name in ("p1", "event 4"):
            opened(shown, name)
            assert wrong_for_axe(shown.page) == [], name
            shown.check_layout()


def test_on_a_broker_an_event_of_a_topic_is_there(browser: Browser, kafka: str, tmp_path: Path) -> None:
    with LocalCluster(kafka, tmp_path) as cluster:
        define(cluster, STREAM)
        cluster.start_units(1)
        with InputTopic(cluster.broker, cluster.prefix, "payments") as topic:
            reader = cluster.serve(console=ConsoleSettings(samples=10))
            topic.send([event(1)])
            topic.await_replies(1)
            reader.score("payments", event(2))
            with tab(browser, reader.service.url) as shown:
                shown.open("live/payments")
                shown.sees("p2")
                assert [row[1::3] for row in shown.cells("Last events")] == [
                    ["p2", "HTTP"],
                    ["p1", f"{topic.input} 0@0"],
                ]
                opened(shown, "p1")
                shown.sees("twice = 25.0", ".derived")
