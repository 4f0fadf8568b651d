"""`railgun bench`: what the engine does on this machine with one's own definitions and events."""

import argparse
import json
import math
import sys

from railgun.cli.event_files import add_event_files, event_paths, read_definitions
from railgun.cli.parser import Command

_SECONDS, _RATE = 15.0, 500.0


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `railgun bench`."""
    add_event_files(parser)
    parser.add_argument(
        "--seconds",
        metavar="N",
        type=_positive,
        default=_SECONDS,
        help="how long each of the four phases takes at most (default 15)",
    )
    parser.add_argument(
        "--rate",
        metavar="N",
        type=_positive,
        default=_RATE,
        help="how many single events are due in a second while their latency is measured (default 500)",
    )
    parser.add_argument(
        "--peak", metavar="N", type=_positive, help="say how many cores so many events in a second need"
    )
    parser.add_argument("--json", action="store_true", help="print all figures as one JSON object")


def _positive(text: str) -> float:
    try:
        number = float(text.replace("_", ""))
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"{text} is no number above 0")
    return number


def execute(arguments: argparse.Namespace) -> int:
    """Measure, then print the figures. Raises DefinitionError, UsageError, FileError, OSError, MeasuringError, engine
    errors.
    """
    from railgun.cli.first_start import compile_beforehand

    definitions, stream = read_definitions(arguments)
    events = event_paths(arguments)
    compile_beforehand()
    # Modules that have kernels look for the image as they are imported.
    from railgun.cli.bench_text import bench_lines
    from railgun.measuring.bench import Job, run_bench
    from railgun.measuring.report import as_json

    metrics = definitions.metrics_of(stream.name)
    job = Job(stream, metrics, events, arguments.seconds, arguments.rate, arguments.peak)
    outcome = run_bench(job, _tell)
    if arguments.json:
        print(json.dumps(as_json(outcome)))
    else:
        print("\n".join(bench_lines(outcome)))
    return 0


def _tell(phase: str, seconds: float) -> None:
    from railgun.wording import number_text

    print(f"{phase}, for at most {number_text(seconds)} s", file=sys.stderr)


BENCH = Command(
    name="bench",
    summary="measure what the engine does on this machine with your events",
    description=(
        "Measure for a minute on your definitions and events: events/s, processor time and bytes of an event,\n"
        "latency of single events, memory, disk for a year, cores for a peak. Nothing of it stays.\n\n"
        "1. Events are read: as many as N seconds, a million rows or 256 MB allow. Rows that cannot be events\n"
        "   are left out and counted. The others come again and again, in each round with new ids and with\n"
        "   all their timestamps later, so what was late, or sent twice, is so in each round.\n"
        "2. Windows are filled until as many events leave them as come in. If N seconds are too few for it,\n"
        "   you are told how many expired for each that came: with fewer than one, figures are too good.\n"
        "3. Events are processed as fast as they can be.\n"
        "4. Single events are due at a rate, whether those before are answered or not. Waiting counts.\n\n"
        "What is measured is one task for each partitioner, in this process, without Kafka and HTTP. Work is\n"
        "done in a temporary folder (TMPDIR), which needs 1 GB. Measure on a machine that is idle otherwise."
    ),
    example="railgun bench definitions.toml events.parquet --stream payments --peak 20000",
    configure=configure,
    execute=execute,
)
