"""What TLS costs single events, and what it does to them when many connections do nothing.

    python -m bench.tls [--only NAME ...] [--runs N] [--scale F]

`kept`: two servers, one of them with TLS, get single events at 500/s over kept connections in turn. `silent`: one with
TLS, with and without 2,000 connections that say nothing and are opened again when it has ended them. Prints a line per
figure with the median and the spread over the runs, and at the end one line of JSON. docs/benchmarks.md says what each
figure is.
"""

import contextlib
import resource
import selectors
import shutil
import socket
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import trustme

from bench.command_line import Case, measure
from bench.http_run import Target, check
from bench.load.injector import Injection
from bench.load.schedule import Schedule
from bench.report import Report
from bench.service import Service
from bench.unit_cases import THROUGHPUT

_WORKLOAD = THROUGHPUT["payments_1x3"]
_RATE_PER_S, _SECONDS = 500, 30.0
_SILENT, _AGAIN_S = 2_000, 0.5


@contextmanager
def _served(*, has_tls: bool) -> Iterator[Target]:
    """A server on a clean folder, warmed up."""
    folder = Path(tempfile.mkdtemp(prefix="railgun-bench-"))
    environment: dict[str, str] = {}
    ca = None
    if has_tls:
        authority = trustme.CA()
        pair = authority.issue_cert("127.0.0.1")
        files = {name: str(folder / name) for name in ("ca.pem", "server.crt", "server.key")}
        authority.cert_pem.write_to_path(files["ca.pem"])
        pair.cert_chain_pems[0].write_to_path(files["server.crt"])
        pair.private_key_pem.write_to_path(files["server.key"])
        ca = files["ca.pem"]
        environment = {
            "RAILGUN_HTTP__TLS__CERTIFICATE": files["server.crt"],
            "RAILGUN_HTTP__TLS__KEY": files["server.key"],
        }
    try:
        with Service(folder, _WORKLOAD.definitions, "os", environment=environment, ca=ca) as service:
            service.start()
            target = Target(service, _WORKLOAD.payments)
            target.bulk(_WORKLOAD.warm_up)
            yield target
            service.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _measured(
    target: Target, seconds: float, beside: contextlib.AbstractContextManager[object] | None = None
) -> tuple[float, float, float]:
    """p50 and p99.9 in ms, and the server's CPU time per event in µs, of single events at the rate.

    beside: what is done meanwhile. The connections that carry events are there before.
    """
    injection = Injection(target.order(Schedule.constant(_RATE_PER_S, seconds)))
    with beside or contextlib.nullcontext():
        cpu_s = target.service.cpu_s()
        injection.start()
        outcome = injection.outcome()
        cpu_s = target.service.cpu_s() - cpu_s
    check(outcome)
    latencies = outcome.latencies
    return latencies.quantile_ms(0.5), latencies.quantile_ms(0.999), cpu_s / outcome.good * 1e6


def _seconds(report: Report) -> float:
    return max(1.0, _SECONDS * report.scale)


def _kept(report: Report) -> None:
    """Each pair is measured within a minute, the one with TLS first in every other."""
    plain: list[tuple[float, float, float]] = []
    secured: list[tuple[float, float, float]] = []
    with _served(has_tls=False) as without, _served(has_tls=True) as having:
        for run in range(report.runs):
            sides = [(without, plain), (having, secured)]
            for target, found in sides if run % 2 == 0 else reversed(sides):
                found.append(_measured(target, _seconds(report)))
    for place, name in enumerate(("p50_ms_at_500", "p999_ms_at_500", "cpu_us_at_500")):
        report.note(f"plain_{name}", [each[place] for each in plain], 3)
        report.note(f"tls_{name}", [each[place] for each in secured], 3)
    for place, name in enumerate(("p50_ratio", "p999_ratio")):
        report.note(f"tls_{name}", [tls[place] / bare[place] for bare, tls in zip(plain, secured)], 3)
    report.note("tls_added_us", [tls[2] - bare[2] for bare, tls in zip(plain, secured)], 1)
    # How far two measurements of the same server are apart.
    report.note("plain_p999_ratio", [each[1] / plain[0][1] for each in plain], 3)


class _Silent:
    """Connections that say nothing, opened again whenever the server has ended them, while a block runs."""

    def __init__(self, address: tuple[str, int], count: int) -> None:
        self._address, self._count = address, count
        self._selector = selectors.DefaultSelector()
        self._is_over = threading.Event()
        self.opened = 0

    def __enter__(self) -> "_Silent":
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        for _ in range(self._count):
            self._open()
        self._thread = threading.Thread(target=self._keep, name="silent")
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()
        for key in list(self._selector.get_map().values()):
            key.fileobj.close()  # type: ignore[union-attr]
        self._selector.close()

    def _open(self) -> None:
        with contextlib.suppress(OSError):
            self._selector.register(socket.create_connection(self._address, 5.0), selectors.EVENT_READ)
            self.opened += 1

    def _keep(self) -> None:
        while not self._is_over.wait(_AGAIN_S):
            for key, _ in self._selector.select(0):
                self._selector.unregister(key.fileobj)
                key.fileobj.close()  # type: ignore[union-attr]
                self._open()


def _silent(report: Report) -> None:
    alone: list[tuple[float, float, float]] = []
    beside: list[tuple[float, float, float]] = []
    with _served(has_tls=True) as target:
        for _ in range(report.runs):
            alone.append(_measured(target, _seconds(report)))
            silent = _Silent((target.service.host, target.service.port), _SILENT)
            beside.append(_measured(target, _seconds(report), silent))
    report.note("alone_p999_ms", [each[1] for each in alone], 3)
    report.note("silent_p999_ms", [each[1] for each in beside], 3)
    report.note("silent_p999_ratio", [one[1] / other[1] for one, other in zip(beside, alone)], 3)
    report.note("alone_spread_ratio", [each[1] / alone[0][1] for each in alone], 3)


CASES: dict[str, Case] = {"kept": _kept, "silent": _silent}


if __name__ == "__main__":
    sys.exit(measure("tls", __doc__, CASES))
