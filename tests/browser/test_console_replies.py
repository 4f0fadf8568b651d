"""Replies in Live and values in Look up that are no plain numbers: what warms or lacks a part, and hostile texts."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.console_tab import PATIENCE_MS, Tab, tab
from tests.browser.some_cluster import HOSTILE
from tests.browser.test_console_access import found as wrong_for_axe
from tests.browser.test_console_live import STREAM, Balancer, T, event, names, opened, serving
from tests.browser.test_console_lookup import place
from tests.frontend.serving import Server

# --- what warms, and what lacks a part --------------------------------------------------------------


@pytest.fixture
def marked(browser: Browser, tmp_path: Path) -> Iterator[Tab]:
    """Four last events: as they are; without a partitioner's answer; one metric without old events; some that warm."""
    with serving(tmp_path) as running, tab(browser, running.service.url) as shown:
        running.define(STREAM)
        for number in range(1, 5):
            running.score("payments", event(number))
        answers = running.client.get("/v1/streams/payments/samples").json()
        plain, missing, partial, warming = reversed([each["reply"] for each in answers["events"]])
        assert not {"missing", "partial", "warming"} & set(plain)
        missing["metrics"] = {name: missing["metrics"][name] for name in ("n", "spent", "twice")}
        missing["missing"] = ["*"]
        partial["partial"] = {"spent": T}
        for each in ("all_n", "share", "much"):
            warming["metrics"][each] = None
        warming["warming"] = ["all_n", "share", "much"]
        Balancer(shown.page, answers, "web")
        shown.open("live/payments")
        shown.sees("4 of 4")
        yield shown
        shown.page.unroute_all(behavior="wait")


def figures(shown: Tab) -> dict[str, str]:
    """What stands above the fields of an event in full."""
    part = shown.page.locator(".one .figures").first
    return dict(zip(part.locator("dt").all_inner_texts(), part.locator("dd").all_inner_texts()))


def tree(shown: Tab) -> list[str]:
    return shown.page.locator(".derived li > span").all_inner_texts()


def test_the_list_marks_what_warms_and_what_lacks_a_partitioner(marked: Tab) -> None:
    assert [row[3] for row in marked.cells("Last events")] == [
        *("warming 6 metrics", "6 metrics true much", "partial 3 metrics", "6 metrics true much"),
    ]
    assert wrong_for_axe(marked.page) == []
    marked.page.get_by_label("Show").select_option("with warming metrics")
    marked.sees("1 of 4")
    assert names(marked) == ["web 4"]


def test_metrics_that_warm_in_full_and_in_the_tree(marked: Tab) -> None:
    opened(marked, "web 4")
    assert figures(marked)["Warming"] == "all_n, share, much"
    assert marked.page.locator(".one .conditions").inner_text() == (
        "Of 1 true-or-false metric none is true. 1 is not known: much."
    )
    assert marked.cells("Metrics") == [["n", "4"], ["spent", "50.0"], ["all_n", "null"]]
    expected = ["much = warming", "share = warming", "n = 4", "all_n = warming", "twice = 25.0"]
    assert tree(marked) == [*expected, "amount = 12.5"]
    assert wrong_for_axe(marked.page) == []
    marked.check_layout()


def test_what_lacks_old_events_and_a_partitioner_in_full_and_in_the_tree(marked: Tab) -> None:
    opened(marked, "web 3")
    assert figures(marked)["Partial"] == "spent"
    assert "Not answered by" not in figures(marked)
    opened(marked, "web 2")
    assert figures(marked)["Not answered by"] == "*"
    assert "Partial" not in figures(marked)
    assert marked.page.locator(".one .conditions").count() == 0
    assert marked.cells("Metrics") == [["n", "2"], ["spent", "25.0"]]
    assert tree(marked) == ["twice = 25.0", "amount = 12.5"]
    assert wrong_for_axe(marked.page) == []
    marked.check_layout()


def test_what_was_not_asked_for_is_not_in_the_tree(browser: Browser, tmp_path: Path) -> None:
    with serving(tmp_path) as running, tab(browser, running.service.url) as shown:
        running.define(STREAM)
        assert running.post("/v1/streams/payments/events?metrics=much,all_n", event(1)).status_code == 200
        shown.open("live/payments")
        shown.sees("1 of 1")
        opened(shown, "p1")
        expected = ["much = true", "share = not in this reply", "n = not in this reply", "all_n = 1"]
        assert tree(shown) == expected


# --- hostile texts ----------------------------------------------------------------------------------

NOTES = """
[streams.notes]
id = "id"
partitioners = ["card"]
[streams.notes.fields]
id = "string"
card = "string"
note = "string"
[[metrics]]
sql = "SELECT last(note) AS said, count(*) AS n FROM notes GROUP BY card OVER INFINITE"
[[metrics]]
sql = "DERIVE COALESCE(said, '') AS again FROM notes"
"""
SEEN = HOSTILE.replace("\u202e", "\\u202e").replace("\0", "\\u0000").replace("\u2028", "\\u2028")
TEXTS = {
    "hostile": (HOSTILE, re.compile(re.escape(SEEN))),
    "long word": ("W" * 60_000, re.compile("W{20000} … and 40,000 characters more")),
    "right to left": ("\u05d0" * 300, re.compile("\u05d0{300}")),
}


@pytest.fixture
def said(tmp_path: Path) -> Iterator[Server]:
    """A server that has answered an event for each of the texts, whose card is the text's name."""
    with serving(tmp_path) as running:
        running.define(NOTES)
        for name, (text, _) in TEXTS.items():
            reply = running.score("notes", {"id": name, "card": name, "note": text})
            assert reply["metrics"] == {"said": text, "n": 1, "again": text}
        yield running


def check_harmless(shown: Tab) -> None:
    """Nothing of a text has become an element, has run, or turns the direction of what follows."""
    assert shown.page.locator("main img, main script").count() == 0
    assert shown.page.evaluate("typeof window.ran") == "undefined"
    assert not {"\u202e", "\0", "\u2028"} & set(shown.page.inner_text("body"))
    shown.check_layout()
    assert wrong_for_axe(shown.page) == []


@pytest.mark.parametrize("width", [320, 1280])
def test_hostile_values_in_look_up(browser: Browser, said: Server, width: int) -> None:
    with tab(browser, said.service.url, viewport={"width": width, "height": 800}) as shown:
        for name, (_, expected) in TEXTS.items():
            shown.open(place("notes", {"keys": [{"card": name}]}))
            for metric in ("said", "again"):
                value = shown.page.locator(f"tr[data-key={metric}] .value")
                expect(value).to_have_text(expected, timeout=PATIENCE_MS)
            check_harmless(shown)


@pytest.mark.parametrize("width", [320, 1280])
def test_hostile_values_in_live(browser: Browser, said: Server, width: int) -> None:
    with tab(browser, said.service.url, viewport={"width": width, "height": 800}) as shown:
        shown.open("live/notes")
        for name, (_, expected) in TEXTS.items():
            shown.sees("3 of 3")
            opened(shown, name)
            metrics = shown.page.get_by_role("region", name="Metrics", exact=True)
            expect(metrics).to_contain_text(expected)
            spans = shown.page.locator(".derived li > span").all()
            assert len(spans) == 2
            for each in spans:
                expect(each).to_contain_text(expected)
            check_harmless(shown)
