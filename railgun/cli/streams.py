"""Chooses the stream of a definitions file that an option means."""

from railgun.catalog.model import Definitions, StreamDefinition
from railgun.cli.failures import UsageError, unknown


def the_stream(definitions: Definitions, name: str | None, file: str) -> StreamDefinition:
    """Return the stream of that name, or the only one of the file. Raises UsageError."""
    names = list(definitions.streams)
    if not names:
        raise UsageError(f"{file}: it defines no stream; write one, as in [streams.payments]")
    if name is None:
        if len(names) > 1:
            raise UsageError(f"{file}: it defines {', '.join(names)}; say which one with --stream")
        return definitions.streams[names[0]]
    if name not in definitions.streams:
        raise UsageError(f"{file}: {unknown('stream', name, names)}")
    return definitions.streams[name]
