"""`railgun frontend`: the half of a cluster that clients talk to: HTTP in front of streams whose log is Kafka."""

import argparse
import logging
import os

from railgun.cli.command import Command
from railgun.cli.open_files import raise_open_files_limit
from railgun.cli.serve import say_serving, serving_flags


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments of `railgun frontend`."""
    parser.add_argument("--broker", metavar="HOST:PORT", help="Kafka (default: 127.0.0.1:9092)")
    parser.add_argument(
        "--http",
        metavar="HOST:PORT",
        help="where to listen (default: 127.0.0.1:8080); port 0: the system chooses, and the log says which",
    )
    parser.add_argument(
        "--config", metavar="FILE", help="settings (TOML); config/railgun.toml shows them all"
    )
    parser.add_argument(
        "--definitions",
        metavar="FILE",
        help="streams and metrics (TOML) that are created where they are missing",
    )


def execute(arguments: argparse.Namespace) -> int:
    """Serve until asked to stop. Raises ConfigError, DefinitionError, UsageError, OSError, EngineError."""
    from frontend.kafka.serving import serve_frontend
    from railgun.catalog.definitions import load_definitions
    from railgun.config.loading import load_settings
    from railgun.logs.setup import logging_as

    raise_open_files_limit()
    settings = load_settings(arguments.config, os.environ, serving_flags(arguments))
    definitions = None if arguments.definitions is None else load_definitions(arguments.definitions)
    with logging_as(settings.logging):
        code = serve_frontend(
            settings, definitions=definitions, on_ready=lambda url: say_serving(url, settings, on_kafka=True)
        )
        logging.getLogger("railgun.serve").info("stopped")
    return code


FRONTEND = Command(
    name="frontend",
    summary="answer events over HTTP for streams whose log is Kafka",
    description=(
        "Serve streams of a cluster over HTTP: register streams and metrics, score events, see how it stands.\n"
        "Events go to Kafka, where nodes (`railgun node`) process them; their answers come back the same way.\n"
        "Any number of front-ends may serve the same streams; they keep nothing.\n\n"
        "Settings come from their defaults, then FILE, then the environment (RAILGUN_CLUSTER__BROKER=…), then\n"
        "these options; the later win. SIGTERM or Ctrl-C: what is in flight is answered, and the exit code\n"
        "is 0."
    ),
    example="railgun frontend --broker 127.0.0.1:9092 --http 127.0.0.1:8080",
    configure=configure,
    execute=execute,
)
