"""Checks that the schema of a stream's input can be used, before the stream is registered."""

from collections.abc import Callable, Sequence

from frontend.formats.errors import ValueUnreadableError
from frontend.formats.values import reader_of
from railgun.catalog import input_format
from railgun.catalog.catalog import Catalog
from railgun.catalog.changes import Change, PutStream
from railgun.catalog.errors import DefinitionError
from railgun.catalog.model import StreamDefinition

Request = Callable[[Catalog], Sequence[Change]]


def with_usable_formats(request: Request) -> Request:
    """Return a request for changes that raises DefinitionError if the schema of a stream's input cannot be used."""

    def checked(catalog: Catalog) -> Sequence[Change]:
        changes = request(catalog)
        for change in changes:
            if isinstance(change, PutStream):
                _check(change.stream)
        return changes

    return checked


def _check(stream: StreamDefinition) -> None:
    found = stream.input.format
    if found is None or found.kind == input_format.JSON:
        return
    try:
        reader_of(found, stream.incoming(1))
    except ValueUnreadableError as error:
        raise DefinitionError(("input", "schema"), str(error)) from None
