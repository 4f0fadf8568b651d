"""`railgun.Client`: a blocking client of a server over HTTP, which threads may share."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

import httpx

from railgun.client import calls, operations
from railgun.client.connection import Arriving, Connected
from railgun.client.errors import ClientError
from railgun.client.events import PART_EVENTS, parts_of
from railgun.client.pool import Pool, PoolClosedError
from railgun.client.replies import EventAnswer, line_answers
from railgun.client.steps import Outcome, Request, Session, Steps, carry_out, describe

P = ParamSpec("P")
T = TypeVar("T")


def _blocking(call: Callable[Concatenate[Session, P], Steps[T]]) -> Callable[Concatenate["Client", P], T]:
    """Make a method that carries out a call and blocks until it is done."""

    def method(self: "Client", /, *arguments: P.args, **options: P.kwargs) -> T:
        return carry_out(call(self._session, *arguments, **options), self._attempt, _slept)

    describe(method, call)
    return method


def _slept(seconds: float) -> float:
    """Sleep, and return how long that took."""
    began_s = time.monotonic()
    time.sleep(seconds)
    return time.monotonic() - began_s


class Client(Connected):
    """A client of the server at `url`, with a pool of connections. Threads may share it.

    Every method raises ClientError. Its kinds are ProblemError if the server refuses, UnreachableError if there is no
    server, and ConnectionLostError if the fate of the request is unknown.
    """

    def _open(self, arguments: dict[str, Any], connections: int) -> None:
        self._pool = Pool(arguments, connections)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._pool.close()

    score = _blocking(calls.score)
    score_batch = _blocking(calls.score_batch)
    score_lines = _blocking(calls.score_lines)
    values = _blocking(calls.values)
    values_of_text = _blocking(calls.values_of_text)
    dead = _blocking(calls.dead)
    samples = _blocking(calls.samples)

    def score_all(
        self,
        stream: str,
        events: Iterable[Mapping[str, Any]],
        *,
        metrics: Sequence[str] | None = None,
        part_events: int = PART_EVENTS,
    ) -> Iterator[EventAnswer]:
        """Send any number of events in order, and yield an answer for each: its reply, or a ProblemError.

        Events are sent as lines, in parts of `part_events`. A part is sent when it is full or the events end. The next
        part is sent after the answers to the one before.
        """
        for part in parts_of(events, part_events):
            try:
                lines = self.score_lines(stream, part, metrics=metrics)
            except ClientError as error:
                yield from line_answers(error.answered, self.url)
                raise
            yield from line_answers(lines, self.url)

    streams = _blocking(calls.streams)
    stream = _blocking(calls.stream)
    metrics = _blocking(calls.metrics)
    plan = _blocking(calls.plan)
    answered = _blocking(calls.answered)
    create_stream = _blocking(calls.create_stream)
    evolve_stream = _blocking(calls.evolve_stream)
    drop_stream = _blocking(calls.drop_stream)
    add_metrics = _blocking(calls.add_metrics)
    drop_metric = _blocking(calls.drop_metric)

    whoami = _blocking(calls.whoami)
    status = _blocking(calls.status)
    live = _blocking(calls.live)
    is_ready = _blocking(calls.is_ready)
    change_log = _blocking(operations.change_log)
    bundle = _blocking(operations.bundle)
    cluster = _blocking(operations.cluster)
    what_if = _blocking(operations.what_if)
    drain = _blocking(operations.drain)
    undrain = _blocking(operations.undrain)
    accept_cut = _blocking(operations.accept_cut)
    accept_gap = _blocking(operations.accept_gap)
    begin_deepening = _blocking(operations.begin_deepening)
    install_deepening = _blocking(operations.install_deepening)
    deepening = _blocking(operations.deepening)
    give_up_deepening = _blocking(operations.give_up_deepening)

    # --- steps -------------------------------------------------------------------------------------

    def _attempt(self, request: Request) -> Outcome:
        arriving = Arriving(self._session, request)
        try:
            with (
                self._pool.lent(request.timeout_s) as http,
                http.stream(**arriving.for_httpx()) as response,
            ):
                arriving.begin(response)
                for piece in response.iter_bytes():
                    arriving.content += piece
        except httpx.HTTPError as error:
            return arriving.failure(error)
        except PoolClosedError:
            return arriving.closed()
        return arriving.answer(response)
