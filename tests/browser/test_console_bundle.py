"""The console's support bundle: a file that the browser saves, without the token in any address."""

import zipfile
from pathlib import Path

from playwright.sync_api import Browser, expect

from tests.browser.console_tab import PATIENCE_MS, tab
from tests.frontend.access.callers import secret, tokens
from tests.frontend.conftest import PAYMENTS
from tests.frontend.serving import server

BUTTON = "Support bundle"


def test_a_bundle_is_saved(browser: Browser, tmp_path: Path) -> None:
    with server(tmp_path / "data", tokens=tokens()) as running:
        running.client.headers["Authorization"] = f"Bearer {secret('all')}"
        running.define(PAYMENTS)
        with tab(browser, running.service.url, accept_downloads=True) as shown:
            shown.open("changes")
            shown.give(secret("all"))
            shown.sees("No event is in it.")
            button = shown.page.get_by_role("button", name=BUTTON)
            for _ in range(2):
                with shown.page.expect_download(timeout=PATIENCE_MS) as saved:
                    button.click()
                expect(button).to_be_enabled(timeout=PATIENCE_MS)
                assert saved.value.suggested_filename.startswith("railgun-")
                saved.value.save_as(tmp_path / "bundle.zip")
                with zipfile.ZipFile(tmp_path / "bundle.zip") as bundle:
                    assert {"about.json", "changes.json"} <= set(bundle.namelist())
            asked = [each.url for each in shown.requests if "v1/support" in each.url]
            assert asked == [f"{running.service.url}/v1/support"] * 2


def test_what_keeps_it_away_is_said(browser: Browser, tmp_path: Path) -> None:
    with (
        server(tmp_path / "data", tokens=tokens()) as running,
        tab(browser, running.service.url) as shown,
    ):
        shown.open("changes")
        shown.give(secret("metrics"))
        button = shown.page.get_by_role("button", name=BUTTON)
        button.click()
        shown.sees("This token may not see the support bundle")
        # Nothing answers any more: the frame says so, and it can be asked for again.
        shown.page.route("**/v1/support", lambda route: route.abort())
        button.click()
        shown.misses("This token may not see the support bundle")
        expect(button).to_be_enabled(timeout=PATIENCE_MS)
