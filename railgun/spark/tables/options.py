"""The options of the data source `railgun` (logs and reservoirs as tables), read and checked once, on the driver."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from railgun.language.errors import nearest
from railgun.registry.topics import PREFIX
from railgun.spark.errors import OptionError
from railgun.spark.tables.record_log import Bounds
from railgun.wire.rfc3339 import read_rfc3339
from reservoir.layout import INT64_MAX, INT64_MIN

PIECE_RECORDS = 1_000_000
ALL_PARTITIONS = -1
PASSED_TO_KAFKA = "kafka."

_KNOWN = (
    "path", "source", "stream", "partitioner", "partitions", "definitions", "columns", "times", "prefix",
    "startOffset", "endOffset", "startTime", "endTime", "startAppended", "endAppended", "recordsPerPartition",
    "recordsPerTrigger", "broker", "topicPrefix",
)  # fmt: skip


class SourceKind(StrEnum):
    """The source of events: the log, or the sealed chunks of the reservoirs."""

    LOG = "log"
    RESERVOIR = "reservoir"


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """The options of a read. None stands for an option that was not given.

    path: a data folder or a task's folder; empty with a broker.
    piece_records: about how many records a partition of the read table has.
    bounds: which records are wanted.
    broker, topic_prefix: the cluster whose topics are read.
    kafka: settings of librdkafka.
    start_appended_ms, end_appended_ms: the times between which the broker took the records. The end is excluded.
    trigger_records: the most records of one micro-batch.
    times_as_long: times are BIGINT milliseconds instead of TIMESTAMP.
    prefix: stands before the names of the record's own columns.
    """

    path: str
    source: SourceKind | None
    stream: str | None
    partitioner: str | None
    definitions: str | None
    columns: tuple[str, ...] | None
    times_as_long: bool
    prefix: str
    piece_records: int
    bounds: Bounds
    broker: str | None
    topic_prefix: str
    kafka: dict[str, str]
    start_appended_ms: int | None
    end_appended_ms: int | None
    trigger_records: int | None


def read_options(options: Mapping[str, str]) -> ReadOptions:
    """Read and check the options, whose names may be in any case. Raises OptionError."""
    known = {name.lower(): name for name in _KNOWN}
    everything = {key.lower(): value for key, value in options.items()}
    passed = {key: value for key, value in everything.items() if key.startswith(PASSED_TO_KAFKA)}
    given = {key: value for key, value in everything.items() if key not in passed}
    for key in given:
        if key not in known:
            near = nearest(key, known)
            hint = f"did you mean {known[near]}?" if near else f"there are {', '.join(_KNOWN)}"
            raise OptionError(f"there is no option {key[:80]!r}; {hint}")
    columns = given.get("columns")
    return ReadOptions(
        path=given.get("path", ""),
        source=_source(given.get("source")),
        stream=given.get("stream"),
        partitioner=given.get("partitioner"),
        definitions=given.get("definitions"),
        columns=None if columns is None else tuple(name.strip() for name in columns.split(",")),
        times_as_long=_choice("times", given.get("times", "timestamp"), ("timestamp", "long")) == "long",
        prefix=given.get("prefix", ""),
        piece_records=_whole("recordsPerPartition", given.get("recordsperpartition", str(PIECE_RECORDS)), 1),
        bounds=_bounds(given),
        **_of_broker(given, passed),
    )


def _of_broker(given: Mapping[str, str], passed: Mapping[str, str]) -> dict[str, Any]:
    """Return the options about a broker, and about how much is read from it at once."""
    if passed and "broker" not in given:
        raise OptionError(f"option {next(iter(passed))}: it is for a broker; name one: option broker")
    trigger = given.get("recordspertrigger")
    return {
        "broker": given.get("broker"),
        "topic_prefix": given.get("topicprefix", PREFIX),
        "kafka": {key.removeprefix(PASSED_TO_KAFKA): value for key, value in passed.items()},
        "start_appended_ms": _time_or_none("startAppended", given),
        "end_appended_ms": _time_or_none("endAppended", given),
        "trigger_records": None if trigger is None else _whole("recordsPerTrigger", trigger, 1),
    }


def _time_or_none(option: str, given: Mapping[str, str]) -> int | None:
    text = given.get(option.lower())
    return None if text is None else _time(option, text, 0)


def _source(text: str | None) -> SourceKind | None:
    return None if text is None else SourceKind(_choice("source", text, tuple(SourceKind)))


def _choice(option: str, text: str, choices: tuple[str, ...]) -> str:
    if text.lower() not in choices:
        raise OptionError(f"option {option}: {text[:80]!r}; it is {' or '.join(choices)}")
    return text.lower()


def _whole(option: str, text: str, least: int) -> int:
    try:
        value = int(text)
    except ValueError:
        raise OptionError(f"option {option}: {text[:80]!r} is no whole number") from None
    if not least <= value <= INT64_MAX:
        raise OptionError(f"option {option}: {value} is not in {least}..{INT64_MAX}")
    return value


def _bounds(given: Mapping[str, str]) -> Bounds:
    ends = _offsets("endOffset", given.get("endoffset"))
    listed = given.get("partitions")
    partitions = None if listed is None else {_whole("partitions", each, 0) for each in listed.split(",")}
    return Bounds(
        first_ms=_time("startTime", given.get("starttime"), INT64_MIN),
        last_ms=_time("endTime", given.get("endtime"), INT64_MAX + 1) - 1,
        first_offset=_offsets("startOffset", given.get("startoffset")),
        last_offset=None if ends is None else {partition: end - 1 for partition, end in ends.items()},
        partitions=None if partitions is None else frozenset(partitions),
    )


def _time(option: str, text: str | None, default: int) -> int:
    if text is None:
        return default
    if text.lstrip("-").isdigit():
        return _whole(option, text, INT64_MIN)
    found = read_rfc3339(text)
    if found is None:
        raise OptionError(
            f"option {option}: {text[:80]!r} is no time; milliseconds, or as in 2024-01-31T12:00:00Z"
        )
    return found


def _offsets(option: str, text: str | None) -> dict[int, int] | None:
    """Return offsets by partition, from one number for all partitions or from a JSON object by partition."""
    if text is None:
        return None
    if not text.strip().startswith("{"):
        return {ALL_PARTITIONS: _whole(option, text, 0)}
    try:
        body = json.loads(text)
    except ValueError as error:
        raise OptionError(f"option {option}: no JSON object ({error})") from None
    return {_whole(option, str(key), 0): _whole(option, str(value), 0) for key, value in body.items()}
