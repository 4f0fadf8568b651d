"""Makes the bytes of HTTP requests with events, from prepared lines, when they are sent."""

from bench.load.lines import Lines

GOOD = b'"metrics":{'
"""Bytes that every reply to an event has, and no problem has."""


class EventRequests:
    """Request i of them carries lines i * `each` to (i + 1) * `each` - 1: as one JSON object, or as NDJSON."""

    def __init__(self, lines: Lines, each: int, host: str, path: str, *, ndjson: bool) -> None:
        self._lines, self._offsets, self.each = memoryview(lines.buffer), lines.offsets.tolist(), each
        kind = "application/x-ndjson" if ndjson else "application/json"
        head = f"POST {path} HTTP/1.1\r\nhost: {host}\r\ncontent-type: {kind}\r\ncontent-length: "
        self._head = head.encode("ascii")

    def __len__(self) -> int:
        return (len(self._offsets) - 1) // self.each

    def __getitem__(self, place: int) -> bytes:
        first, end = self._offsets[place * self.each], self._offsets[(place + 1) * self.each]
        return b"%s%d\r\n\r\n%s" % (self._head, end - first, self._lines[first:end])
