"""What it costs the event loop to decide about a single event, of all that it does for one, and to look at answers.

    python -m bench.access [--runs N] [--scale F]

A connection of a server is handed the bytes of requests in this process, without a socket, and the backend answers at
once: what is left is to read a request, to decide about it, and to write an answer. Prints a line per figure with the
median and the spread over the runs, and at the end one line of JSON. docs/measuring.md says what each figure is.
"""

import asyncio
import sys
import time
from collections.abc import Callable
from typing import Any, cast

import uvicorn
from msgspec import defstruct
from uvicorn.server import ServerState

from bench.command_line import Case, measure
from bench.report import Report
from frontend.access.masks import Masks
from frontend.backend.live_figures import Way
from frontend.http.connection import Connection, connection_type
from frontend.http.in_flight import InFlight
from frontend.http.single_events import SingleEvents
from frontend.live.answered import Answered
from frontend.samples.samples import Samples
from frontend.scoring.noted import ROWS_MAX, note_answers
from frontend.scoring.scoring import Scoring
from railgun.access.browsers import RESPONSE_HEADERS
from railgun.access.guard import Guard
from railgun.access.tokens import Token, hash_of, new_token
from railgun.catalog.catalog import Catalog, missing_changes
from railgun.catalog.definitions import parse_definitions
from railgun.config.settings import ConsoleSettings, HttpSettings
from railgun.ingest.replies import Reply
from railgun.registry import evolution
from railgun.telemetry.recording import StreamRecord

_ROUNDS, _REQUESTS = 60, 2_000
_DEFINITIONS = """
[streams.payments]
time = "ts"
id = "tx_id"
partitioners = ["card", "merchant"]
[streams.payments.fields]
tx_id = "string"
ts = "timestamp"
card = "string"
merchant = "string"
amount = "double"
"""
_BODY = b'{"tx_id": "a", "ts": 1700000000000, "card": "c1", "merchant": "m1", "amount": 12.5}'


class _Backend:
    """A backend that answers at once."""

    _reply = Reply("a", 1_700_000_000_000, {"card_count_7d": 3, "card_sum_7d": 12.5})

    def view(self, stream: str) -> None:
        """Return nothing: no request of this bench names metrics, so the view is not read."""

    def submit(self, stream: str, text: bytes, *, tell: Callable[[Reply], None], **_: Any) -> None:
        """Answer an event at once."""
        tell(self._reply)


class _Transport(asyncio.Transport):
    """Takes answers, counts them and drops them. answers: how many came."""

    answers = 0

    def is_closing(self) -> bool:
        return False

    def write(self, data: object) -> None:
        self.answers += 1


def answering_at_once(guard: Guard, samples: Samples | None = None) -> Callable[[], Connection]:
    """Return a function that makes connections of a server with a guard, whose backend answers at once.

    samples: takes some of the events; None: none are taken.
    """
    settings = HttpSettings()
    events = SingleEvents(cast(Scoring, _Backend()), settings, InFlight(1_000, 1 << 20), guard, samples)

    async def application(scope: object, receive: object, send: object) -> None:
        raise AssertionError("each request is a single event that may be scored")

    kind = connection_type(settings.connections_limit, settings.keep_alive_s, events)
    config = uvicorn.Config(
        application,
        http=kind,
        interface="asgi3",
        log_config=None,
        proxy_headers=False,
        headers=[*RESPONSE_HEADERS],
    )
    config.load()
    state = ServerState()
    state.default_headers = [(b"date", b"Fri, 27 Nov 2026 22:00:00 GMT"), *config.encoded_headers]
    return lambda: kind(config, state, {})


def _samples() -> Samples:
    """Return what takes some of the events into memory, as `[console] samples = 200` has it."""
    catalog, definitions = Catalog(), parse_definitions(_DEFINITIONS)
    for change in missing_changes(catalog, definitions)[0]:
        catalog.apply(change)
    return Samples(ConsoleSettings(samples=200), lambda: catalog.streams, Masks())


def _connection(guard: Guard, transport: _Transport, samples: Samples | None = None) -> Connection:
    made = answering_at_once(guard, samples)()
    made.connection_made(transport)
    return made


def _request(token: str | None) -> bytes:
    head = "POST /v1/streams/payments/events HTTP/1.1\r\nhost: 127.0.0.1:8080\r\n"
    if token is not None:
        head += f"authorization: Bearer {token}\r\n"
    head += f"content-type: application/json\r\ncontent-length: {len(_BODY)}\r\n\r\n"
    return head.encode() + _BODY


async def _least_us(rounds: int) -> tuple[float, float, float]:
    """Return the CPU time per event in µs: plain, with a token, and with samples. Each is the least of many rounds.

    The three take turns.
    """
    token = new_token()
    tokens = [Token("bench", (hash_of(token.encode()),), ("score:payments",))]
    least: list[float] = []
    cases = []
    for guard, sent, samples in (
        (Guard(), None, None),
        (Guard(tokens), token, None),
        (Guard(), None, _samples()),
    ):
        transport = _Transport()
        cases.append((_connection(guard, transport, samples), transport, _request(sent)))
        least.append(float("inf"))
    for _ in range(rounds):
        for place, (connection, transport, request) in enumerate(cases):
            before, begun_s = transport.answers, time.process_time()
            for _ in range(_REQUESTS):
                connection.data_received(request)
            least[place] = min(least[place], (time.process_time() - begun_s) / _REQUESTS * 1e6)
            assert transport.answers - before == _REQUESTS
    return least[0], least[1], least[2]


def _single(report: Report) -> None:
    found = [asyncio.run(_least_us(max(3, int(_ROUNDS * report.scale)))) for _ in range(report.runs)]
    report.note("event_us", [plain for plain, _, _ in found], 2)
    report.note("event_with_token_us", [having for _, having, _ in found], 2)
    report.note("token_extra_us", [having - plain for plain, having, _ in found], 2)
    report.note("samples_extra_us", [sampled - plain for plain, _, sampled in found], 2)


_METRICS, _LOOKS = 40, 50


def _sampled(report: Report) -> None:
    """What it costs to say what metrics were answered lately, of one stream that has many metrics."""
    queries = "".join(
        f"[[metrics]]\nsql = 'SELECT sum(amount + {number}) AS m{number} FROM payments OVER INFINITE'\n"
        for number in range(_METRICS)
    )
    definitions = parse_definitions(
        f'[streams.payments]\n[streams.payments.fields]\namount = "double"\n{queries}'
    )
    streams = Catalog(evolution.missing(Catalog(), definitions)).streams
    kind = defstruct("Metrics", [(f"m{number}", float) for number in range(_METRICS)], gc=False)
    reply = Reply("a", 1_700_000_000_000, kind(*(1.5 * number for number in range(_METRICS))))
    record = StreamRecord()
    answered = Answered(lambda: streams, Masks(), lambda: 1_700_000_000_000)

    async def look_ms() -> float:
        begun_s = time.process_time()
        for _ in range(_LOOKS):
            answered.tick([("payments", Way.HTTP, record)])
            note_answers(record, [reply] * ROWS_MAX)
            await answered.digest()
        return (time.process_time() - begun_s) / _LOOKS * 1e3

    rounds = max(3, int(_ROUNDS * report.scale))
    looks = [min(asyncio.run(look_ms()) for _ in range(rounds)) for _ in range(report.runs)]
    report.note("answered_ms_a_second", looks, 3)


CASES: dict[str, Case] = {"single": _single, "sampled": _sampled}


if __name__ == "__main__":
    sys.exit(measure("access", __doc__, CASES))
