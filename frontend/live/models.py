"""What `GET /v1/live` answers, for OpenAPI. The answer itself is encoded without these models."""

from pydantic import BaseModel, Field

from frontend.backend.models import FrontEnd, LatelyNoted


class LiveLatency(BaseModel):
    """Quantiles, at most 10 % above the latency that they are of; null without any."""

    count: int = Field(
        description="how many latencies they are of: of requests over HTTP, or of records of topics"
    )
    p50_ms: float | None
    p99_ms: float | None
    p999_ms: float | None


class LiveWindow(BaseModel):
    """What was counted in the last seconds."""

    seconds: float = Field(description="how long the window was; shorter at the start of the process")
    events: int = Field(description="events that were taken and answered")
    events_per_s: float
    late: dict[str, int] = Field(description="late events by partitioner")
    duplicate: dict[str, int] = Field(description="duplicates by partitioner")
    refused: dict[str, int] = Field(description="refused events by reason, as in /metrics")
    latency: LiveLatency


class LiveWindows(BaseModel):
    """The events that came by one way."""

    last_10_s: LiveWindow
    last_60_s: LiveWindow


class LiveMetric(BaseModel):
    """A metric that does not answer yet."""

    name: str
    filled: float = Field(description="how much of its past it has read, from 0 to 1")


class LiveWarming(BaseModel):
    """The metrics that do not answer yet."""

    count: int
    least: list[LiveMetric] = Field(description="those that are least far, at most 100")
    as_of_ms: int


class LiveNulls(BaseModel):
    """How often metrics were null lately, by some of the last replies."""

    as_of_ms: int = Field(description="when the last of these replies was given")
    shares: dict[str, float] = Field(
        description="by metric, from 0 to 1, of at most 1,024 answers; one that was not asked for, or is warming, "
        "or masked, is not in it"
    )
    always: list[str] = Field(
        description="metrics that were null in all of these answers, at least 100 of them"
    )


class LiveStream(BaseModel):
    """A stream that the token may read."""

    name: str
    http: LiveWindows
    topics: LiveWindows | None = Field(
        description="null where this process reads no input topic of the stream"
    )
    metrics: int = Field(description="how many are registered")
    nulls: LiveNulls | None = Field(description="null: nothing was answered yet")
    warming: LiveWarming | None = Field(description="null: not known yet")
    unanswered: int = Field(description="tasks that nobody answers")
    warnings: list[str]


class LiveWaiting(BaseModel):
    """Events that wait for answers of a cluster."""

    events: int
    bytes: int
    oldest_s: float


class LiveDisk(BaseModel):
    """What is in the data folder, and what is left."""

    events_bytes: int
    state_bytes: int
    log_bytes: int
    free_bytes: int
    as_of_ms: int


class LiveProcess(BaseModel):
    """The process that answers."""

    release: str
    ready: bool
    reason: str | None = Field(description="why it is not ready")
    in_flight_events: int
    in_flight_bytes: int
    waiting: LiveWaiting | None = Field(description="null where there is no cluster")
    disk: LiveDisk | None = Field(description="null: not known yet, or kept by other processes")
    warnings: list[str] = Field(
        description="what somebody should see to: a disk that is nearly full, a certificate that ends soon, events and "
        "records of topics that wait for long; at most 100"
    )


class LiveCluster(BaseModel):
    """The cluster, in numbers."""

    unanswered: int = Field(description="tasks that nobody answers")
    unanswered_tasks: list[str] = Field(description="at most 100 of them, as stream/partitioner/partition")
    leader: str | None
    wanted: int = Field(description="copies of each task that are wanted")
    moves: int = Field(description="moves of copies that are left to do")
    nodes: dict[str, int] = Field(description="by state: live, away, draining, drained")
    copies: dict[str, int] = Field(
        description="by state: answering, silent, behind, failed, closed; unheard do not report"
    )
    warnings: list[str]
    lately: LatelyNoted | None = Field(description="with the newest 3 entries; null: not known yet")
    as_of_ms: int | None = Field(description="of all but the unanswered tasks; null: not known yet")


class Live(BaseModel):
    """How a server stands now, as far as the token may see it."""

    front_end: FrontEnd
    as_of_ms: int
    process: LiveProcess | None = Field(default=None, description="left out without the scope metrics")
    cluster: LiveCluster | None = Field(
        default=None, description="left out without the scope metrics; null where there is no cluster"
    )
    streams: list[LiveStream]
