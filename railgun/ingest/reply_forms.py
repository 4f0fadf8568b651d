"""Replies to single events, in the form that clients get (docs: `id`, `time`, `metrics`, and what else there is)."""

from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any

from railgun.ingest.result_table import LATE_WORDS
from railgun.plan.outputs import Value
from railgun.task.replies import Replies

Reply = dict[str, Any]


def empty_reply(event_id: str | int, time_ms: int, metrics: Iterable[str]) -> Reply:
    """A reply in which no task has said anything yet."""
    return {"id": event_id, "time": time_ms, "metrics": dict.fromkeys(metrics)}


def merge(partitioner: str, replies: Replies, into: Sequence[Reply]) -> None:
    """Put what a partitioner's task says of n events into their replies."""
    columns = replies.columns
    for row, reply in enumerate(into):
        metrics = reply["metrics"]
        for column in columns:
            metrics[column.name] = json_value(column.value(row))
        if replies.late[row]:
            reply.setdefault("late", {})[partitioner] = LATE_WORDS[int(replies.late[row])]
        if replies.duplicate[row]:
            reply.setdefault("duplicate", []).append(partitioner)
        if replies.warming:
            reply.setdefault("warming", []).extend(replies.warming)
        partial = replies.partial(row)
        if partial:
            reply.setdefault("partial", {}).update(partial)


def json_value(value: Value) -> int | float | bool | str | None:
    """A result as JSON has it: decimals are strings in plain notation."""
    return f"{value:f}" if isinstance(value, Decimal) else value
