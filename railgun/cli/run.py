"""`railgun run`: score the events of files with the engine itself, off-line."""

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from railgun.cli.event_files import add_event_files, event_paths, read_definitions
from railgun.cli.failures import UsageError
from railgun.cli.parser import Command
from railgun.files.formats import WRITABLE

if TYPE_CHECKING:
    from railgun.cli.offline import Summary


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `railgun run`."""
    add_event_files(parser)
    parser.add_argument(
        "--out", metavar="FILE", required=True, help=f"where results go: {' '.join(WRITABLE)}"
    )
    parser.add_argument(
        "--skip-bad",
        action="store_true",
        help="count rows that cannot be events, with nulls as their results",
    )
    parser.add_argument(
        "--data",
        metavar="DIR",
        help="keep events, in chunks of 8,192 and no other, and state here, to look at them (default: a temporary "
        "folder)",
    )
    parser.add_argument("--json", action="store_true", help="print the summary as JSON")


def execute(arguments: argparse.Namespace) -> int:
    """Score the files, then print a summary. Raises DefinitionError, UsageError, FileError, OSError, engine errors."""
    from railgun.cli.first_start import compile_beforehand
    from railgun.files.formats import writable_format

    definitions, stream = read_definitions(arguments)
    metrics = definitions.metrics_of(stream.name)
    events, out = event_paths(arguments), Path(arguments.out)
    writable_format(out)
    if out.exists() and any(out.samefile(each) for each in events):
        raise UsageError(f"{out}: it is read from and cannot be written to; name another file with --out")
    folder = None if arguments.data is None else Path(arguments.data)
    if folder is not None and folder.is_dir() and any(folder.iterdir()):
        raise UsageError(
            f"{folder}: a run begins anew, and the folder is not empty; name another with --data"
        )
    compile_beforehand()
    # Modules that have kernels look for the image as they are imported.
    from railgun.cli.offline import Job, run
    from railgun.cli.progress import RunProgress
    from railgun.engine.offline import OfflineRun

    derived = definitions.derived_of(stream.name)
    job = Job(stream, metrics, events, out, arguments.skip_bad)
    with RunProgress() as progress:
        summary = run(job, lambda: OfflineRun(stream, metrics, folder, derived=derived), progress)
    if arguments.json:
        print(json.dumps(summary.as_json(out)))
    else:
        _say(summary, out)
    return 0


def _say(summary: "Summary", out: Path) -> None:
    from railgun.cli.wording import duration_text, refusal_lines
    from railgun.wording import counted, listed

    took = f"{counted(summary.events, 'event')} in {duration_text(summary.seconds)}"
    lines = [f"{took}: {summary.events_per_s:,.0f} events/s; results in {out}"]
    if refused := summary.refusals.rows:
        lines.append(
            f"{counted(refused, 'row')} refused, with nulls as results; by reason, each with its first:"
        )
        lines += refusal_lines(summary.refusals)
    for file, columns in summary.ignored.items():
        lines.append(f"{file}: {counted(len(columns), 'column')} not in the stream: {listed(columns, 8)}")
    print("\n".join(lines), file=sys.stderr)


RUN = Command(
    name="run",
    summary="score the events of files, off-line, with the same engine",
    description=(
        "Score events from files. Rows, in the order of the files and in them, are the log; FILE gets one\n"
        "row per event in that order: its id, one column per metric of the stream, and per partitioner what\n"
        "was late (rewritten, discarded) and duplicate (true, false), both null where the event was not sent\n"
        "there, the partitioner's field being null.\n\n"
        "Columns that are no fields are left out; a missing one, or one of a type that its field cannot be,\n"
        "is an error before anything is scored. What a path (`from`) does not meet is null, a missing column\n"
        "too; in CSV a path has one step. Times are integer ms (or of the field's unit), RFC 3339 text, or\n"
        "Arrow timestamps of any unit (UTC where they name no zone). In CSV an unquoted empty value is null.\n\n"
        "Without an id field the id is the row's number, from 0 on over all files."
    ),
    example="railgun run definitions.toml events.parquet --stream payments --out scores.parquet",
    configure=configure,
    execute=execute,
)
