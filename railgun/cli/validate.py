"""`railgun validate`: compute every recorded reply again with Spark, and say where they differ."""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

from railgun.cli.failures import EXIT_NO, UsageError, needing_spark
from railgun.cli.parser import Command
from railgun.cli.spark_flags import add_local_spark, add_reading, source_of
from railgun.cli.wording import time_ms

if TYPE_CHECKING:
    from railgun.spark.validation.history_events import HistoryInput
    from railgun.spark.validation.report import Report


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `railgun validate`."""
    parser.add_argument(
        "definitions", metavar="DEFINITIONS", nargs="?", help="the definitions file of a run (TOML)"
    )
    parser.add_argument(
        "events", metavar="EVENTS", nargs="*", help="the files that the run read, in its order"
    )
    parser.add_argument("--out", metavar="FILE", help="the results that the run wrote")
    _add_service(parser)
    parser.add_argument(
        "--sample", metavar="SHARE", type=_share, help="look at this share of the entities alone, as in 0.01"
    )
    parser.add_argument(
        "--from",
        dest="from_ms",
        metavar="TIME",
        type=time_ms,
        help="compare replies to events from this time on alone: RFC 3339 or milliseconds",
    )
    parser.add_argument(
        "--until",
        dest="until_ms",
        metavar="TIME",
        type=time_ms,
        help="compare replies to events before it alone",
    )
    parser.add_argument(
        "--history",
        metavar="HISTORY",
        nargs="+",
        default=[],
        help="of a service whose stream got history: what railgun backfill read, as it was named there",
    )
    add_reading(
        parser,
        column="as railgun backfill was told; may be repeated",
        format_="as railgun backfill was told",
        option="as railgun backfill was told; may be repeated",
    )
    parser.add_argument("--skip-bad", action="store_true", help="the run, or the backfill, skipped bad rows")
    add_local_spark(parser)
    parser.add_argument("--json", action="store_true", help="print the report as JSON")


def _add_service(parser: argparse.ArgumentParser) -> None:
    """Return where a service's logs and recorded replies are."""
    parser.add_argument(
        "--broker",
        metavar="HOST:PORT",
        help="of a cluster: its logs, and recorded replies; [kafka] of --config says who asks",
    )
    parser.add_argument("--topic-prefix", metavar="NAME", help="of the cluster's topics (default: railgun)")
    parser.add_argument(
        "--config", metavar="FILE", help="the cluster's settings (TOML), for its [kafka] section"
    )
    parser.add_argument("--data", metavar="DIR", help="of an embedded engine: the data folder with its log")
    parser.add_argument(
        "--replies",
        metavar="FILE",
        nargs="+",
        default=[],
        help="recorded replies, a JSON object on each line (default with --broker: the stream's output topic)",
    )
    parser.add_argument(
        "--stream", metavar="S", help="the stream the events are of; the only one if left out"
    )


def execute(arguments: argparse.Namespace) -> int:
    """Validate. Returns 1 if a value differs.

    Raises UsageError, ConfigError, DefinitionError, FileError, OSError, SparkSideError.
    """
    of_service = [name for name in _OF_SERVICE if getattr(arguments, name)]
    of_run = [name for name in _OF_RUN if getattr(arguments, name)]
    if of_service and of_run:
        raise UsageError(
            f"--{of_service[0].replace('_', '-')} is for a service, {of_run[0]} for a run: the one or the other"
        )
    with needing_spark("validation"):
        report = _of_service(arguments) if of_service else _of_run(arguments)
    print(json.dumps(report.as_json()) if arguments.json else report.as_text())
    return EXIT_NO if report.mismatches else 0


_OF_HISTORY = ("history", "column", "format", "option")
_OF_RUN = ("definitions", "events", "out")
_OF_SERVICE = ("broker", "topic_prefix", "config", "data", "replies", *_OF_HISTORY)


def _of_run(arguments: argparse.Namespace) -> Report:
    from railgun.catalog.definitions import load_definitions
    from railgun.cli.streams import the_stream

    if not (arguments.definitions and arguments.events and arguments.out):
        raise UsageError(
            "say what to validate: DEFINITIONS EVENTS... --out FILE of a run, --broker HOST:PORT of a cluster, or "
            "--data DIR --replies FILE of an embedded engine"
        )
    definitions = load_definitions(arguments.definitions)
    stream = the_stream(definitions, arguments.stream, arguments.definitions)

    from railgun.spark.environment import local_session
    from railgun.spark.validation.run_source import RunFiles
    from railgun.spark.validation.time_range import TimeRange
    from railgun.spark.validation.validate_run import check_files, validate_run

    places = [str(Path(each).absolute()) for each in arguments.events]
    files = RunFiles(
        str(Path(arguments.definitions).absolute()),
        stream.name,
        tuple(places),
        str(Path(arguments.out).absolute()),
        arguments.skip_bad,
    )
    check_files(files)
    times = TimeRange(arguments.from_ms, arguments.until_ms)
    return validate_run(local_session(arguments.cores, arguments.memory), files, arguments.sample, times)


def _of_service(arguments: argparse.Namespace) -> Report:
    from railgun.spark.environment import local_session
    from railgun.spark.validation.recorded import Recorded, check_recorded
    from railgun.spark.validation.time_range import TimeRange
    from railgun.spark.validation.validate_service import validate_service

    replies = tuple(str(Path(each).absolute()) for each in arguments.replies)
    recorded = Recorded(_log_options(arguments), arguments.stream, replies, _history(arguments))
    check_recorded(recorded)
    times = TimeRange(arguments.from_ms, arguments.until_ms)
    return validate_service(
        local_session(arguments.cores, arguments.memory), recorded, arguments.sample, times
    )


def _history(arguments: argparse.Namespace) -> HistoryInput | None:
    if not arguments.history:
        for name in (*_OF_HISTORY, "skip_bad"):
            if getattr(arguments, name):
                raise UsageError(f"--{name.replace('_', '-')} says how a history is read: name it, --history")
        return None

    from railgun.spark.validation.history_events import HistoryInput

    return HistoryInput(source_of(arguments), dict(arguments.column), arguments.skip_bad)


def _log_options(arguments: argparse.Namespace) -> dict[str, str]:
    """Return the place of the logs, as options of the data source."""
    if arguments.data:
        if arguments.broker or arguments.topic_prefix or arguments.config:
            raise UsageError("--data is of an embedded engine, --broker of a cluster: the one or the other")
        return {"path": str(Path(arguments.data).absolute())}
    if not (arguments.broker or arguments.config):
        raise UsageError("say where the log of events is: --broker HOST:PORT or --data DIR")

    from railgun.config.loading import flags_given, load_settings

    given = {
        "--broker": ("cluster.broker", arguments.broker),
        "--topic-prefix": ("cluster.topic_prefix", arguments.topic_prefix),
    }
    settings = load_settings(arguments.config, os.environ, flags_given(given))
    passed = {
        f"kafka.{key}": str(value).lower() if isinstance(value, bool) else str(value)
        for key, value in settings.kafka.items()
    }
    return {"broker": settings.cluster.broker, "topicPrefix": settings.cluster.topic_prefix, **passed}


def _share(text: str) -> float:
    share = float(text)
    if not 0 < share <= 1:
        raise argparse.ArgumentTypeError(f"{text} is not above 0 and at most 1")
    return share


VALIDATE = Command(
    name="validate",
    summary="compute results again with Spark, and compare",
    description=(
        "Compute every metric for every event again, with Spark's functions instead of the engine, and\n"
        "compare with what was answered: the results that a run wrote; or the replies that a service\n"
        "recorded, those of a stream's output topic (with record_replies also those to HTTP clients), or\n"
        "files of replies such as railgun score prints. Doubles may differ by what summing them in another\n"
        "order can; everything else must be equal. The exit code is 1 where anything differs.\n\n"
        "A service's logs must be whole. Where the stream got history (railgun backfill, also --deepen),\n"
        "name with --history what was read then: replies behind it are computed again with it, and what was\n"
        "not installed as it was read is found. Needs Java 17 and, in Railgun's folder,\n"
        "pip install '.[spark]'."
    ),
    example=(
        "railgun validate definitions.toml events.parquet --out scores.parquet\n"
        "  railgun validate --broker kafka:9092 --stream payments\n"
        "  railgun validate --data data --stream payments --replies replies.ndjson\n"
        "  railgun validate --broker kafka:9092 --stream payments --from 2026-11-20T00:00:00Z\n"
        "  railgun validate --broker kafka:9092 --stream payments --history 'lake/*.parquet'"
    ),
    configure=configure,
    execute=execute,
)
