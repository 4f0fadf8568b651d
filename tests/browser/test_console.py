"""The console in a real browser: its frame, the token, streams and changes; a server that goes and comes back."""

import re
import time
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from railgun.config.settings import TlsSettings
from tests.browser.console_tab import PATIENCE_MS, Tab, tab
from tests.browser.some_cluster import HOSTILE
from tests.certificates import Authority
from tests.frontend.access.callers import FOREIGN_STREAM, secret, token, tokens
from tests.frontend.conftest import PAYMENTS
from tests.frontend.serving import Server, server, until

ZONE = "Asia/Kolkata"
CHANGES = 230


# --- the frame --------------------------------------------------------------------------------------


def test_pages_by_their_links_and_addresses(browser: Browser, opened: Server) -> None:
    with tab(browser, opened.service.url) as shown:
        shown.open()
        shown.sees("payments")
        shown.sees("no token needed", "nav")
        for title, place, text in (
            ("Look up", "lookup", "payments"),
            ("Cluster", "cluster", "has no nodes"),
            ("Changes", "changes", "payments"),
            ("Streams", "streams", "payments"),
            ("Overview", "overview", "payments"),
        ):
            shown.go(title)
            shown.sees(text)
            assert shown.page.url == f"{opened.service.url}/#/{place}"
            assert shown.page.title() == f"{title} · Railgun"
            expect(shown.page.locator("nav [aria-current=page]")).to_have_text(title)
            expect(shown.page.locator("h1")).to_be_focused()
            shown.check_layout()
        shown.page.go_back()
        shown.sees("Streams", "h1")
        for place in ("streams/%E0%A4%A", "//"):
            shown.open(place)
            shown.sees(re.compile("payments|no stream"))
        shown.page.get_by_role("link", name="Routes").click()
        expect(shown.page.locator("h1")).to_contain_text("Railgun 0")


@pytest.mark.parametrize(
    ("place", "title"),
    [
        *(("nothing", "Overview"), ("%", "Overview"), ("constructor", "Overview"), ("x" * 500, "Overview")),
        *(("liev", "Live"), ("Streems/payments", "Streams")),
    ],
)
def test_a_page_that_there_is_not(browser: Browser, opened: Server, place: str, title: str) -> None:
    with tab(browser, opened.service.url, viewport={"width": 400, "height": 700}) as shown:
        shown.open("changes")
        shown.sees("payments")
        shown.open(place)
        shown.sees("There is no such page", "h1")
        expect(shown.page.locator("h1")).to_be_focused()
        assert shown.page.title() == "There is no such page · Railgun"
        expect(shown.page.locator("nav [aria-current]")).to_have_count(0)
        shown.check_layout()
        shown.page.locator("main").get_by_role("link", name=title, exact=True).click()
        shown.sees(title, "h1")
        shown.sees("payments")


def test_the_keyboard_alone(browser: Browser, opened: Server) -> None:
    with tab(browser, opened.service.url) as shown:
        shown.open("changes")
        shown.sees("payments")
        keys = shown.page.keyboard
        shown.page.locator("body").focus()
        keys.press("Tab")
        expect(shown.page.get_by_text("Skip to the page")).to_be_focused()
        keys.press("Enter")
        expect(shown.page.locator("main")).to_be_focused()
        assert shown.page.url.endswith("#/changes")
        keys.press("Shift+Tab")
        expect(shown.page.get_by_role("link", name="Routes")).to_be_focused()
        streams = shown.page.get_by_role("navigation").get_by_role("link", name="Streams")
        while not streams.evaluate("each => each === document.activeElement"):
            keys.press("Shift+Tab")
        keys.press("Enter")
        shown.sees("Streams", "h1")
        shown.sees("payments")
        keys.press("Tab")
        keys.press("Tab")
        expect(shown.page.get_by_role("link", name="payments")).to_be_focused()
        keys.press("Enter")
        shown.sees("Metrics")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 1280])
def test_narrow_and_wide_light_and_dark(browser: Browser, opened: Server, scheme: str, width: int) -> None:
    more = {"color_scheme": scheme, "viewport": {"width": width, "height": 700}}
    with tab(browser, opened.service.url, **more) as shown:
        for place in ("overview", "streams", "streams/payments", "cluster", "changes"):
            shown.open(place)
            shown.sees(re.compile("payments|nodes"))
            shown.check_layout()
        red = shown.page.evaluate("getComputedStyle(document.body).backgroundColor").removeprefix("rgb(")
        assert (int(red.partition(",")[0]) < 128) == (scheme == "dark")


def test_numbers_have_an_age_and_elements_stay(browser: Browser, opened: Server) -> None:
    with tab(browser, opened.service.url) as shown:
        shown.open("streams/payments")
        shown.sees("everyone")
        shown.sees(re.compile(r"as of \d+ s ago"))
        # The plan comes by itself, and belongs to what is counted.
        expect(shown.page.locator("console-plan svg")).not_to_have_count(0)
        link = shown.page.get_by_role("link", name="All streams")
        link.focus()
        shown.page.evaluate("window.row = document.querySelector('tbody tr')")
        count = shown.page.evaluate("document.querySelectorAll('*').length")
        asked = len(shown.requests)
        until(lambda: shown.page.wait_for_timeout(100) or len(shown.requests) >= asked + 4)
        expect(link).to_be_focused()
        assert shown.page.evaluate("window.row.isConnected")
        # Progress stands there meanwhile if an answer takes a second.
        until(lambda: shown.page.evaluate("document.querySelectorAll('*').length") == count)


def test_a_server_that_goes_and_comes_back(browser: Browser, tmp_path: Path, port: int) -> None:
    with server(tmp_path / "data", port=port) as running:
        running.define(PAYMENTS)
        made = Tab(browser, running.service.url)
        made.open("streams")
        made.sees("payments")
    # It is gone. What was there stays, and says how old it is.
    made.sees("disconnected", ".banner")
    made.sees(re.compile(r"no answer since \S+ \d\d:\d\d:\d\d UTC, \d+ s ago"), ".banner")
    made.sees("payments")
    made.sees(re.compile(r"as of ([3-9]|\d\d) s ago"))
    with server(tmp_path / "data", port=port) as running:
        made.misses("disconnected", ".banner")
        running.define(FOREIGN_STREAM)
        made.sees("ledger_x")
        made.sees(re.compile("as of [01] s ago"))
    made.context.close()


def test_a_server_that_is_not_there_yet(browser: Browser, tmp_path: Path) -> None:
    with server(tmp_path / "data") as running:
        running.define(PAYMENTS)
        made = Tab(browser, running.service.url)
        made.open("changes")
        made.sees("payments")
        made.page.route("**/v1/whoami", lambda route: route.abort())
        made.page.reload()
        made.sees("disconnected", ".banner")
        made.page.unroute("**/v1/whoami")
        made.sees("payments")
        made.misses("disconnected", ".banner")
    made.context.close()


# --- tokens -----------------------------------------------------------------------------------------


def test_a_token_is_asked_for_and_kept_for_the_tab(browser: Browser, guarded: Server) -> None:
    with tab(browser, guarded.service.url) as shown:
        shown.open("changes")
        shown.sees("A token is needed")
        expect(shown.page.get_by_label("Token")).to_be_focused()
        for wrong, said in (
            ("railgun_wrong", "The token is not known here"),
            (secret("expired"), "The token expired has expired"),
            ("two words", "This is no token"),
            ("ü", "This is no token"),
        ):
            shown.give(wrong)
            shown.sees(said, ".refused")
        shown.give(f"  {secret('operate')} ")
        shown.sees("payments")
        shown.sees("token operate", "nav")
        assert shown.page.url == f"{guarded.service.url}/#/changes"
        kept = shown.page.evaluate("[Object.values(sessionStorage), localStorage.length, document.cookie]")
        assert kept == [[secret("operate")], 0, ""]
        shown.page.reload()
        shown.sees("payments")
        # Another tab has a session of its own.
        other = shown.context.new_page()
        other.goto(shown.url)
        expect(other.locator("main")).to_contain_text("A token is needed", timeout=PATIENCE_MS)
        shown.page.get_by_role("button", name="Forget token").click()
        shown.sees("A token is needed")
        shown.misses("payments")
        assert shown.page.evaluate("sessionStorage.length") == 0


def test_a_token_that_ends_while_somebody_looks(browser: Browser, tmp_path: Path) -> None:
    with (
        server(tmp_path / "data", tokens=(token("brief", "*"),)) as running,
        tab(browser, running.service.url) as shown,
    ):
        shown.open()
        shown.give(secret("brief"))
        shown.sees("There is no stream yet")
        running.service.application.guard.replace(
            [token("brief", "*", expires_s=time.time() - 1), token("new", "*")]
        )
        shown.sees("The token brief has expired")
        shown.give(secret("new"))
        shown.sees("There is no stream yet")
        shown.sees("token new", "nav")


@pytest.mark.parametrize(
    ("name", "place", "scope"),
    [
        ("read-own", "cluster", "metrics"),
        ("read-own", "changes", "operate"),
        ("metrics", "changes", "operate"),
        ("metrics", "streams", "read:STREAM"),
        ("read-own", "streams/ledger_x", "read:ledger_x"),
        ("score-own", "streams/payments", "read:payments"),
    ],
)
def test_a_page_names_the_scope_that_is_lacking(
    browser: Browser, guarded: Server, name: str, place: str, scope: str
) -> None:
    with tab(browser, guarded.service.url) as shown:
        shown.open(place)
        shown.give(secret(name))
        shown.sees("This token may not see")
        shown.sees(re.compile(f"lacks the scope {re.escape(scope)}\\."))


def test_a_token_sees_its_streams_alone(browser: Browser, guarded: Server) -> None:
    with tab(browser, guarded.service.url) as shown:
        shown.open("streams")
        shown.give(secret("read-own"))
        shown.sees("payments")
        assert [row[0] for row in shown.cells("Streams")] == ["payments"]
        assert "ledger_x" not in shown.page.content()


def test_under_tls_with_a_token(browser: Browser, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    pair = authority.pair()
    tls = TlsSettings(str(pair.certificate), str(pair.key))
    context = authority.client_context()
    with server(tmp_path / "data", tokens=tokens(), tls=tls, context=context) as running:
        running.define(PAYMENTS)
        with tab(browser, running.service.url, ignore_https_errors=True) as shown:
            assert shown.url.startswith("https://")
            shown.open()
            shown.give(secret("all"))
            shown.sees("payments")


# --- streams ----------------------------------------------------------------------------------------


def test_streams_with_their_fields_and_metrics(browser: Browser, opened: Server) -> None:
    with tab(browser, opened.service.url) as shown:
        shown.open("streams")
        shown.sees("payments")
        (row,) = shown.cells("Streams")
        assert row == [
            "payments",
            "tx_id, ts, card, amount, n, price",
            *("ts", "tx_id", "card, *", "5s", "30d"),
        ]
        shown.page.get_by_role("link", name="payments").click()
        shown.sees("everyone")
        assert shown.cells("Fields")[:3] == [
            ["tx_id", "string", "id", "", ""],
            ["ts", "timestamp", "time", "", ""],
            ["card", "string", "partitioner", "", ""],
        ]
        metrics = {row[0]: row[1:] for row in shown.cells("Metrics")}
        assert list(metrics) == ["n7", "s7", "l7", "p7", "everyone"]
        assert metrics["everyone"] == [
            "SELECT count(*) AS everyone FROM payments OVER INFINITE",
            *("*", "answers", "not known", "Show", "look up"),
        ]
        assert shown.page.title() == "payments · Railgun"


def test_a_stream_that_is_not_there(browser: Browser, opened: Server) -> None:
    with tab(browser, opened.service.url) as shown:
        shown.open("streams/payment")
        shown.sees("Not Found")
        shown.sees("did you mean payments?")


def test_hostile_texts_are_shown_as_text(browser: Browser, tmp_path: Path) -> None:
    """Of queries and paths, and the longest query that there is. A zero byte is in none: the language takes none."""
    text = HOSTILE.replace("\0", "").replace("'", "''")
    with server(tmp_path / "data") as running, tab(browser, running.service.url) as shown:
        fields = {
            "a": "string",
            "b": {"type": "string", "from": "x['<script>window.ran = 1</script>\u202e']"},
        }
        assert running.post("/v1/streams", {"name": "hostile", "fields": fields}).status_code == 201
        for name, literal in (("one", text), ("long", "x" * 16_000)):
            sql = f"SELECT count(*) AS {name} FROM hostile WHERE a = '{literal}' OVER INFINITE"
            response = running.post("/v1/streams/hostile/metrics", {"sql": sql})
            assert response.status_code == 201, response.text
        for place in ("streams", "streams/hostile", "changes"):
            shown.open(place)
            shown.sees("hostile")
            shown.check_layout()
        shown.open("streams/hostile")
        shown.sees("<img src=x onerror=")
        shown.sees("\\u202egnp.exe")
        shown.sees("x" * 16_000)
        assert "\u202e" not in shown.page.inner_text("body")
        assert shown.page.locator("main img, main script").count() == 0
        assert shown.page.evaluate("typeof window.ran") == "undefined"


# --- changes ----------------------------------------------------------------------------------------


def test_changes(browser: Browser, tmp_path: Path) -> None:
    with server(tmp_path / "data", tokens=tokens()) as running:
        running.client.headers["Authorization"] = f"Bearer {secret('all')}"
        assert running.post("/v1/streams", {"name": "s", "fields": {"a": "long"}}).status_code == 201
        for number in range(CHANGES):
            more = {"fields": {f"f{number}": "long"}}
            assert running.client.patch("/v1/streams/s", json=more).status_code == 200
        logged = running.client.get("/v1/log?limit=1000").json()["changes"]
        with tab(browser, running.service.url, timezone_id=ZONE) as shown:
            shown.open("changes")
            shown.give(secret("all"))
            shown.sees("Older changes")
            first = shown.cells("Changes")[0]
            assert first[2:] == ["all", "127.0.0.1", "s", f"stream {logged[0]['what']}"]
            local, utc = re.fullmatch(
                r"[\d-]+ (\d\d:\d\d):\d\d [\d-]+ (\d\d:\d\d):\d\d UTC", first[1]
            ).groups()
            minutes = [int(each[:2]) * 60 + int(each[3:]) for each in (local, utc)]
            assert (minutes[0] - minutes[1]) % 1_440 == 330
            for count in (200, len(logged)):
                shown.page.get_by_role("button", name="Older changes").click()
                expect(shown.rows("Changes")).to_have_count(count, timeout=PATIENCE_MS)
            shown.sees("These are all.")
            assert [row[0] for row in shown.cells("Changes")] == [str(each["place"]) for each in logged]
            # A new one comes by itself, in front, and the others stay.
            assert running.client.delete("/v1/streams/s").status_code == 204
            shown.sees("stream dropped")
            expect(shown.rows("Changes")).to_have_count(len(logged) + 1)
