"""Finds the records from which on a stream's input topics are read by a changed mapping, and records that once for all.

A front-end that has heard of a change leaves the stream's group, and reads on once the offsets are recorded. They are
the ends of the partitions at a moment when no member of the group reads by an earlier mapping. So whatever was read
before lies below them, and stays with its mapping, whoever reads it again.
"""

import logging
from collections.abc import Mapping, Sequence

from frontend.topics.route import Means, Route
from frontend.topics.starts import start_offsets
from railgun.catalog.model import LATEST
from railgun.messaging.kafka.membership import GroupMembers
from railgun.messaging.kafka.settings import MAPPING_END
from railgun.messaging.kafka.topics import Described
from railgun.messaging.kafka.transport import KafkaTransport
from railgun.registry.input_topics import InputTopic
from railgun.wording import listed

_log = logging.getLogger("railgun.frontend")


class MappingPendingError(Exception):
    """Topics cannot be read yet, as it is not known from where on a changed mapping holds. The text says why."""


def member_suffix(mapped: int) -> str:
    """Return what tells other members of a group the mapping by which one reads: nothing of a stream's first one."""
    return f"-mapping-{mapped}" if mapped else ""


def mapped_of(member: str) -> int:
    """Return the place of the mapping by which a member reads. member: its `client.id`."""
    found = MAPPING_END.search(member)
    return 0 if found is None else int(found[1])


def mapped_topics(
    route: Route, topics: Sequence[InputTopic], means: Means, transport: KafkaTransport
) -> list[InputTopic]:
    """Return a stream's topics with the offsets from which on the mapping of its route holds.

    Raises MappingPendingError, TransportError, RegistryError.
    """
    behind = [each for each in topics if each.mapped < route.mapped]
    recorded: Mapping[str, InputTopic] = {}
    if behind:
        _check_members(route, means)
        ends = _ends(behind, transport)
        recorded = means.registry.map_topics(route.created, route.mapped, ends)
        for each in recorded.values():
            _log.info(
                "%s: records of %s are read by the definition of change %d from these offsets on: %s",
                route.stream,
                each.name,
                each.mapped,
                listed([str(start) for start in each.mappings[-1].starts]),
            )
    found = [recorded.get(each.id, each) for each in topics]
    if any(each.mapped != route.mapped for each in found):
        raise MappingPendingError(
            "its definition has changed once more, and this front-end has not heard of it yet"
        )
    return found


def _check_members(route: Route, means: Means) -> None:
    group = means.topics.input(route.stream)
    earlier = [
        each for each in GroupMembers(means.settings, group).now().names if mapped_of(each) < route.mapped
    ]
    if earlier:
        raise MappingPendingError(
            f"{listed(sorted(earlier))} of the group {group} read by its earlier definition still; it is read on once "
            "they have heard of the change, or have left the group"
        )


def _ends(topics: Sequence[InputTopic], transport: KafkaTransport) -> dict[str, list[int]]:
    """Return where the partitions of topics end now, by the topics' ids. Partitions may be new since the last look."""
    found = transport.described([each.name for each in topics])
    ends: dict[str, list[int]] = {}
    for each in topics:
        described = found.get(each.name)
        if not isinstance(described, Described) or described.id != each.id:
            raise MappingPendingError(
                f"the topic {each.name} is another one, or cannot be read, since a moment ago"
            )
        ends[each.id] = start_offsets(transport, each.name, described.partitions, LATEST)
    return ends
