"""The console's page of a stream: metrics that are found, the picture of their plan, a form for more of them."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Route, expect

from railgun.cli.main import main
from railgun.config.settings import ConsoleSettings
from tests.browser.console_tab import PATIENCE_MS, Tab, tab
from tests.browser.some_cluster import HOSTILE
from tests.browser.some_live import Fed, live, stream, windows
from tests.frontend.access.callers import secret, tokens
from tests.frontend.conftest import PAYMENTS
from tests.frontend.serving import Server, server, until

PLACE = "/v1/streams/payments"
DERIVED = "DERIVE s7 / n7 AS mean7, mean7 > 20 AS high FROM payments"
QUERY = "SELECT count(*) AS n_1h, max(amount) AS most_1h FROM payments\nGROUP BY card OVER SLIDING 1 HOUR"


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Server]:
    """A server without tokens, with payments."""
    with server(tmp_path / "data") as found:
        found.define(PAYMENTS)
        yield found


@pytest.fixture(scope="module")
def guarded(guarded: Server) -> Server:
    """A server with tokens and two streams. Its client sends the token that may do everything."""
    guarded.client.headers["Authorization"] = f"Bearer {secret('all')}"
    return guarded


def form(shown: Tab) -> Locator:
    return shown.page.locator("console-query")


def typed(shown: Tab, sql: str) -> None:
    shown.page.get_by_label("A query, or a DERIVE").fill(sql)


def copied(shown: Tab) -> list[str]:
    """What may be copied of the form: the tables of the query, and a whole file."""
    return form(shown).locator(".copyable code").all_text_contents()


# --- what there is ----------------------------------------------------------------------------------


def test_metrics_are_found_by_name_and_by_sql(browser: Browser, opened: Server) -> None:
    with tab(browser, opened.service.url) as shown:
        shown.open("streams/payments")
        shown.sees("5 metrics")
        find = shown.page.get_by_label("Find by name or SQL")
        for text, names in (
            ("EVERY", ["everyone"]),
            ("sum(price)", ["p7"]),
            ("sliding", ["n7", "s7", "l7", "p7"]),
            ("nothing of it", []),
            ("", ["n7", "s7", "l7", "p7", "everyone"]),
        ):
            find.fill(text)
            expect(shown.rows("Metrics")).to_have_count(len(names), timeout=PATIENCE_MS)
            assert [row[0] for row in shown.cells("Metrics")] == names
            said = "5 metrics" if len(names) == 5 else f"{len(names)} of 5 metrics"
            expect(shown.page.locator(".find [role=status]")).to_have_text(said)
            expect(shown.page.locator("console-plan svg g[class=metric]")).to_have_count(len(names))


def test_what_is_looked_for_stands_in_the_address_at_once(browser: Browser, opened: Server) -> None:
    with tab(browser, opened.service.url) as shown:
        shown.open("streams")
        shown.page.get_by_role("link", name="payments").click()
        shown.sees("5 metrics")
        shown.page.get_by_label("Find by name or SQL").press_sequentially("Sum(price) ")
        shown.sees("1 of 5 metrics")
        assert shown.page.url == f"{shown.url}/#/streams/payments/Sum(price)"
        shown.page.reload()
        shown.sees("1 of 5 metrics")
        # What was typed before is no place to go back to.
        shown.page.go_back()
        shown.sees("Streams", "h1")


def test_the_plan_is_a_picture_in_which_what_is_shared_stands_once(browser: Browser, opened: Server) -> None:
    with tab(browser, opened.service.url) as shown:
        opened.post(f"{PLACE}/metrics", {"sql": DERIVED})
        opened.post(
            f"{PLACE}/metrics",
            {"sql": "SELECT max(n) AS big FROM payments WHERE n > 5 GROUP BY card OVER SLIDING 7 DAYS"},
        )
        shown.open("streams/payments")
        shown.sees("Derived, computed for each reply")
        pictures = shown.page.locator("console-plan svg")
        expect(pictures).to_have_count(2)
        by_card = pictures.nth(0)
        boxes = by_card.locator("g")
        assert [
            (each.get_attribute("class"), each.locator("text").text_content()) for each in boxes.all()
        ] == [
            ("window", "SLIDING 7 DAYS"),
            ("filter", "all events"),
            ("filter", "WHERE n > 5"),
            ("group", "GROUP BY card"),
            ("group", "GROUP BY card"),
            ("metric", "n7 = count(*)"),
            ("metric", "s7 = sum(amount)"),
            ("metric", "l7 = sum(n)"),
            ("metric", "p7 = sum(price)"),
            ("metric", "big = max(n)"),
        ]
        assert by_card.locator("path").count() == 9
        assert "1 window, 2 filters, 2 groups, 5 metrics" in str(by_card.get_attribute("aria-label"))
        # No box lies upon another one, and all lie within the picture.
        assert by_card.evaluate(
            """svg => {
                const boxes = [...svg.querySelectorAll("rect")].map(each => each.getBBox());
                const apart = (a, b) => a.x + a.width <= b.x || b.x + b.width <= a.x || a.y + a.height <= b.y
                    || b.y + b.height <= a.y;
                const whole = svg.viewBox.baseVal;
                return boxes.every((a, i) => a.x >= 0 && a.y >= 0 && a.x + a.width <= whole.width
                    && a.y + a.height <= whole.height && boxes.every((b, j) => i === j || apart(a, b)))
                    && [...svg.querySelectorAll("g")].every(each => each.querySelector("text").getBBox().width
                        <= each.querySelector("rect").getBBox().width);
            }"""
        )
        shown.page.get_by_text("The same as a table").click()
        assert ["big", "max(n)", "long", "card", "SLIDING 7 DAYS", "n > 5", "card"] in shown.cells("Plan")
        assert shown.cells("Plan, derived metrics")[1] == ["high", "mean7 > 20", "boolean", "mean7"]
        # It follows what is registered, and what somebody has opened stays open.
        opened.client.delete(f"{PLACE}/metrics/big")
        expect(by_card.locator("g[class=metric]")).to_have_count(4, timeout=PATIENCE_MS)
        expect(shown.page.locator("console-plan details")).to_have_attribute("open", "")


@pytest.mark.parametrize("count", [100, 101])
def test_a_plan_of_many_metrics_is_a_table(browser: Browser, tmp_path: Path, count: int) -> None:
    fields = 'a = "long"\nb = "string"'
    queries = [f"[[metrics]]\nsql = 'SELECT sum(a + {n}) AS m{n} FROM s OVER INFINITE'" for n in range(count)]
    with server(tmp_path / "data") as running, tab(browser, running.service.url) as shown:
        running.define(f"[streams.s]\n[streams.s.fields]\n{fields}\n" + "\n".join(queries))
        shown.open("streams/s")
        shown.sees(f"{count} metrics")
        if count == 100:
            expect(shown.page.locator("console-plan svg g[class=metric]")).to_have_count(100)
        else:
            expect(shown.rows("Plan")).to_have_count(101, timeout=PATIENCE_MS)
            assert shown.page.locator("console-plan svg").count() == 0
            # What is found of them is few enough for a picture.
            shown.page.get_by_label("Find by name or SQL").fill("m10")
            expect(shown.page.locator("console-plan svg g[class=metric]")).to_have_count(2)
        shown.check_layout()


def test_of_very_many_metrics_the_first_are_shown(browser: Browser, opened: Server) -> None:
    with tab(browser, opened.service.url) as shown:
        one = opened.client.get(f"{PLACE}/metrics").json()["metrics"][0]
        many = {"metrics": [{**one, "name": f"m{number}"} for number in range(2_000)]}
        shown.page.route(f"**{PLACE}/metrics", lambda route: route.fulfill(json=many))
        shown.open("streams/payments")
        shown.sees("2,000 metrics; the first 200 are shown")
        expect(shown.rows("Metrics")).to_have_count(200)
        shown.page.get_by_label("Find by name or SQL").fill("m199")
        shown.sees("11 of 2,000 metrics")


# --- the form ---------------------------------------------------------------------------------------


def test_a_query_is_explained_while_it_is_typed_and_registered(browser: Browser, opened: Server) -> None:
    with tab(browser, opened.service.url) as shown:
        shown.open("streams/payments")
        shown.sees("everyone")
        field = shown.page.get_by_label("A query, or a DERIVE")
        field.press_sequentially(QUERY, delay=5)
        shown.sees("Register 2 metrics", "console-query")
        asked = [each for each in shown.requests if each.url.endswith("/explain")]
        assert len(asked) < len(QUERY) / 3, "it asks once somebody pauses"
        assert shown.cells("What it adds") == [
            ["n_1h", "count(*) GROUP BY card", "long", "card", "SLIDING 1 HOUR", "new"],
            ["most_1h", "max(amount) GROUP BY card", "double", "card", "SLIDING 1 HOUR", "new"],
        ]
        cost = form(shown).locator(".cost").inner_text()
        assert cost.startswith("By card: 2 windows (+1), 2 cursors that read events (+1), 10 cells (+3), ")
        form(shown).get_by_text("The plan with it").click()
        assert form(shown).locator("g.fresh").count() == 2
        assert opened.client.get(f"{PLACE}/metrics/n_1h").status_code == 404
        form(shown).get_by_role("button", name="Register").click()
        shown.sees("Registered: n_1h, most_1h.", "console-query")
        assert field.input_value() == ""
        expect(shown.rows("Metrics")).to_have_count(7, timeout=PATIENCE_MS)
        assert opened.client.get(f"{PLACE}/metrics/most_1h").status_code == 200
        typed(shown, QUERY)
        shown.sees("All of it is registered already", "console-query")
        expect(form(shown).get_by_role("button", name="Register")).to_be_disabled()
        typed(shown, "SELECT count(*) AS n7 FROM payments GROUP BY card OVER SLIDING 1 HOUR")
        shown.sees("registered otherwise under this name", "console-query")
        expect(form(shown).get_by_role("button", name="Register")).to_be_disabled()


def test_an_error_stands_at_its_place(browser: Browser, opened: Server) -> None:
    with tab(browser, opened.service.url) as shown:
        shown.open("streams/payments")
        shown.sees("everyone")
        field = shown.page.get_by_label("A query, or a DERIVE")
        for sql, said, marked in (
            ("SELECT sum(amunt) AS x FROM payments OVER INFINITE", "did you mean amount?", "amunt"),
            (QUERY.replace("max(amount)", "max(amout)"), "Line 1, column 30", "amout"),
            (QUERY.replace("GROUP", "GRUOP"), "Line 2, column 1", "GRUOP"),
            (
                "SELECT count(*) AS x\nFROM payments WHERE card = '\U0001f600\U0001f600' AND nope OVER INFINITE",
                "Line 2, column 37",
                "nope",
            ),
            ("SELECT count(*) AS x FROM payments", "Line 1, column 35", " "),
            ("SELECT count(*) AS x FROM ledger OVER INFINITE", "ledger", "ledger"),
        ):
            typed(shown, sql)
            shown.sees(said, "#said")
            expect(form(shown).locator("mark")).to_have_text(marked)
            expect(field).to_have_attribute("aria-invalid", "true")
            assert form(shown).locator(".marked").text_content() == f"{sql}{' ' if marked == ' ' else ''}\n"
            # The mark lies where its text is: both have the same size.
            assert form(shown).evaluate(
                """form => {
                    const [a, b] = [form.querySelector("textarea"), form.querySelector(".marked")];
                    return a.clientWidth === b.clientWidth && a.scrollHeight <= b.clientHeight;
                }"""
            )
            shown.page.get_by_role("button", name="Show the place").click()
            expect(field).to_be_focused()
            chosen = field.evaluate("each => each.value.slice(each.selectionStart, each.selectionEnd)")
            assert chosen == marked.strip()
            assert form(shown).get_by_role("button", name="Register").count() == 0
        typed(shown, QUERY)
        shown.sees("Register 2 metrics", "console-query")
        expect(form(shown).locator("mark")).to_have_count(0)
        assert field.get_attribute("aria-invalid") is None
        typed(shown, "  ")
        expect(form(shown).locator(".refused")).to_have_count(0)


def test_answers_that_come_late_are_of_no_other_text(browser: Browser, opened: Server) -> None:
    with tab(browser, opened.service.url) as shown:
        held: list[Any] = []
        shown.page.route("**/explain", lambda route: held.append(route))
        shown.open("streams/payments")
        shown.sees("everyone")
        typed(shown, "SELECT sum(amunt) AS x FROM payments OVER INFINITE")
        until(lambda: shown.page.wait_for_timeout(50) or len(held) == 1)
        shown.sees("asking the server", "#said")
        typed(shown, QUERY)
        until(lambda: shown.page.wait_for_timeout(50) or len(held) == 2)
        held[1].continue_()
        shown.sees("Register 2 metrics", "console-query")
        assert form(shown).locator(".refused").count() == 0


def test_a_server_that_is_away_while_somebody_types(browser: Browser, opened: Server) -> None:
    with tab(browser, opened.service.url) as shown:
        shown.open("streams/payments")
        shown.sees("everyone")
        shown.page.route("**/explain", lambda route: route.abort())
        shown.wrong.clear()
        typed(shown, QUERY)
        shown.sees("The server does not answer", "#said")
        shown.page.unroute("**/explain")
        typed(shown, QUERY + " ")
        shown.sees("Register 2 metrics", "console-query")
        shown.page.route(f"**{PLACE}/metrics", lambda route: route.abort())
        form(shown).get_by_role("button", name="Register").click()
        shown.sees("They may have been registered", "console-query")
        shown.page.unroute(f"**{PLACE}/metrics")
        shown.misses("disconnected", ".banner")


@pytest.mark.parametrize(("name", "may"), [("read-own", False), ("define-own", True), ("all", True)])
def test_who_may_register(browser: Browser, guarded: Server, name: str, may: bool) -> None:
    with tab(browser, guarded.service.url) as shown:
        shown.open("streams/payments")
        shown.give(secret(name))
        shown.sees("everyone")
        sql = f"SELECT count(*) AS of_{name.replace('-', '_')} FROM payments OVER INFINITE"
        typed(shown, sql)
        shown.sees("For a definitions file", "console-query")
        button = form(shown).get_by_role("button", name="Register 1 metric")
        if may:
            button.click()
            shown.sees("Registered: of_", "console-query")
        else:
            shown.sees(
                "Registering needs the scope define:payments, which this token lacks.", "console-query"
            )
            assert button.count() == 0
            shown.page.get_by_label("A query, or a DERIVE").press("Control+Enter")
            assert not any(
                each.url.endswith(f"{PLACE}/metrics") and each.method == "POST" for each in shown.requests
            )


def test_a_stream_that_the_token_may_not_read_has_no_form(browser: Browser, guarded: Server) -> None:
    with tab(browser, guarded.service.url) as shown:
        shown.open("streams/ledger_x")
        shown.give(secret("read-own"))
        shown.sees("lacks the scope read:ledger_x")
        assert form(shown).count() == 0
        assert "secret_field" not in shown.page.content()


# --- where it leads to ------------------------------------------------------------------------------


@pytest.mark.parametrize("is_read", [True, False])
def test_dead_letters_are_those_of_a_stream_whose_input_this_server_reads(
    browser: Browser, opened: Server, is_read: bool
) -> None:
    """Not those of one whose definition names topics: without names it may have the usual one, if any is read."""
    opened.define(HARD)
    name = "payments" if is_read else "hard"
    with tab(browser, opened.service.url) as shown:
        Fed(shown.page, live(stream(name, topics=windows(5) if is_read else None)))
        shown.open(f"streams/{name}")
        links = shown.page.locator(".links a")
        expected = [f"Last events of {name}", f"Look up a key of {name}"]
        expect(links).to_have_text([*expected, *([f"Dead letters of {name}"] if is_read else [])])
        shown.sees("as of")
        shown.page.get_by_role("link", name=f"Last events of {name}").click()
        shown.sees("keeps no events")


@pytest.mark.parametrize("page", ["live", "lookup", "dead"])
def test_without_a_stream_there_is_nothing_to_choose(browser: Browser, tmp_path: Path, page: str) -> None:
    with server(tmp_path / "data", tokens=tokens()) as running, tab(browser, running.service.url) as shown:
        shown.open(page)
        shown.give(secret("all"))
        shown.sees("There is no stream yet. The overview has three ways to begin.")
        shown.page.get_by_role("button", name="Forget token").click()
        shown.give(secret("metrics"))
        shown.sees("This token may not see any stream")


# --- definitions to copy ----------------------------------------------------------------------------

HARD = """
[streams.hard]
time = "ts"
id = "id"
partitioners = ["k", "*"]
lateness = "2s"
max_future = "1s"
retention = "forever"
partitions = 1
record_replies = true
[streams.hard.input]
topics = ["prod.events"]
where = "k = '\\"a\\\\b'"
[streams.hard.output]
key = "input"
include = ["k"]
[streams.hard.fields]
id = "string"
ts = { type = "timestamp", from = "meta['the \\"time\\"\\n']", unit = "s" }
k = "string"
x = "decimal(9,2)"
day = { as = "HOUR(ts IN 'Europe/Lisbon')" }
[[metrics]]
sql = "SELECT count(*) AS n, sum(x) AS spent FROM hard WHERE k <> '\\\\\\"' GROUP BY k OVER SLIDING 1 HOUR"
[[metrics]]
sql = "DERIVE spent / n AS mean FROM hard"
"""


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*) AS a, max(x) AS b FROM hard GROUP BY k OVER SLIDING 1 DAY",
        "SELECT count(*) AS a FROM hard\n\tWHERE k = '\"\"\"\\\\' OR k = 'it''s \U0001f600 ]]>'\n  OVER INFINITE\n",
        "DERIVE mean > 2 AS a, CASE WHEN n > 1 THEN '\"' ELSE '\\' END AS b FROM hard",
    ],
)
def test_what_is_copied_is_what_apply_takes(
    browser: Browser, tmp_path: Path, capsys: pytest.CaptureFixture[str], sql: str
) -> None:
    """The tables of the query in the file of the stream, and the whole file, which says nothing else of the stream."""
    with server(tmp_path / "data") as running, tab(browser, running.service.url) as shown:
        running.define(HARD)
        shown.open("streams/hard")
        shown.sees("mean")
        typed(shown, sql)
        shown.sees("For a definitions file", "console-query")
        block, whole = copied(shown)
        for text, said in ((whole, "created metric hard.a"), (HARD + block, "nothing to do")):
            file = tmp_path / "definitions.toml"
            file.write_text(text, encoding="utf-8")
            assert main(["apply", str(file), "--url", running.service.url]) == 0, capsys.readouterr()
            out = capsys.readouterr().out
            assert said in out
            assert "stream hard" not in out
        # What is registered now is what the form would have registered.
        answer = running.post("/v1/streams/hard/metrics", {"sql": sql})
        assert answer.status_code == 200, answer.text


# --- hostile texts ----------------------------------------------------------------------------------


def test_hostile_texts_are_shown_as_text(browser: Browser, tmp_path: Path) -> None:
    text = HOSTILE.replace("\0", "").replace("'", "''")
    with server(tmp_path / "data") as running, tab(browser, running.service.url) as shown:
        assert running.post("/v1/streams", {"name": "s", "fields": {"a": "string"}}).status_code == 201
        for name in ("one", "two"):
            sql = f"SELECT count(*) AS {name} FROM s WHERE a = '{text}' OVER INFINITE"
            if name == "one":
                assert running.post("/v1/streams/s/metrics", {"sql": sql}).status_code == 201
        shown.open("streams/s")
        shown.sees("WHERE a = '<img src=x", "console-plan")
        shown.check_layout()
        typed(shown, sql)
        shown.sees("Register 1 metric", "console-query")
        form(shown).get_by_text("The plan with it").click()
        assert "\\u202e" in copied(shown)[0]
        assert json.loads(re.sub(r'^.*= """|"""\n$', '"', copied(shown)[0], flags=re.S)) == sql
        shown.check_layout()
        typed(shown, f"SELECT {HOSTILE}")
        shown.sees("Line 1, column 8", "#said")
        shown.check_layout()
        for wrong in (f"</textarea>{HOSTILE}", "x" * 20_000, "SELECT count(*) AS " + "y" * 5_000):
            typed(shown, wrong)
            expect(form(shown).locator(".refused")).to_be_visible(timeout=PATIENCE_MS)
            shown.check_layout()
        assert "\u202e" not in shown.page.inner_text("main")
        assert shown.page.locator("main img, main script").count() == 0
        assert shown.page.evaluate("typeof window.ran") == "undefined"


# --- what was answered lately -----------------------------------------------------------------------

Event = Callable[..., dict[str, Any]]


def test_nulls_and_what_was_answered_lately(browser: Browser, guarded: Server) -> None:
    with tab(browser, guarded.service.url) as shown:
        shown.open("streams/payments")
        shown.give(secret("all"))
        shown.sees("everyone")
        column = {row[0]: row[4] for row in shown.cells("Metrics")}
        assert column["n7"] == "not known"
        shown.page.get_by_role("button", name="values of s7").click()
        expect(shown.page.get_by_role("heading", name="What s7 was answered lately")).to_be_focused()
        shown.sees("What it was answered is not known", "console-answered")
        events = [
            {"tx_id": f"e{n}", "ts": 1_700_000_000_000 + n, "card": f"c{n}", "amount": n} for n in range(20)
        ]
        assert guarded.post(f"{PLACE}/events?metrics=n7,s7", events).status_code == 200
        shown.sees("20 answers in some of the replies", "console-answered")
        assert len(shown.cells("Histogram")) > 5
        expect(shown.rows("Metrics").nth(1)).to_contain_text("0 %", timeout=PATIENCE_MS)
        column = {row[0]: row[4] for row in shown.cells("Metrics")}
        assert (column["n7"], column["everyone"]) == ("0 %", "not known")
        shown.page.get_by_role("button", name="Close").click()
        expect(shown.page.get_by_role("button", name="values of s7")).to_be_focused()
        assert shown.page.locator("console-answered *").count() == 0
        shown.page.get_by_role("button", name="values of n7").click()
        shown.sees("20 answers in some of the replies", "console-answered")
        assert shown.cells("Histogram") == [["1", "20", "100 %"]]
        shown.check_layout()


def test_texts_booleans_and_times_that_were_answered_lately(browser: Browser, opened: Server) -> None:
    last = "SELECT last(card) AS last_card FROM payments GROUP BY card OVER INFINITE"
    first = "SELECT min(ts) AS first_at FROM payments GROUP BY card OVER INFINITE"
    for sql in (last, first, "DERIVE s7 >= 4 AS much FROM payments"):
        assert opened.post(f"{PLACE}/metrics", {"sql": sql}).status_code == 201
    cards = [*"aaaab", None]
    events = [{"tx_id": f"e{n}", "ts": n + 1, "card": card, "amount": 2} for n, card in enumerate(cards)]
    assert opened.post(f"{PLACE}/events", events).status_code == 200
    with tab(browser, opened.service.url) as shown:
        shown.open("streams/payments")
        shown.page.get_by_role("button", name="values of last_card").click()
        shown.sees("It is text, which has no histogram.", "console-answered")
        figures = shown.page.locator("console-answered .figures")
        expect(figures).to_have_text("Null16.7 %")
        shown.check_layout()
        shown.page.get_by_role("button", name="values of much").click()
        shown.sees("What much was answered lately", "console-answered")
        expect(shown.rows("Histogram")).to_have_count(2, timeout=PATIENCE_MS)
        assert shown.cells("Histogram") == [["false", "2", "40 %"], ["true", "3", "60 %"]]
        expect(figures).to_have_text("Null16.7 %")
        shown.check_layout()
        shown.page.get_by_role("button", name="values of first_at").click()
        shown.sees("What first_at was answered lately", "console-answered")
        # Cards a and b begin 1 and 5 ms after 1970.
        expect(shown.rows("Histogram")).to_have_count(2, timeout=PATIENCE_MS)
        assert [row[1:] for row in shown.cells("Histogram")] == [["4", "80 %"], ["1", "20 %"]]
        times = shown.rows("Histogram").locator("time")
        at = [f"1970-01-01T00:00:00.00{ms}Z" for ms in (1, 5)]
        assert [each.get_attribute("datetime") for each in times.all()] == at
        shown.check_layout()


def test_of_a_metric_that_would_tell_a_masked_field_nothing_is_shown(
    browser: Browser, tmp_path: Path
) -> None:
    console = ConsoleSettings(masks=("payments.amount",))
    with server(tmp_path / "data", console=console) as running, tab(browser, running.service.url) as shown:
        running.define(PAYMENTS)
        running.score("payments", {"tx_id": "e", "ts": 1, "card": "c", "amount": 98765.25})
        shown.open("streams/payments")
        shown.page.get_by_role("button", name="values of n7").click()
        shown.sees("1 answer in some of the replies", "console-answered")
        shown.page.get_by_role("button", name="values of s7").click()
        shown.sees("would tell a masked field, so nothing of them is shown", "console-answered")
        expect(shown.page.locator("console-answered .figures, console-answered table")).to_have_count(0)
        assert {row[0]: row[4] for row in shown.cells("Metrics")}["s7"] == "not known"
        assert not re.search("98.?765", shown.page.content())


def test_another_front_end_answers(browser: Browser, guarded: Server) -> None:
    with tab(browser, guarded.service.url) as shown:
        other = {"front_end": {"name": "web-2", "started_ms": 1}}

        def by_another(route: Route) -> None:
            route.fulfill(json=route.fetch().json() | other)

        shown.open("streams/payments")
        shown.give(secret("all"))
        shown.page.get_by_role("button", name="values of s7").click()
        shown.sees("s7 was answered lately", "console-answered")
        shown.sees(re.compile("some of the replies|not known"), "console-answered")
        shown.misses("Another front-end answers now")
        shown.page.route("**/metrics/*/answered", by_another)
        shown.sees("Another front-end answers now", "console-answered")
        # Who opens another metric has seen nothing of the first one.
        shown.page.get_by_role("button", name="values of n7").click()
        shown.sees("n7 was answered lately", "console-answered")
        shown.misses("Another front-end answers now")


def test_who_may_see_what_was_answered(browser: Browser, guarded: Server) -> None:
    with tab(browser, guarded.service.url) as shown:
        shown.open("streams/payments")
        shown.give(secret("read-own"))
        shown.sees("everyone")
        shown.page.get_by_role("button", name="values of s7").click()
        shown.sees("This token may not see what s7 was answered", "console-answered")
        shown.sees("lacks the scope inspect:payments.", "console-answered")
