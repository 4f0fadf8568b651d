"""`railgun serve`: everything in one process tree: the HTTP server, and the engine over its log or on Kafka."""

import argparse
import gc
import os
from functools import partial

from railgun.child_python import child_python
from railgun.cli.parser import Command
from railgun.cli.serving import add_server_options, serve_until_stopped


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `railgun serve`."""
    parser.add_argument(
        "--data", metavar="DIR", help="where events, state and the log are kept (default: data)"
    )
    parser.add_argument(
        "--broker", metavar="HOST:PORT", help="have the log in Kafka: a front-end, and a node beside it"
    )
    add_server_options(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Serve until asked to stop. Raises ConfigError, DefinitionError, UsageError, OSError, EngineError."""
    if arguments.broker is None and not _wants_kafka(arguments):
        return _serve_alone(arguments)
    from frontend.kafka.serving import serve_frontend

    on_kafka = partial(serve_frontend, node=_node_command(arguments))
    return serve_until_stopped(arguments, on_kafka, on_kafka=True)


def _wants_kafka(arguments: argparse.Namespace) -> bool:
    """Whether the settings choose Kafka as the log. Raises ConfigError."""
    from railgun.config.loading import load_settings

    return load_settings(arguments.config, os.environ).engine.transport == "kafka"


def _serve_alone(arguments: argparse.Namespace) -> int:
    # What a start makes stays. Looking for garbage in it again and again takes a fifth of the start.
    # `Service` (frontend/http/service.py) turns it on again after the start.
    gc.disable()
    try:
        from frontend.embedded.serving import serve

        return serve_until_stopped(arguments, serve, on_kafka=False)
    finally:
        gc.enable()


def _node_command(arguments: argparse.Namespace) -> list[str]:
    """Return the command of a node with the same options. It does the work of a server on Kafka."""
    command = child_python("-m", "railgun", "node", "--until-input-ends")
    given = (
        ("--broker", arguments.broker),
        ("--data", arguments.data),
        ("--config", arguments.config),
    )
    for option, value in given:
        if value is not None:
            command += [option, value]
    return command


SERVE = Command(
    name="serve",
    summary="answer events over HTTP: everything together, with an embedded log or Kafka",
    description=(
        "Serve streams over HTTP: register streams and metrics, score events, see how it stands. Everything\n"
        "is in this process; events, state and the log are in one data folder, which it holds alone. With\n"
        "--broker the log is in Kafka, and a node with a process for each core does the work.\n\n"
        "Settings come from their defaults, then FILE, then the environment (RAILGUN_HTTP__PORT=9000), then\n"
        "these options; the later win. SIGTERM or Ctrl-C: what is in flight is answered, a checkpoint is\n"
        "taken, and the exit code is 0; a second one stops at once, and nothing that was answered is lost."
    ),
    example="railgun serve --data data --http 127.0.0.1:8080 --definitions definitions.toml",
    configure=configure,
    execute=execute,
)
