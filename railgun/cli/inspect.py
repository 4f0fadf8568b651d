"""`railgun inspect`: what the data folder of a task holds, and whether it is sound."""

from __future__ import annotations

import argparse
import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from railgun.cli.failures import EXIT_NO, UsageError
from railgun.cli.parser import Command
from railgun.cli.wording import size_text
from railgun.wording import counted, time_text

if TYPE_CHECKING:
    from railgun.cli.inspection import HistoryReport, StateReport, TaskReport
    from railgun.cli.log_inspection import LogReport
    from railgun.state.stored import Amount
    from reservoir.segments.describe import SegmentDescription


def as_text(task: TaskReport) -> str:
    """Return a few lines about a task, then one for each segment."""
    lines = [
        task.folder,
        f"  events      {_events(task)}",
        *[f"    {_segment(segment)}" for segment in task.segments],
        *_state(task.state),
        *_history(task.history),
        *[f"  torn        {line}; the next start cuts them" for line in task.torn],
        *[f"  DAMAGE      {line}" for line in task.damage],
    ]
    if not task.damage:
        lines.append("  sound       every CRC matches")
    return "\n".join(lines) + "\n"


def log_as_text(log: LogReport) -> str:
    """Return a few lines about the log of a data folder."""
    amount = f"{counted(log.records, 'record')} in {counted(log.partitions, 'partition')} of "
    lines = [
        log.folder,
        f"  log         {amount}{counted(log.topics, 'topic')}, {size_text(log.size_bytes)}",
        *[f"  DAMAGE      {line}" for line in log.damage],
    ]
    if not log.damage:
        lines.append("  sound       every CRC matches")
    return "\n".join(lines) + "\n"


def as_json(tasks: Sequence[TaskReport], log: LogReport | None, *, in_use: bool) -> dict[str, Any]:
    """Return all reports as JSON values, with times in ms and sizes in bytes. in_use: a process has the folder open."""
    found = [dataclasses.asdict(task) | {"sound": not task.damage} for task in tasks]
    is_sound = all(not task.damage for task in tasks) and not (log and log.damage)
    of_log = None if log is None else dataclasses.asdict(log) | {"sound": not log.damage}
    return {"sound": is_sound, "in_use": in_use, "tasks": found, "log": of_log}


def _events(task: TaskReport) -> str:
    if task.first_ms is None or task.last_ms is None:
        return "no chunk on disk"
    return (
        f"{counted(task.events, 'event')} in {counted(task.chunks, 'chunk')} of "
        f"{counted(len(task.segments), 'segment')}, {size_text(task.size_bytes)}, "
        f"from {time_text(task.first_ms)} to {time_text(task.last_ms)}"
    )


def _segment(segment: SegmentDescription) -> str:
    name = segment.file.rpartition("/")[2]
    if segment.first_time is None or segment.last_time is None:
        return f"{name}  {size_text(segment.size_bytes)}, no whole chunk"
    kind = "full" if segment.finished else "growing"
    times = f"from {time_text(segment.first_time)} to {time_text(segment.last_time)}"
    amount = f"{counted(segment.chunks, 'chunk')}, {counted(segment.rows, 'event')}"
    return f"{name}  {kind}, {amount}, {size_text(segment.size_bytes)}, {times}"


def _state(state: StateReport | None) -> list[str]:
    if state is None:
        return ["  checkpoint  none"]
    clock = "before the first event" if state.clock_ms is None else f"clock {time_text(state.clock_ms)}"
    warming = f" ({len(state.warming)} warming)" if state.warming else ""
    stream = "no stream yet" if state.stream is None else f"stream {state.stream}"
    metrics = counted(len(state.metrics), "metric") + warming
    lines = [f"  checkpoint  {state.epoch}, at log position {state.position:,}, {clock}; {stream}, {metrics}"]
    rows = [
        f"    by {name.replace(',', ', ') or 'nothing'}: {_amount(amount, 'row')}"
        for name, amount in state.rows.items()
    ]
    total = sum(amount.items for amount in state.rows.values())
    spilled = f"{_amount(state.pages, 'page')}, {_amount(state.strings, 'string')}"
    return [*lines, f"  state       {counted(total, 'row')}, {spilled}", *rows]


def _history(history: HistoryReport | None) -> list[str]:
    if history is None:
        return []
    events, cut = counted(history.events, "event"), time_text(history.cut_ms)
    if history.position:
        at = f"{history.position:,}"
        return [f"  history     {history.history}: {events} up to log position {at}, older ones before {cut}"]
    return [f"  history     {history.history}: {events} before {cut}, before the log's first"]


def _amount(amount: Amount, noun: str) -> str:
    size = f" ({size_text(amount.size_bytes)})" if amount.items else ""
    return counted(amount.items, noun) + size


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `railgun inspect`."""
    parser.add_argument("folder", metavar="DIR", help="a data folder, or the folder of one task in it")
    parser.add_argument("--json", action="store_true", help="print JSON")


def execute(arguments: argparse.Namespace) -> int:
    """Print a report on every task at or below a folder, and on the log of a data folder. Returns 1 if one is damaged.

    Raises UsageError if there is neither, and what `inspect_task` and `inspect_log` raise.
    """
    from railgun.cli.inspection import inspect_task, task_folders
    from railgun.cli.log_inspection import inspect_log
    from railgun.state.lock import is_any_held

    tasks, in_use = [], is_any_held(Path(arguments.folder))
    if in_use and not arguments.json:
        print(f"{arguments.folder}: in use, a process has it open and may write meanwhile", flush=True)
    for folder in task_folders(Path(arguments.folder)):
        tasks.append(inspect_task(folder))
        if not arguments.json:
            print(as_text(tasks[-1]), end="", flush=True)
    log = inspect_log(Path(arguments.folder), tasks)
    if log is not None and not arguments.json:
        print(log_as_text(log), end="", flush=True)
    if not tasks and log is None:
        raise UsageError(
            f"{arguments.folder}: it holds no task; name a data folder, in which each task has a folder with "
            "reservoir/ and state/ in it"
        )
    if arguments.json:
        print(json.dumps(as_json(tasks, log, in_use=in_use), indent=2))
    is_damaged = any(task.damage for task in tasks) or (log is not None and bool(log.damage))
    return EXIT_NO if is_damaged else 0


INSPECT = Command(
    name="inspect",
    summary="what a data folder holds: segments, chunks, times, bytes, state, log; checks every CRC",
    description=(
        "Show what the folders of tasks hold: segments and chunks of events with their times and sizes,\n"
        "the last checkpoint, and the rows of state. Of a data folder the log is read too, and compared with\n"
        "the tasks. Every record is read and its CRC checked; nothing is changed. The exit code is 1 where\n"
        "something is damaged, or tasks are there without their log. The engine may be running: the first\n"
        "line says so then."
    ),
    example="railgun inspect data",
    configure=configure,
    execute=execute,
)
