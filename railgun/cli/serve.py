"""`railgun serve`: everything in one process: the HTTP door, the engine, the embedded log."""

import argparse
import logging
import os
import platform
import re
from typing import TYPE_CHECKING

from railgun.cli.command import Command
from railgun.cli.failures import UsageError

if TYPE_CHECKING:
    from railgun.config.settings import Settings

_ADDRESS = re.compile(r"(?:\[([^\]\s]+)\]|([^:\s]*)):([0-9]{1,5})", re.ASCII)


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments of `railgun serve`."""
    parser.add_argument(
        "--data", metavar="DIR", help="where events, state and the log are kept (default: data)"
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
    from frontend.server import serve
    from railgun.catalog.definitions import load_definitions
    from railgun.config.loading import Flag, load_settings
    from railgun.logs.setup import logging_as

    flags = []
    if arguments.data is not None:
        flags.append(Flag("--data", "engine.data_folder", arguments.data))
    if arguments.http is not None:
        host, port = _address(arguments.http)
        flags += [Flag("--http", "http.host", host), Flag("--http", "http.port", port)]
    settings = load_settings(arguments.config, os.environ, flags)
    definitions = None if arguments.definitions is None else load_definitions(arguments.definitions)
    with logging_as(settings.logging):
        code = serve(settings, definitions=definitions, on_ready=lambda url: _say_serving(url, settings))
        logging.getLogger("railgun.serve").info("stopped")
    return code


def _say_serving(url: str, settings: "Settings") -> None:
    from railgun import __version__
    from railgun.logs.formats import fields

    engine = settings.engine
    logging.getLogger("railgun.serve").info(
        "serving",
        extra=fields(
            url=url,
            data=engine.data_folder,
            durability=engine.durability,
            version=__version__,
            python=platform.python_version(),
            pid=os.getpid(),
        ),
    )


def _address(text: str) -> tuple[str, int]:
    """`127.0.0.1:8080`, `[::1]:8080`, `:8080` (every address of this machine)."""
    match = _ADDRESS.fullmatch(text)
    if match is None:
        raise UsageError(f"--http: {text[:80]!r} is no address; write HOST:PORT, as in 127.0.0.1:8080")
    return match[1] or match[2] or "0.0.0.0", int(match[3])


SERVE = Command(
    name="serve",
    summary="answer events over HTTP: everything in one process, with an embedded log",
    description=(
        "Serve streams over HTTP: register streams and metrics, score events, see how it stands. Everything\n"
        "is in this process; events, state and the log are in one data folder, which it holds alone.\n\n"
        "Settings come from their defaults, then FILE, then the environment (RAILGUN_HTTP__PORT=9000), then\n"
        "these options; the later win. SIGTERM or Ctrl-C: what is in flight is answered, a checkpoint is\n"
        "taken, and the exit code is 0; a second one stops at once, and nothing that was answered is lost."
    ),
    example="railgun serve --data data --http 127.0.0.1:8080 --definitions definitions.toml",
    configure=configure,
    execute=execute,
)
