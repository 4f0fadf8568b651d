"""Where requests of the console go, as the browser's own log has it: to its server, and nowhere else."""

import json
from pathlib import Path
from typing import Any
from urllib.parse import urldefrag, urlsplit

from playwright.sync_api import expect

from tests.browser.chromium import FOREIGN_NAME, chromium
from tests.browser.console_tab import tab
from tests.browser.test_console_live import serving
from tests.browser.test_console_long_names import PAGES, STREAM, send
from tests.browser.unprotected import foreign_site


def requests(file: Path) -> list[str]:
    """The addresses of all requests that pages have made, by the log of a browser that has ended.

    A browser's own requests, as for updates, have no page's origin as their initiator, and are left out.
    """
    found = json.loads(file.read_bytes())
    kind = found["constants"]["logEventTypes"]["URL_REQUEST_START_JOB"]
    started = [
        each["params"] for each in found["events"] if each["type"] == kind and "url" in each.get("params", {})
    ]
    return [each["url"] for each in started if _is_of_page(each)]


def _is_of_page(request: dict[str, Any]) -> bool:
    return bool(request["initiator"] != "not an origin" or request["request_type"] == "main frame")


def servers(addresses: list[str]) -> set[str]:
    return {urlsplit(each).netloc for each in addresses}


def test_no_request_of_any_page_goes_elsewhere(tmp_path: Path) -> None:
    file = tmp_path / "log"
    with serving(tmp_path) as running, chromium(f"--log-net-log={file}") as browser:
        send(running)
        with tab(browser, running.service.url) as shown:
            for where, text in (*PAGES, (f"streams/{STREAM}", "5 metrics"), (f"live/{STREAM}", "2 of 2")):
                shown.open(where)
                shown.sees(text)
            shown.page.get_by_role("link", name="Routes").click()
            expect(shown.page.locator("h1")).to_contain_text("Railgun 0")
            asked = {urldefrag(each.url).url for each in shown.requests}
        host, port = running.address
    found = requests(file)
    assert asked <= {urldefrag(each).url for each in found}
    assert len(asked) > 40
    assert servers(found) == {f"{host}:{port}"}


def test_a_request_that_goes_elsewhere_is_seen(tmp_path: Path) -> None:
    """A canary."""
    file = tmp_path / "log"
    with serving(tmp_path) as running, foreign_site() as port:
        with chromium(f"--log-net-log={file}") as browser, tab(browser, running.service.url) as shown:
            shown.open()
            shown.sees("There is no stream yet")
            elsewhere = shown.context.new_page()
            elsewhere.goto(f"http://{FOREIGN_NAME}:{port}/")
            # Of a page, as the console is one, to another server: whether it may be read or not, it is sent.
            elsewhere.evaluate("url => fetch(url, {mode: 'no-cors'}).then(() => null)", f"{shown.url}/livez")
        host, own = running.address
    found = requests(file)
    assert servers(found) == {f"{host}:{own}", f"{FOREIGN_NAME}:{port}"}
    assert f"{shown.url}/livez" in found
