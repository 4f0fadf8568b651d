"""The configuration of a front-end of a cluster: where the cluster is, and the front-end's limits.

`serving.py` makes it from the settings. The parts of the front-end in this folder read it.
"""

from dataclasses import dataclass, field

from frontend.exchange.exchange import Limits
from frontend.exchange.front_end import FrontEnd, made_up
from frontend.formats.schemas import Schemas
from frontend.kafka.deadlines import DEADLINES, Deadlines
from railgun.config.settings import CONSOLE_DEFAULTS, ConsoleSettings, InputSettings
from railgun.messaging.kafka.settings import KafkaSettings
from railgun.registry.topics import PREFIX


@dataclass(frozen=True, slots=True)
class FrontEndConfiguration:
    """A front-end's cluster and its limits.

    kafka: the address of the broker, and how its clients connect.
    prefix: the prefix of the names of the cluster's topics.
    front_end: the identity of the front-end; without one, its name is made up.
    limits: how much may wait for answers.
    drop_grace_s: how long the topics of a dropped stream stay before they are deleted.
    log_retention_ms: how long the broker keeps the logs of new streams that do not say it; None: for ever.
    input: settings of the topics that events are read from.
    schemas: the schemas of framed events; None if none are configured.
    console: what is kept and shown of single events.
    deadlines: how long the front-end waits for the broker and for units.
    """

    kafka: KafkaSettings
    prefix: str = PREFIX
    front_end: FrontEnd = field(default_factory=made_up)
    limits: Limits = field(default_factory=Limits)
    drop_grace_s: float = 60.0
    log_retention_ms: int | None = None
    transfer_after_records: int = 500_000
    input: InputSettings = field(default_factory=InputSettings)
    schemas: Schemas | None = None
    console: ConsoleSettings = CONSOLE_DEFAULTS
    deadlines: Deadlines = DEADLINES
