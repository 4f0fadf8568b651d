"""The topics that a stream's events come from, and their numbers. Does no I/O."""

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any, NamedTuple

PARTITION_BITS = 14
PARTITIONS_MAX = 1 << PARTITION_BITS
"""An input topic has at most so many partitions."""
_NUMBER_BITS = 31
_NUMBERS = 1 << (_NUMBER_BITS - PARTITION_BITS)
# So many offsets are kept of a topic's mappings, so that its entry stays below half a megabyte.
_STARTS_LIMIT = 2 * PARTITIONS_MAX


class MappedFrom(NamedTuple):
    """Says from which records on a topic is read by a mapping of its stream.

    place: that of the change that brought the mapping.
    starts: by partition, the offset of the first such record. Partitions behind these are read by it from their
        beginning.
    """

    place: int
    starts: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class InputTopic:
    """A topic that is, or was, read for a stream.

    name, id: a topic that is deleted and made anew has the same name and another id.
    number: tells the topic apart from all others of the stream. Tasks know a partition by it (`partition_number`).
    starts: by partition, the offset at which its first reading begins. Partitions behind these begin at their oldest
        record.
    is_remade: whether a topic of the name was read before, for this stream or a dropped one of its name. What the
        group has committed may be of that.
    mappings: those by which its records are read, the oldest first. Records before all of them are read by the stream's
        first one, whose place is 0.
    """

    name: str
    id: str
    number: int
    starts: tuple[int, ...] = ()
    is_remade: bool = False
    mappings: tuple[MappedFrom, ...] = ()

    def partition_number(self, partition: int) -> int:
        """Return the number by which tasks know a partition: no other one of the stream has it."""
        return self.number << PARTITION_BITS | partition

    def start(self, partition: int) -> int | None:
        """Return the offset at which the first reading of a partition begins; None: at its oldest record."""
        return self.starts[partition] if partition < len(self.starts) else None

    @property
    def mapped(self) -> int:
        """The place of the newest mapping by which it is read."""
        return self.mappings[-1].place if self.mappings else 0

    def mapping_starts(self, partition: int) -> list[int]:
        """Return the offsets in a partition from which on other mappings hold, in order."""
        return [each.starts[partition] if partition < len(each.starts) else 0 for each in self.mappings]

    def mapping_at(self, partition: int, offset: int) -> int:
        """Return the place of the mapping by which a record is read, whenever that is."""
        starts = zip(self.mappings, self.mapping_starts(partition))
        return next((each.place for each, start in reversed(list(starts)) if start <= offset), 0)

    def mapped_from(self, place: int, ends: Sequence[int]) -> "InputTopic":
        """Return the topic with another mapping, which holds from where partitions end, and not before the last one.

        Of many mappings the oldest are forgotten: their records are read by the oldest that is left.
        """
        before = self.mappings[-1].starts if self.mappings else ()
        starts = tuple(max(pair) for pair in zip_longest(ends, before, fillvalue=0))
        kept = [*self.mappings, MappedFrom(place, starts)]
        while len(kept) > 1 and sum(len(each.starts) for each in kept) > _STARTS_LIMIT:
            del kept[0]
            kept[0] = MappedFrom(kept[0].place)
        return replace(self, mappings=tuple(kept))


def numbered(found: Iterable[tuple[str, str]], known: Collection[InputTopic]) -> list[InputTopic]:
    """Return topics with numbers that no other topic of the stream has.

    found: name and id of the topics, whose ids are not among the known ones.
    known: the topics that have numbers.

    A number is a hash of the id, as in releases that did not record it. The next free one is taken if another topic
    has it.
    """
    taken = {each.number for each in known}
    made: list[InputTopic] = []
    for name, topic_id in found:
        number = hashed(topic_id)
        while number in taken:
            number = (number + 1) % _NUMBERS
        taken.add(number)
        made.append(InputTopic(name, topic_id, number))
    return made


def hashed(topic_id: str) -> int:
    """Return the hash of the id of a topic, which is its number if no other topic of the stream has that."""
    digest = int.from_bytes(hashlib.blake2b(topic_id.encode(), digest_size=8).digest(), "big")
    return digest >> (64 - _NUMBER_BITS + PARTITION_BITS)


def topic_to_json(created: int, topic: InputTopic) -> dict[str, Any]:
    """Return the topic as the catalogue has it. created: the place of the stream's creation."""
    body = {"created": created, "topic": topic.name, "id": topic.id, "number": topic.number}
    starts = {"starts": list(topic.starts)} if topic.starts else {}
    mapped = (
        {"mapped": [[each.place, list(each.starts)] for each in topic.mappings]} if topic.mappings else {}
    )
    return body | starts | ({"remade": True} if topic.is_remade else {}) | mapped


def topic_from_json(body: Mapping[str, Any]) -> tuple[int, InputTopic]:
    """Return what `topic_to_json` has made of a stream and a topic. Raises KeyError, TypeError, ValueError."""
    starts, is_remade = tuple(body.get("starts", ())), bool(body.get("remade", False))
    mappings = tuple(MappedFrom(place, tuple(own)) for place, own in body.get("mapped", ()))
    return body["created"], InputTopic(body["topic"], body["id"], body["number"], starts, is_remade, mappings)
