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
    """A stream as the scoring route needs it. metrics: their names, in the order in which they were added."""

    definition: StreamDefinition
    metrics: tuple[str, ...]


class Scoring(Protocol):
    """Scores events and answers value queries.

    Each method but `refused` raises ProblemError; `values` also raises QueryRefusedError. Other exceptions are defects.
    """

    def view(self, stream: str) -> StreamView:
        """Return a stream's view. Raises ProblemError if there is no such stream, or no requests are taken."""

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
        """Return an answer for each event, in order, once the events are durable.

        An event that is refused (400, 422) or not answered in time (504) gets a problem, and the others their replies.

        texts: the events as JSON, not parsed yet.
        metrics: only these, which the stream has; None selects all.
        takes_partial: an event that only some of its partitioners have answered in time gets their results.
        reply: False: each event that was taken gets None instead of a reply.
        in_order: shared by the parts of one request, which are scored in the order of their calls.
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
        """Score one event as `score` does, for a caller that is no coroutine.

        tell: is called once, later, in the event loop, with the answer or an exception; never if this raises.
        """

    async def values(self, stream: str, request: ValueRequest, timeout_ms: int) -> list[KeyValues]:
        """Return the metrics of keys as they are now, in the keys' order.

        Raises QueryRefusedError if a key or a metric is wrong, else ProblemError.
        """

    def refused(self, stream: str, status: int) -> None:
        """Count a request for a stream that was refused as a whole, for monitoring."""
