"""A tab of a real browser that shows the console, and what it notes of everything that the tab does."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Browser, ConsoleMessage, Locator, Request, expect

from tests.frontend.serving import PATIENCE_S

PATIENCE_MS = PATIENCE_S * 1_000
expect.set_options(timeout=PATIENCE_MS)
# A browser notes answers that refuse something as errors; the console shows them in words.
_REFUSED = "Failed to load resource"
_LOOK_MS = 10
# The console shows a page when it is loaded, when the part of the address behind "#" changes (this runs before it), and
# right after it has changed the address itself.
_NOTE_PLACE = """
    const note = () => { window.shownPlace = location.href; };
    note();
    addEventListener("hashchange", note);
    for (const name of ["pushState", "replaceState"]) {
      const change = history[name];
      history[name] = function (...given) { change.apply(this, given); note(); };
    }
"""
_CELLS = "rows => rows.map(row => [...row.querySelectorAll('th, td')].map(cell => cell.innerText))"


class Tab:
    """url: of the server.  requests: all that were made.  wrong: errors of scripts and of the policy."""

    def __init__(self, browser: Browser, url: str, **context: Any) -> None:
        self.url = url
        self.context = browser.new_context(**context)
        self.context.add_init_script(_NOTE_PLACE)
        self.page = self.context.new_page()
        self.page.set_default_timeout(PATIENCE_MS)
        self.requests: list[Request] = []
        self.wrong: list[str] = []
        self.page.on("request", lambda request: self.requests.append(request))
        self.page.on("console", self._noted)
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))

    def _noted(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and not message.text.startswith(_REFUSED):
            self.wrong.append(message.text)

    def open(self, place: str = "") -> None:
        """Show a page of the console: what stands behind `#/` in its address."""
        self.page.goto(f"{self.url}/{f'#/{place}' if place else ''}")

    def go(self, title: str) -> None:
        """To another page, by the navigation."""
        self.page.get_by_role("navigation").get_by_role("link", name=title, exact=True).click()

    def give(self, token: str) -> None:
        """Type a token into the form, and send it."""
        self.page.get_by_label("Token").fill(token)
        self.page.get_by_role("button", name="Use this token").click()

    def sees(self, text: str | re.Pattern[str], within: str = "main") -> None:
        """Wait until a text is shown, on the page that the address names by now."""
        self.await_place()
        expect(self.page.locator(within)).to_contain_text(text, timeout=PATIENCE_MS)

    def misses(self, text: str | re.Pattern[str], within: str = "main") -> None:
        """Wait until a text is shown no more."""
        expect(self.page.locator(within)).not_to_contain_text(text, timeout=PATIENCE_MS)

    def await_place(self) -> None:
        """Wait until the page is shown that the address names: the address is another one a moment before."""
        for _ in range(int(PATIENCE_MS / _LOOK_MS)):
            if self.page.evaluate("window.shownPlace === location.href"):
                return
            self.page.wait_for_timeout(_LOOK_MS)
        raise AssertionError(f"the page of {self.page.url} is not shown")

    def rows(self, label: str) -> Locator:
        """The rows of a table."""
        return self.page.get_by_role("region", name=label, exact=True).locator("tbody tr")

    def cells(self, label: str) -> list[list[str]]:
        """The texts of a table's rows, all of one moment."""
        found: list[list[str]] = self.rows(label).evaluate_all(_CELLS)
        return [[" ".join(cell.split()) for cell in row] for row in found]

    def check(self) -> None:
        """Nothing went wrong, nothing was asked of another server, and no address had a token."""
        assert self.wrong == []
        for request in self.requests:
            assert urlsplit(request.url)[:2] == urlsplit(self.url)[:2], request.url
            assert "railgun_" not in request.url

    def check_layout(self) -> None:
        """The page is not wider than the window; what is wider scrolls by itself."""
        widths = "[document.documentElement.scrollWidth, document.documentElement.clientWidth]"
        found, room = self.page.evaluate(widths)
        assert found <= room


@contextmanager
def tab(browser: Browser, url: str, **context: Any) -> Iterator[Tab]:
    """A tab without a history; checked at its end. context: as Playwright's `new_context` takes it."""
    made = Tab(browser, url, **context)
    try:
        yield made
        made.check()
    finally:
        made.context.close()
