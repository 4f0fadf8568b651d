"""Times of the console are in the viewer's zone, with UTC beside them."""

import re
from pathlib import Path

from playwright.sync_api import Browser

from tests.browser.console_tab import tab
from tests.browser.test_console_access import found as wrong_for_axe
from tests.browser.test_console_live import STREAM, serving
from tests.frontend.access.callers import secret, token

ZONE = "Asia/Kolkata"
BOTH = r"[\d-]+ (\d\d):(\d\d):\d\d [\d-]+ (\d\d):(\d\d):\d\d UTC"
ENDS_S = 2_000_000_000.0


def minutes_ahead(text: str, pattern: str) -> int:
    """How far the first time of a text is ahead of the UTC beside it."""
    found = re.search(pattern, text)
    assert found is not None, text
    hour, minute, hour_utc, minute_utc = map(int, found.groups())
    return (60 * (hour - hour_utc) + minute - minute_utc) % 1_440


def test_utc_stands_beside_each(browser: Browser, tmp_path: Path) -> None:
    tokens = (token("ends", "*", expires_s=ENDS_S),)
    narrow = {"viewport": {"width": 400, "height": 800}}
    with serving(tmp_path, tokens=tokens) as running:
        running.define(STREAM)
        with tab(browser, running.service.url, timezone_id=ZONE, **narrow) as shown:
            shown.open("live/payments")
            shown.give(secret("ends"))
            shown.sees("token ends until 2033-05-18 09:03:20 2033-05-18 03:33:20 UTC", "nav")
            shown.sees("It has answered no event of this stream since it started")
            said = " ".join(shown.page.inner_text("main").split())
            assert minutes_ahead(said, f"since it started, {BOTH}\\.") == 330
            shown.check_layout()
            shown.page.route("**/v1/**", lambda route: route.abort())
            shown.sees("no answer since", ".banner")
            said = " ".join(shown.page.inner_text(".banner").split())
            assert minutes_ahead(said, rf"no answer since {BOTH}, \d+ s ago") == 330
            assert wrong_for_axe(shown.page) == []
            shown.check_layout()
