"""Opens the parts of a front-end of a cluster, calls them, closes them, and says whether requests are taken.

`KafkaBackend` has one `RunningCluster`, which its scoring, catalogue and operations share. Calls to the broker run in
threads.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from typing import TypeVar

from frontend.backend.abandonable_call import call_abandonably
from frontend.backend.failures import registry_problem
from frontend.backend.readiness import READY, STOPPING, Readiness, unavailable
from frontend.exchange.warm_up import warm_up
from frontend.formats.format_checks import with_usable_formats
from frontend.kafka.changes import Changes, unfinished
from frontend.kafka.configuration import FrontEndConfiguration
from frontend.kafka.parts import Parts, open_parts
from frontend.problems import UnknownStreamError
from frontend.samples.samples import Samples
from frontend.scoring.scoring import StreamView
from railgun.catalog.catalog import Catalog
from railgun.catalog.changes import Change
from railgun.catalog.model import Definitions
from railgun.messaging.errors import TransportError, TransportUnavailableError
from railgun.messaging.kafka.broker_wait import BrokerWait
from railgun.messaging.kafka.watchdog import ClientWatchdog
from railgun.registry.cancellation import CancellationToken
from railgun.registry.errors import ChangeWithdrawnError, EngineError
from railgun.registry.origin import Origin
from railgun.registry.topics import Topics
from railgun.registry.translation import as_registry_errors
from railgun.wording import counted

T = TypeVar("T")
_log = logging.getLogger("railgun.frontend")
_STARTING = Readiness(False, "starting: kernels are loaded, or compiled where this is the first start")
_READING = Readiness(False, "starting: the catalogue is being read from the broker")
_UNITS_START = Readiness(
    False,
    "starting: the units of the node are not ready yet; kernels are compiled at the first start, a minute or a few",
)
_NOBODY_ANSWERS = Readiness(
    False,
    "no task of any stream is answered: no unit runs them, or none has caught up. Start the nodes, or see their logs; "
    "events wait, up to their time limit",
)


class RunningCluster:
    """A front-end that is opened, called and closed. Used in one event loop.

    definitions: streams and metrics that are registered at the start if they are missing.
    now_ms: the clock of events; None uses the system's.
    waits_for: requests are not taken before this has returned true once.
    samples: takes some of the events of input topics; None: none are taken.
    parts: None before the start and after the end.
    """

    def __init__(
        self,
        cluster: FrontEndConfiguration,
        definitions: Definitions | None = None,
        now_ms: Callable[[], int] | None = None,
        waits_for: Callable[[], bool] | None = None,
        samples: Samples | None = None,
    ) -> None:
        self._samples = samples
        self._cluster, self._definitions, self._now_ms = cluster, definitions, now_ms
        self._waits_for = waits_for
        self.parts: Parts | None = None
        # Kept here for a start that goes on after it was abandoned: the parts that it opens are closed too.
        self._opened = ExitStack()
        self._standing = self._starting = _STARTING
        self._wait = BrokerWait(cluster.kafka, _log)
        self._watchdog = ClientWatchdog(cluster.kafka, Topics(cluster.prefix).catalog)
        self.changes = Changes(lambda: self._wait.reason)

    async def open(self) -> Parts:
        """Wait for the broker as long as it takes; read the catalogue; make the reply topic. Raises EngineError."""
        self._watchdog.start()
        parts = self.parts = await call_abandonably(self._open)
        return parts

    @as_registry_errors()
    def _open(self) -> Parts:
        warm_up()
        while True:
            self._wait.until_there()
            self._starting = _READING
            try:
                parts = open_parts(
                    self._cluster, self._definitions, self._now_ms, lambda: self.is_away, self._samples
                )
                self._opened = parts.opened
                return parts
            except TransportUnavailableError as error:
                self._wait.away(error)

    def begin(self) -> None:
        """Take requests from now on, unless the end has begun, and watch whether the broker answers."""
        if self._standing is _STARTING:
            self._standing = READY
        self._wait.watch()

    @property
    def is_away(self) -> bool:
        """Whether the broker is known not to answer."""
        return self._wait.reason is not None

    @property
    def away_s(self) -> float | None:
        """How long ago the broker answered last, in seconds, if it is known not to answer now; else None."""
        return self._wait.away_s

    def check_reached(self) -> None:
        """Raise ProblemError (503) if the broker is known not to answer."""
        if (reason := self._wait.reason) is not None:
            raise unfinished(False, reason)

    def readiness(self) -> Readiness:
        """Return whether requests are taken now, and whether any task is answered."""
        standing, waits, parts = self._own_standing(), self._wait.reason, self.parts
        # `ready` takes events all the same: the broker, or a unit, may be back before their time is over.
        if standing.ready and waits is not None:
            return Readiness(False, waits)
        if standing.ready and parts is not None and parts.unanswered.is_every_task():
            return _NOBODY_ANSWERS
        return standing

    def _own_standing(self) -> Readiness:
        """Whether requests are taken, even if the broker is away after the start."""
        parts, waits = self.parts, self._wait.reason
        if self._watchdog.reason is not None and not self._standing.failed:
            self._standing = Readiness(False, self._watchdog.reason, failed=True)
        if self._standing is _STARTING:
            return self._starting if waits is None else Readiness(False, f"starting: {waits}")
        if self._standing.ready and parts is not None:
            failure = parts.exchange.failure or (
                None if parts.follower.error is None else str(parts.follower.error)
            )
            if failure is not None:
                self._standing = Readiness(False, failure, failed=True)
        if self._waits_for is not None and self._standing.ready:
            if not self._waits_for():
                return _UNITS_START
            self._waits_for = None
        return self._standing

    def view(self, stream: str) -> StreamView:
        """Return a stream as the scoring route needs it. Raises ProblemError."""
        parts = self.ready()
        found = parts.intakes.now.views.get(stream)
        if found is None:
            raise UnknownStreamError(stream, parts.intakes.now.views)
        return found

    def ready(self) -> Parts:
        """Return the parts. Raises ProblemError (503) if requests are not taken."""
        standing = self._own_standing()
        if self.parts is None or not standing.ready:
            raise unavailable(standing)
        return self.parts

    async def call(self, do: Callable[[Parts], T]) -> T:
        """Call a function with the parts in a thread and return the result. Raises ProblemError."""
        parts = self.ready()
        try:
            return await asyncio.to_thread(as_registry_errors()(do), parts)
        except EngineError as error:
            raise registry_problem(error) from error

    async def change(self, request: Callable[[Catalog], Sequence[Change]], origin: Origin) -> list[Change]:
        """Make a change of the catalogue and return its records. Raises ProblemError."""
        parts = self.ready()

        @as_registry_errors()
        def change(cancellation: CancellationToken) -> list[Change]:
            try:
                made = parts.registry.change(with_usable_formats(request), cancellation, origin)
                parts.show()
                return made
            except TransportUnavailableError as error:
                raise unfinished(cancellation.has_begun, f"{error.place}: {error.reason}") from error
            except (TransportError, ChangeWithdrawnError):
                raise
            except Exception:
                # Another front-end's change may be in its way, which this one has not seen yet.
                parts.show()
                raise

        try:
            return await self.changes.make(change)
        except EngineError as error:
            raise registry_problem(error) from error

    async def close(self, end: Callable[[], None]) -> None:
        """Take no more requests, and close the parts. end: is called before that, in a thread; it ends the scoring."""
        if not self._standing.failed:
            self._standing = STOPPING
        deadlines = self._cluster.deadlines
        within_s = deadlines.away_over_s if self.is_away else deadlines.over_s
        if self._watchdog.reason is not None:
            within_s = deadlines.lost_over_s
        self._wait.stop()
        self._watchdog.stop()
        parts, self.parts = self.parts, None
        try:
            await asyncio.wait_for(call_abandonably(partial(self._let_go, end)), within_s)
        except TimeoutError:
            _log.error(
                "it ends as it is, %g s after the last request: the broker does not answer. Of %s it is not "
                "known whether the broker has them",
                within_s,
                counted(0 if parts is None else parts.exchange.unconfirmed, "record"),
            )

    def _let_go(self, end: Callable[[], None]) -> None:
        end()
        self._opened.close()
