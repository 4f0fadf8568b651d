"""`railgun serve`: everything in one process tree: the HTTP door and the engine over the embedded log, or on Kafka."""

import argparse
import logging
import os
import platform
import re
import sys
from typing import TYPE_CHECKING

from railgun.cli.command import Command
from railgun.cli.failures import UsageError
from railgun.cli.open_files import raise_open_files_limit

if TYPE_CHECKING:
    from railgun.config.loading import Flag
    from railgun.config.settings import Settings

_ADDRESS = re.compile(r"(?:\[([^\]\s]+)\]|([^:\s]*)):([0-9]{1,5})", re.ASCII)


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments of `railgun serve`."""
    parser.add_argument(
        "--data", metavar="DIR", help="where events, state and the log are kept (default: data)"
    )
    parser.add_argument(
        "--broker", metavar="HOST:PORT", help="have the log in Kafka: a front-end, and a node beside it"
    )
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
    from frontend.server import serve
    from railgun.catalog.definitions import load_definitions
    from railgun.config.loading import load_settings
    from railgun.logs.setup import logging_as

    raise_open_files_limit()
    settings = load_settings(arguments.config, os.environ, serving_flags(arguments))
    definitions = None if arguments.definitions is None else load_definitions(arguments.definitions)
    on_kafka = arguments.broker is not None
    with logging_as(settings.logging):

        def on_ready(url: str) -> None:
            say_serving(url, settings, on_kafka=on_kafka)

        if on_kafka:
            code = serve_frontend(
                settings, definitions=definitions, on_ready=on_ready, node=_node_command(arguments)
            )
        else:
            code = serve(settings, definitions=definitions, on_ready=on_ready)
        logging.getLogger("railgun.serve").info("stopped")
    return code


def serving_flags(arguments: argparse.Namespace) -> "list[Flag]":
    """What the options of a server say. Raises UsageError."""
    from railgun.config.loading import Flag

    flags = []
    if getattr(arguments, "data", None) is not None:
        flags.append(Flag("--data", "engine.data_folder", arguments.data))
    if arguments.broker is not None:
        flags.append(Flag("--broker", "cluster.broker", arguments.broker))
    if arguments.http is not None:
        host, port = _address(arguments.http)
        flags += [Flag("--http", "http.host", host), Flag("--http", "http.port", port)]
    return flags


def say_serving(url: str, settings: "Settings", *, on_kafka: bool) -> None:
    """Log where events are taken, and where they go."""
    from railgun import __version__
    from railgun.logs.formats import fields

    engine, cluster = settings.engine, settings.cluster
    where = (
        {"broker": cluster.broker, "topic_prefix": cluster.topic_prefix}
        if on_kafka
        else {"data": engine.data_folder, "durability": engine.durability}
    )
    logging.getLogger("railgun.serve").info(
        "serving",
        extra=fields(
            url=url, **where, version=__version__, python=platform.python_version(), pid=os.getpid()
        ),
    )


def _node_command(arguments: argparse.Namespace) -> list[str]:
    """The node that does the work of a server on Kafka, with the same options."""
    command = [sys.executable, "-m", "railgun", "node", "--broker", arguments.broker]
    for option, value in (("--data", arguments.data), ("--config", arguments.config)):
        if value is not None:
            command += [option, value]
    return command


def _address(text: str) -> tuple[str, int]:
    """`127.0.0.1:8080`, `[::1]:8080`, `:8080` (every address of this machine)."""
    match = _ADDRESS.fullmatch(text)
    if match is None:
        raise UsageError(f"--http: {text[:80]!r} is no address; write HOST:PORT, as in 127.0.0.1:8080")
    return match[1] or match[2] or "0.0.0.0", int(match[3])


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
