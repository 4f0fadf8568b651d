"""How soon a browser shows the console's first page, of a server with many streams and metrics; what many pages cost.

    python -m bench.console [--only NAME ...] [--runs N] [--scale F]

It drives Debian's Chromium, but for what many pages cost: these are connections that ask as a page does. Prints a line
per figure with the median and the spread over the runs, and at the end one line of JSON. docs/measuring.md says what
each figure is.
"""

import http.client
import shutil
import sys
import tempfile
import threading
import time
from contextlib import AbstractContextManager
from pathlib import Path

from playwright.sync_api import Browser, Page

from bench.children import ChildFailedError
from bench.command_line import Case, measure
from bench.http_run import Target, check
from bench.report import Report
from bench.service import Service
from bench.unit_cases import THROUGHPUT
from tests.browser.chromium import launched

_STREAMS, _QUERIES = 50, 10
_AGGREGATES = "count(*) AS n_{0}, sum(amount) AS sum_{0}, avg(amount) AS avg_{0}, max(amount) AS max_{0}"
_PAGES, _EVENTS_PER_S, _LOOKED_AT_S, _WARM_EVENTS = 100, 500, 30.0, 50_000


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


def _chromium() -> AbstractContextManager[Browser]:
    found = shutil.which("chromium")
    if found is None:
        raise ChildFailedError("there is no chromium; install it (Debian: apt-get install chromium)")
    return launched(found)


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


class _Pages:
    """So many connections, each of which asks what the first page asks, once a second, while this is entered."""

    def __init__(self, service: Service, count: int) -> None:
        self._open = [
            http.client.HTTPConnection(service.host, service.port, timeout=60) for _ in range(count)
        ]
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._ask)
        self.answers = 0

    def __enter__(self) -> "_Pages":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join()
        for each in self._open:
            each.close()

    def _ask(self) -> None:
        begun_s = time.monotonic()
        while not self._stopped.is_set():
            connection = self._open[self.answers % len(self._open)]
            connection.request("GET", "/v1/live")
            connection.getresponse().read()
            self.answers += 1
            due_s = begun_s + self.answers / len(self._open)
            self._stopped.wait(max(0.0, due_s - time.monotonic()))


def _many_pages(report: Report) -> None:
    workload = THROUGHPUT["payments_1x3"]
    seconds = max(2.0, _LOOKED_AT_S * report.scale)
    cores: dict[int, list[float]] = {1: [], _PAGES: []}
    latencies: dict[int, list[float]] = {1: [], _PAGES: []}
    with (
        tempfile.TemporaryDirectory(prefix="railgun-bench-console-") as folder,
        Service(Path(folder), workload.definitions, "os") as service,
    ):
        service.start()
        target = Target(service, workload.payments)
        target.bulk(_WARM_EVENTS)
        for run in range(report.runs):
            # Each comes first in every second run.
            for count in (1, _PAGES) if run % 2 == 0 else (_PAGES, 1):
                with _Pages(service, count) as pages:
                    used_s, begun_s = service.cpu_s(), time.monotonic()
                    outcome = target.singles(_EVENTS_PER_S, seconds)
                    cores[count].append((service.cpu_s() - used_s) / (time.monotonic() - begun_s))
                check(outcome)
                if pages.answers < count * seconds / 2:
                    raise ChildFailedError(f"{count} pages had {pages.answers} answers in {seconds:g} s")
                latencies[count].append(outcome.latencies.quantile_ms(0.999))
        service.stop()
    report.note("pages_1_core", cores[1], 3)
    report.note("pages_100_core", cores[_PAGES], 3)
    report.note("pages_extra_core", [more - one for one, more in zip(*cores.values(), strict=True)], 3)
    report.note("pages_1_p999_ms", latencies[1], 2)
    report.note("pages_100_p999_ms", latencies[_PAGES], 2)


CASES: dict[str, Case] = {"views": _views_of_many, "pages": _many_pages}


if __name__ == "__main__":
    sys.exit(measure("console", __doc__, CASES))
