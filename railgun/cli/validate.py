"""`railgun validate`: compute every recorded reply again with Spark, and say where they differ."""

import argparse
import json
from pathlib import Path

from railgun.cli.command import Command
from railgun.cli.failures import EXIT_NO, UsageError


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments of `railgun validate`."""
    parser.add_argument("definitions", metavar="DEFINITIONS", help="the definitions file of the run (TOML)")
    parser.add_argument(
        "events", metavar="EVENTS", nargs="+", help="the files that the run read, in its order"
    )
    parser.add_argument("--out", metavar="FILE", required=True, help="the results that the run wrote")
    parser.add_argument(
        "--stream", metavar="S", help="the stream the events are of; the only one if left out"
    )
    parser.add_argument(
        "--sample", metavar="SHARE", type=_share, help="look at this share of the entities alone, as in 0.01"
    )
    parser.add_argument("--skip-bad", action="store_true", help="the run was told to skip bad rows")
    parser.add_argument(
        "--cores", metavar="N", default="*", help="cores of this machine for Spark (default: all)"
    )
    parser.add_argument("--memory", metavar="SIZE", default="1g", help="memory for Spark (default: 1g)")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")


def execute(arguments: argparse.Namespace) -> int:
    """Validate; 1 where a value differs. Raises UsageError, DefinitionError, FileError, OSError, SparkSideError."""
    from railgun.catalog.definitions import load_definitions
    from railgun.cli.streams import the_stream

    definitions = load_definitions(arguments.definitions)
    stream = the_stream(definitions, arguments.stream, arguments.definitions)
    try:
        from railgun.spark.run_source import RunFiles
        from railgun.spark.validate import check_files, local_session, validate_run
    except ModuleNotFoundError as error:
        raise UsageError(
            f"validation needs Spark, and {error.name} is not installed: pip install 'railgun[spark]', and Java 17"
        ) from error
    places = [str(Path(each).absolute()) for each in arguments.events]
    files = RunFiles(
        str(Path(arguments.definitions).absolute()),
        stream.name,
        tuple(places),
        str(Path(arguments.out).absolute()),
        arguments.skip_bad,
    )
    check_files(files)
    report = validate_run(local_session(arguments.cores, arguments.memory), files, arguments.sample)
    print(json.dumps(report.as_json()) if arguments.json else report.as_text())
    return EXIT_NO if report.mismatches else 0


def _share(text: str) -> float:
    share = float(text)
    if not 0 < share <= 1:
        raise argparse.ArgumentTypeError(f"{text} is not above 0 and at most 1")
    return share


VALIDATE = Command(
    name="validate",
    summary="compute the results of a run again with Spark, and compare",
    description=(
        "Compute every metric for every event of a run again, with Spark's functions instead of the\n"
        "engine, and compare with the results that the run wrote. Doubles may differ by what summing them\n"
        "in another order can; everything else must be equal. The exit code is 1 where anything differs.\n"
        "Needs Java 17 and pip install 'railgun[spark]'."
    ),
    example="railgun validate definitions.toml events.parquet --out scores.parquet",
    configure=configure,
    execute=execute,
)
