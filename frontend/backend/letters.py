"""The dead letters of a stream as a backend reads them: what is asked for, and what was found."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from railgun.messaging.transport import TopicPartition

SHOWN_BYTES = 16_384
"""As much is shown of a key, a value, a reason or a header; what is longer is cut."""


class LetterKind(StrEnum):
    """Why a record has a dead letter.

    REFUSED: it is no event of the stream.  LATE: its event was late, and the stream discards such.
    DAMAGED: a unit could not read it in the log of a task.  OTHER: another program has written it.
    """

    REFUSED = "refused"
    LATE = "late"
    DAMAGED = "damaged"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class LetterRequest:
    """Which letters are wanted.

    limit: how many at most.  within_ms: how long the reading may take.
    kind, reason: only letters of this kind, and those whose reason has this text; None: all.
    before: where an earlier reading stopped.
    """

    limit: int
    within_ms: int
    kind: LetterKind | None = None
    reason: str | None = None
    before: Mapping[TopicPartition, int] | None = None


@dataclass(frozen=True, slots=True)
class FoundLetters:
    """What was found, as the route answers it.

    letters: the newest first.  read: how many records were looked at.
    stopped: why reading stopped before the beginning: "limit", "records", "bytes" or "time".
    before: where the next reading goes on; None at the beginning.
    masked: whether a mask hides all but places and kinds.
    """

    topics: Collection[str]
    letters: Sequence[Mapping[str, Any]]
    read: int
    stopped: str | None
    before: Mapping[TopicPartition, int] | None
    masked: bool = False
