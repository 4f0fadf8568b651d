"""Times on the command line."""

import argparse

from reservoir.layout import INT64_MAX, INT64_MIN


def time_ms(text: str) -> int:
    """Of RFC 3339, or of plain milliseconds. Raises ArgumentTypeError."""
    if text.isascii() and text.removeprefix("-").isdecimal():
        return _of_number(text)
    from railgun.wire.rfc3339 import read_rfc3339

    read = read_rfc3339(text)
    if read is not None:
        return read
    if read_rfc3339(f"{text}Z") is not None:
        raise argparse.ArgumentTypeError(
            f"{text} is no time: it lacks its zone; write {text}Z for UTC, or its offset as in {text}+02:00"
        )
    raise argparse.ArgumentTypeError(f"{text} is no time: write it as 2024-01-31T00:00:00Z")


def _of_number(text: str) -> int:
    number = int(text)
    if number == INT64_MIN:
        raise argparse.ArgumentTypeError(
            f"{text} is no time: it stands for minus infinity; the least time of an event is {INT64_MIN + 1}"
        )
    if not INT64_MIN < number <= INT64_MAX:
        raise argparse.ArgumentTypeError(f"{text} is no time: milliseconds have 64 bits")
    return number
