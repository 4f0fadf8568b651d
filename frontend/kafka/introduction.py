"""Tells the cluster that a front-end is there, and which records it reads. parts.py calls it when the front-end starts.

It writes to the topic of nodes.
"""

import contextlib
import time
from collections.abc import Callable

from frontend.exchange.front_end import FrontEnd
from railgun import __version__
from railgun.cluster.records import READS, FrontEndRecord, encode_statement
from railgun.messaging.errors import TransportError
from railgun.messaging.kafka.transport import KafkaTransport
from railgun.messaging.transport import Entry, TopicPartition
from railgun.registry.cluster_topics import make_topics
from railgun.registry.topics import Topics
from railgun.wire.records import Records


def introduce(
    front_end: FrontEnd, transport: KafkaTransport, topics: Topics, is_away: Callable[[], bool]
) -> Callable[[], None]:
    """Write what the front-end reads into the topic of nodes. Raises TransportError.

    is_away: returns whether the broker is known not to answer.
    Returns a function for its end. A front-end whose name was made up never comes back: its record is deleted.
    """
    make_topics(transport, topics)
    where = TopicPartition(topics.nodes, 0)
    record = FrontEndRecord(
        said_ms=time.time_ns() // 1_000_000,
        number=front_end.number,
        name=front_end.name,
        release=__version__,
        reads=READS,
    )
    transport.submit([Entry(where, Records.of([encode_statement(record)]), [record.key])]).result()

    def leave() -> None:
        if front_end.is_passing and not is_away():
            # After an error the record stays, though the front-end is gone.
            with contextlib.suppress(TransportError):
                transport.submit([Entry(where, Records.of([b""]), [record.key])]).result()

    return leave
