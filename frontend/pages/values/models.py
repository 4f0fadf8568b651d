"""Describes the bodies of value queries for OpenAPI."""

from pydantic import BaseModel, Field

Value = int | float | bool | str | None


class ValueQuery(BaseModel):
    """Keys, and which of their metrics are wanted."""

    keys: list[dict[str, Value]] = Field(
        description="each names some fields of the stream and their values; null is a value",
        examples=[[{"card": "c1"}, {"card": "c2"}]],
    )
    metrics: list[str] | None = Field(
        None,
        description="only these, whose fields of GROUP BY every key has to name; left out: all whose fields it names",
    )


class AsOf(BaseModel):
    """Where in its log a task answered."""

    time: int | None = Field(description="the task's clock, ms; null before its first event")
    offset: int = Field(description="of the last record that is included")


class KeyValues(BaseModel):
    """The metrics of a key."""

    key: dict[str, Value]
    metrics: dict[str, Value]
    as_of: dict[str, AsOf] = Field(description="by partitioner that was asked")
    warming: list[str] | None = Field(None, description="metrics that do not answer yet")
    partial: dict[str, int] | None = Field(
        None, description="by metric, a time (ms): it covers only what is later"
    )
