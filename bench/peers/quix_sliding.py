"""Quix Streams: a sliding window over each card, state in RocksDB and a changelog topic. Default settings.

A window holds both its ends. Each update of a window is emitted, and the one that ends with the event is its answer.
"""

import sys
from typing import Any

from bench.peers.packages import make_importable
from bench.peers.protocol import Task, reply, when_input_ends
from bench.process import end_in_order


def _first(event: dict[str, Any]) -> dict[str, Any]:
    return {"count": 1, "sum": event["amount"], "id": event["tx_id"], "ts": event["ts"]}


def _next(held: dict[str, Any], event: dict[str, Any]) -> dict[str, Any]:
    return {
        "count": held["count"] + 1,
        "sum": held["sum"] + event["amount"],
        "id": event["tx_id"],
        "ts": event["ts"],
    }


def _of_event(row: dict[str, Any]) -> bool:
    """Whether an update is the one of the window that ends with the event that made it."""
    ends: bool = row["value"]["ts"] == row["end"]
    return ends


def _answer(row: dict[str, Any], number: int) -> dict[str, Any]:
    held = row["value"]
    return reply(held["id"], [(number, (held["count"], held["sum"], held["sum"] / held["count"]))])


def main(task: Task) -> None:
    """Answer events until the standard input ends."""
    make_importable()
    from quixstreams import Application

    app = Application(
        broker_address=task.broker,
        consumer_group=task.prefix,
        auto_offset_reset="earliest",
        state_dir=str(task.folder / "state"),
        loglevel="WARNING",
    )
    events = app.topic(task.input, timestamp_extractor=lambda value, *_: value["ts"])
    results = app.topic(task.output)
    cards = app.dataframe(events)
    for number, window_ms in enumerate(task.windows_ms):
        window = cards.sliding_window(window_ms, grace_ms=task.disorder_ms)
        updates = window.reduce(reducer=_next, initializer=_first).current()
        answers = updates.filter(_of_event).apply(lambda row, number=number: _answer(row, number))
        answers.to_topic(results, key=lambda answer: answer["id"])
    when_input_ends(app.stop)
    app.run()


if __name__ == "__main__":
    end_in_order()
    main(Task.of_text(sys.argv[1]))
