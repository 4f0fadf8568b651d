"""Where the cluster of a front-end is, and what the front-end may take up."""

from dataclasses import dataclass, field

from frontend.exchange.exchange import Limits
from frontend.exchange.front_end import FrontEnd
from frontend.kafka.deadlines import DEADLINES, Deadlines
from frontend.topics.schemas import Schemas
from railgun.config.settings import InputSettings
from railgun.messaging.kafka.settings import KafkaSettings
from railgun.registry.topics import PREFIX


@dataclass(frozen=True, slots=True)
class ClusterPlace:
    """Where a front-end's cluster is. prefix: of its topics.  front_end: None makes up a name.  input: of topics that
    events come from; schemas: of those that are Avro."""

    kafka: KafkaSettings
    prefix: str = PREFIX
    front_end: FrontEnd | None = None
    limits: Limits = field(default_factory=Limits)
    drop_grace_s: float = 60.0
    log_retention_ms: int | None = None
    input: InputSettings = field(default_factory=InputSettings)
    schemas: Schemas | None = None
    deadlines: Deadlines = DEADLINES
