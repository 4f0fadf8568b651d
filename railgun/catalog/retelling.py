"""The changes that bring a task, which has missed any number of changes, to the catalogue as it is."""

from dataclasses import replace

from railgun.catalog.catalog import StreamEntry
from railgun.catalog.changes import AddMetric, Change, DropMetric, PutStream
from railgun.catalog.model import StreamDefinition


def definitions_by_version(entry: StreamEntry) -> dict[int, StreamDefinition]:
    """Return a stream's newest definition with the fields of each version of its schema, the newest last.

    Recorded fields are only ever added at the end.
    """
    stream = entry.stream
    return {
        version: replace(stream, fields=stream.fields[: len(schema.fields)], computed=entry.computed[version])
        for version, schema in sorted(entry.schemas.items())
    }


def retold(entry: StreamEntry) -> list[Change]:
    """Return the changes of a stream that `TaskProcessor.cross` takes: the stream under each version of its schema, the
    newest last, then metrics that were dropped or added, in the order of their places.

    Events may be recorded under versions that a task has never heard of. All versions are of the present definition,
    and have the place of its first one.
    """
    put: list[Change] = [
        PutStream(entry.created, stream, version) for version, stream in definitions_by_version(entry).items()
    ]
    changed: list[AddMetric | DropMetric] = list(entry.metrics.values())
    changed += [
        DropMetric(each.dropped, entry.stream.name, each.name, each.added)
        for each in entry.registered
        if each.dropped is not None and each.derived is None
    ]
    return [*put, *sorted(changed, key=lambda change: change.place)]
