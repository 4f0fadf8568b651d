"""Describes dead letters for OpenAPI."""

from pydantic import BaseModel, Field

from frontend.backend.letters import SHOWN_BYTES, LetterKind


class LetterBytes(BaseModel):
    """A key, a value or a header."""

    bytes: int = Field(description="how long it is in the topic")
    cut: bool = Field(description=f"it is longer than the {SHOWN_BYTES:,} bytes that are shown")
    text: str | None = Field(description="as UTF-8; null where it is none")
    base64: str | None = Field(description="the bytes, where they are no UTF-8")


class LetterHeader(BaseModel):
    """A header of the letter."""

    name: str
    value: LetterBytes | None


class LetterRecord(BaseModel):
    """The place of the record that the letter is about."""

    topic: str
    partition: int | None
    offset: int | None


class Letter(BaseModel):
    """A record that could not be used."""

    topic: str = Field(description="where the letter lies")
    partition: int
    offset: int
    time_ms: int = Field(description="when it was given up")
    kind: LetterKind
    reason: str | None = Field(
        description="null where a mask hides it, and of records that other programs wrote"
    )
    late: list[str] | None = Field(description="the partitioners that discarded a late event")
    record: LetterRecord | None = Field(description="null of records that other programs wrote")
    key: LetterBytes | None
    value: LetterBytes | None
    headers: list[LetterHeader] = Field(
        description="at most 64; of their values together, 32,768 bytes are shown"
    )


class Letters(BaseModel):
    """The newest dead letters of a stream."""

    topics: list[str] = Field(description="that were read")
    letters: list[Letter] = Field(description="the newest first")
    read: int = Field(description="how many records were looked at")
    stopped: str | None = Field(
        description="what ended the reading before the beginning of the topics: limit, records, bytes or time"
    )
    before: str | None = Field(
        description="as `before` it goes on where this reading stopped; null: there are no more"
    )
    masked: bool = Field(description="a mask of the stream hides reasons, keys, values and headers")
