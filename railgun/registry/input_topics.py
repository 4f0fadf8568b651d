"""The topics that a stream's events come from, and their numbers. Does no I/O."""

import hashlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

PARTITION_BITS = 14
PARTITIONS_MAX = 1 << PARTITION_BITS
"""An input topic has at most so many partitions."""
_NUMBER_BITS = 31
_NUMBERS = 1 << (_NUMBER_BITS - PARTITION_BITS)


@dataclass(frozen=True, slots=True)
class InputTopic:
    """A topic that is, or was, read for a stream.

    name, id: a topic that is deleted and made anew has the same name and another id.
    number: tells the topic apart from all others of the stream. Tasks know a partition by it (`partition_number`).
    starts: by partition, the offset at which its first reading begins. Partitions behind these begin at their oldest
        record.
    is_remade: whether a topic of the name was read before, for this stream or a dropped one of its name. What the
        group has committed may be of that.
    """

    name: str
    id: str
    number: int
    starts: tuple[int, ...] = ()
    is_remade: bool = False

    def partition_number(self, partition: int) -> int:
        """Return the number by which tasks know a partition: no other one of the stream has it."""
        return self.number << PARTITION_BITS | partition

    def start(self, partition: int) -> int | None:
        """Return the offset at which the first reading of a partition begins; None: at its oldest record."""
        return self.starts[partition] if partition < len(self.starts) else None


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
    return body | starts | ({"remade": True} if topic.is_remade else {})


def topic_from_json(body: Mapping[str, Any]) -> tuple[int, InputTopic]:
    """Return what `topic_to_json` has made of a stream and a topic. Raises KeyError, TypeError."""
    starts, is_remade = tuple(body.get("starts", ())), bool(body.get("remade", False))
    return body["created"], InputTopic(body["topic"], body["id"], body["number"], starts, is_remade)
