"""The part that `railgun serve` and `railgun frontend` share: options, settings, and the run until they are stopped."""

import argparse
import logging
import os
import platform
import re
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Protocol

from railgun.cli.failures import UsageError
from railgun.cli.open_files import raise_open_files_limit
from railgun.config.hangup import hold_hangup

if TYPE_CHECKING:
    from railgun.catalog.model import Definitions
    from railgun.config.loading import Flag
    from railgun.config.reloading import Reload
    from railgun.config.settings import Settings

_ADDRESS = re.compile(r"(?:\[([^\]\s]+)\]|([^:\s]*)):([0-9]{1,5})", re.ASCII)


class Serve(Protocol):
    """Serves until it is asked to stop, and returns the exit code."""

    def __call__(
        self,
        settings: "Settings",
        /,
        *,
        definitions: "Definitions | None",
        on_ready: Callable[[str], None],
        reload: "Reload",
    ) -> int:
        """Serve.

        definitions: created at the start if they are missing.
        on_ready: is called with the URL when events are accepted.
        reload: is called after SIGHUP.
        """


def add_server_options(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that all servers have."""
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


def serve_until_stopped(arguments: argparse.Namespace, serve: Serve, *, on_kafka: bool) -> int:
    """Serve with the options of the command line, and return the exit code. on_kafka: only for what is logged.

    Raises ConfigError, DefinitionError, UsageError, OSError, and what `serve` raises.
    """
    hold_hangup()
    from railgun.arrow_alone import without_pandas
    from railgun.catalog.definitions import load_definitions
    from railgun.config.loading import load_settings
    from railgun.config.reloading import Reload
    from railgun.logs.setup import logging_as

    raise_open_files_limit()
    reread = partial(load_settings, arguments.config, os.environ, _flags(arguments))
    settings = reread()
    definitions = None if arguments.definitions is None else load_definitions(arguments.definitions)
    with logging_as(settings.logging.level, settings.logging.format):

        def on_ready(url: str) -> None:
            _say_serving(url, settings, on_kafka=on_kafka)

        without_pandas()
        reload = Reload(settings, reread)
        code = serve(settings, definitions=definitions, on_ready=on_ready, reload=reload)
        logging.getLogger("railgun.serve").info("stopped")
    return code


def _flags(arguments: argparse.Namespace) -> "list[Flag]":
    """Return the settings that a server's options give. Raises UsageError."""
    from railgun.config.loading import Flag, flags_given

    given = {
        "--data": ("engine.data_folder", getattr(arguments, "data", None)),
        "--broker": ("cluster.broker", arguments.broker),
    }
    flags = flags_given(given)
    if arguments.http is not None:
        host, port = _address(arguments.http)
        flags += [Flag("--http", "http.host", host), Flag("--http", "http.port", port)]
    return flags


def _say_serving(url: str, settings: "Settings", *, on_kafka: bool) -> None:
    """Log where events are accepted and where they go."""
    from railgun import __version__
    from railgun.logs.setup import fields

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


def _address(text: str) -> tuple[str, int]:
    """Return (host, port) of `127.0.0.1:8080`, `[::1]:8080` or `:8080` (every address of this machine)."""
    match = _ADDRESS.fullmatch(text)
    if match is None:
        raise UsageError(f"--http: {text[:80]!r} is no address; write HOST:PORT, as in 127.0.0.1:8080")
    return match[1] or match[2] or "0.0.0.0", int(match[3])
