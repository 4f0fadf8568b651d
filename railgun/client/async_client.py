"""`railgun.AsyncClient`: the methods of `railgun.Client` as coroutines for asyncio."""

import asyncio
import time
from collections.abc import (
    AsyncIterable,
    AsyncIterator,
    Callable,
    Coroutine,
    Iterable,
    Mapping,
    Sequence,
)
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

import httpx

from railgun.client import calls, operations
from railgun.client.connection import Arriving, Connected, limits_of
from railgun.client.errors import ClientError
from railgun.client.events import PART_EVENTS, Parts, parts_of
from railgun.client.replies import EventAnswer, line_answers
from railgun.client.steps import Outcome, Pause, Paused, Request, Session, Steps, describe

P = ParamSpec("P")
T = TypeVar("T")


def _awaited(
    call: Callable[Concatenate[Session, P], Steps[T]],
) -> Callable[Concatenate["AsyncClient", P], Coroutine[Any, Any, T]]:
    """Make a coroutine method that carries out a call in the event loop."""

    async def method(self: "AsyncClient", /, *arguments: P.args, **options: P.kwargs) -> T:
        return await self._carry_out(call(self._session, *arguments, **options))

    describe(method, call)
    return method


class AsyncClient(Connected):
    """A client of the server at `url` for one event loop, whose tasks may share it.

    Parameters, methods and errors are described at `Client`.
    """

    def _open(self, arguments: dict[str, Any], connections: int) -> None:
        self._http = httpx.AsyncClient(**arguments, limits=limits_of(connections))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    score = _awaited(calls.score)
    score_batch = _awaited(calls.score_batch)
    score_lines = _awaited(calls.score_lines)
    values = _awaited(calls.values)
    values_of_text = _awaited(calls.values_of_text)
    dead = _awaited(calls.dead)
    samples = _awaited(calls.samples)

    async def score_all(
        self,
        stream: str,
        events: Iterable[Mapping[str, Any]] | AsyncIterable[Mapping[str, Any]],
        *,
        metrics: Sequence[str] | None = None,
        part_events: int = PART_EVENTS,
    ) -> AsyncIterator[EventAnswer]:
        """Send any number of events in order, and yield an answer for each: its reply, or a ProblemError.

        Events are sent as lines, in parts of `part_events`. A part is sent when it is full or the events end. The next
        part is sent after the answers to the one before.
        """
        async for part in _parts(events, part_events):
            try:
                lines = await self.score_lines(stream, part, metrics=metrics)
            except ClientError as error:
                for answer in line_answers(error.answered, self.url):
                    yield answer
                raise
            for answer in line_answers(lines, self.url):
                yield answer

    streams = _awaited(calls.streams)
    stream = _awaited(calls.stream)
    metrics = _awaited(calls.metrics)
    plan = _awaited(calls.plan)
    answered = _awaited(calls.answered)
    create_stream = _awaited(calls.create_stream)
    evolve_stream = _awaited(calls.evolve_stream)
    drop_stream = _awaited(calls.drop_stream)
    add_metrics = _awaited(calls.add_metrics)
    drop_metric = _awaited(calls.drop_metric)

    whoami = _awaited(calls.whoami)
    status = _awaited(calls.status)
    live = _awaited(calls.live)
    is_ready = _awaited(calls.is_ready)
    change_log = _awaited(operations.change_log)
    bundle = _awaited(operations.bundle)
    cluster = _awaited(operations.cluster)
    what_if = _awaited(operations.what_if)
    drain = _awaited(operations.drain)
    undrain = _awaited(operations.undrain)
    accept_cut = _awaited(operations.accept_cut)
    accept_gap = _awaited(operations.accept_gap)
    begin_deepening = _awaited(operations.begin_deepening)
    install_deepening = _awaited(operations.install_deepening)
    deepening = _awaited(operations.deepening)
    give_up_deepening = _awaited(operations.give_up_deepening)

    # --- steps -------------------------------------------------------------------------------------

    async def _carry_out(self, steps: Steps[T]) -> T:
        outcome: Outcome | Paused | None = None
        while True:
            try:
                step = steps.send(outcome)
            except StopIteration as end:
                result: T = end.value
                return result
            if isinstance(step, Pause):
                began_s = time.monotonic()
                await asyncio.sleep(step.seconds)
                outcome = Paused(time.monotonic() - began_s)
            else:
                outcome = await self._attempt(step)

    async def _attempt(self, request: Request) -> Outcome:
        arriving = Arriving(self._session, request)
        try:
            async with self._http.stream(**arriving.for_httpx()) as response:
                arriving.begin(response)
                async for piece in response.aiter_bytes():
                    arriving.content += piece
        except httpx.HTTPError as error:
            return arriving.failure(error)
        except RuntimeError:
            if self._http.is_closed:
                return arriving.closed()
            raise
        return arriving.answer(response)


async def _parts(
    events: Iterable[Mapping[str, Any]] | AsyncIterable[Mapping[str, Any]], part_events: int
) -> AsyncIterator[bytes]:
    """Encode events as lines and yield them in parts. Raises ClientError."""
    if isinstance(events, Iterable):
        for part in parts_of(events, part_events):
            yield part
        return
    parts = Parts(part_events)
    async for event in events:
        if (filled := parts.add(event)) is not None:
            yield filled
    if (rest := parts.rest()) is not None:
        yield rest
