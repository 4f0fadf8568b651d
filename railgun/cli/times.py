"""Times on the command line."""

import argparse

from reservoir.layout import INT64_MAX, INT64_MIN


def time_ms(text: str) -> int:
    """Of RFC 3339, or of plain milliseconds. Raises ArgumentTypeError."""
    if text.removeprefix("-").isdecimal():
        if not INT64_MIN < int(text) <= INT64_MAX:
            raise argparse.ArgumentTypeError(f"{text} is no time: milliseconds have 64 bits")
        return int(text)
    from railgun.wire.rfc3339 import read_rfc3339

    read = read_rfc3339(text)
    if read is None:
        raise argparse.ArgumentTypeError(f"{text} is no time: write it as 2024-01-31T00:00:00Z")
    return read
