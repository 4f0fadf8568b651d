"""`railgun inspect`: what the data folder of a task holds, and whether it is sound."""

import argparse
import json
from pathlib import Path

from railgun.cli.command import Command
from railgun.cli.failures import EXIT_NO, UsageError


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments of `railgun inspect`."""
    parser.add_argument("folder", metavar="DIR", help="a data folder, or the folder of one task in it")
    parser.add_argument("--json", action="store_true", help="print JSON")


def execute(arguments: argparse.Namespace) -> int:
    """Print a report on every task at or below a folder, and on the log of a data folder; 1 where one is damaged.

    Raises UsageError where there is nothing of the kind, and what `inspect_task` and `inspect_log` raise.
    """
    from railgun.cli.inspection import inspect_task, task_folders
    from railgun.cli.inspection_text import as_json, as_text, log_as_text
    from railgun.cli.log_inspection import inspect_log

    tasks = []
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
        print(json.dumps(as_json(tasks, log), indent=2))
    is_damaged = any(task.damage for task in tasks) or (log is not None and bool(log.damage))
    return EXIT_NO if is_damaged else 0


INSPECT = Command(
    name="inspect",
    summary="what a data folder holds: segments, chunks, times, bytes, state, log; checks every CRC",
    description=(
        "Show what the folders of tasks hold: segments and chunks of events with their times and sizes,\n"
        "the last checkpoint, and the rows of state. Of a data folder the log is read too, and compared with\n"
        "the tasks. Every record is read and its CRC checked; nothing is changed. The exit code is 1 where\n"
        "something is damaged, or tasks are there without their log. The engine may be running."
    ),
    example="railgun inspect data",
    configure=configure,
    execute=execute,
)
