"""Where a stream's events come from, and what its input needs of the front-end."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from frontend.exchange.exchange import Exchange
from frontend.exchange.streams import StreamIntakes
from frontend.topics.schemas import Schemas
from railgun.messaging.kafka.settings import KafkaSettings
from railgun.registry.topics import Topics


@dataclass(frozen=True, slots=True)
class Route:
    """created: the place of the stream's creation.  topic_id: of its input topic, which tells it from one of the same
    name before or after it."""

    stream: str
    created: int
    topic_id: str


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


@dataclass(frozen=True, slots=True)
class Means:
    """What all inputs of a front-end share. limit_events: of one stream, read and not written.  finish_s: for what is
    under way when it stops.  schemas: of Avro; None where none are configured."""

    settings: KafkaSettings
    topics: Topics
    exchange: Exchange
    intakes: StreamIntakes
    limit_events: int = 20_000
    finish_s: float = 5.0
    schemas: Schemas | None = None
    now_ms: Callable[[], int] = _now_ms
