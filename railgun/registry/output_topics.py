"""Checks that the replies and dead letters of a stream go where nothing else is written or read. Does no I/O."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from railgun.catalog.changes import Change, DropStream, PutStream
from railgun.catalog.model import StreamDefinition
from railgun.registry.errors import DefinitionsError
from railgun.registry.topics import Topics


class _Use(NamedTuple):
    """A use of a topic. is_written: with replies or dead letters.  is_shared: streams may have it together."""

    stream: str
    what: str
    is_written: bool = False
    is_shared: bool = False


def check_outputs(changes: Sequence[Change], known: Mapping[str, StreamDefinition], topics: Topics) -> None:
    """Raise DefinitionsError if changes give a topic of replies or dead letters a second use.

    Streams may share a topic of dead letters.
    known: by name, the streams before the changes.
    """
    streams, changed = dict(known), set[str]()
    for change in changes:
        if isinstance(change, PutStream):
            streams[change.stream.name] = change.stream
            changed.add(change.stream.name)
        elif isinstance(change, DropStream):
            streams.pop(change.name, None)
            changed.discard(change.name)
    used: dict[str, list[_Use]] = {}
    for stream in streams.values() if changed else ():
        for topic, use in _uses(stream, topics):
            used.setdefault(topic, []).append(use)
    for name in sorted(changed):
        for topic, use in _uses(streams[name], topics):
            _check(topic, use, used[topic], topics)


def _check(topic: str, use: _Use, uses: Sequence[_Use], topics: Topics) -> None:
    if use.is_written and topics.is_of_cluster(topic):
        raise _refused(topic, use, "it is one of Railgun's own")
    for other in uses:
        is_fine = other == use or (use.is_shared and other.is_shared)
        if not is_fine and (use.is_written or other.is_written):
            # Whoever asks may have no right to know the other stream.
            whose = "this" if other.stream == use.stream else "another"
            raise _refused(topic, use, f"it is {other.what} of {whose} stream")


def _refused(topic: str, use: _Use, why: str) -> DefinitionsError:
    return DefinitionsError(f"{use.stream}: {topic} cannot be {use.what}: {why}; name another one")


def _uses(stream: StreamDefinition, topics: Topics) -> Iterator[tuple[str, _Use]]:
    """Yield the topics of a stream, each with its use."""
    name = stream.name
    yield topics.output_of(stream), _Use(name, "the output topic", is_written=True)
    # Units, which do not know the definition, write to the one that is named after the stream.
    for topic in dict.fromkeys((topics.dead_of(stream), topics.dead(name))):
        yield topic, _Use(name, "the topic of dead letters", is_written=True, is_shared=True)
    yield topics.input(name), _Use(name, "an input topic")
    for topic in (*topics.of_tasks(stream), *topics.of_queries(stream)):
        yield topic, _Use(name, "a topic of the tasks")
