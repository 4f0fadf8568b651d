"""Cuts the pieces of a body into lines, and lines into blocks that are scored together, for `LineStream`.

It does no I/O.
"""

from dataclasses import dataclass

BLOCK_EVENTS_MAX = 1_024
BLOCK_BYTES_MAX = 1 << 20


@dataclass(frozen=True, slots=True)
class TooLong:
    """Stands in the place of a line that is too long."""


Line = bytes | TooLong


class LineSplitter:
    """Takes the pieces of a body and returns their lines. It holds the line that is not whole yet, up to `limit_bytes`.

    Blank lines are left out.
    """

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._rest: list[bytes] = []
        self._rest_bytes = 0
        self._skipping = False

    @property
    def held_bytes(self) -> int:
        """The size of the line that is not whole yet."""
        return self._rest_bytes

    def feed(self, piece: bytes) -> list[Line]:
        """Return the lines that end in this piece."""
        whole, newline, rest = piece.rpartition(b"\n")
        lines: list[Line] = []
        if newline:
            first, *others = whole.split(b"\n")
            lines += self._ended(first)
            lines += [
                line if len(line) <= self._limit_bytes else TooLong()
                for line in others
                if line and not line.isspace()
            ]
        self._keep(rest)
        return lines

    def end(self) -> list[Line]:
        """Return the last line, if no line feed ended it."""
        return self._ended(b"")

    def _ended(self, last: bytes) -> list[Line]:
        """Return the line that began in earlier pieces and ends with `last`; nothing if it is blank."""
        too_long = self._skipping or self._rest_bytes + len(last) > self._limit_bytes
        line = b"" if too_long else b"".join((*self._rest, last)) if self._rest else last
        self._rest, self._rest_bytes, self._skipping = [], 0, False
        if too_long:
            return [TooLong()]
        return [line] if line and not line.isspace() else []

    def _keep(self, rest: bytes) -> None:
        if self._skipping or not rest:
            return
        if self._rest_bytes + len(rest) > self._limit_bytes:
            self._rest, self._rest_bytes, self._skipping = [], 0, True
            return
        self._rest.append(rest)
        self._rest_bytes += len(rest)


def blocks(lines: list[Line]) -> list[list[Line]]:
    """Cut lines into blocks that are scored together, in order. Only a block of one line exceeds `BLOCK_BYTES_MAX`."""
    found: list[list[Line]] = []
    size_bytes = 0
    for line in lines:
        own = 0 if isinstance(line, TooLong) else len(line)
        if not found or len(found[-1]) >= BLOCK_EVENTS_MAX or size_bytes + own > BLOCK_BYTES_MAX:
            found.append([])
            size_bytes = 0
        found[-1].append(line)
        size_bytes += own
    return found
