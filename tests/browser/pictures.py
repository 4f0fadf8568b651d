"""Makes the pictures of the console in `docs/images/`: `python -m tests.browser.pictures`.

It needs `pngquant`, by which pictures of text are half as large.
"""

import random
import re
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Locator

from tests.browser.chromium import chromium
from tests.browser.console_tab import Tab, tab
from tests.browser.some_cluster import ShownBackend
from tests.forked import ROOT
from tests.frontend import serving
from tests.frontend.access.callers import secret, token
from tests.frontend.serving import Server, server

IMAGES = ROOT / "docs" / "images"
LIMIT_BYTES = 100_000
LIBRARY = ROOT / "config" / "examples" / "payments.toml"
LOGINS = """
[streams.logins]
id = "session"
partitioners = ["account", "device"]
late_policy = "discard"
[streams.logins.fields]
session = "string"
account = "string"
device = { type = "string", from = "client['device-id']" }
succeeded = "boolean"
[[metrics]]
sql = "SELECT count(*) AS failed_1h FROM logins WHERE NOT succeeded GROUP BY account OVER SLIDING 1 HOUR"
"""
MISTAKEN = """SELECT count(*) AS card_big_1h, sum(amunt) AS card_spent_1h
FROM payments WHERE amount > 100 GROUP BY card OVER SLIDING 1 HOUR"""


@contextmanager
def shown(browser: Browser, running: Server, place: str, height: int, scheme: str) -> Iterator[Tab]:
    more = {"viewport": {"width": 1240, "height": height}, "color_scheme": scheme}
    with tab(browser, running.service.url, timezone_id="Europe/Berlin", **more) as made:
        made.open(place)
        yield made


def picture(made: Tab, name: str, part: Locator | None = None) -> None:
    """Make a picture of what the window shows, or of a part of the page."""
    made.page.wait_for_timeout(300)
    path = IMAGES / f"console-{name}.png"
    (made.page if part is None else part).screenshot(path=path)
    subprocess.run(["pngquant", "--force", "--ext", ".png", "--speed", "1", str(path)], check=True)
    assert path.stat().st_size <= LIMIT_BYTES, path.stat()


def answer_some(running: Server) -> None:
    """Payments of some cards, so that metrics have values."""
    drawn = random.Random(7)
    events = [
        {
            "tx_id": f"t{number}",
            "ts": 1_700_000_000_000 + 20_000 * number,
            "channel": "pos",
            "card": f"4242{drawn.randrange(40):08}",
            "merchant": f"m{drawn.randrange(12)}",
            "country": "PT",
            "amount": f"{drawn.lognormvariate(3, 1):.2f}",
            "declined": drawn.random() < 0.1,
        }
        for number in range(3_000)
    ]
    # A sample of them is taken each second.
    for place in range(0, len(events), 250):
        answer = running.post("/v1/streams/payments/events", events[place : place + 250])
        assert answer.status_code == 200
        time.sleep(1.0)


def of_a_stream(made: Tab) -> None:
    """The parts of the page of a stream that lie below its beginning."""
    made.sees("The same as a table", "console-plan")
    made.page.get_by_role("button", name="values of card_amount_1d").click()
    made.sees("in a sample", "console-answered")
    picture(made, "answered", made.page.locator("console-answered"))
    made.page.get_by_role("button", name="Close").click()
    field = made.page.get_by_label("A query, or a DERIVE")
    field.fill(MISTAKEN)
    made.sees("did you mean amount?", "#said")
    picture(made, "mistake", made.page.locator("console-query"))
    field.fill(MISTAKEN.replace("amunt", "amount"))
    made.sees("Register 2 metrics", "console-query")
    picture(made, "query", made.page.locator("console-query"))
    field.fill("")
    picture(made, "plan", made.page.locator("console-plan section").first)


def main() -> None:
    """Make all pictures."""
    IMAGES.mkdir(exist_ok=True)
    vars(serving)["EmbeddedBackend"] = ShownBackend
    with chromium() as browser, tempfile.TemporaryDirectory() as folder:
        with (
            server(Path(folder) / "empty", tokens=(token("ada", "*"),)) as running,
            shown(browser, running, "streams", 800, "light") as made,
        ):
            made.give(secret("ada"))
            made.sees("http://127.0.0.1:8081/")
            picture(made, "begin")
        with server(
            Path(folder) / "full", tokens=(token("ada", "*", expires_s=time.time() + 9e6),)
        ) as running:
            running.client.headers["Authorization"] = f"Bearer {secret('ada')}"
            running.define(LIBRARY.read_text(encoding="utf-8") + LOGINS)
            running.client.patch("/v1/streams/payments", json={"retention": "400d"})
            answer_some(running)
            for name, place, height, scheme, text in (
                ("streams", "streams", 420, "light", "logins"),
                ("stream", "streams/payments", 800, "light", "card_payments_10m"),
                ("cluster", "cluster", 1_200, "dark", "merchant/2"),
                ("changes", "changes", 600, "light", "retention"),
            ):
                with shown(browser, running, place, height, scheme) as made:
                    made.give(secret("ada"))
                    made.sees(re.compile(re.escape(text)))
                    picture(made, name)
            with shown(browser, running, "streams/payments", 640, "light") as made:
                made.give(secret("ada"))
                of_a_stream(made)


if __name__ == "__main__":
    main()
