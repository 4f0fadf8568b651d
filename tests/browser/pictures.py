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
from urllib.parse import quote

from playwright.sync_api import Browser, Locator

from railgun.config.settings import ConsoleSettings
from railgun.demo.payments_run import starts_query
from tests.browser.chromium import chromium
from tests.browser.console_tab import Tab, tab
from tests.browser.some_cluster import ShownBackend
from tests.browser.some_letters import Answers, bytes_of, letter
from tests.browser.some_live import Fed, Live, troubled
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
LOOKED_UP = '{"keys": [{"card": "card-2", "merchant": "shop-1"}]}'
LETTERS = [
    letter(
        41,
        "amount: the string 'much' is not a decimal(12,2)",
        value=bytes_of('{"tx_id": "tx-15", "amount": "much"}'),
    ),
    letter(40, "event: no JSON: Input data was truncated (byte 10)", value=bytes_of('{"tx_id": ')),
    letter(39, "it is late, and was discarded by card", kind="late", late=["card"]),
    letter(
        38,
        "amount: the string 'much' is not a decimal(12,2)",
        value=bytes_of('{"tx_id": "tx-9", "amount": "much"}'),
    ),
]
MISTAKEN = """SELECT count(*) AS card_big_1h, sum(amunt) AS card_spent_1h
FROM payments WHERE amount > 100 GROUP BY card OVER SLIDING 1 HOUR"""


@contextmanager
def shown(
    browser: Browser, running: Server, place: str, height: int, scheme: str, fed: Live | None = None
) -> Iterator[Tab]:
    """A tab with a page. fed: what it is answered as the state now, in place of the server's."""
    more = {"viewport": {"width": 1240, "height": height}, "color_scheme": scheme}
    with tab(browser, running.service.url, timezone_id="Europe/Berlin", **more) as made:
        if fed is not None:
            Fed(made.page, fed)
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
    # Some of the replies are looked at each second.
    for place in range(0, len(events), 250):
        answer = running.post("/v1/streams/payments/events", events[place : place + 250])
        assert answer.status_code == 200
        time.sleep(1.0)


def of_a_stream(made: Tab) -> None:
    """The parts of the page of a stream that lie below its beginning."""
    made.sees("The same as a table", "console-plan")
    made.page.get_by_role("button", name="values of card_amount_1d").click()
    made.sees("some of the replies", "console-answered")
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
            shown(browser, running, "overview", 800, "light") as made,
        ):
            made.give(secret("ada"))
            made.sees("http://127.0.0.1:8081/")
            picture(made, "begin")
        with server(
            Path(folder) / "full",
            tokens=(token("ada", "*", expires_s=time.time() + 9e6),),
            console=ConsoleSettings(samples=200),
        ) as running:
            running.client.headers["Authorization"] = f"Bearer {secret('ada')}"
            running.define(LIBRARY.read_text(encoding="utf-8") + LOGINS)
            running.client.post(
                "/v1/streams/payments/metrics", json={"sql": starts_query()}
            ).raise_for_status()
            running.client.patch("/v1/streams/payments", json={"retention": "400d"})
            with shown(browser, running, "overview", 1_060, "light", troubled()) as made:
                made.give(secret("ada"))
                made.sees("logins/device/3")
                picture(made, "overview")
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
            pay(running)
            with shown(
                browser, running, f"lookup/payments/{quote(LOOKED_UP, safe='')}", 1_300, "light"
            ) as made:
                made.give(secret("ada"))
                made.sees("The same in Python")
                picture(made, "lookup")
            with shown(browser, running, "dead/payments", 900, "dark") as made:
                made.page.route("**/dead?*", Answers(LETTERS))
                made.give(secret("ada"))
                made.sees("Input data was truncated")
                picture(made, "dead")
            with shown(browser, running, "live/payments", 1_300, "light") as made:
                made.give(secret("ada"))
                made.page.get_by_role("button", name="tx-17", exact=True).click()
                made.sees("card_times_usual", ".derived")
                picture(made, "live")


def pay(running: Server) -> None:
    """Payments of three cards: one is a duplicate, one late, one refused, and one much more than is usual."""
    now_ms = time.time_ns() // 1_000_000 - 60_000
    for number in range(1, 19):
        payment = {
            "tx_id": f"tx-{number}",
            "ts": now_ms + 1_000 * number,
            "card": f"card-{number % 3}",
            "bin": "411111",
            "card_country": "PT",
            "device": f"phone-{number % 4}",
            "merchant": f"shop-{number % 2}",
            "country": "PT",
            "amount": "912.40" if number == 17 else f"{20 + number}.50",
            "currency": "EUR",
            "channel": "app",
            "declined": False,
        }
        payment |= {9: {"tx_id": "tx-8"}, 12: {"ts": now_ms}, 15: {"amount": "much"}}.get(number, {})
        running.post("/v1/streams/payments/events", payment)


if __name__ == "__main__":
    main()
