"""`railgun frontend`: the half of a cluster that clients talk to: HTTP in front of streams whose log is Kafka."""

import argparse

from railgun.cli.parser import Command
from railgun.cli.serving import add_server_options, serve_until_stopped


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `railgun frontend`."""
    parser.add_argument("--broker", metavar="HOST:PORT", help="Kafka (default: 127.0.0.1:9092)")
    add_server_options(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Serve until asked to stop. Raises ConfigError, DefinitionError, UsageError, OSError, EngineError."""
    from frontend.kafka.serving import serve_frontend

    return serve_until_stopped(arguments, serve_frontend, on_kafka=True)


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
