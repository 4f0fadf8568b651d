"""The headers by which a reply says where the record is that it answers."""

from collections.abc import Iterator, Sequence
from typing import overload

from railgun.messaging.transport import Headers


class ReplyHeaders(Sequence[Headers]):
    """The headers of replies to records of one partition of an input topic: `topic`, `partition`, `offset`.

    offsets: of the records, one for each reply.
    They are made as they are read: lists that all live at once cost twice as much, most of it garbage collection.
    """

    def __init__(self, topic: str, partition: int, offsets: Sequence[int]) -> None:
        self._topic, self._partition, self._offsets = topic, partition, offsets
        self._same = ("topic", topic.encode()), ("partition", b"%d" % partition)

    def __len__(self) -> int:
        return len(self._offsets)

    def __iter__(self) -> Iterator[Headers]:
        topic, partition = self._same
        return ([topic, partition, ("offset", b"%d" % offset)] for offset in self._offsets)

    @overload
    def __getitem__(self, index: int) -> Headers: ...
    @overload
    def __getitem__(self, index: slice) -> "ReplyHeaders": ...
    def __getitem__(self, index: int | slice) -> "Headers | ReplyHeaders":
        if isinstance(index, slice):
            return ReplyHeaders(self._topic, self._partition, self._offsets[index])
        return [*self._same, ("offset", b"%d" % self._offsets[index])]
