"""What `GET /v1/streams/{stream}/samples` answers, for OpenAPI. The answer itself is encoded without these models."""

from pydantic import BaseModel, Field

from frontend.backend.models import FrontEnd
from frontend.pages.registry.models import Problem, Reply

Value = int | float | bool | str | None


class Masked(BaseModel):
    """What is not shown of a stream, as the setting `console.masks` has it."""

    fields: list[str]
    metrics: list[str]
    texts: bool = Field(description="whether texts are left out that may quote an event")


class Derived(BaseModel):
    """A derived metric. reads: the metrics and fields that its expression names."""

    expression: str
    reads: list[str]


class SampleReply(Reply):
    """A reply without what is masked: id and time are null then, and metrics are left out."""

    id: str | int | None  # type: ignore[assignment]
    time: int | None  # type: ignore[assignment]


class SampleProblem(Problem):
    """The problem of an event that was refused or not answered. detail: null where texts are masked."""

    detail: str | None  # type: ignore[assignment]


class LastEvent(BaseModel):
    """An event and its reply."""

    number: int = Field(description="counts the events that this front-end has kept of the stream")
    at_ms: int = Field(description="when it was answered")
    status: int = Field(description="200, or that of the problem")
    size_bytes: int = Field(description="of the event as it came; of one from a topic, of its fields")
    topic: str | None = Field(description="the input topic; null: it came over HTTP")
    partition: int | None
    offset: int | None
    fields: dict[str, Value] | None = Field(
        description="of the event, recorded and computed ones, without masked ones; null where it was refused, or is "
        "too large"
    )
    text: str | None = Field(
        description="of an event that was refused: how it begins; null where it is masked"
    )
    reply: SampleReply | None = Field(description="null where it was refused, or no reply was wanted")
    problem: SampleProblem | None


class LastEvents(BaseModel):
    """The last events that this front-end has answered."""

    front_end: FrontEnd
    as_of_ms: int
    kept: int = Field(
        description="how many events are kept at most: the setting console.samples; 0: none are"
    )
    last: int = Field(
        description="the number of the event that was kept last; 0 before the first one. It begins anew with the stream"
    )
    answered: int = Field(
        description="how many events of the stream this front-end has answered since it started; of them it has kept "
        "as many as `last` says"
    )
    masked: Masked
    derived: dict[str, Derived] = Field(description="the derived metrics by name")
    times: list[str] = Field(description="the fields and metrics whose values are times, in milliseconds")
    conditions: list[str] = Field(description="the metrics that are true or false, as thresholds are")
    events: list[LastEvent] = Field(description="the newest first")
