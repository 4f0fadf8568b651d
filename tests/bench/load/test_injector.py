"""The injector against a real server: it cannot hide a stall, and it counts whatever is not answered well."""

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from bench.children import ChildFailedError
from bench.load.injector import Injection, inject
from bench.load.lines import payment_lines
from bench.load.order import Order
from bench.load.outcome import FAILED
from bench.load.schedule import Phase, Schedule
from bench.payments import Payments, field_types
from tests.halting import halt

PAYMENTS = Payments(10**12, cards=20, merchants=20, rate_per_s=2000.0, rhythm=False)


class Server:
    """The tiny server as a process."""

    def __init__(self, refused: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("tiny_server.py")), refused],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        self.port = int(self.process.stdout.readline())

    def order(self, schedule: Schedule, **options: object) -> Order:
        return Order("127.0.0.1", self.port, "/v1", schedule, PAYMENTS, **options)  # type: ignore[arg-type]


@pytest.fixture
def server() -> Iterator[Server]:
    with _served() as made:
        yield made


@contextmanager
def _served(refused: str = "nothing") -> Iterator[Server]:
    made = Server(refused)
    try:
        yield made
    finally:
        made.process.send_signal(signal.SIGCONT)
        made.process.kill()
        made.process.communicate()


def test_a_stall_cannot_hide(server: Server) -> None:
    """A server that stands still for S seconds under R requests/s: R (S - x) of them wait longer than x."""
    rate_per_s, connections = 400, 16
    injection = Injection(server.order(Schedule.constant(rate_per_s, 3.0), connections=connections))
    start_ns = injection.start()
    time.sleep(max(0.0, (start_ns - time.monotonic_ns()) / 1e9 + 1.0))
    stopped_s = _stand_still(server.process, 1.0)
    found = injection.outcome()
    assert found.status == {200: 1_200}
    assert found.starved > rate_per_s * (stopped_s - 0.2)
    for limit_s in (0.25, 0.5, 0.75):
        expected = rate_per_s * (stopped_s - limit_s)
        assert found.latencies.above(limit_s * 1000) >= 0.95 * expected - 2
        # Seen from when requests went out, the stall is one slow answer on each connection: the classic mistake. On a
        # machine that stands still itself there are some more.
        assert found.from_send.above(limit_s * 1000) < found.latencies.above(limit_s * 1000) / 2


def _stand_still(process: subprocess.Popen[str], seconds: float) -> float:
    """How long it certainly stood still."""
    halt(process.pid)
    begun = time.monotonic()
    time.sleep(seconds)
    stood_s = time.monotonic() - begun
    process.send_signal(signal.SIGCONT)
    return stood_s


def test_workers_share_a_schedule(server: Server) -> None:
    found = inject(server.order(Schedule((Phase(100, 0.5), Phase(7, 0.0))), connections=3), workers=2)
    assert [len(each) for each in found.by_phase] == [100, 7]
    assert (found.good, found.bad, found.events) == (107, 0, 107)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_refused_line_is_no_good_answer(workers: int) -> None:
    with _served('"c000000003"') as server:
        order = server.order(Schedule.burst(20), events_each=50, ndjson=True, connections=2)
        found = inject(order, workers)
    lines = payment_lines(PAYMENTS, 0, 1_000).buffer.splitlines()
    refused = sum(b'"c000000003"' in line for line in lines)
    assert refused > 0
    assert (found.events, found.bad, found.status) == (1_000, refused, {200: 20})


def test_a_large_body_goes_out_in_pieces(server: Server) -> None:
    found = inject(server.order(Schedule.burst(1), events_each=60_000, ndjson=True, connections=1))
    assert found.status == {200: 1}


def test_a_server_that_dies_is_seen(server: Server) -> None:
    injection = Injection(server.order(Schedule.constant(200, 2.0), connections=4, grace_s=1.0))
    injection.start()
    kill = threading.Timer(0.8, server.process.kill)
    kill.start()
    found = injection.outcome()
    kill.join()
    assert found.events == 400
    assert 0 < found.good < 400
    assert found.good + found.bad == sum(found.status.values())
    assert found.status[0] + found.status[FAILED] == found.bad
    assert found.latencies.above(100) > 0


def test_a_server_that_never_answers_is_given_up(server: Server) -> None:
    injection = Injection(server.order(Schedule.constant(100, 0.2), connections=2, grace_s=0.3))
    halt(server.process.pid)
    injection.start()
    found = injection.outcome()
    assert found.status == {0: 20}
    assert len(found.latencies) == 20
    assert found.latencies.quantile_ms(0.01) > 250


def test_nobody_listens() -> None:
    with _served() as server:
        order = server.order(Schedule.burst(1))
    with pytest.raises(ChildFailedError):
        Injection(order)


def test_an_injection_can_be_stopped(server: Server) -> None:
    injection = Injection(server.order(Schedule.constant(10, 600.0)))
    injection.start()
    injection.stop()


def test_it_stays_on_this_machine() -> None:
    with pytest.raises(ValueError, match="loopback"):
        Order("192.0.2.1", 80, "/", Schedule.burst(1))
    with pytest.raises(ValueError, match="NDJSON"):
        Order("127.0.0.1", 80, "/", Schedule.burst(1), events_each=2)


@pytest.mark.parametrize("fields", [5, 103])
def test_lines_are_the_payments(fields: int) -> None:
    payments = Payments(10**12, fields=fields)
    lines = payment_lines(payments, 65_000, 1_500)
    assert len(lines) == 1_500
    first, *_ = events = [msgspec.json.decode(line) for line in lines.buffer.splitlines()]
    assert [event["tx_id"] for event in events] == [f"t{65_000 + place:012d}" for place in range(1_500)]
    assert list(first) == list(field_types(fields))
    assert isinstance(first["ts"], int)
    assert isinstance(first["amount"], float)
    ends = lines.offsets[1:].tolist()
    assert all(lines.buffer[end - 1 : end] == b"\n" for end in ends)
    assert payment_lines(payments, 66_000, 1).buffer == lines.buffer.splitlines(keepends=True)[1_000]
