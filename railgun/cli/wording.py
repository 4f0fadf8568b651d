"""Reads and writes numbers, sizes, durations and times in forms for people."""

import argparse
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from railgun.wording import counted, span_text
from reservoir.layout import INT64_MAX, INT64_MIN

if TYPE_CHECKING:
    from railgun.ingest.file_events import Refusals


def time_ms(text: str) -> int:
    """Return a time from text of RFC 3339 or plain milliseconds. Raises ArgumentTypeError."""
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


_UNITS = ("kB", "MB", "GB", "TB", "PB")


def table_lines(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table with aligned columns. The first row is its head."""
    widths = [max(map(len, column)) for column in zip(*rows)]
    return ["  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]


_REASONS_MAX = 10


def refusal_lines(refusals: "Refusals") -> list[str]:
    """Return a line for each reason for which rows are refused, the most frequent first, with the first such row."""
    found = sorted(refusals.by_reason.items(), key=lambda each: -each[1].rows)
    lines = [
        f"  {reason}, {counted(each.rows, 'row')}; {each.first}" for reason, each in found[:_REASONS_MAX]
    ]
    left = found[_REASONS_MAX:]
    rest = counted(sum(each.rows for _, each in left), "row")
    return lines + ([f"  {counted(len(left), 'more reason')}, {rest}"] if left else [])


def size_text(size_bytes: int) -> str:
    """Return a size in decimal units: `512 bytes`, `45.2 MB`."""
    if size_bytes < 1000:
        return counted(size_bytes, "byte")
    size = float(size_bytes)
    for unit in _UNITS:
        size /= 1000
        if size < 999.95 or unit == _UNITS[-1]:
            break
    return f"{size:,.1f} {unit}"


def fetching_text(fetching: Mapping[str, Any]) -> str:
    """Return how far a copy's fetch of its data has come: `fetching 40 % of 2.1 GB from n2/0`."""
    donor, total_bytes = fetching["donor"], fetching["total_bytes"]
    if donor is None:
        return "waits to fetch its data"
    if not total_bytes:
        hashed = f", {size_text(fetching['hashed_bytes'])} hashed" if fetching["hashed_bytes"] else ""
        return f"fetching from {donor}{hashed}"
    return f"fetching {100 * fetching['fetched_bytes'] // total_bytes} % of {size_text(total_bytes)} from {donor}"


def behind_text(copy: Mapping[str, Any]) -> str:
    """Return the state of a copy, with how far it is from answering."""
    if copy.get("fetching"):
        return fetching_text(copy["fetching"])
    state = copy["state"] or "does not report"
    # A copy that is being opened does not know its log yet.
    return f"{state} by {copy['lag']:,}" if state == "behind" and copy["lag"] else str(state)


def duration_text(seconds: float) -> str:
    """Return a duration as `0.42 s`, `12.3 s`, `4 min 5 s` or `2 h 3 min`."""
    if seconds < 10:
        return f"{seconds:.2f} s"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


_LOG_HEAD = ("log from", "needed from", "left")


def log_columns(tasks: Sequence[Mapping[str, Any]]) -> list[tuple[str, ...]]:
    """Return the head of the columns about logs, and the cells of each task: where its log begins, from where on it is
    needed, and how much time is left. They are all empty if the server says nothing of logs.
    """
    if not any(task.get("log") for task in tasks):
        return [()] * (1 + len(tasks))
    return [_LOG_HEAD, *(_log_cells(task.get("log")) for task in tasks)]


def _log_cells(log: Mapping[str, Any] | None) -> tuple[str, ...]:
    if log is None:
        return ("?",) * len(_LOG_HEAD)
    needed, left_ms = log["needed"], log["left_ms"]
    if left_ms is not None:
        left = span_text(left_ms)
    else:
        left = "for ever" if log["retention_ms"] is None else "?"
    return f"{log['start']:,}", "-" if needed is None else f"{needed:,}", left
