"""The input topics of a stream, and the parts of the front-end that inputs use."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from frontend.exchange.exchange import Exchange
from frontend.exchange.streams import StreamIntakes
from frontend.formats.schemas import Schemas
from frontend.topics.stream_output import StreamOutput
from railgun.messaging.kafka.settings import KafkaSettings
from railgun.registry.kafka_registry import KafkaRegistry
from railgun.registry.topics import Topics


@dataclass(frozen=True, slots=True)
class Route:
    """A stream, its input topics, and where its replies go.

    created: the place of the stream's creation.
    topics: name and id of each. The id differs from that of an earlier or later topic of the same name.
    mapped: the place of the mapping by which new records are read.
    """

    stream: str
    created: int
    topics: tuple[tuple[str, str], ...]
    output: StreamOutput
    mapped: int


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


@dataclass(frozen=True, slots=True)
class Means:
    """The parts and limits that all inputs of a front-end share.

    settings, topics: how the broker is reached, and the names of topics.
    registry: keeps the numbers of input topics.
    exchange: publishes events, and has their answers gathered.
    intakes: the streams that the front-end knows, which check events.
    limit_events: how many events of one stream may be read and not written.
    finish_s: how long an input that stops waits for what is under way.
    schemas: the schemas of framed records; None if none are configured.
    now_ms: the clock by which events are checked.
    """

    settings: KafkaSettings
    topics: Topics
    registry: KafkaRegistry
    exchange: Exchange
    intakes: StreamIntakes
    limit_events: int = 20_000
    finish_s: float = 5.0
    schemas: Schemas | None = None
    now_ms: Callable[[], int] = _now_ms
