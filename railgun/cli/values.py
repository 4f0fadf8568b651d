"""`railgun values`: the metrics of a key as they are now, without an event."""

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from railgun.cli.failures import UsageError
from railgun.cli.parser import Command
from railgun.cli.server_url import add_server, client_of, late_answer_said
from railgun.cli.wording import table_lines
from railgun.client.errors import ProblemError
from railgun.wording import time_text


def as_text(values: Mapping[str, Any]) -> str:
    """Return lines for a terminal."""
    warming, partial = values.get("warming") or (), values.get("partial") or {}
    rows = [("metric", "value", "")]
    for name, value in values["metrics"].items():
        note = "warming" if name in warming else ""
        if name in partial:
            note = f"complete only for what is later than {time_text(partial[name])}"
        rows.append((name, _shown(value), note))
    width = 3 if any(row[2] for row in rows) else 2
    lines = table_lines([row[:width] for row in rows])
    return "\n".join([*lines, *_as_of(values["as_of"])]) + "\n"


def _as_of(places: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    for partitioner, place in places.items():
        when = "before the first event" if place["time"] is None else f"as of {time_text(place['time'])}"
        yield f"  {partitioner}: {when}, offset {place['offset']:,}"


def _shown(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def key_of(words: Sequence[str]) -> dict[str, str]:
    """Return the fields of a key from words such as card=c1. Raises UsageError."""
    key: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name:
            raise UsageError(f"--key {word[:80]!r}: it names a field and its value, as in card=c1")
        if name in key:
            raise UsageError(f"--key {word[:80]!r}: {name} is there twice; a key has one value of each field")
        if name in ("metrics", "at", "timeout_ms"):
            raise UsageError(f"--key {word[:80]!r}: a field of this name goes by POST; see docs/http.md")
        key[name] = value
    return key


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("stream", metavar="S", help="the stream")
    parser.add_argument(
        "--key",
        metavar="FIELD=VALUE",
        action="append",
        default=[],
        help="a field of the key; once for each field that metrics group by",
    )
    parser.add_argument("--metrics", metavar="A,B", help="only these (default: all that the key determines)")
    parser.add_argument("--json", action="store_true", help="print the answer as the server gave it")
    add_server(parser, has_own_key=True)


def _execute(arguments: argparse.Namespace) -> int:
    key = key_of(arguments.key)
    # If nobody answers a task of the key, the server gives up after half a minute.
    advice = f"`railgun status` says whether somebody answers the tasks of {arguments.stream}"
    with client_of(arguments) as client, late_answer_said("values", advice):
        try:
            found = client.values_of_text(arguments.stream, key, arguments.metrics)
        except ProblemError as error:
            if key or not error.errors:
                raise
            raise UsageError(f"{error}; give a key with --key, as in --key card=c1") from error
    print(json.dumps(found, ensure_ascii=False) if arguments.json else as_text(found).rstrip("\n"))
    return 0


VALUES = Command(
    name="values",
    summary="show the metrics of a key as they are now, without an event",
    description=(
        "Show what the metrics of a card, a merchant, or whatever a stream groups by are now. Nothing is\n"
        "sent to the stream, and nothing changes. The values are those that a duplicate event with the\n"
        "same fields would be answered, at the place in each task's log that is shown beneath them.\n\n"
        "Without --metrics it shows all that the key determines: the metrics that group by no other\n"
        "fields than those given, and the derived ones over these that read no field of an event.\n\n"
        "The exit code is 0, or 2 where the key or a name is refused, or there is no server."
    ),
    example="railgun values payments --key card=c1 --metrics card_count_7d",
    configure=_configure,
    execute=_execute,
)
