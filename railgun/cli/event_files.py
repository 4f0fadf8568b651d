"""What the commands share that read a stream's events from files: their arguments, and the stream that these mean."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from railgun.cli.failures import UsageError
from railgun.files.formats import READABLE, readable_format

if TYPE_CHECKING:
    from railgun.catalog.model import Definitions, StreamDefinition


def add_event_files(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that name definitions, files of events, and their stream."""
    parser.add_argument("definitions", metavar="DEFINITIONS", help="a definitions file (TOML)")
    parser.add_argument(
        "events",
        metavar="EVENTS",
        nargs="+",
        help=f"files of events, in the order of the log: {' '.join(READABLE)}",
    )
    parser.add_argument(
        "--stream", metavar="S", help="the stream the events are of; the only one if left out"
    )


def read_definitions(arguments: argparse.Namespace) -> tuple["Definitions", "StreamDefinition"]:
    """Return the definitions, and the stream that the events are of. Raises DefinitionError, UsageError, OSError."""
    from railgun.catalog.definitions import load_definitions
    from railgun.cli.streams import the_stream

    definitions = load_definitions(arguments.definitions)
    stream = the_stream(definitions, arguments.stream, arguments.definitions)
    if stream.of_records_alone is not None:
        raise UsageError(stream.of_records_alone)
    return definitions, stream


def event_paths(arguments: argparse.Namespace) -> list[Path]:
    """Return the files of events. Raises FileError for one of no known format, OSError for one that is not there.

    To be called before kernels are compiled, which may take minutes.
    """
    paths = [Path(each) for each in arguments.events]
    for path in paths:
        readable_format(path)
        path.stat()
    return paths
