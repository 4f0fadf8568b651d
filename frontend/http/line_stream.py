"""Answers a request that streams events as lines: replies go out in order while lines come in, in bounded memory.

The scoring route makes one `LineStream` for each such request.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from frontend.access.permission import CHECK_S, Permission, PermissionEndedError
from frontend.http.asgi import NDJSON_TYPE, GoneError, Receive, Send, answer, encoder
from frontend.http.in_flight import InFlight
from frontend.http.lines import Line, LineSplitter, TooLong, blocks
from frontend.http.receipt import Receipt
from frontend.http.score_options import ScoreOptions
from frontend.problems import ProblemError, problem
from frontend.samples.samples import Samples
from frontend.scoring.scoring import Answer, Scoring
from frontend.scoring.scoring_thread import InOrder
from railgun.config.settings import HttpSettings

BLOCKS_IN_FLIGHT_MAX = 4
# A client that does not read may hold one part in so many of all bytes that may be in flight.
_UNSENT_SHARE = 4

Stopping = asyncio.Event


@dataclass(slots=True)
class _Block:
    """n lines that are scored together.

    size_bytes: how many bytes are counted in flight for them.
    lines: the lines, if some of them may be sampled.
    """

    answers: asyncio.Future[list[Answer | None]]
    n: int
    size_bytes: int
    lines: Sequence[Line] = ()


class LineStream:
    """A request with lines. One task reads lines and submits them in blocks, one encodes answers, one sends them.

    A client may send all its lines before it reads. Replies that it has not read are kept, within `_UNSENT_SHARE`.

    samples: takes some of the events, once they are answered; None: none are taken.
    """

    def __init__(
        self,
        scoring: Scoring,
        settings: HttpSettings,
        in_flight: InFlight,
        stopping: Stopping,
        permission: Permission,
        samples: Samples | None = None,
    ) -> None:
        self._samples = samples
        self._scoring, self._settings, self._in_flight = scoring, settings, in_flight
        self._stopping, self._permission = stopping, permission
        self._splitter = LineSplitter(settings.body_limit_bytes)
        self._kept_bytes = 0
        self._blocks: deque[_Block] = deque()
        self._encoded: deque[bytes] = deque()
        self._encoded_bytes = 0
        self._receipt = Receipt()
        self._is_read = self._is_encoded = self._has_failed = self._is_held_up = self._is_taken = False
        self._in_order = InOrder()
        self._check_due_s = 0.0
        self._changed = asyncio.Condition()

    async def answer(self, stream: str, options: ScoreOptions, receive: Receive, send: Send) -> int:
        """Answer the request and return the status.

        Raises ProblemError only before a byte of the answer is sent; GoneError if the client went away.
        """
        made = self._encode(stream, options), self._send(options, send)
        tasks = [asyncio.ensure_future(each) for each in made]
        out = asyncio.gather(*tasks)
        try:
            await self._read(stream, options, receive, out)
            await self._tell(is_read=True)
            await out
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, out, return_exceptions=True)
            for block in self._blocks:
                block.answers.cancel()
                self._in_flight.release(0, block.size_bytes)
            self._in_flight.release(0, self._kept_bytes + self._encoded_bytes)
        return 200 if options.reply else 202

    def is_at_work(self) -> bool:
        """Whether the client waits for the server: lines wait for room, or blocks wait for answers."""
        return self._is_held_up or bool(self._blocks)

    # --- in ----------------------------------------------------------------------------------------

    async def _read(
        self, stream: str, options: ScoreOptions, receive: Receive, out: asyncio.Future[Any]
    ) -> None:
        stop = asyncio.ensure_future(self._stopping.wait())
        self._check_due_s = asyncio.get_running_loop().time() + CHECK_S
        try:
            more = True
            while more and not self._has_failed:
                piece, more = await self._piece(receive, stop, out)
                lines = self._splitter.feed(piece)
                if not more:
                    lines += self._splitter.end()
                self._is_held_up = True
                await self._keep(self._splitter.held_bytes)
                for block in blocks(lines):
                    await self._submit_in_turn(stream, options, block)
                self._is_held_up = False
        except ProblemError as error:
            await self._end_with(error)
        finally:
            self._is_held_up = False
            stop.cancel()

    async def _piece(
        self, receive: Receive, stop: asyncio.Future[Any], out: asyncio.Future[Any]
    ) -> tuple[bytes, bool]:
        """Return the next piece of the body, and whether more follow. None follow once the server stops."""
        arriving = asyncio.ensure_future(receive())
        try:
            await self._wait(arriving, stop, out)
        except PermissionEndedError:
            arriving.cancel()
            raise
        if not arriving.done():
            arriving.cancel()
            self._splitter = LineSplitter(self._settings.body_limit_bytes)
            return b"", False
        message = arriving.result()
        if message["type"] == "http.disconnect":
            raise GoneError
        return message["body"], message.get("more_body", False)

    async def _wait(self, *awaited: asyncio.Future[Any]) -> None:
        """Wait until one of the futures is done. Raises PermissionEndedError.

        The permission is checked every `CHECK_S`, even if a client sends often, and little at a time.
        """
        loop, is_done = asyncio.get_running_loop(), False
        while not is_done:
            left_s = max(0.0, self._check_due_s - loop.time())
            done, _ = await asyncio.wait(awaited, timeout=left_s, return_when=asyncio.FIRST_COMPLETED)
            is_done = bool(done)
            if loop.time() >= self._check_due_s:
                self._check_due_s = loop.time() + CHECK_S
                self._permission.check()

    async def _submit_in_turn(self, stream: str, options: ScoreOptions, lines: Sequence[Line]) -> None:
        """Submit lines as fast as the token may send them. Raises PermissionEndedError."""
        while lines and await self._room():
            n = await self._permission.turn(len(lines), lambda: self._has_failed or self._stopping.is_set())
            await self._submit(stream, options, lines[:n])
            lines = lines[n:]

    async def _end_with(self, error: ProblemError) -> None:
        """End the answer with a line that says why. If no line was taken, raise the error: the request is refused."""
        if not self._blocks and not self._is_taken:
            raise error
        answers: asyncio.Future[list[Answer | None]] = asyncio.get_running_loop().create_future()
        answers.set_result([error.problem])
        async with self._changed:
            self._blocks.append(_Block(answers, 1, 0))
            self._changed.notify_all()

    async def _keep(self, size_bytes: int) -> None:
        """Count the bytes of a line that is not whole yet. Raises ProblemError if there is no room for them; once lines
        were taken, only if there is none for as long as a request may take, since an answer may have begun.
        """
        self._in_flight.release(0, self._kept_bytes)
        self._kept_bytes = 0
        if not size_bytes:
            return
        if self._blocks or self._is_taken:
            timeout_s, check = self._settings.timeout_ms / 1000, self._permission.check
            await self._in_flight.wait(0, size_bytes, timeout_s, check, CHECK_S)
        else:
            self._in_flight.take(0, size_bytes)
        self._kept_bytes = size_bytes

    async def _room(self) -> bool:
        """Wait until another block may be submitted. Return False if the request has failed.

        The first block goes alone: if it is refused, the whole request is, and nothing else of it may have been taken.
        Raises PermissionEndedError, since a client that does not read can make this wait long.
        """
        async with self._changed:
            while not self._has_room():
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(CHECK_S):
                        await self._changed.wait_for(self._has_room)
                self._permission.check()
            return not self._has_failed

    def _has_room(self) -> bool:
        """Whether another block may be submitted, or the request has failed."""
        blocks_max = BLOCKS_IN_FLIGHT_MAX if self._is_taken else 1
        unsent_max = self._in_flight.bytes_limit // _UNSENT_SHARE
        return self._has_failed or (len(self._blocks) < blocks_max and self._encoded_bytes < unsent_max)

    async def _submit(self, stream: str, options: ScoreOptions, lines: Sequence[Line]) -> None:
        texts = [line for line in lines if not isinstance(line, TooLong)]
        size_bytes = sum(map(len, texts))
        answers: asyncio.Future[list[Answer | None]]
        try:
            timeout_s, check = self._settings.timeout_ms / 1000, self._permission.check
            await self._in_flight.wait(len(texts), size_bytes, timeout_s, check, CHECK_S)
            answers = asyncio.ensure_future(self._score(stream, options, lines, texts))
        except ProblemError as error:
            self._permission.give_back(len(lines))
            if not self._is_taken or isinstance(error, PermissionEndedError):
                raise
            # Lines before these were taken, so only these are refused.
            answers, size_bytes = asyncio.get_running_loop().create_future(), 0
            answers.set_result([error.problem] * len(lines))
        async with self._changed:
            kept = () if self._samples is None else lines
            self._blocks.append(_Block(answers, len(lines), size_bytes, kept))
            self._changed.notify_all()

    async def _score(
        self, stream: str, options: ScoreOptions, lines: Sequence[Line], texts: Sequence[bytes]
    ) -> list[Answer | None]:
        try:
            found: list[Answer | None] = list(
                await self._scoring.score(
                    stream,
                    texts,
                    metrics=options.metrics,
                    timeout_ms=options.timeout_ms or self._settings.timeout_ms,
                    takes_partial=options.takes_partial,
                    reply=options.reply,
                    in_order=self._in_order,
                )
            )
        finally:
            self._in_flight.release(len(texts), 0)
        if len(texts) == len(lines):
            return found
        limit = self._settings.body_limit_bytes
        answers = iter(found)
        return [
            problem(413, f"a line of more than {limit} bytes") if isinstance(line, TooLong) else next(answers)
            for line in lines
        ]

    # --- out ---------------------------------------------------------------------------------------

    async def _tell(self, *, is_read: bool = False, is_encoded: bool = False, is_taken: bool = False) -> None:
        async with self._changed:
            self._is_read, self._is_encoded = self._is_read or is_read, self._is_encoded or is_encoded
            self._is_taken = self._is_taken or is_taken
            self._changed.notify_all()

    async def _encode(self, stream: str, options: ScoreOptions) -> None:
        """Encode the answers of blocks, in order. Raises ProblemError if the first block was refused as a whole."""
        is_first = True
        while True:
            async with self._changed:
                await self._changed.wait_for(lambda: self._blocks or self._is_read)
            if not self._blocks:
                break
            try:
                answers = await self._answers(self._blocks[0], is_first)
            except BaseException:
                self._has_failed = True
                await self._tell()
                raise
            if is_first:
                is_first = False
                await self._tell(is_taken=True)
            if options.reply:
                made = encoder.encode_lines(answers)
                self._encoded.append(made)
                self._encoded_bytes += len(made)
                # It is counted without a check. `_has_room` checked the unsent bytes before the block was submitted.
                self._in_flight.size_bytes += len(made)
            else:
                self._receipt.note(answers)
            block = self._blocks.popleft()
            self._in_flight.release(0, block.size_bytes)
            await self._tell()
            if self._samples is not None and block.lines:
                self._samples.take(stream, block.lines, answers)
        await self._tell(is_encoded=True)

    async def _answers(self, block: _Block, is_first: bool) -> list[Answer | None]:
        try:
            return await block.answers
        except ProblemError as error:
            if is_first:
                raise
            # Its text may be for this caller alone.
            block.lines = ()
            return [self._permission.for_caller(error).problem] * block.n

    async def _send(self, options: ScoreOptions, send: Send) -> None:
        started = False
        while True:
            async with self._changed:
                await self._changed.wait_for(lambda: self._encoded or self._is_encoded)
            if not self._encoded:
                break
            if not started:
                await send(_START)
                started = True
            piece = b"".join(self._encoded)
            self._encoded.clear()
            await send({"type": "http.response.body", "body": piece, "more_body": True})
            self._encoded_bytes -= len(piece)
            self._in_flight.release(0, len(piece))
            await self._tell()
        if not options.reply:
            await answer(send, 202, encoder.encode(self._receipt))
        else:
            if not started:
                await send(_START)
            await send({"type": "http.response.body", "body": b""})


_START = {"type": "http.response.start", "status": 200, "headers": [(b"content-type", NDJSON_TYPE)]}
