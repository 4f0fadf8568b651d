"""A small HTTP server that answers every line with a reply, for as long as its standard input is open.

python tests/bench/load/tiny_server.py [TEXT]: says its port on a line. Lines with TEXT in them are refused.
"""

import asyncio
import sys

import httptools

_REPLY = b'{"id":"x","time":0,"metrics":{}}\n'
_REFUSED = b'{"title":"refused","status":422}\n'
_BAD = (sys.argv[1:] or ["bad"])[0].encode()


class _Answering(asyncio.Protocol):
    """One connection."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._parser = httptools.HttpRequestParser(self)
        self._body: list[bytes] = []

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_body(self, data: bytes) -> None:
        self._body.append(data)

    def on_message_complete(self) -> None:
        lines = b"".join(self._body).splitlines()
        self._body.clear()
        answers = [_REFUSED if _BAD in line else _REPLY for line in lines]
        assert isinstance(self._transport, asyncio.Transport)
        self._transport.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
        for answer in answers:
            self._transport.write(b"%x\r\n%s\r\n" % (len(answer), answer))
        self._transport.write(b"0\r\n\r\n")


async def _serve() -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(_Answering, "127.0.0.1", 0)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await loop.run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(_serve())
