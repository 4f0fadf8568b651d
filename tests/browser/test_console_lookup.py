"""The console's page of a key's values, in a real browser; its curl and its Python, run as they stand."""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import pytest
from playwright.sync_api import Browser, Locator, expect

from railgun.config.settings import ConsoleSettings
from tests.browser.console_tab import PATIENCE_MS, Tab, tab
from tests.browser.test_console_begin import copied, run
from tests.frontend.access.callers import secret, token
from tests.frontend.conftest import PAYMENTS
from tests.frontend.serving import Server, server, until

HOSTILE = "c'1\"\\ $(touch ran) `touch ran`\n\t; touch ran #\u202egnp\u2028\u200b\x07<script>window.ran = 1</script>é𝄞"
"""What a shell would run, what Python would not read, what is not seen, and lines."""
BIG = (1 << 63) - 1
KINDS = """
[streams.kinds]
time = "ts"
partitioners = ["who", "*"]
[streams.kinds.fields]
who = "string"
n = "long"
x = "double"
price = "decimal(9,2)"
yes = "boolean"
ts = "timestamp"
at = "timestamp"
[[metrics]]
sql = "SELECT count(*) AS every, sum(n) AS total FROM kinds GROUP BY who, n, x, price, yes, at OVER INFINITE"
[[metrics]]
sql = "SELECT count(*) AS of_who FROM kinds GROUP BY who OVER INFINITE"
[[metrics]]
sql = "DERIVE of_who + n AS of_event FROM kinds"
[[metrics]]
sql = "DERIVE of_who * 2 AS doubled FROM kinds"
[[metrics]]
sql = "DERIVE of_event - 1 AS nearly FROM kinds"
[[metrics]]
sql = "SELECT last(ts) AS seen_at FROM kinds GROUP BY who OVER INFINITE"
[[metrics]]
sql = "DERIVE of_who >= 1 AS is_seen, of_who >= 5 AS is_often FROM kinds"
[streams.bare]
[streams.bare.fields]
a = "string"
"""
EVENT = {"who": "w", "n": BIG, "x": 0.1, "price": "12.50", "yes": True, "ts": 1_700_000_000_000, "at": 5}


@pytest.fixture(scope="module", params=["open", "with tokens"])
def running(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    has_tokens = request.param == "with tokens"
    tokens = (
        token("all", "read:*", "inspect:*", "score:*"),
        token("no-inspect", "read:*"),
        token("no-read", "inspect:*"),
    )
    with server(tmp_path_factory.mktemp("lookup") / "data", tokens=tokens if has_tokens else ()) as found:
        found.define(PAYMENTS + KINDS)
        if has_tokens:
            found.client.headers["Authorization"] = f"Bearer {secret('all')}"
        found.score("kinds", EVENT)
        for card in ("c1", HOSTILE, ""):
            found.score(
                "payments", {"tx_id": card or "e", "ts": 1_700_000_000_000, "card": card, "amount": 12345.5}
            )
        yield found


def has_tokens(running: Server) -> bool:
    return bool(running.service.application.guard.tokens)


@pytest.fixture
def shown(browser: Browser, running: Server) -> Iterator[Tab]:
    with tab(browser, running.service.url) as made:
        made.context.grant_permissions(["clipboard-read", "clipboard-write"])
        made.open()
        if has_tokens(running):
            made.give(secret("all"))
        made.sees("payments")
        yield made


def look_up(shown: Tab) -> None:
    shown.page.get_by_role("button", name="Look up", exact=True).click()


def field(shown: Tab, name: str) -> Locator:
    return shown.page.locator(f"#key-{name}")


def values(shown: Tab) -> dict[str, str]:
    """The values by metric, once they are there: the key stands above them from when it is asked for."""
    expect(shown.rows("Values")).not_to_have_count(0, timeout=PATIENCE_MS)
    return {row[0]: row[1] for row in shown.cells("Values")}


def question(shown: Tab) -> Any:
    """The question in the address."""
    return json.loads(unquote(shown.page.url.partition("#/lookup/")[2].split("/")[1]))


def place(stream: str, question: object) -> str:
    return f"lookup/{stream}/{quote(json.dumps(question), safe='')}"


def test_a_key_is_looked_up_from_the_stream(shown: Tab, running: Server) -> None:
    shown.go("Look up")
    shown.page.get_by_role("link", name="Look up a key of payments").click()
    shown.sees("card")
    field(shown, "card").fill("c1")
    field(shown, "card").press("Enter")
    shown.sees('{"card": "c1"}')
    assert question(shown) == {"keys": [{"card": "c1"}]}
    assert values(shown) == {"n7": "1", "s7": "12,345.5", "l7": "null", "p7": "null", "everyone": "3"}
    shown.misses("Nothing is known of this key")
    shown.sees(re.compile(r"as of \d+ s ago"))
    shown.sees(re.compile(r"card: as of the event time .*UTC, offset \d"))
    # They are those of now.
    running.score("payments", {"tx_id": f"more{shown.url}", "ts": 1_700_000_000_000, "card": "c1"})
    until(lambda: shown.page.wait_for_timeout(100) or values(shown)["n7"] == "2")
    posts = [each for each in shown.requests if "/values" in each.url]
    assert {each.method for each in posts} == {"POST"}
    assert {each.url for each in posts} == {f"{shown.url}/v1/streams/payments/values"}


def test_the_address_keeps_the_question(shown: Tab) -> None:
    shown.open(place("payments", {"keys": [{"card": "c1"}], "metrics": ["s7"]}))
    shown.sees("s7")
    assert list(values(shown)) == ["s7"]
    assert shown.page.get_by_label("Only these metrics").input_value() == "s7"
    field(shown, "card").fill("nobody")
    shown.page.get_by_label("Only these metrics").fill("n7, l7")
    look_up(shown)
    shown.sees('{"card": "nobody"}')
    shown.sees("l7")
    assert values(shown) == {"n7": "0", "l7": "null"}
    shown.sees("ask without naming metrics")
    shown.page.go_back()
    shown.sees('{"card": "c1"}')
    shown.sees("s7")
    assert field(shown, "card").input_value() == "c1"
    shown.page.reload()
    shown.sees('{"card": "c1"}')


def test_what_a_key_does_not_tell_is_named_with_why(shown: Tab) -> None:
    shown.open(place("kinds", {"keys": [{"who": "w"}]}))
    shown.sees("Metrics that this key does not tell: 4")
    shown.page.get_by_text("Metrics that this key does not tell").click()
    lacks = "needs at, n, price, x, yes in the key"
    assert shown.page.locator("details li").all_inner_texts() == [
        f"every: {lacks}",
        f"total: {lacks}",
        "of_event: needs an event, as it reads n",
        "nearly: needs an event, as it reads n",
    ]
    shown.page.get_by_role("link", name="Last events of kinds").click()
    shown.sees("Live: kinds", "h1")
    # Where some were asked for by name, those that were not are no question.
    shown.open(place("kinds", {"keys": [{"who": "w"}], "metrics": ["of_who"]}))
    shown.sees("of_who", "table")
    shown.misses("does not tell")


def test_thresholds_and_times_of_a_key(shown: Tab) -> None:
    shown.open(place("kinds", {"keys": [{"who": "w"}]}))
    shown.sees("is_seen", "table")
    assert values(shown)["is_seen"] == "true"
    assert values(shown)["is_often"] == "false"
    at = "2023-11-14 22:13:20"
    assert re.search(rf"{at} .*UTC \(1700000000000\)|{at} UTC \(1700000000000\)", values(shown)["seen_at"])
    expect(shown.page.locator("[data-key=conditions]")).to_have_text("True: is_seen.")
    shown.open(place("kinds", {"keys": [{"who": "nobody"}]}))
    shown.sees("Nothing is known of this key")
    shown.sees("Of 2 true-or-false metrics none is true.")


def test_links_from_a_stream_and_its_metrics(shown: Tab) -> None:
    shown.open("streams/kinds")
    shown.sees("of_event")
    assert shown.page.get_by_role("link", name="look up of_event").count() == 0, "no key answers it"
    shown.page.get_by_role("link", name="look up doubled").click()
    shown.sees("who")
    field(shown, "who").fill("w")
    look_up(shown)
    shown.sees("of_who")
    assert values(shown) == {"doubled": "2"}
    shown.open("streams/kinds")
    shown.page.get_by_role("link", name="Look up a key of kinds").click()
    shown.sees("price")


def test_every_type_of_a_key(shown: Tab) -> None:
    shown.open("lookup/kinds")
    shown.sees("price")
    fields = [each.inner_text() for each in shown.page.locator(".field label code").all()]
    assert fields == ["who", "n", "x", "price", "yes", "at"]
    for name, typed in (("who", "w"), ("n", str(BIG)), ("x", "0.1"), ("price", "12.50"), ("at", "5")):
        field(shown, name).fill(typed)
    shown.page.get_by_label("yes of the key").select_option("true")
    look_up(shown)
    shown.sees(f'"n": {BIG}')
    assert values(shown) == {
        "every": "1",
        "total": f"{BIG:,}",
        "of_who": "1",
        "doubled": "2",
        "seen_at": "2023-11-14 22:13:20 UTC (1700000000000)",
        "is_seen": "true",
        "is_often": "false",
    }
    assert question(shown)["keys"] == [
        {"who": "w", "n": BIG, "x": 0.1, "price": "12.50", "yes": True, "at": 5}
    ]
    # What is opened by its address keeps every digit.
    shown.page.reload()
    shown.sees(f'"n": {BIG}')
    look_up(shown)
    shown.sees(f'"n": {BIG}')
    assert question(shown)["keys"][0]["n"] == BIG
    shown.page.get_by_label("yes of the key").select_option("null")
    field(shown, "at").fill("1970-01-01T00:00:00.005Z")
    shown.page.get_by_label("x of the key").select_option("null")
    look_up(shown)
    shown.sees('"yes": null')
    assert values(shown)["every"] == "0"
    assert question(shown)["keys"][0]["x"] is None


def test_null_empty_text_and_what_is_left_out(shown: Tab) -> None:
    shown.open("lookup/payments")
    shown.sees("card")
    look_up(shown)
    shown.sees("everyone")
    assert list(values(shown)) == ["everyone"]
    shown.page.get_by_label("card of the key").select_option("is")
    look_up(shown)
    shown.sees('{"card": ""}')
    until(lambda: values(shown).get("n7") == "1")
    shown.page.get_by_label("card of the key").select_option("null")
    look_up(shown)
    shown.sees('{"card": null}')
    until(lambda: values(shown).get("n7") == "null")


def test_errors_stand_at_their_place(shown: Tab) -> None:
    shown.open("lookup/kinds")
    shown.sees("price")
    field(shown, "n").fill("many")
    field(shown, "price").fill("1.234")
    shown.page.get_by_label("Only these metrics").fill("of_whom")
    look_up(shown)
    shown.sees("the string 'many' is not a long", "#wrong-n")
    shown.sees("has more than 2 digits after the point", "#wrong-price")
    shown.sees("did you mean of_who", "#wrong-metrics")
    expect(field(shown, "n")).to_have_attribute("aria-invalid", "true")
    expect(field(shown, "n")).to_have_attribute("aria-describedby", "wrong-n")
    assert shown.page.locator(".copyable, .problem").count() == 0
    for name in ("n", "price"):
        shown.page.get_by_label(f"{name} of the key").select_option("")
    shown.page.get_by_label("Only these metrics").fill("every")
    field(shown, "who").fill("w")
    look_up(shown)
    shown.sees("the key lacks at, n, price, x, yes", "#wrong-key")
    shown.page.get_by_label("Only these metrics").fill("")
    look_up(shown)
    shown.misses("the key lacks")
    shown.sees("of_who", "table")
    shown.open(place("kinds", {"keys": [{"ts": 5, "whom": 1}]}))
    shown.sees("ts: no metric of kinds groups by it", "#wrong-key")
    shown.sees("whom: kinds has no such field", "#wrong-key")


@pytest.mark.parametrize(
    "text",
    [
        *("%7B", "7", "null", "%7B%22keys%22:%5B1%5D%7D", '{"keys":[{},{}]}', "1-2", "x"),
        *('{"keys":[null]}', '{"keys":[{"card":{"toString":1}}]}'),
    ],
)
def test_an_address_that_has_no_question(shown: Tab, text: str) -> None:
    shown.open(f"lookup/payments/{text}")
    shown.sees("The address has no question that can be read")
    field(shown, "card").fill("c1")
    look_up(shown)
    shown.sees("everyone")
    shown.misses("The address has no question")


def test_a_stream_that_is_not_there_or_has_no_metric(shown: Tab) -> None:
    shown.open("lookup/payment")
    shown.sees("did you mean payments?")
    shown.open("lookup/bare")
    shown.sees("The stream has no metric yet.")


@pytest.mark.parametrize("key", ["c1", HOSTILE], ids=["plain", "hostile"])
@pytest.mark.parametrize("metrics", [None, ["n7", "s7"]], ids=["all", "some"])
def test_curl_and_python_work_as_they_stand(
    shown: Tab, running: Server, tmp_path: Path, key: str, metrics: list[str] | None
) -> None:
    asked = {"keys": [{"card": key}]} | ({} if metrics is None else {"metrics": metrics})
    shown.open(place("payments", asked))
    shown.sees("s7")
    texts = {
        way: copied(shown, f"The same {by}") for way, by in (("curl", "by curl"), ("Python", "in Python"))
    }
    assert ("RAILGUN_TOKEN" in texts["curl"]) == has_tokens(running) == ("RAILGUN_TOKEN" in texts["Python"])
    assert secret("all") not in "".join(texts.values())
    (by_curl,) = json.loads(run("bash", folder=tmp_path, given=texts["curl"]))
    by_python = eval(run(sys.executable, "-", folder=tmp_path, given=texts["Python"]))
    assert by_curl["key"] == by_python["key"] == {"card": key}
    assert by_curl["metrics"] == by_python["metrics"]
    assert by_curl["metrics"]["s7"] == 12345.5
    assert list(by_curl["metrics"]) == (metrics or ["n7", "s7", "l7", "p7", "everyone"])
    assert list(tmp_path.iterdir()) == [], "nothing of the key was run"


def test_that_a_text_was_copied_is_said_until_it_is_another_one(shown: Tab) -> None:
    shown.open(place("payments", {"keys": [{"card": "c1"}]}))
    values(shown)
    copied(shown, "The same by curl")
    button = shown.page.locator(".copyable").first.get_by_role("button")
    with shown.page.expect_response(lambda response: "/values" in response.url) as answer:
        pass
    answer.value.finished()
    # A second answer comes behind the page of the first one.
    with shown.page.expect_response(lambda response: "/values" in response.url):
        pass
    assert button.text_content() == "Copied"
    field(shown, "card").fill("c2")
    look_up(shown)
    expect(button).to_have_text("Copy")


def test_every_type_by_curl_and_python(shown: Tab, tmp_path: Path) -> None:
    key = {"who": "w", "n": BIG, "x": 0.1, "price": "12.50", "yes": True, "at": 5}
    shown.open(place("kinds", {"keys": [key]}))
    shown.sees("total")
    (by_curl,) = json.loads(run("bash", folder=tmp_path, given=copied(shown, "The same by curl")))
    by_python = eval(run(sys.executable, "-", folder=tmp_path, given=copied(shown, "The same in Python")))
    known = {"every": 1, "total": BIG, "of_who": 1, "doubled": 2}
    known |= {"seen_at": 1_700_000_000_000, "is_seen": True, "is_often": False}
    assert by_curl["metrics"] == by_python["metrics"] == known


def test_hostile_keys_are_shown_as_text(shown: Tab) -> None:
    shown.open(place("payments", {"keys": [{"card": HOSTILE}]}))
    shown.sees("12,345.5")
    shown.sees("\\u202egnp\\u2028\\u200b")
    assert field(shown, "card").input_value() == HOSTILE
    # Asked again without a touch, it is the same key.
    look_up(shown)
    shown.page.wait_for_timeout(300)
    assert question(shown)["keys"] == [{"card": HOSTILE}]
    shown.sees("12,345.5")
    for key in ("x" * 65_000, "a\r\nb\0", "\u05d0" * 300, "w " * 20_000):
        shown.open(place("payments", {"keys": [{"card": key}]}))
        shown.sees("everyone")
        shown.check_layout()
        look_up(shown)
        shown.page.wait_for_timeout(100)
        assert question(shown)["keys"] == [{"card": key}]
    assert not {"\u202e", "\0", "\u2028"} & set(shown.page.inner_text("main"))
    assert shown.page.locator("main img, main script").count() == 0
    assert shown.page.evaluate("typeof window.ran") == "undefined"


@pytest.mark.parametrize("width", [320, 1280])
def test_narrow_and_wide(shown: Tab, width: int) -> None:
    shown.page.set_viewport_size({"width": width, "height": 700})
    shown.open(place("kinds", {"keys": [{"who": "w" * 500}]}))
    shown.sees("of_who")
    shown.check_layout()
    shown.go("Look up")
    shown.sees("Look up a key of payments")
    shown.check_layout()


def test_values_are_found_by_name(shown: Tab) -> None:
    shown.open(place("payments", {"keys": [{"card": "c1"}]}))
    shown.sees("5 of 5")
    shown.page.get_by_label("Find").fill("EVERY")
    shown.sees("1 of 5")
    assert list(values(shown)) == ["everyone"]


def test_warming_metrics_are_named(shown: Tab) -> None:
    """As a server answers whose fill is under way."""

    def warming(route: Any) -> None:
        answer = route.fetch()
        body = answer.json()
        if "/values" in route.request.url:
            body[0] |= {"warming": ["n7"], "partial": {"s7": 1_700_000_000_000}}
            body[0]["metrics"]["n7"] = None
        else:
            body["metrics"][0] |= {"warming": True, "filled": 0.427}
        route.fulfill(response=answer, json=body)

    shown.page.route("**/v1/streams/payments/values", warming)
    shown.page.route("**/v1/streams/payments/metrics", warming)
    shown.open(place("payments", {"keys": [{"card": "c1"}]}))
    shown.sees("warming, 42 %")
    rows = {row[0]: row[1:3] for row in shown.cells("Values")}
    assert rows["n7"] == ["null", "warming, 42 %"]
    assert rows["s7"][1].startswith("only of what is later than 2023-11-14")


def test_what_takes_long_says_so(shown: Tab, running: Server) -> None:
    shown.page.route("**/values", lambda route: shown.page.wait_for_timeout(2_500) or route.continue_())
    shown.open(place("payments", {"keys": [{"card": "c1"}]}))
    shown.sees(re.compile("waiting for an answer: [12] s"))
    shown.sees("everyone")
    shown.page.unroute("**/values")
    shown.misses("waiting for an answer")


@pytest.mark.parametrize(
    ("name", "said"),
    [("no-inspect", "This token lacks inspect:payments"), ("no-read", "This token lacks read:payments")],
)
def test_the_scope_that_is_lacking_is_named(browser: Browser, running: Server, name: str, said: str) -> None:
    if not has_tokens(running):
        pytest.skip("nobody lacks a scope")
    with tab(browser, running.service.url) as made:
        made.open(place("payments", {"keys": [{"card": "c1"}]}))
        made.give(secret(name))
        made.sees(said)
        assert made.page.locator("form, table").count() == 0
        assert not any("/values" in each.url for each in made.requests)


def test_masked_metrics_are_left_out(browser: Browser, tmp_path: Path) -> None:
    """By its merchant, the last card would be told; of all events, how many there are would not."""
    stream = """
[streams.sales]
partitioners = ["merchant"]
[streams.sales.fields]
merchant = "string"
card = "string"
[[metrics]]
sql = "SELECT last(card) AS last_card, count(*) AS n FROM sales GROUP BY merchant OVER INFINITE"
[[metrics]]
sql = "DERIVE SUBSTR(last_card, 1, 6) AS bin FROM sales"
"""
    with server(tmp_path / "data", console=ConsoleSettings(masks=("sales.card",))) as masked:
        masked.define(stream)
        masked.score("sales", {"merchant": "m", "card": "4929000000006"})
        with tab(browser, masked.service.url) as shown:
            shown.open(place("sales", {"keys": [{"merchant": "m"}]}))
            shown.sees("Not shown, as they would tell a masked field: last_card, bin.")
            assert values(shown) == {"n": "1"}
            shown.sees("1 of 1")
            shown.misses("492900")
        # Programs get what they ask for.
        asked = masked.client.get("/v1/streams/sales/values?merchant=m&metrics=last_card").json()
        assert asked["metrics"] == {"last_card": "4929000000006"}
