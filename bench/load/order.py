"""The order of a worker process: what to inject, and when."""

from dataclasses import dataclass, field

from bench.load.schedule import Schedule
from bench.payments import Payments


@dataclass(frozen=True, slots=True)
class Order:
    """payments, first_event: which events of that endless sequence.  schedule: of requests, those of all workers.
    events_each: in one request; as NDJSON, or one as a JSON object.  connections: of each worker, one request on each
    at a time.  grace_s: how long after the schedule's end answers are waited for.  is_topic: `host` and `port` are a
    broker's, and `path` is what the names of the input and the output topic begin with; by one worker.  ca: file with
    the CA of a server with TLS.
    """

    host: str
    port: int
    path: str
    schedule: Schedule
    payments: Payments = field(default_factory=lambda: Payments(10**12, rate_per_s=2000.0, rhythm=False))
    first_event: int = 0
    events_each: int = 1
    ndjson: bool = False
    connections: int = 64
    grace_s: float = 10.0
    is_topic: bool = False
    ca: str | None = None
    worker: int = 0
    workers: int = 1

    def __post_init__(self) -> None:
        """Raise ValueError if the order names another machine, or several events in one object."""
        if self.host not in ("127.0.0.1", "::1", "localhost"):
            raise ValueError(f"{self.host}: the injector sends to the loopback interface only")
        if self.is_topic and (self.events_each != 1 or self.workers != 1):
            raise ValueError("events go to a topic one by one, by one worker")
        if self.events_each != 1 and not self.ndjson:
            raise ValueError(f"{self.events_each} events in a request: those are sent as NDJSON")

    @property
    def events(self) -> int:
        """The number of events in all requests of the schedule."""
        return self.schedule.requests * self.events_each
