"""What the overview warns of the process that answers, in a real browser."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser

from railgun.telemetry.reading import DiskReading
from tests.browser.console_tab import tab
from tests.browser.some_live import Fed, live, stream, troubled
from tests.browser.test_console_access import found as wrong_for_axe
from tests.frontend.access.callers import secret, tokens
from tests.frontend.conftest import PAYMENTS
from tests.frontend.serving import Server, server

FULL = "the disk is nearly full, 1 MB are free, and a full one stops this server: enlarge the disk"
BEHIND = "records wait in the input topics of logins, and none is read: see whether a unit is away"


def test_a_disk_that_is_nearly_full(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a real server; who lacks `metrics` is not told."""
    with server(tmp_path / "data", tokens=tokens()) as running:
        running.define(PAYMENTS)
        monkeypatch.setattr(
            running.backend.live_figures, "measure_disk", lambda: DiskReading(1, 2, 3, 1_000_000)
        )
        with tab(browser, running.service.url) as shown:
            shown.open()
            shown.give(secret("all"))
            shown.sees("The disk is nearly full, 1 MB are free", "[data-key=warnings]")
            shown.sees("shorten the retention of streams, or enlarge the disk.", "[data-key=warnings]")
            shown.misses("Nothing to warn of.")
            assert wrong_for_axe(shown.page) == []
            shown.check_layout()
        with tab(browser, running.service.url) as shown:
            shown.open()
            shown.give(secret("read-own"))
            shown.sees("this token lacks the scope metrics")
            shown.misses("disk is nearly full")


@pytest.mark.parametrize("width", [400, 1280])
def test_they_stand_behind_those_of_the_cluster(browser: Browser, opened: Server, width: int) -> None:
    found = troubled()
    found["process"]["warnings"] = [FULL, BEHIND]
    with tab(browser, opened.service.url, viewport={"width": width, "height": 800}) as shown:
        Fed(shown.page, found)
        shown.open()
        shown.sees("The disk is nearly full")
        said = shown.page.get_by_label("Warnings").locator("li").all_inner_texts()
        place = len(found["cluster"]["warnings"])
        assert said[place : place + 2] == [f"{text[0].upper()}{text[1:]}." for text in (FULL, BEHIND)]
        assert shown.page.get_by_label("Warnings").locator("li").nth(place).locator("a").count() == 0
        assert wrong_for_axe(shown.page) == []
        shown.check_layout()


def test_they_go_when_it_is_well_again(browser: Browser, opened: Server) -> None:
    found = live(stream("payments"))
    found["process"]["warnings"] = [FULL]
    with tab(browser, opened.service.url) as shown:
        fed = Fed(shown.page, found)
        shown.open()
        shown.sees("The disk is nearly full")
        fed.answer = live(stream("payments"))
        shown.sees("Nothing to warn of.")
        shown.misses("The disk is nearly full")
