"""What TLS costs single events, and what it does to them when many connections do nothing.

    python -m bench.tls [--only NAME ...] [--runs N] [--scale F]

`loop`: the CPU time of the event loop alone, with a backend that answers at once. `kept`: two servers, one of them with
TLS, get single events at 500/s over kept connections in turn. `silent`, `one-byte`, `half-closed`, `idle`, `idle-kept`:
one with TLS, with and without 2,000 connections that do nothing of use, each opened again when it has been ended.
Prints a line per figure with the median and the spread over the runs, and at the end one line of JSON.
docs/measuring.md says what each figure is.
"""

import asyncio
import contextlib
import resource
import selectors
import shutil
import socket
import ssl
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import trustme
import uvloop

from bench.access import answering_at_once
from bench.command_line import Case, measure
from bench.http_run import PATH, Target, check
from bench.load.injector import Injection
from bench.load.order import Order
from bench.load.schedule import Schedule
from bench.report import Report
from bench.service import Service
from bench.unit_cases import THROUGHPUT
from frontend.http.handshakes import TlsServer
from railgun.access.certificate_files import CertificateFiles, read_certificates
from railgun.access.guard import Guard
from railgun.access.tls import HANDSHAKE_S, Certificates, Tls

_WORKLOAD = THROUGHPUT["payments_1x3"]
_RATE_PER_S, _SECONDS, _CONNECTIONS = 500, 30.0, 128
_LOOP_REQUESTS, _LOOP_ROUNDS = 10_000, 5
_IDLE, _OPENED_WITHIN_S, _LOOKED_EVERY_S = 2_000, HANDSHAKE_S, 0.05
_A_BYTE = b"\x16"
"""The first byte of a handshake."""
_ALIVE = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"


def _files(folder: Path) -> dict[str, str]:
    """Make a server's certificate and key, and its CA. Returns the names of the files."""
    files = {name: str(folder / name) for name in ("ca.pem", "server.crt", "server.key")}
    authority = trustme.CA()
    pair = authority.issue_cert("127.0.0.1")
    authority.cert_pem.write_to_path(files["ca.pem"])
    pair.cert_chain_pems[0].write_to_path(files["server.crt"])
    pair.private_key_pem.write_to_path(files["server.key"])
    return files


@contextmanager
def _served(*, has_tls: bool) -> Iterator[Target]:
    """Yield a server on a clean folder, warmed up. With TLS it takes twice as many connections as will idle."""
    folder = Path(tempfile.mkdtemp(prefix="railgun-bench-"))
    environment: dict[str, str] = {}
    ca = None
    if has_tls:
        files = _files(folder)
        ca = files["ca.pem"]
        environment = {
            "RAILGUN_HTTP__TLS__CERTIFICATE": files["server.crt"],
            "RAILGUN_HTTP__TLS__KEY": files["server.key"],
            "RAILGUN_HTTP__CONNECTIONS_LIMIT": str(2 * _IDLE),
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

    beside: what is done meanwhile. It begins first: the server ends connections that say nothing for 10 s, those that
    are to carry events too.
    """
    order = target.order(Schedule.constant(_RATE_PER_S, seconds), connections=_CONNECTIONS)
    with beside or contextlib.nullcontext():
        injection = Injection(order)
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
    # The ratio of two measurements of the same server shows the noise.
    report.note("plain_p999_ratio", [each[1] / plain[0][1] for each in plain], 3)


Open = Callable[[tuple[str, int], ssl.SSLContext], socket.socket]
"""Opens a connection, and sends on it what its kind of client sends."""


def _say_nothing(address: tuple[str, int], context: ssl.SSLContext) -> socket.socket:
    return socket.create_connection(address, 5.0)


def _send_a_byte(address: tuple[str, int], context: ssl.SSLContext) -> socket.socket:
    made = _say_nothing(address, context)
    made.sendall(_A_BYTE)
    return made


def _close_half(address: tuple[str, int], context: ssl.SSLContext) -> socket.socket:
    made = _send_a_byte(address, context)
    made.shutdown(socket.SHUT_WR)
    return made


def _shake_hands(address: tuple[str, int], context: ssl.SSLContext) -> socket.socket:
    return context.wrap_socket(_say_nothing(address, context), server_hostname=address[0])


def _ask_once(address: tuple[str, int], context: ssl.SSLContext) -> socket.socket:
    made = _shake_hands(address, context)
    made.sendall(_ALIVE)
    made.recv(1 << 12)
    return made


class _Beside:
    """Connections that do nothing of use, as many as are asked for, each opened again when the server has ended it, and
    at the earliest after as long as a handshake may take.

    They are opened one after another, over as long as that, so that they end one after another.
    """

    def __init__(self, open_one: Callable[[], socket.socket], count: int) -> None:
        self._open_one, self._count = open_one, count
        self._selector = selectors.DefaultSelector()
        self._due_s: list[float] = []
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="beside")

    def __enter__(self) -> None:
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        for _ in range(self._count):
            self._open()
            time.sleep(_OPENED_WITHIN_S / self._count)
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()
        for key in list(self._selector.get_map().values()):
            key.fileobj.close()  # type: ignore[union-attr]
        self._selector.close()

    def _open(self) -> None:
        made = self._open_one()
        made.setblocking(False)
        self._selector.register(made, selectors.EVENT_READ, time.monotonic())

    def _keep(self) -> None:
        while not self._is_over.wait(_LOOKED_EVERY_S):
            for key, _ in self._selector.select(0):
                connection = key.fileobj
                assert isinstance(connection, socket.socket)
                if _is_ended(connection):
                    self._selector.unregister(connection)
                    connection.close()
                    self._due_s.append(key.data + _OPENED_WITHIN_S)
            now_s = time.monotonic()
            due = sum(each <= now_s for each in self._due_s)
            self._due_s = [each for each in self._due_s if each > now_s]
            for _ in range(due):
                self._open()


def _is_ended(connection: socket.socket) -> bool:
    try:
        return not connection.recv(1 << 12)
    except (BlockingIOError, ssl.SSLWantReadError):
        return False
    except OSError:
        return True


def _beside(name: str, open_one: Open, report: Report) -> None:
    """Pairs of measurements, without such connections and with them. name: of the figures."""
    alone: list[tuple[float, float, float]] = []
    beside: list[tuple[float, float, float]] = []
    with _served(has_tls=True) as target:
        address = target.service.host, target.service.port
        context = ssl.create_default_context(cafile=target.service.ca)
        for _ in range(report.runs):
            alone.append(_measured(target, _seconds(report)))
            connections = _Beside(partial(open_one, address, context), _IDLE)
            beside.append(_measured(target, _seconds(report), connections))
    report.note(f"{name}_alone_p999_ms", [each[1] for each in alone], 3)
    report.note(f"{name}_p999_ms", [each[1] for each in beside], 3)
    report.note(f"{name}_p999_ratio", [one[1] / other[1] for one, other in zip(beside, alone)], 3)
    report.note(f"{name}_p50_ratio", [one[0] / other[0] for one, other in zip(beside, alone)], 3)
    # The share of a core that the connections cost. It says more than latencies if other programs run.
    extra_us = [one[2] - other[2] for one, other in zip(beside, alone)]
    report.note(f"{name}_cores", [each * _RATE_PER_S / 1e6 for each in extra_us], 4)
    report.note(f"{name}_alone_spread_ratio", [each[1] / alone[0][1] for each in alone], 3)


async def _loop_us(requests: int, rounds: int, certificates: Certificates, ca: str) -> tuple[float, float]:
    """Return the event loop's CPU time per event, in µs, without TLS and with it: the least of rounds, in turn."""
    make, ports = answering_at_once(Guard()), []
    servers: list[TlsServer | asyncio.AbstractServer] = []
    listeners: list[socket.socket] = []
    for has_tls in (False, True):
        listener = socket.create_server(("127.0.0.1", 0))
        listeners.append(listener)
        ports.append((listener.getsockname()[1], ca if has_tls else None))
        if has_tls:
            servers.append(TlsServer(listener, Tls(certificates), (), 1_000, lambda _: make()))
        else:
            servers.append(await asyncio.get_running_loop().create_server(make, sock=listener))
    least = [float("inf"), float("inf")]
    for _ in range(rounds):
        for place, (port, trusted) in enumerate(ports):
            schedule = Schedule.burst(requests)
            order = Order("127.0.0.1", port, PATH, schedule, _WORKLOAD.payments, connections=4, ca=trusted)
            injection = await asyncio.to_thread(Injection, order)
            begun_s = time.thread_time()
            injection.start()
            outcome = await asyncio.to_thread(injection.outcome)
            least[place] = min(least[place], (time.thread_time() - begun_s) / requests * 1e6)
            check(outcome)
    for server in servers:
        server.close()
        await server.wait_closed()
    for listener in listeners:
        listener.close()
    return least[0], least[1]


def _loop(report: Report) -> None:
    with tempfile.TemporaryDirectory(prefix="railgun-bench-") as folder:
        files = _files(Path(folder))
        certificates = read_certificates(
            CertificateFiles(files["server.crt"], files["server.key"]), time.time()
        )
        requests = max(200, int(_LOOP_REQUESTS * report.scale))
        found = [
            uvloop.run(_loop_us(requests, _LOOP_ROUNDS, certificates, files["ca.pem"]))
            for _ in range(report.runs)
        ]
    report.note("loop_plain_us", [bare for bare, _ in found], 2)
    report.note("loop_tls_us", [tls for _, tls in found], 2)
    report.note("loop_tls_added_us", [tls - bare for bare, tls in found], 2)


CASES: dict[str, Case] = {
    "loop": _loop,
    "kept": _kept,
    "silent": partial(_beside, "silent", _say_nothing),
    "one-byte": partial(_beside, "one_byte", _send_a_byte),
    "half-closed": partial(_beside, "half_closed", _close_half),
    "idle": partial(_beside, "idle", _shake_hands),
    "idle-kept": partial(_beside, "idle_kept", _ask_once),
}


if __name__ == "__main__":
    sys.exit(measure("tls", __doc__, CASES))
