"""Lines of one request: scored in their order however they come in, none where the first of them are refused."""

import asyncio
import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

import pytest

from frontend.access.permission import Permission, PermissionEndedError
from frontend.http.in_flight import InFlight
from frontend.http.line_stream import LineStream
from frontend.http.score_options import ScoreOptions
from frontend.problems import ProblemError, refusal
from frontend.scoring.scoring import Scoring
from railgun.access.guard import ANONYMOUS, Caller, Guard
from railgun.access.routes import RouteMatch
from railgun.access.scopes import Scopes
from railgun.access.tokens import Token
from railgun.config.settings import HttpSettings
from tests.frontend.serving import Server

_EVENTS = "/v1/streams/payments/events"
_NDJSON = {"Content-Type": "application/x-ndjson"}


def test_lines_count_in_their_order(shared: Server, event: Callable[..., dict[str, Any]]) -> None:
    card = event()["card"]
    lines = [json.dumps(event(card=card)).encode() + b"\n" for _ in range(20_000)]

    def pieces() -> Iterator[bytes]:
        """As a network may cut them: whole blocks of lines, and a few lines behind them."""
        first = 0
        while first < len(lines):
            for size in (1_024, 3):
                yield b"".join(lines[first : first + size])
                first += size

    answers = shared.client.post(_EVENTS, content=pieces(), headers=_NDJSON).content.splitlines()
    assert [json.loads(each)["metrics"]["n7"] for each in answers] == list(range(1, len(lines) + 1))


class _Refusing:
    """Refuses what comes first, as a server does that is not ready yet, and takes what comes then."""

    def __init__(self) -> None:
        self.pending: list[int] = []

    async def score(self, stream: str, texts: Sequence[bytes], **more: object) -> list[object]:
        self.pending.append(len(texts))
        # Whoever would send more meanwhile may.
        await asyncio.sleep(0.05)
        if len(self.pending) == 1:
            raise refusal(503, "starting")
        return [None] * len(texts)


def test_of_a_request_whose_first_lines_are_refused_none_is_taken() -> None:
    async def play() -> None:
        backend, settings = _Refusing(), HttpSettings()
        pieces = [b"{}\n" * 1_024] * 5

        async def receive() -> dict[str, object]:
            return {"type": "http.request", "body": pieces.pop(), "more_body": bool(pieces)}

        async def send(message: object) -> None:
            raise AssertionError(f"nothing is to be sent: {message}")

        anybody = Permission(Guard(), ANONYMOUS, RouteMatch(None, {}, {}))
        stream = LineStream(
            cast(Scoring, backend), settings, InFlight(100_000, 1 << 26), asyncio.Event(), anybody
        )
        with pytest.raises(ProblemError, match="starting"):
            await stream.answer("s", ScoreOptions(reply=False), receive, send)
        assert backend.pending == [1_024]

    asyncio.run(play())


class _Taking:
    """Takes everything."""

    async def score(self, stream: str, texts: Sequence[bytes], **more: object) -> list[object]:
        return [None] * len(texts)


class _Watched(Permission):
    """ended: set once it is noticed that the token is good no more."""

    def __init__(self, guard: Guard, caller: Caller) -> None:
        super().__init__(guard, caller, RouteMatch(None, {}, {}))
        self.ended = asyncio.Event()

    def check(self) -> None:
        try:
            super().check()
        except PermissionEndedError:
            self.ended.set()
            raise


@pytest.mark.parametrize("piece", [b"\n", b"x"])
def test_the_token_is_looked_at_however_little_comes_however_often(
    monkeypatch: pytest.MonkeyPatch, piece: bytes
) -> None:
    """A client that never lets a second pass, and sends no whole line."""
    monkeypatch.setattr("frontend.http.line_stream.CHECK_S", 0.1)
    pieces, last = 0, 300

    async def play() -> None:
        guard = Guard([Token("a", (b"a" * 32,), ("*",))])
        permission = _Watched(guard, Caller("a", Scopes(("*",)), b"a" * 32))

        async def receive() -> dict[str, object]:
            nonlocal pieces
            pieces += 1
            if pieces == 3:
                guard.replace([Token("b", (b"b" * 32,), ("*",))])
            await asyncio.sleep(0.01)
            return {"type": "http.request", "body": piece, "more_body": pieces < last}

        async def send(message: object) -> None:
            raise AssertionError(f"nothing is to be sent: {message}")

        stream = LineStream(
            cast(Scoring, _Taking()), HttpSettings(), InFlight(100, 1 << 16), asyncio.Event(), permission
        )
        with pytest.raises(PermissionEndedError):
            await stream.answer("s", ScoreOptions(reply=False), receive, send)

    asyncio.run(play())
    assert pieces < last


@pytest.mark.parametrize("is_full", [False, True])
def test_the_token_is_looked_at_while_lines_wait(monkeypatch: pytest.MonkeyPatch, is_full: bool) -> None:
    """For a client that does not read its replies; for room, where others have taken all there is."""
    monkeypatch.setattr("frontend.http.line_stream.CHECK_S", 0.01)

    async def play() -> None:
        guard, in_flight = Guard([Token("a", (b"a" * 32,), ("*",))]), InFlight(10_000, 1 << 16)
        if is_full:
            in_flight.take(10_000, 0)
        permission = _Watched(guard, Caller("a", Scopes(("*",)), b"a" * 32))

        async def receive() -> dict[str, object]:
            return {"type": "http.request", "body": b"{}\n" * 1_024, "more_body": True}

        async def send(message: object) -> None:
            await asyncio.Event().wait()

        stream = LineStream(cast(Scoring, _Taking()), HttpSettings(), in_flight, asyncio.Event(), permission)
        answering = asyncio.ensure_future(stream.answer("s", ScoreOptions(), receive, send))
        # By then it waits.
        await asyncio.sleep(0.1)
        assert not permission.ended.is_set()
        assert not answering.done()
        guard.replace([Token("b", (b"b" * 32,), ("*",))])
        try:
            await asyncio.wait_for(permission.ended.wait(), 10.0)
        finally:
            answering.cancel()
            await asyncio.gather(answering, return_exceptions=True)

    asyncio.run(play())


@pytest.mark.parametrize("comes_free", [True, False])
def test_an_answer_that_has_begun_goes_on_where_there_is_no_room_for_a_part_of_a_line(
    *, comes_free: bool
) -> None:
    """Other clients have taken all room meanwhile. An error would end the connection within the body."""
    sent: list[Any] = []

    async def play() -> None:
        in_flight, begun, full = InFlight(10_000, 1 << 16), asyncio.Event(), (1 << 16) - 2
        pieces = iter([b"{}\n", b"{   ", b"}\n"])

        async def receive() -> dict[str, object]:
            piece = next(pieces)
            if piece == b"{   ":
                await begun.wait()
                in_flight.take(0, full - in_flight.size_bytes)
                if comes_free:
                    asyncio.get_running_loop().call_later(0.1, in_flight.release, 0, full)
            return {"type": "http.request", "body": piece, "more_body": piece != b"}\n"}

        async def send(message: Any) -> None:
            sent.append(message)
            begun.set()

        anybody = Permission(Guard(), ANONYMOUS, RouteMatch(None, {}, {}))
        settings = HttpSettings(timeout_ms=60_000 if comes_free else 200)
        stream = LineStream(cast(Scoring, _Taking()), settings, in_flight, asyncio.Event(), anybody)
        assert await stream.answer("s", ScoreOptions(), receive, send) == 200
        assert (in_flight.events, in_flight.size_bytes) == (0, 0 if comes_free else full)

    asyncio.run(play())
    answers = b"".join(each.get("body", b"") for each in sent).splitlines()
    assert answers[0] == b"null"
    assert len(answers) == 2
    if comes_free:
        assert answers[1] == b"null"
    else:
        assert json.loads(answers[1])["status"] == 429
