"""The bodies of requests and answers about streams and metrics, and of replies to events, as OpenAPI shows them.

The routes of this folder and `frontend/http/openapi.py` name the models, which only describe: the rules in
`railgun/catalog/` check what comes in. A deepening gives a live stream older events than its log has.
"""

from pydantic import BaseModel, Field

from frontend.backend.models import FrontEnd


class FieldPlace(BaseModel):
    """A field with more than its type."""

    type: str | None = Field(None, description="may be left out beside an expression", examples=["timestamp"])
    from_: str | None = Field(
        None,
        alias="from",
        description="where events have it, as in header.created, items[0].sku, a['b-c'], @key; else its name",
    )
    unit: str | None = Field(None, description="what a timestamp's numbers count: s, ms, us or ns")
    as_: str | None = Field(
        None,
        alias="as",
        description="the expression of a field that is computed, as in SUBSTR(card, 1, 6), and not recorded",
    )


class Input(BaseModel):
    """The topics that a stream's events come from, and how their records are read."""

    topics: list[str] | None = Field(
        None, description="on the engine's own cluster; left out: <prefix>.<stream>.in alone"
    )
    start: str | None = Field(
        None,
        description="where a new topic is begun: earliest (left out), latest, or a time with its offset",
        examples=["latest"],
    )
    where: str | None = Field(
        None, description="a condition over recorded fields; other records are skipped", examples=["op = 'c'"]
    )
    format: str | None = Field(
        None, description="json, avro or protobuf, of values without a framing; without it, a framing tells"
    )
    schema_: str | None = Field(
        None, alias="schema", description="of Avro the schema's text; of Protobuf a descriptor set in base64"
    )
    message: str | None = Field(
        None, description="the full name of the Protobuf message", examples=["payments.v2.Payment"]
    )


class Output(BaseModel):
    """Where a stream's replies go on Kafka, and what is in them."""

    topic: str | None = Field(None, description="the topic of replies; else <prefix>.<stream>.out")
    dead: str | None = Field(None, description="the topic of dead letters; else <prefix>.<stream>.dead")
    key: str | None = Field(None, description="of replies: id (the event's), or input (that of its record)")
    include: list[str] | None = Field(None, description="fields that replies repeat in the output topic")


class Stream(BaseModel):
    """A stream. The keys are those of definitions files."""

    name: str = Field(examples=["payments"])
    time: str | None = Field(None, description="the field that holds event time; without it, time of arrival")
    id: str | None = Field(None, description="the field that holds the id; without it, ids are made")
    partitioners: list[str] = Field(["*"], description="top-level group-by fields")
    lateness: str = Field("5s", description="how late events may be")
    late_policy: str = Field("rewrite", description="rewrite or discard")
    max_future: str | None = Field(None, description="how far ahead of the server's clock events may be")
    retention: str = Field("30d", description="how long events are kept for later metrics, or forever")
    log_retention: str | None = Field(
        None, description="how long the broker keeps the logs of the stream's tasks, or forever"
    )
    partitions: int = Field(1, description="per partitioner")
    record_replies: bool = Field(False, description="for topics of replies")
    dedup_events: int = Field(1_000_000, description="how many ids each task remembers")
    input: Input | None = Field(
        None, description="the topics that events come from, and how their records are read"
    )
    output: Output | None = Field(None, description="where replies go on Kafka, and what is in them")
    fields: dict[str, str | FieldPlace] = Field(
        description="types by name: string, long, double, boolean, decimal(p,s), timestamp; or tables with more",
        examples=[{"tx_id": "string", "ts": "timestamp", "card": "string", "amount": "double"}],
    )


class NewStream(Stream):
    """A stream, with the metrics that it is created with."""

    metrics: list[str] | None = Field(
        None,
        description="queries and DERIVEs about the stream, registered in one change with it: no event is answered "
        "without them; at most 1,000 metrics",
        examples=[["SELECT count(*) AS card_count_7d FROM payments GROUP BY card OVER SLIDING 7 DAYS"]],
    )


class StreamChange(BaseModel):
    """What of a stream can be changed."""

    fields: dict[str, str | FieldPlace | None] | None = Field(
        None,
        description="fields to add, or with another from or unit: types by name, or tables with more; null drops a "
        "computed field",
    )
    lateness: str | None = Field(None, description="how late events may be")
    retention: str | None = Field(None, description="how long events are kept, or forever")
    log_retention: str | None = Field(
        None, description="how long the broker keeps logs, or forever; null: as the setting says"
    )
    input: Input | None = Field(
        None,
        description="the topics that events come from, and how their records are read, as a whole; null: the default",
    )
    output: Output | None = Field(
        None, description="where replies go, and what is in them, as a whole; null: the default"
    )


class Query(BaseModel):
    """Metrics as SQL, one per item of a SELECT or a DERIVE."""

    sql: str = Field(
        examples=["SELECT count(*) AS card_count_7d FROM payments GROUP BY card OVER SLIDING 7 DAYS"]
    )


class Metric(BaseModel):
    """A metric."""

    name: str
    sql: str
    home: str | None = Field(description="the partitioner whose tasks compute it; null of a derived metric")
    warming: bool = Field(description="it does not answer everywhere yet")
    filled: float = Field(description="the share of the past that it has read, 0 to 1")
    outdated_zones: list[str] = Field(
        description="time zones whose tables have changed since it was added; dropped and added it takes the new ones"
    )
    key: list[str] | None = Field(
        description="the fields that a key names to be answered it without an event; null: it reads fields of an event"
    )


class Bin(BaseModel):
    """Values of at least `from` and below `to`; of the last bin, up to `to`."""

    from_: float = Field(alias="from")
    to: float
    count: int


class AnsweredMetric(BaseModel):
    """What a metric was answered lately: at most 1,024 values, of at most 32 replies a second."""

    name: str
    front_end: FrontEnd
    kind: str = Field(description="number, time (numbers, in ms since 1970), boolean or text")
    masked: bool = Field(description="it would tell a masked field, so nothing of it is shown")
    rows: int = Field(description="how many answers are known; 0: what was answered is not known")
    nulls: int = Field(description="how many of them were null")
    since_ms: int | None = Field(description="when the first of them was given")
    as_of_ms: int | None = Field(description="when the last of them was given")
    quantiles: dict[str, float] | None = Field(
        description="min, p10, p50, p90, p99, max of numbers; null without any, and of text"
    )
    histogram: list[Bin] | None = Field(
        description="of numbers; of few distinct ones, and of booleans (0 and 1), a bin each, from and to being equal"
    )


class DeepeningStart(BaseModel):
    """From when on the stream's own events are taken."""

    cut_ms: int | None = Field(
        None, description="the history is whole before then; left out: the least time that leaves no hole"
    )


class Deepening(BaseModel):
    """How a deepening stands."""

    state: str = Field(description="none, building, installing, failed or damaged")
    history: str | None = Field(None, description="its id; once none is under way, that of the stream")
    cut_ms: int | None = None
    behind: int = Field(0, description="records of the log that the tasks have not followed yet")
    failure: str | None = Field(None, description="why it was not installed")


class LoggedChange(BaseModel):
    """A change of streams and metrics."""

    place: int = Field(description="its number, which only grows")
    at_ms: int | None = Field(description="when it was made, ms since 1970; null where that was not kept")
    who: str | None = Field(
        description="the name of the token; null where the server had none, or a command wrote it by itself"
    )
    from_: str | None = Field(
        alias="from", description="the address of the client; null where a command wrote it by itself"
    )
    kind: str = Field(
        description="stream, drop_stream, add, derive, drop, history, begin_deepening or deepen"
    )
    stream: str
    name: str | None = Field(description="of the metric; null where the stream itself was changed")
    what: str = Field(description="the change in words; of a metric that was added its text")


class ChangeList(BaseModel):
    """Who changed what, the newest first."""

    changes: list[LoggedChange]


class StreamList(BaseModel):
    """All streams."""

    streams: list[Stream]


class MetricList(BaseModel):
    """Metrics of a stream."""

    metrics: list[Metric]


class ErrorPlace(BaseModel):
    """One thing that is wrong. loc: the keys and list places that lead to it."""

    loc: list[str | int]
    msg: str


class Problem(BaseModel):
    """RFC 9457."""

    title: str
    status: int
    detail: str
    errors: list[ErrorPlace]


class Reply(BaseModel):
    """The reply to an event."""

    id: str | int
    time: int
    metrics: dict[str, int | float | bool | str | None]
    late: dict[str, str] | None = Field(None, description="by partitioner: rewritten or discarded")
    duplicate: list[str] | None = Field(None, description="partitioners that knew the id already")
    warming: list[str] | None = Field(None, description="metrics that do not answer yet")
    partial: dict[str, int] | None = Field(
        None, description="by metric, a time (ms): it covers only what is later"
    )
    missing: list[str] | None = Field(
        None,
        description="with on_timeout=partial, partitioners that did not answer; their metrics are left out",
    )
