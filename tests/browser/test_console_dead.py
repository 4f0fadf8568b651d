"""The console's page of dead letters, in a real browser: of a cluster on a broker, and of answers of every kind."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Route, expect

from tests.browser.console_tab import Tab, tab
from tests.browser.some_cluster import HOSTILE
from tests.browser.some_letters import Answers, bytes_of, letter
from tests.frontend.access.callers import secret, token
from tests.frontend.conftest import PAYMENTS
from tests.frontend.serving import Server, server
from tests.frontend.topics.test_letter_route import Letters

TOKENS = (token("all", "read:*", "inspect:*"), token("read", "read:*"), token("ours", "inspect:ours"))
MEGABYTE = 1_000_000


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with server(tmp_path_factory.mktemp("dead") / "data") as found:
        found.define(PAYMENTS)
        yield found


@pytest.fixture
def shown(browser: Browser, running: Server) -> Iterator[Tab]:
    with tab(browser, running.service.url) as made:
        yield made
        # Answers may be on their way.
        made.page.unroute_all(behavior="wait")


def play(shown: Tab, answers: Answers, place: str = "dead/payments") -> None:
    shown.page.route("**/dead?*", answers)
    shown.open(place)


@pytest.mark.parametrize("has_tokens", [False, True], ids=["open", "with tokens"])
def test_letters_of_a_real_cluster(browser: Browser, kafka: str, tmp_path: Path, has_tokens: bool) -> None:
    made = Letters(kafka, tmp_path, **({"tokens": TOKENS} if has_tokens else {}))
    try:
        ours, theirs = made.inputs
        ours.send([{"id": "1", "a": "many"}, HOSTILE.encode(), b"\xff\0\xfe", b"y" * MEGABYTE], key=b"k")
        theirs.send([{"id": "2", "a": "secret"}])
        ours.await_letters(5)
        with tab(browser, made.served.service.url) as shown:
            shown.open()
            if has_tokens:
                shown.give(secret("all"))
            shown.go("Dead letters")
            shown.page.get_by_role("link", name="Dead letters of ours").click()
            shown.sees("4 letters, of 5 records looked at: these are all")
            shown.sees("a: the string 'many' is not a long")
            rows = shown.cells("Letters")
            assert [row[1] for row in rows] == ["refused"] * 4
            assert [row[3] for row in rows] == [
                f"{made.ours} partition 0, offset {at}" for at in (3, 2, 1, 0)
            ]
            assert "secret" not in shown.page.content()
            shown.check_layout()
            shown.page.locator("summary").first.click()
            shown.sees("value: 1.0 MB, text, only its beginning")
            shown.sees("key: 1 B, text")
            shown.page.locator("summary").nth(1).click()
            shown.sees("value: 3 B, no UTF-8, shown in base64")
            shown.sees("/wD+")
            shown.page.locator("summary").nth(2).click()
            shown.sees("<img src=x onerror")
            shown.sees("\\u202egnp.exe\\u0000")
            assert shown.page.locator("main img, main script").count() == 0
            assert shown.page.evaluate("typeof window.ran") == "undefined"
            shown.check_layout()
            # New ones come when they are asked for.
            ours.send([b"later"])
            ours.await_letters(6)
            shown.page.get_by_label("Reason", exact=True).fill("MANY")
            shown.page.get_by_role("button", name="Read anew").click()
            shown.sees("1 letter, of 6 records looked at")
            shown.page.get_by_label("Reason", exact=True).fill("")
            shown.page.get_by_label("Kind", exact=True).select_option("late")
            shown.page.get_by_role("button", name="Read anew").click()
            shown.sees("0 letters, of 6 records looked at")
            assert shown.page.url.endswith("#/dead/ours/late")
            shown.open("streams/ours")
            shown.page.get_by_role("link", name="Dead letters of ours").click()
            shown.sees("5 letters, of 6 records looked at")
            shown.open("dead/theirs")
            shown.sees("a: the string 'secret' is not a long")
            assert "many" not in shown.page.inner_text("main")
        if has_tokens:
            with tab(browser, made.served.service.url) as other:
                other.open("dead/theirs")
                other.give(secret("ours"))
                other.sees("This token lacks inspect:theirs, which is needed.")
                other.open("dead/ours")
                other.sees("5 letters")
    finally:
        made.close()


def test_a_server_without_topics_says_so(shown: Tab) -> None:
    shown.open("dead")
    shown.sees("This server reads an input topic of no stream that this token may read.")
    shown.open("dead/payments")
    shown.sees("so no stream of it has dead letters")
    shown.open("dead/payment")
    shown.sees("did you mean payments?")


def test_none(shown: Tab) -> None:
    play(shown, Answers([]))
    shown.sees("There is no dead letter")
    assert shown.page.get_by_role("button").all_inner_texts() == ["Read anew"]


def test_parts_and_older_ones(shown: Tab) -> None:
    answers = Answers([letter(offset) for offset in range(130, 0, -1)], parts=20)
    play(shown, answers)
    shown.sees("50 letters, of 50 records looked at; there are older ones")
    assert [re.sub("&?within_ms=2000", "", each) for each in answers.asked] == [
        "limit=50",
        "limit=30&before=20",
        "limit=10&before=40",
    ]
    expect(shown.rows("Letters")).to_have_count(50)
    for count, said in ((100, "there are older ones"), (130, "these are all")):
        shown.page.get_by_role("button", name="Older letters").click()
        shown.sees(f"{count} letters, of {count} records looked at")
        shown.sees(said)
        expect(shown.rows("Letters")).to_have_count(count)
    assert shown.page.get_by_role("button", name="Older letters").count() == 0
    assert re.search(r"as of \d+ s ago", shown.page.inner_text("main"))


def test_a_reading_goes_on_until_it_is_stopped(shown: Tab) -> None:
    """As with a filter that little satisfies: each part has looked at many, and found none."""
    found = Answers([letter(1)])
    asked: list[str] = []

    def endless(route: Route) -> None:
        asked.append(route.request.url)
        if len(asked) == 1:
            found(route)
            return
        shown.page.wait_for_timeout(300)
        answer = {"topics": ["d"], "letters": [], "read": 1_000, "stopped": "time", "masked": False}
        route.fulfill(json=answer | {"before": str(len(asked))})

    shown.page.route("**/dead?*", endless)
    shown.open("dead/payments/refused/rare")
    shown.sees("1 letter, of 1 record looked at")
    shown.page.get_by_role("button", name="Read anew").click()
    shown.sees(re.compile(r"0 letters, of \d+,000 records looked at so far"))
    shown.sees(re.compile(r"reading: [1-9]\d* s"))
    shown.page.get_by_role("button", name="Stop").click()
    shown.sees(re.compile(r"Stopped: 0 letters, of \d+,000 records looked at"))
    count = len(asked)
    shown.page.wait_for_timeout(1_000)
    assert len(asked) <= count + 1
    assert "kind=refused" in asked[-1]
    assert "reason=rare" in asked[-1]
    # It goes on from there.
    shown.page.get_by_role("button", name="Older letters").click()
    shown.sees("so far")
    shown.page.get_by_role("button", name="Stop").click()
    shown.sees("Stopped")


def test_a_page_that_is_left_reads_no_more(shown: Tab) -> None:
    asked: list[str] = []

    def endless(route: Route) -> None:
        asked.append(route.request.url)
        shown.page.wait_for_timeout(100)
        answer = {"topics": [], "letters": [], "read": 1, "stopped": "time", "before": "1", "masked": False}
        route.fulfill(json=answer)

    shown.page.route("**/dead?*", endless)
    shown.open("dead/payments")
    shown.sees("so far")
    shown.go("Streams")
    shown.sees("payments")
    count = len(asked)
    shown.page.wait_for_timeout(1_000)
    assert len(asked) <= count + 1


def test_reasons_are_counted(shown: Tab) -> None:
    letters = [letter(9 - each, f"reason {each // 3}") for each in range(9)]
    play(shown, Answers([*letters, *(letter(-each, f"other {each}") for each in range(20))]))
    shown.sees("By reason")
    rows = shown.cells("By reason")
    assert [row[:2] for row in rows[:3]] == [[f"reason {each}", "3"] for each in range(3)]
    assert len(rows) == 10
    shown.sees("and 13 other reasons")


def test_kinds_and_what_is_not_there(shown: Tab) -> None:
    late = letter(2, "it is late", kind="late", late=["card", "shop"])
    foreign = letter(1, None, kind="other", record=None, value=None, key=bytes_of(None, base64="/w=="))
    play(shown, Answers([late, foreign]))
    shown.sees("it is late")
    first, second = shown.cells("Letters")
    assert first[1] == "late by card, shop"
    assert second[1:4] == ["other", "none", "none"]
    assert second[5].startswith("no value")


def test_a_masked_stream_shows_places_and_kinds(shown: Tab) -> None:
    hidden = {"reason": None, "key": None, "value": None, "headers": []}
    play(shown, Answers([letter(1) | hidden], masked=True))
    shown.sees("A mask of the stream hides reasons")
    (row,) = shown.cells("Letters")
    assert row[1:] == [
        "refused",
        "masked",
        "prod.in partition 3, offset 90,126",
        "prod.dead partition 0, offset 1",
        "masked",
    ]
    assert shown.page.get_by_role("region", name="By reason").count() == 0


@pytest.mark.parametrize("width", [320, 1280])
def test_hostile_letters(shown: Tab, width: int) -> None:
    texts = [HOSTILE, "w" * 16_384, "\0" * 16_384, "word " * 3_000, "\u05d0" * 8_000]
    letters = [
        letter(
            5 - place,
            text,
            key=bytes_of(text),
            value=bytes_of(text, size=MEGABYTE),
            late=[text],
            record={"topic": text[:249], "partition": None, "offset": None},
            headers=[{"name": text[:249], "value": bytes_of(text)}] * 64,
        )
        for place, text in enumerate(texts)
    ]
    shown.page.set_viewport_size({"width": width, "height": 700})
    play(shown, Answers(letters))
    shown.sees("5 letters")
    shown.check_layout()
    for each in shown.page.locator("summary").all():
        each.click()
    shown.sees("1.0 MB, text, only its beginning")
    shown.check_layout()
    text = shown.page.inner_text("main")
    assert "<img src=x onerror" in text
    assert not {"\u202e", "\0", "\u2028"} & set(text)
    assert shown.page.locator("main img, main script").count() == 0
    assert shown.page.evaluate("typeof window.ran") == "undefined"


def test_an_error_amid_the_reading_keeps_what_was_found(shown: Tab) -> None:
    answers, count = Answers([letter(each) for each in range(60, 0, -1)], parts=20), [0]

    def failing(route: Route) -> None:
        count[0] += 1
        if count[0] == 2:
            body = {
                "title": "Service Unavailable",
                "status": 503,
                "detail": f"the broker is away {HOSTILE}",
                "errors": [],
            }
            route.fulfill(status=503, content_type="application/problem+json", body=json.dumps(body))
        elif count[0] == 3:
            route.abort()
        else:
            answers(route)

    shown.page.route("**/dead?*", failing)
    shown.open("dead/payments")
    shown.sees("The broker is away <img src=x")
    expect(shown.rows("Letters")).to_have_count(20)
    shown.page.get_by_role("button", name="Older letters").click()
    shown.sees("The server has not answered")
    shown.page.get_by_role("button", name="Older letters").click()
    shown.sees("60 letters")
    shown.misses("The server has not answered")
    shown.wrong.clear()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_everybody_can_use_it(browser: Browser, running: Server, scheme: str, width: int) -> None:
    more = {"color_scheme": scheme, "viewport": {"width": width, "height": 800}}
    with tab(browser, running.service.url, **more) as shown:
        shown.open("dead")
        shown.sees("This server reads")
        assert not Axe().run(shown.page).response["violations"]
        play(shown, Answers([letter(each, "r" * 900) for each in range(60, 0, -1)]))
        shown.sees("50 letters")
        shown.page.locator("summary").first.click()
        wrong = Axe().run(shown.page).response["violations"]
        assert [(each["id"], each["nodes"][0]["html"][:200]) for each in wrong] == []


def test_the_scope_that_is_lacking_is_named(browser: Browser, tmp_path: Path) -> None:
    with server(tmp_path / "data", tokens=TOKENS) as found, tab(browser, found.service.url) as shown:
        shown.open("dead/payments")
        shown.give(secret("read"))
        shown.sees("This token lacks inspect:payments, which is needed.")
        assert shown.page.locator("form").count() == 0
        assert not any("/dead?" in each.url for each in shown.requests)
