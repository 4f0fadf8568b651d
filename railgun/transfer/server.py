"""The application of a donor's HTTP server, which serving.py runs: answers requests for a snapshot, its manifest and
its files. See FORMAT.md.
"""

import asyncio
import logging
import os
import re
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, NamedTuple
from urllib.parse import unquote

import msgspec

from railgun.task.errors import SnapshotError
from railgun.transfer.figures import Figures
from railgun.transfer.hashing import CHUNK_BYTES
from railgun.transfer.keys import (
    FETCH_HEADER,
    HASHED_HEADER,
    SIGNATURE_HEADER,
    is_signature,
    manifest_signature,
    request_signature,
)
from railgun.transfer.limits import FetchSlots, Rate
from railgun.transfer.snapshots import NoSnapshotError, Snapshots

_UNIT = re.compile(r"[0-9]{1,4}", re.ASCII)
_OFFSET = re.compile(r"[0-9]{1,19}", re.ASCII)
_RANGE = re.compile(r"bytes=([0-9]{1,18})-([0-9]{0,18})", re.ASCII)
_AGAIN_S = 2

_Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
_Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
_log = logging.getLogger("railgun.transfer")


class _Request(NamedTuple):
    method: str
    path: str
    part: str
    fetch: str
    signature: str

    @property
    def words(self) -> list[str]:
        """The parts of the path."""
        return [unquote(each) for each in self.path.split("/")[1:]]


class Application:
    """Answers requests, as an ASGI application. key: with which requests are signed."""

    def __init__(self, snapshots: Snapshots, key: str, rate: Rate, figures: Figures) -> None:
        self._snapshots, self._key, self._rate, self._figures = snapshots, key, rate, figures
        self._slots = FetchSlots()

    async def __call__(self, scope: MutableMapping[str, Any], receive: _Receive, send: _Send) -> None:
        assert scope["type"] == "http"
        request = _read(scope)
        expected = request_signature(self._key, request.method, request.path, request.part, request.fetch)
        if not is_signature(request.signature, expected) or scope["query_string"]:
            await _answer(send, 401, b"the signature is not right; is the key an old one?\n")
            return
        if not self._slots.enter(request.fetch):
            await _answer(send, 503, b"other fetches are served\n", [(b"retry-after", b"%d" % _AGAIN_S)])
            return
        try:
            await self._serve(request, receive, send)
        except NoSnapshotError:
            await _answer(send, 404, b"there is no such snapshot or file\n")
        except SnapshotError as error:
            await _answer(send, 409, f"{error}\n".encode())
        finally:
            self._slots.leave(request.fetch)

    async def _serve(self, request: _Request, receive: _Receive, send: _Send) -> None:
        match request.method, request.words:
            case "GET", ["v1", "units", unit, "snapshots", task, least] if _UNIT.fullmatch(
                unit
            ) and _OFFSET.fullmatch(least):
                name = await self._snapshots.get(int(unit), task, int(least))
                await _answer_when_made(
                    send, None if name is None else msgspec.json.encode({"name": name}), []
                )
            case "GET", ["v1", "snapshots", name, "manifest"]:
                body = await self._snapshots.manifest(name)
                if body is None:
                    header = HASHED_HEADER, str(self._snapshots.hashed(name))
                else:
                    header = SIGNATURE_HEADER, manifest_signature(self._key, name, body)
                await _answer_when_made(send, body, [(header[0].encode(), header[1].encode())])
            case "GET", ["v1", "snapshots", name, "files", *path]:
                gone = asyncio.create_task(_gone(receive))
                try:
                    await self._send_file(name, "/".join(path), request.part, send, gone)
                finally:
                    gone.cancel()
            case "DELETE", ["v1", "fetch"]:
                self._slots.end(request.fetch)
                await _answer(send, 204, b"")
            case _:
                raise NoSnapshotError

    async def _send_file(
        self, name: str, path: str, part: str, send: _Send, gone: asyncio.Task[None]
    ) -> None:
        """Send a part of a file. gone: is done once the fetcher has gone away."""
        with self._snapshots.opened(name, path) as (handle, size):
            found = _part(part, size)
            if found is None:
                await _answer(send, 416, b"", [(b"content-range", b"bytes */%d" % size)])
                return
            at, end = found
            headers = [
                (b"content-length", b"%d" % (end - at)),
                (b"content-type", b"application/octet-stream"),
            ]
            if part:
                headers.append((b"content-range", b"bytes %d-%d/%d" % (at, end - 1, size)))
            start = {"type": "http.response.start", "status": 206 if part else 200, "headers": headers}
            await send(start)
            most = self._rate.chunk_bytes(CHUNK_BYTES)
            while at < end and not gone.done():
                chunk = await asyncio.to_thread(os.pread, handle, min(most, end - at), at)
                if not chunk:
                    # The answer stays too short, and the fetcher notices that.
                    raise EOFError(f"{path} of the snapshot {name} is shorter than its manifest says")
                await self._rate.take(len(chunk))
                at += len(chunk)
                body = {"type": "http.response.body", "body": chunk, "more_body": at < end}
                await send(body)
                self._figures.add("served_bytes_total", len(chunk))
            if found[0] == end:
                await send({"type": "http.response.body", "body": b""})


async def _gone(receive: _Receive) -> None:
    """Return once the client has gone away."""
    while (await receive())["type"] != "http.disconnect":
        pass


def _read(scope: MutableMapping[str, Any]) -> _Request:
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
    return _Request(
        scope["method"],
        scope["raw_path"].decode("latin-1"),
        headers.get("range", ""),
        headers.get(FETCH_HEADER, ""),
        headers.get(SIGNATURE_HEADER, ""),
    )


def _part(part: str, size: int) -> tuple[int, int] | None:
    """Return the offsets of the bytes that a header asks for; None if the file does not have these."""
    if not part:
        return 0, size
    found = _RANGE.fullmatch(part)
    if found is None:
        return None
    begin, end = int(found[1]), min(size, int(found[2]) + 1) if found[2] else size
    return (begin, end) if begin < end else None


async def _answer_when_made(send: _Send, body: bytes | None, headers: list[tuple[bytes, bytes]]) -> None:
    """Answer with what was asked for; with 202 if it is still being made."""
    if body is None:
        await _answer(send, 202, b"", [(b"retry-after", b"0"), *headers])
    else:
        await _answer(send, 200, body, [(b"content-type", b"application/json"), *headers])


async def _answer(
    send: _Send, status: int, body: bytes, headers: list[tuple[bytes, bytes]] | None = None
) -> None:
    length = [] if status == 204 else [(b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": [*length, *(headers or [])]})
    await send({"type": "http.response.body", "body": body})
