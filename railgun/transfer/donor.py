"""Asks a donor (a node with a copy of a task) for a snapshot, for its manifest, and for bytes of its files.

`fetch.py` makes a `Donor` for each node that it tries.
"""

import contextlib
import re
import ssl
import time
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple, Self
from urllib.parse import quote

import httpx
import msgspec

from railgun.transfer.hashing import CHUNK_BYTES
from railgun.transfer.keys import (
    FETCH_HEADER,
    HASHED_HEADER,
    SIGNATURE_HEADER,
    is_signature,
    manifest_signature,
    request_signature,
)
from railgun.transfer.manifest import Manifest, read_manifest

CONNECT_S, STALL_S = 5.0, 10.0
"""A donor that does not take a connection for so long, or sends no byte for so long, is left."""
STANDS_S: Final = 60.0
"""A donor that makes no snapshot for so long, or hashes no byte of it for so long, is left."""
_BODY_BYTES_MAX = 64 << 20
_LINE_CHARS_MAX = 500
_COUNT = re.compile(r"[0-9]{1,18}", re.ASCII)


class DonorError(Exception):
    """A donor cannot be used. The message is one line."""


class DonorBusyError(Exception):
    """A donor serves other fetches at present."""


class DonorAddress(NamedTuple):
    """Where a node serves snapshots, and the key of its start. url: empty if it serves none."""

    url: str
    key: str


class _Named(msgspec.Struct):
    name: str


class Donor:
    """A connection to a donor. One thread uses it. Each method raises DonorError and DonorBusyError.

    fetch: the random name of the fetch.
    tls: verifies the donor's certificate.
    waits: is called often while a call waits for the donor, with the number of bytes that the donor has hashed. It
        raises an error if the call is to stop.
    """

    def __init__(
        self, address: DonorAddress, fetch: str, tls: ssl.SSLContext | bool, waits: Callable[[int], object]
    ) -> None:
        self._key, self._fetch, self._waits = address.key, fetch, waits
        self._is_gone = False
        self._client = httpx.Client(
            base_url=address.url,
            verify=tls,
            trust_env=False,
            timeout=httpx.Timeout(STALL_S, connect=CONNECT_S),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        """Tell a donor that is not gone that the fetch has ended, so that it serves others."""
        with contextlib.suppress(httpx.HTTPError):
            if not self._is_gone:
                self._client.send(self._request("DELETE", "/v1/fetch"))
        self._client.close()

    def snapshot(self, unit: int, task: str, least: int = 0) -> str:
        """Return the name of a snapshot of a task at an offset or later. Waits until it is made."""
        body = self._made(f"/v1/units/{unit}/snapshots/{quote(task, safe='')}/{least}").content
        try:
            return msgspec.json.decode(body, type=_Named).name
        except msgspec.MsgspecError as error:
            raise DonorError(f"it has sent no name of a snapshot: {error}") from None

    def manifest(self, name: str) -> Manifest:
        """Return the manifest of a snapshot. Raises ManifestError too."""
        answer = self._made(f"/v1/snapshots/{quote(name, safe='')}/manifest")
        expected = manifest_signature(self._key, name, answer.content)
        if not is_signature(answer.headers.get(SIGNATURE_HEADER, ""), expected):
            raise DonorError("the signature of its manifest is not right")
        return read_manifest(answer.content)

    def content(self, name: str, path: str, begin: int) -> Iterator[bytes]:
        """Yield the bytes of a file from an offset on."""
        request = self._request("GET", f"/v1/snapshots/{quote(name, safe='')}/files/{quote(path)}", begin)
        try:
            answer = self._client.send(request, stream=True)
            try:
                if answer.status_code not in (200, 206):
                    answer.read()
                    raise _refused(answer)
                # In pieces as they come: those of a slow line are progress too.
                yield from answer.iter_raw()
            finally:
                answer.close()
        except httpx.HTTPError as error:
            raise self._gone(error) from None

    def _gone(self, error: httpx.HTTPError) -> DonorError:
        self._is_gone = True
        return DonorError(_told(error))

    def _made(self, path: str) -> httpx.Response:
        """Ask until what is being made is there."""
        most, grown_s = 0, time.monotonic()
        while True:
            answer = self._answer(path)
            if answer.status_code == 200:
                return answer
            if answer.status_code != 202:
                raise _refused(answer)
            hashed, now_s = _hashed(answer), time.monotonic()
            self._waits(hashed)
            if hashed > most:
                most, grown_s = hashed, now_s
            elif now_s - grown_s >= STANDS_S:
                raise DonorError(f"it has got no further with its snapshot for {STANDS_S:g} s")

    def _answer(self, path: str) -> httpx.Response:
        """Return an answer whose body was read. Raises DonorError, also if the body is too long."""
        try:
            answer = self._client.send(self._request("GET", path), stream=True)
            try:
                body = bytearray()
                for chunk in answer.iter_raw(CHUNK_BYTES):
                    body += chunk
                    if len(body) > _BODY_BYTES_MAX:
                        raise DonorError(
                            f"it has sent more than {_BODY_BYTES_MAX} bytes where a manifest belongs"
                        )
            finally:
                answer.close()
        except httpx.HTTPError as error:
            raise self._gone(error) from None
        return httpx.Response(answer.status_code, headers=answer.headers, content=bytes(body))

    def _request(self, method: str, path: str, begin: int = 0) -> httpx.Request:
        part = f"bytes={begin}-" if begin else ""
        signature = request_signature(self._key, method, path, part, self._fetch)
        headers: dict[str, Any] = {FETCH_HEADER: self._fetch, SIGNATURE_HEADER: signature}
        return self._client.build_request(method, path, headers=headers | ({"range": part} if part else {}))


def _refused(answer: httpx.Response) -> DonorError | DonorBusyError:
    if answer.status_code == 503:
        return DonorBusyError()
    text = " ".join(answer.text.split())[:_LINE_CHARS_MAX]
    return DonorError(f"it has answered {answer.status_code}: {text}")


def _hashed(answer: httpx.Response) -> int:
    """Return how many bytes a donor has hashed; 0 if the donor does not say."""
    found = answer.headers.get(HASHED_HEADER, "")
    return int(found) if _COUNT.fullmatch(found) else 0


def _told(error: httpx.HTTPError) -> str:
    if isinstance(error, httpx.ReadTimeout):
        return f"it has sent nothing for {STALL_S:g} s"
    return f"{type(error).__name__}: {error}"[:_LINE_CHARS_MAX]
