"""Dead letters of late events that their stream discards."""

from collections.abc import Iterable, Iterator, Sequence

import msgspec
from confluent_kafka import Message

from frontend.problems import Problem
from frontend.topics.dead_letters import Letter, letter
from railgun.ingest.replies import Reply
from railgun.ingest.result_table import LATE_WORDS

_DISCARDED = LATE_WORDS[2]


def late_letters(
    messages: Iterable[Message], stream: str, replies: Sequence[Reply | Problem]
) -> Iterator[Letter]:
    """Yield a dead letter of each record whose event was discarded. The header `late` has the partitioners.

    replies: to the events of the records.
    """
    for message, reply in zip(messages, replies, strict=True):
        if isinstance(reply, Reply) and reply.late is not msgspec.UNSET:
            names = [name for name, what in reply.late.items() if what == _DISCARDED]
            if names:
                made = letter(message, stream, f"it is late, and was discarded by {', '.join(names)}")
                yield made._replace(headers=[*made.headers, ("late", ",".join(names).encode())])
