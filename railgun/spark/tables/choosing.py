"""Chooses the stream and the partitioner that options mean. Names may be left out, or be misspelt."""

from collections.abc import Sequence

from railgun.catalog.catalog import FIRST_VERSION
from railgun.catalog.definitions import load_definitions
from railgun.catalog.errors import DefinitionError
from railgun.catalog.model import StreamDefinition
from railgun.catalog.names import column_name
from railgun.language.errors import nearest
from railgun.spark.errors import OptionError
from railgun.spark.tables.record_log import StreamSchemas


def defined(file: str, stream: str | None) -> StreamSchemas:
    """Return a stream of a definitions file. Raises OptionError."""
    try:
        definitions = load_definitions(file)
    except (DefinitionError, OSError) as error:
        raise OptionError(f"option definitions: {error}") from error
    found = definitions.streams[chosen_stream(list(definitions.streams), stream, file)]
    return StreamSchemas(found, {FIRST_VERSION: found.schema(FIRST_VERSION)})


def chosen_stream(names: Sequence[str], requested: str | None, place: str) -> str:
    """Return the requested stream, or the only one of a place. Raises OptionError."""
    if requested is None and len(names) == 1:
        return names[0]
    if requested is None:
        raise OptionError(
            f"{place}: it has the streams {', '.join(names) or '(none)'}; say which: option stream"
        )
    if requested not in names:
        near = nearest(requested, names)
        hint = f"did you mean {near}?" if near else f"there are {', '.join(names) or 'none'}"
        raise OptionError(f"{place}: there is no stream {requested[:80]!r}; {hint}")
    return requested


def chosen_partitioner(stream: StreamDefinition, requested: str | None) -> str:
    """Return the requested partitioner of a stream, or its only one. Raises OptionError."""
    names = {column_name(each): each for each in stream.partitioners}
    if requested is None and len(names) == 1:
        return stream.partitioners[0]
    if requested is None:
        raise OptionError(
            f"stream {stream.name} has the partitioners {', '.join(names)}, each with all events; say which one's to "
            "read: option partitioner"
        )
    if requested in names or requested in stream.partitioners:
        return names.get(requested, requested)
    near = nearest(requested, names)
    hint = f"did you mean {near}?" if near else f"there are {', '.join(names)}"
    raise OptionError(f"stream {stream.name} has no partitioner {requested[:80]!r}; {hint}")
