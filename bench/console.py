"""How soon a browser shows the console's first page, of a server with many streams and metrics.

    python -m bench.console [--runs N] [--scale F]

It drives Debian's Chromium. Prints a line per figure with the median and the spread over the runs, and at the end one
line of JSON. docs/benchmarks.md says what each figure is.
"""

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from bench.children import ChildFailedError
from bench.command_line import measure
from bench.report import Report
from bench.service import Service

_STREAMS, _QUERIES = 50, 10
_AGGREGATES = "count(*) AS n_{0}, sum(amount) AS sum_{0}, avg(amount) AS avg_{0}, max(amount) AS max_{0}"
_FLAGS = ("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking")


def _definitions(streams: int) -> str:
    """Return streams of forty metrics each, as TOML."""
    found = []
    for place in range(streams):
        name = f"payments_{place}"
        found.append(
            f'[streams.{name}]\ntime = "ts"\nid = "tx_id"\npartitioners = ["card"]\npartitions = 1\n'
            f"[streams.{name}.fields]\n"
            'tx_id = "string"\nts = "timestamp"\ncard = "string"\namount = "double"\n'
        )
        found += [
            f'[[metrics]]\nsql = "SELECT {_AGGREGATES.format(f"{days}d")} FROM {name} '
            f'GROUP BY card OVER SLIDING {days} DAYS"\n'
            for days in range(1, _QUERIES + 1)
        ]
    return "".join(found)


@contextmanager
def _chromium() -> Iterator[Browser]:
    found = shutil.which("chromium")
    if found is None:
        raise ChildFailedError("there is no chromium; install it (Debian: apt-get install chromium)")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=list(_FLAGS), headless=True)
        try:
            yield browser
        finally:
            browser.close()


def _shown_ms(page: Page, streams: int) -> float:
    """Return when a page showed the figures of all streams, in ms since the browser was told to go there."""
    found = page.wait_for_function(
        "count => document.querySelectorAll('.traffic tbody').length === count && performance.now()",
        arg=streams,
        polling="raf",
    )
    return float(found.json_value())


def _views(browser: Browser, url: str, streams: int) -> tuple[float, float]:
    """Return how long it takes in a browser that has nothing of the server, and when it is loaded again, in ms."""
    with browser.new_context() as context:
        page = context.new_page()
        page.goto(url, wait_until="commit")
        first_ms = _shown_ms(page, streams)
        page.reload(wait_until="commit")
        return first_ms, _shown_ms(page, streams)


def _views_of_many(report: Report) -> None:
    streams = max(2, round(_STREAMS * min(1.0, report.scale)))
    with (
        tempfile.TemporaryDirectory(prefix="railgun-bench-console-") as folder,
        Service(Path(folder), _definitions(streams), "os") as service,
    ):
        service.start()
        metrics = sum(each["metrics"] for each in service.ask("GET", "/v1/live")["streams"])
        url = f"http://{service.host}:{service.port}/"
        found = []
        for _ in range(report.runs):
            with _chromium() as browser:
                cold_ms, _ = _views(browser, url, streams)
                found.append((cold_ms, *_views(browser, url, streams)))
        service.stop()
    remark = f"  {streams} streams, {metrics:,} metrics"
    report.note("cold_view_ms", [cold for cold, _, _ in found], remark=remark)
    report.note("first_view_ms", [first for _, first, _ in found])
    report.note("again_view_ms", [again for _, _, again in found])


if __name__ == "__main__":
    sys.exit(measure("console", __doc__, {"views": _views_of_many}))
