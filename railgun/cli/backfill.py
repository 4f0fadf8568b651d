"""`railgun backfill`: puts history before a stream's log with Spark, or gives a live stream older history."""

import argparse
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from railgun.cli.failures import EXIT_NO, UsageError, needing_spark
from railgun.cli.parser import Command
from railgun.cli.server_url import add_credentials, credentials_of
from railgun.cli.spark_flags import add_local_spark, add_reading, source_of
from railgun.cli.wording import time_ms

if TYPE_CHECKING:
    from railgun.catalog.model import Definitions
    from railgun.messaging.kafka.settings import KafkaSettings
    from railgun.spark.backfill.target import BackfillRequest, BackfillTarget, DeepeningTarget


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `railgun backfill`."""
    parser.add_argument("definitions", metavar="DEFINITIONS", help="a definitions file (TOML)")
    parser.add_argument(
        "history",
        metavar="HISTORY",
        nargs="*",
        help="files, folders or globs that Spark reads; or one table's name",
    )
    parser.add_argument(
        "--data", metavar="DIR", required=True, help="the data folder of the engine, or of a node"
    )
    parser.add_argument(
        "--broker",
        metavar="HOST:PORT",
        help="the stream's log is Kafka, there: its own security guards it ([kafka] of --config), and no token does",
    )
    parser.add_argument(
        "--config",
        metavar="FILE",
        help="settings of the cluster (TOML): the log is Kafka, at its cluster.broker where --broker names no other",
    )
    parser.add_argument(
        "--build-only",
        action="store_true",
        help="install nothing; the same without it installs what was built",
    )
    parser.add_argument(
        "--until",
        metavar="TIME",
        type=time_ms,
        help="the cut: events before it are taken, RFC 3339 or milliseconds; with --deepen it may be left out",
    )
    parser.add_argument(
        "--deepen", action="store_true", help="give older history to a stream that answers already"
    )
    parser.add_argument(
        "--give-up", action="store_true", help="with --deepen: let go of one that is under way"
    )
    parser.add_argument("--url", metavar="U", help="with --deepen: the server that runs on the data folder")
    add_credentials(parser)
    parser.add_argument("--stream", metavar="S", help="the stream; the only one of the file if left out")
    add_reading(
        parser,
        column="what a field is made of, where it is not the column of that name; may be repeated",
        format_="as Spark calls it (default: by the suffix), or table",
        option="of Spark's reader",
    )
    parser.add_argument(
        "--skip-bad",
        action="store_true",
        help="go on without rows that are refused, once they were looked at",
    )
    _configure_place(parser)
    parser.add_argument("--json", action="store_true", help="print the report as JSON")


def _configure_place(parser: argparse.ArgumentParser) -> None:
    """Add the options that say where the work is done, and with what."""
    parser.add_argument(
        "--work",
        metavar="DIR",
        help="where tasks are built, seen by all machines (default: in the data folder)",
    )
    parser.add_argument(
        "--scratch", metavar="DIR", help="a local folder of every machine for unfinished work"
    )
    add_local_spark(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Build and install. Returns 1 if rows are refused; nothing was installed then.

    Raises UsageError, DefinitionError, OSError, EngineError, TaskError, ClientError, SparkSideError.
    """
    from railgun.catalog.definitions import load_definitions
    from railgun.cli.streams import the_stream

    _check(arguments)
    definitions = load_definitions(arguments.definitions)
    stream = the_stream(definitions, arguments.stream, arguments.definitions)
    with needing_spark("backfill"):
        from railgun.spark.environment import local_session
    from railgun.cli.progress import PiecesProgress

    request = _request(arguments, definitions.of_stream(stream.name))
    if arguments.give_up:
        is_given_up = _deepening(arguments, request).give_up()
        print("given up" if is_given_up else f"no deepening of {stream.name} is under way")
        return 0
    target = _deepening(arguments, request) if arguments.deepen else _beginning(arguments, request)
    with _told_what_is_kept(), PiecesProgress() as progress:
        report = target.build(lambda: local_session(arguments.cores, arguments.memory), progress.at)
    refuses = bool(report.counts.refused_rows) and not arguments.skip_bad
    is_useless = not refuses and (report.is_empty or report.changes_nothing)
    installs = not refuses and not is_useless and not arguments.build_only
    if installs:
        with _told_what_is_kept():
            target.install()
    if is_useless:
        target.discard()
    print(json.dumps({**report.as_json(), "installed": installs}) if arguments.json else report.as_text())
    if refuses:
        print(
            f"railgun backfill: {report.counts.refused_rows:,} rows are refused, so nothing was installed; mend them "
            f"and remove {target.work}, or run it again with --skip-bad: tasks that are built are not built again",
            file=sys.stderr,
        )
    if is_useless:
        why = (
            "the history has no event before the cut"
            if report.is_empty
            else "the stream has all of these events"
        )
        print(f"railgun backfill: {why}: nothing was installed, nothing is left of it", file=sys.stderr)
    return EXIT_NO if refuses or report.is_empty else 0


@contextmanager
def _told_what_is_kept() -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        print(
            "railgun backfill: tasks that are built are kept; the same command, run again, goes on from there",
            file=sys.stderr,
        )
        raise


def _request(arguments: argparse.Namespace, definitions: "Definitions") -> "BackfillRequest":
    from railgun.spark.backfill.source import HistorySource
    from railgun.spark.backfill.target import BackfillRequest

    source = HistorySource((), "") if arguments.give_up else source_of(arguments)
    return BackfillRequest(
        data=Path(arguments.data).absolute(),
        definitions=definitions,
        source=source,
        columns=dict(arguments.column),
        cut_ms=arguments.until,
        work=None if arguments.work is None else Path(arguments.work).absolute(),
        scratch=None if arguments.scratch is None else Path(arguments.scratch).absolute(),
    )


def _is_of_cluster(arguments: argparse.Namespace) -> bool:
    return arguments.broker is not None or arguments.config is not None


def _beginning(arguments: argparse.Namespace, request: "BackfillRequest") -> "BackfillTarget":
    if not _is_of_cluster(arguments):
        from railgun.spark.backfill.engine import BackfillOfEngine

        return BackfillOfEngine(request)
    from railgun.spark.backfill.cluster import BackfillOfCluster

    return BackfillOfCluster(request, *_cluster(arguments))


def _cluster(arguments: argparse.Namespace) -> "tuple[KafkaSettings, str]":
    """Return the settings of the broker, and the prefix of the cluster's topics."""
    from railgun.config.loading import settings_of
    from railgun.messaging.kafka.configured import kafka_settings

    settings = settings_of(arguments.config, arguments.broker)
    return kafka_settings(settings), settings.cluster.topic_prefix


def _deepening(arguments: argparse.Namespace, request: "BackfillRequest") -> "DeepeningTarget":
    if _is_of_cluster(arguments):
        from railgun.spark.backfill.deepening_cluster import DeepeningOfCluster

        return DeepeningOfCluster(request, *_cluster(arguments))
    if arguments.url is None:
        from railgun.spark.backfill.engine import DeepeningOfEngine

        return DeepeningOfEngine(request)
    from railgun.client.address import url_from
    from railgun.spark.backfill.service import DeepeningOfService

    return DeepeningOfService(request, url_from(arguments.url), credentials_of(arguments))


def _check(arguments: argparse.Namespace) -> None:
    """Raise UsageError if options do not go together."""
    if arguments.give_up or arguments.url is not None:
        if not arguments.deepen:
            raise UsageError("--give-up and --url are for a deepening: --deepen")
    if arguments.token_file is not None and arguments.url is None:
        raise UsageError(
            "--token-file is for the server that --url names; what guards a broker is Kafka's own security"
        )
    if arguments.url is not None and _is_of_cluster(arguments):
        raise UsageError(
            "--url is for the server of an embedded engine; with --broker or --config leave it out"
        )
    if not arguments.history and not arguments.give_up:
        raise UsageError("name the history: files, folders or globs that Spark reads, or a table")
    if arguments.until is None and not arguments.deepen:
        raise UsageError("--until is needed: events before it are history, later ones are left to the log")


BACKFILL = Command(
    name="backfill",
    summary="put history before a stream's first event, with Spark",
    description=(
        "Build what a stream's metrics would be had its history come through its log: segments and state,\n"
        "by the engine's own code in Spark's executors, one task per partition. The stream is created if\n"
        "it is missing, and must not have had more events than its log still holds. Events before --until\n"
        "are taken; one that is in the log too counts once, told by its id.\n\n"
        "HISTORY is what Spark reads: Parquet, CSV (with a header), JSON lines, ORC, tables; Avro also\n"
        "without Spark's module. Its columns are the stream's fields, or --column says what they are made\n"
        "of (amount='CAST(cents AS DOUBLE) / 100'). Rows that the front-end would refuse are counted by\n"
        "reason; then nothing is installed unless --skip-bad.\n\n"
        "A stream that answers already gets older history with --deepen: its own events and the history are\n"
        "built anew beside it and take over when they have caught up. --url names the server on the data\n"
        "folder, which goes on answering. --until is found where it is left out: the history then supplies\n"
        "only what the stream lacks.\n\n"
        "It takes its share of this machine. Beside a server, start it with systemd-run or nice, which give\n"
        "it less (docs/spark.md has the command lines), and leave cores to the server with --cores.\n\n"
        "Without --deepen stop the server of the data folder while the stream is created and while the\n"
        "history is installed, which takes moments; it may run while tasks are built. A run that was cut\n"
        "off goes on where it was: give the same arguments. Needs Java 17 and, in Railgun's folder,\n"
        "pip install '.[spark]'."
    ),
    example="railgun backfill definitions.toml 'lake/*.parquet' --data data --until 2024-02-01T00:00:00Z",
    configure=configure,
    execute=execute,
)
