"""Makes the pictures of the console in `docs/images/`: `python -m tests.browser.pictures`.

It needs `pngquant`, by which pictures of text are half as large.
"""

import re
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser

from railgun.config.settings import ConsoleSettings
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


@contextmanager
def shown(browser: Browser, running: Server, place: str, height: int, scheme: str) -> Iterator[Tab]:
    more = {"viewport": {"width": 1240, "height": height}, "color_scheme": scheme}
    with tab(browser, running.service.url, timezone_id="Europe/Berlin", **more) as made:
        made.open(place)
        yield made


def picture(made: Tab, name: str) -> None:
    made.page.wait_for_timeout(300)
    path = IMAGES / f"console-{name}.png"
    made.page.screenshot(path=path)
    subprocess.run(["pngquant", "--force", "--ext", ".png", "--speed", "1", str(path)], check=True)
    assert path.stat().st_size <= LIMIT_BYTES, path.stat()


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
            Path(folder) / "full",
            tokens=(token("ada", "*", expires_s=time.time() + 9e6),),
            console=ConsoleSettings(samples=200),
        ) as running:
            running.client.headers["Authorization"] = f"Bearer {secret('ada')}"
            running.define(LIBRARY.read_text(encoding="utf-8") + LOGINS)
            running.client.patch("/v1/streams/payments", json={"retention": "400d"})
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
            pay(running)
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
