"""A real browser: Debian's Chromium, driven by Playwright."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, sync_playwright

FOREIGN_NAME = "evil.test"
"""A name that leads to this machine, as whoever owns a name may have it do."""
_MISSING = "there is no chromium; install it (Debian: apt-get install chromium), and it is run"
_FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
    f"--host-resolver-rules=MAP {FOREIGN_NAME} 127.0.0.1",
)


@contextmanager
def chromium() -> Iterator[Browser]:
    """The browser, headless. Without it the test is skipped; where CI=true it fails."""
    found = shutil.which("chromium")
    if found is None:
        if os.environ.get("CI") == "true":
            pytest.fail(_MISSING)
        pytest.skip(_MISSING)
    with launched(found) as browser:
        yield browser


@contextmanager
def launched(found: str) -> Iterator[Browser]:
    """The browser of a file, headless."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=list(_FLAGS), headless=True)
        try:
            yield browser
        finally:
            browser.close()
