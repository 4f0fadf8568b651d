"""The protocol of what scores the events of requests and answers value queries."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from frontend.problems import Problem
from frontend.scoring.scoring_thread import InOrder
from railgun.catalog.model import StreamDefinition
from railgun.ingest.intake import JsonText
from railgun.ingest.replies import Reply
from railgun.ingest.value_queries import KeyValues, ValueRequest

Answer = Reply | Problem


@dataclass(frozen=True, slots=True)
class StreamView:
    """What the scoring route needs to know of a stream. metrics: by name, in the order added."""

    definition: StreamDefinition
    metrics: tuple[str, ...]


class Scoring(Protocol):
    """Scores events and answers value queries. Every coroutine raises ProblemError, and nothing else on purpose."""

    def view(self, stream: str) -> StreamView:
        """Return what the scoring route needs to know of a stream. Raises ProblemError."""

    async def score(
        self,
        stream: str,
        texts: Sequence[JsonText],
        *,
        metrics: Sequence[str] | None = None,
        timeout_ms: int,
        takes_partial: bool = False,
        reply: bool = True,
        in_order: InOrder | None = None,
    ) -> list[Answer | None]:
        """Return an answer for each event, in order, once the events are durable. texts: JSON that nobody has read yet.

        An event that is refused (400, 422), or not answered in time (504), has its own problem in its place and harms
        no other.  metrics: only these, which the stream has; None: all.  takes_partial: an event that only some of its
        partitioners have answered in time gets their results.  reply: False: events that were taken get None in their
        place.  in_order: of the request that these are a part of, scored after the parts before.
        """

    def submit(
        self,
        stream: str,
        text: JsonText,
        *,
        metrics: Sequence[str] | None = None,
        timeout_ms: int,
        takes_partial: bool = False,
        tell: Callable[[Answer | BaseException | None], None],
    ) -> None:
        """Score one event for a caller that waits in no coroutine, as `score` does.

        tell: called once in the event loop, later, with the answer or the exception; never if this raises.
        """

    async def values(self, stream: str, request: ValueRequest, timeout_ms: int) -> list[KeyValues]:
        """Return the metrics of keys as they are now. Raises QueryRefusedError too."""

    def refused(self, stream: str, status: int) -> None:
        """Note for monitoring that a request for a stream was refused as a whole."""
