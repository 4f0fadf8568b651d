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


def chromium_file() -> str:
    """The file of the browser. Without it the test is skipped; where CI=true it fails."""
    found = shutil.which("chromium")
    if found is None:
        if os.environ.get("CI") == "true":
            pytest.fail(_MISSING)
        pytest.skip(_MISSING)
    return found


@contextmanager
def chromium(*more: str) -> Iterator[Browser]:
    """The browser, headless; skipped as `chromium_file` does. more: options of its command line."""
    with launched(chromium_file(), *more) as browser:
        yield browser


@contextmanager
def launched(found: str, *more: str) -> Iterator[Browser]:
    """The browser of a file, headless. more: options of its command line."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=[*_FLAGS, *more], headless=True)
        try:
            yield browser
        finally:
            browser.close()
