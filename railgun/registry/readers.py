"""Makes sure that every process of a cluster reads a change of the catalogue, before `KafkaRegistry` writes it."""

from collections.abc import Callable, Mapping, Sequence

from railgun.catalog.changes import Change, PutStream
from railgun.catalog.mappings import is_mapped_otherwise
from railgun.catalog.model import StreamDefinition
from railgun.catalog.version import FIRST, WITH_COMPUTED, WITH_MAPPINGS, WITH_PLACES, WITH_TOPICS
from railgun.cluster.records import FrontEndRecord, NodeRecord, RecordError, decode_statement
from railgun.messaging.kafka.membership import GroupMembers
from railgun.messaging.kafka.settings import KafkaSettings
from railgun.messaging.kafka.transport import KafkaTransport
from railgun.messaging.to_the_end import read_to_the_end
from railgun.messaging.transport import TopicPartition
from railgun.registry.errors import DefinitionsError
from railgun.registry.topics import Topics
from railgun.wording import listed

_CATALOG = "catalog"
_PLAIN = StreamDefinition("", ())


class CatalogReaders:
    """Knows which nodes and front-ends live, and what they read, by what they say in the topic of nodes.

    A node lives if it is a member of the group of nodes, a front-end if its reply topic is there.
    """

    def __init__(self, settings: KafkaSettings, topics: Topics, transport: KafkaTransport) -> None:
        self._settings, self._topics, self._transport = settings, topics, transport

    def check(self, changes: Sequence[Change], known: Mapping[str, StreamDefinition]) -> None:
        """Raise DefinitionsError if a node or a front-end cannot read a change. Raises TransportError.

        known: by name, the streams before the changes.
        """
        put = [change for change in changes if isinstance(change, PutStream)]
        for version, what, new in (
            (
                WITH_MAPPINGS,
                "changes of from, unit and where (here of {})",
                [each.stream.name for each in put if _is_mapped_otherwise(each, known)],
            ),
            (
                WITH_TOPICS,
                "inputs (here of {})",
                _newly_said(put, known, lambda stream: stream.input),
            ),
            (
                WITH_TOPICS,
                "outputs (here of {})",
                _newly_said(put, known, lambda stream: stream.output),
            ),
            (
                WITH_COMPUTED,
                "computed fields (here {})",
                [name for each in put for name in _computed(each, known)],
            ),
            (
                WITH_PLACES,
                "from and unit (here of {})",
                [name for each in put for name in _placed(each, known)],
            ),
        ):
            laggards = self._laggards(version) if new else []
            if laggards:
                raise DefinitionsError(
                    f"{what.format(listed(new))} are not read by {listed(laggards)} yet; upgrade them, then register "
                    "this again"
                )

    def _laggards(self, version: int) -> list[str]:
        """Return the nodes and front-ends that cannot read entries of a version, in words."""
        existing = self._transport.topics()
        nodes, front_ends = self._said(existing)
        found = []
        for name in sorted(GroupMembers(self._settings, self._topics.nodes).now().names):
            node = nodes.get(name)
            if node is None or not _reads(node.reads, version):
                found.append(f"the node {name}" + (f" of {node.release}" if node is not None else ""))
        for topic in sorted(filter(self._topics.is_of_replies, existing)):
            front_end = front_ends.get(topic)
            if front_end is None:
                found.append(f"the front-end of the topic {topic} (if it has died, delete the topic)")
            elif not _reads(front_end.reads, version):
                found.append(f"the front-end {front_end.name} of {front_end.release}")
        return found

    def _said(self, existing: Mapping[str, int]) -> tuple[dict[str, NodeRecord], dict[str, FrontEndRecord]]:
        """Return what nodes say of themselves, by name, and what front-ends do, by their reply topic."""
        nodes: dict[str, NodeRecord] = {}
        front_ends: dict[str, FrontEndRecord] = {}
        if self._topics.nodes not in existing:
            return nodes, front_ends
        for fetched in read_to_the_end(self._transport, TopicPartition(self._topics.nodes, 0)):
            for value in filter(None, fetched.values()):
                try:
                    said = decode_statement(value)
                except RecordError:
                    # It is said by a release that is newer than this one.
                    continue
                if isinstance(said, NodeRecord):
                    nodes[said.name] = said
                elif isinstance(said, FrontEndRecord):
                    front_ends[self._topics.replies(said.number)] = said
        return nodes, front_ends


def _placed(change: PutStream, known: Mapping[str, StreamDefinition]) -> list[str]:
    """Return the names of the new fields that have a path or a unit. known: the streams before the change."""
    before = known.get(change.stream.name)
    new = change.stream.fields[0 if before is None else len(before.fields) :]
    return [field.name for field in new if field.says_where]


def _is_mapped_otherwise(change: PutStream, known: Mapping[str, StreamDefinition]) -> bool:
    before = known.get(change.stream.name)
    return before is not None and is_mapped_otherwise(before, change.stream)


def _computed(change: PutStream, known: Mapping[str, StreamDefinition]) -> list[str]:
    """Return the names of the new computed fields. known: the streams before the change."""
    before = known.get(change.stream.name)
    names = {} if before is None else before.types
    return [each.name for each in change.stream.computed if each.name not in names]


def _newly_said(
    put: Sequence[PutStream], known: Mapping[str, StreamDefinition], key: Callable[[StreamDefinition], object]
) -> list[str]:
    """Return the streams that say something of a key, and did not before.

    known: the streams before the changes.  key: returns the value of the key.
    """
    nothing = key(_PLAIN)
    return [
        each.stream.name
        for each in put
        if key(each.stream) != nothing and key(known.get(each.stream.name, _PLAIN)) == nothing
    ]


def _reads(reads: Mapping[str, int], version: int) -> bool:
    return reads.get(_CATALOG, FIRST) >= version
