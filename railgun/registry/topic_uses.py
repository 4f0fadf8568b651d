"""Checks that no topic is read and written, or written by two, among those that streams name. Does no I/O."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from railgun.catalog.changes import Change, DropStream, PutStream
from railgun.catalog.model import StreamDefinition
from railgun.registry.errors import DefinitionsError
from railgun.registry.topics import Topics

_INPUT = "an input topic"


class _Use(NamedTuple):
    """A use of a topic. is_written: by the cluster.  is_shared: streams may have it together."""

    stream: str
    what: str
    is_written: bool = True
    is_shared: bool = False


def check_topics(changes: Sequence[Change], known: Mapping[str, StreamDefinition], topics: Topics) -> None:
    """Raise DefinitionsError if changes give a topic that is written a second use.

    Streams may share input topics, and a topic of dead letters.
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
            why = _why_not(topic, use, used[topic], topics)
            if why is not None:
                raise DefinitionsError(f"{name}: {topic} cannot be {use.what}: {why}; name another one")


def _why_not(topic: str, use: _Use, uses: Sequence[_Use], topics: Topics) -> str | None:
    """Return why a topic cannot have a use beside all its uses; None if it can."""
    if use.is_written and topics.is_of_cluster(topic):
        return "it is one of Railgun's own"
    for other in uses:
        is_fine = other == use or (use.is_shared and other.is_shared)
        if not is_fine and (use.is_written or other.is_written):
            # Whoever asks may have no right to know the other stream.
            return f"it is {other.what} of {'this' if other.stream == use.stream else 'another'} stream"
    if use.what == _INPUT and topics.is_reserved(topic):
        # Streams that are made later write there.
        own = topics.input("STREAM")
        return f"names with {topics.prefix}. are this cluster's own, but for {own}"
    return None


def _uses(stream: StreamDefinition, topics: Topics) -> Iterator[tuple[str, _Use]]:
    """Yield the topics of a stream, each with its use. Those that its definition names come first."""
    name, is_read = stream.name, _Use(stream.name, _INPUT, is_written=False)
    for topic in stream.input.topics:
        yield topic, is_read
    yield topics.output_of(stream), _Use(name, "the output topic")
    # Units, which do not know the definition, write to the one that is named after the stream.
    for topic in dict.fromkeys((topics.dead_of(stream), topics.dead(name))):
        yield topic, _Use(name, "the topic of dead letters", is_shared=True)
    yield topics.input(name), is_read
    for topic in (*topics.of_tasks(stream), *topics.of_queries(stream)):
        yield topic, _Use(name, "a topic of the tasks")
