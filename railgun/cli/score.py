"""`railgun score`: sends events to a running server and prints its replies, in order and in bounded memory."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import IO, Protocol

import msgspec

from railgun.cli.failures import EXIT_NO, UsageError
from railgun.cli.parser import Command
from railgun.cli.server_url import add_patience, add_server, patient_client
from railgun.client.errors import ClientError, ConnectionLostError, problem_text
from railgun.wording import counted

READ_BYTES = 1 << 20
NO_EVENTS_MAX = 3
"""If this many lines at the beginning are not JSON objects, the input is something else."""
LINE_LIMIT_BYTES = 64 << 20


class Server(Protocol):
    """Takes lines of events, and gives a line for each. `Client` does."""

    def score_lines(self, stream: str, lines: bytes) -> bytes:
        """Return a line for each event, a reply or a problem. Raises ClientError."""


class Readable(Protocol):
    """An unbuffered source of bytes: `read` returns what has arrived, without waiting for more."""

    def read(self, size: int, /) -> bytes | None:
        """Return at most this many bytes; none at the end."""


@dataclass(slots=True)
class Outcome:
    """How many events were sent and refused, and the first refused one."""

    events: int = 0
    refused: int = 0
    first_line: int = 0
    first_why: str = ""


class _Reply(msgspec.Struct):
    """The keys that tell a problem from a reply: only a problem has a status."""

    status: int = 0


@dataclass(frozen=True, slots=True)
class _Part:
    """Whole lines, each with an event and its line end. numbers: their places in the input, from 1."""

    lines: bytes
    numbers: list[int]


def score(server: Server, stream: str, events: Readable, out: IO[bytes]) -> Outcome:
    """Send all events. What has arrived goes out together. Raises ClientError, UsageError, OSError."""
    outcome, beginning = Outcome(), _Beginning()
    for part in _parts(events):
        beginning.check(part)
        try:
            replies = server.score_lines(stream, part.lines)
        except ClientError as error:
            n = len(error.answered.splitlines())
            _print(outcome, part.numbers[:n], error.answered, out)
            if not error.may_have_counted:
                raise
            first, last = part.numbers[n], part.numbers[-1]
            raise ConnectionLostError(
                f"{error}; lines {first} to {last} may have been taken or not; with an id field they can be sent again"
            ) from None
        _print(outcome, part.numbers, replies, out)
    return outcome


class _Beginning:
    """The first lines of the input, up to the first JSON object."""

    def __init__(self) -> None:
        self._no_events, self._is_over = 0, False

    def check(self, part: _Part) -> None:
        """Raise UsageError if the input holds no events."""
        for line, number in zip(part.lines.split(b"\n", NO_EVENTS_MAX), part.numbers):
            self._is_over = self._is_over or _is_object(line)
            if self._is_over:
                return
            self._no_events += 1
            if self._no_events == NO_EVENTS_MAX:
                raise UsageError(
                    f"line {number} is no JSON object, and none before it is: events are read from NDJSON, one on each "
                    "line"
                )


def _is_object(line: bytes) -> bool:
    try:
        msgspec.json.decode(line, type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
    except RecursionError:
        # It is nested too deep. The server says so.
        return True
    return True


def _print(outcome: Outcome, numbers: Sequence[int], replies: bytes, out: IO[bytes]) -> None:
    lines = replies.splitlines()
    if len(lines) != len(numbers):
        raise UsageError(f"{len(numbers)} events got {len(lines)} answers; is this a Railgun server?")
    _note(outcome, numbers, lines)
    out.write(replies)
    out.flush()


def _note(outcome: Outcome, numbers: Sequence[int], lines: Sequence[bytes]) -> None:
    outcome.events += len(lines)
    for number, line in zip(numbers, lines):
        if _DECODER.decode(line).status:
            outcome.refused += 1
            if outcome.refused == 1:
                outcome.first_line = number
                outcome.first_why = problem_text(msgspec.json.decode(line))


_DECODER = msgspec.json.Decoder(_Reply)


def _parts(events: Readable) -> Iterator[_Part]:
    """Yield the input's lines as they arrive. Raises UsageError for a line that is too long."""
    number, rest = 0, bytearray()
    while True:
        read = events.read(READ_BYTES)
        if read:
            end = read.rfind(b"\n") + 1
            whole = bytes(rest) + read[:end] if end else b""
            if end:
                rest = bytearray(read[end:])
            else:
                rest += read
            if len(rest) > LINE_LIMIT_BYTES:
                raise UsageError(f"a line of more than {LINE_LIMIT_BYTES} bytes after line {number}")
        else:
            whole, rest = bytes(rest), bytearray()
        if whole:
            lines = whole.removesuffix(b"\n").split(b"\n")
            numbers = [number + place for place, line in enumerate(lines, 1) if line.strip()]
            if len(numbers) == len(lines) and whole.endswith(b"\n"):
                yield _Part(whole, numbers)
            elif numbers:
                yield _Part(b"".join(line + b"\n" for line in lines if line.strip()), numbers)
            number += len(lines)
        if not read:
            return


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `railgun score`."""
    parser.add_argument("stream", metavar="S", help="the stream the events are of")
    parser.add_argument(
        "file",
        metavar="FILE",
        nargs="?",
        default="-",
        help="events, one JSON object per line (default: -, stdin)",
    )
    add_server(parser)
    add_patience(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Print a line for each event. Returns 1 if some were refused. Raises ClientError, UsageError, OSError."""
    is_stdin = arguments.file == "-"
    with (
        open(0 if is_stdin else arguments.file, "rb", buffering=0, closefd=not is_stdin) as events,
        patient_client(arguments, "score") as client,
    ):
        outcome = score(client, arguments.stream, events, sys.stdout.buffer)
        if not outcome.events:
            # No event was sent. This request tells whether the server and the stream exist.
            client.metrics(arguments.stream)
    if outcome.refused:
        _say_refused(outcome)
    return EXIT_NO if outcome.refused else 0


def _say_refused(outcome: "Outcome") -> None:
    refused = f"{outcome.refused:,} of {counted(outcome.events, 'event')} refused"
    print(
        f"railgun score: {refused}; the first, line {outcome.first_line}: {outcome.first_why}",
        file=sys.stderr,
    )


SCORE = Command(
    name="score",
    summary="send events to a running server, print its replies",
    description=(
        "Send events, one JSON object per line, and print a line for each, in order: its reply, or a problem\n"
        "object where the event was refused, which harms no other. Lines go out as they come in, so a pipe\n"
        "that is kept open is answered at once; memory stays bounded. Empty lines are passed over.\n\n"
        "Exit codes: 0, every event was answered; 1, some were refused (the first is told on stderr);\n"
        "2, the server or the input could not be used: no line at its beginning is a JSON object, say.\n"
        "A server that is starting, or dies and comes back, is waited for. What a dead server may have taken\n"
        "is sent again if the stream has an id field, and counts once; without one that is an error, which\n"
        "names the lines in doubt."
    ),
    example="railgun score payments events.ndjson > replies.ndjson",
    configure=configure,
    execute=execute,
)
