"""The backend of a cluster on Kafka: events go through the exchange, changes through the registry.

The front-end's server uses it.
"""

from collections.abc import Callable, Mapping
from typing import Any

from frontend.access.masks import Masks
from frontend.backend.readiness import Readiness
from frontend.exchange.exchange import Exchange
from frontend.kafka.catalogue import KafkaCatalogue
from frontend.kafka.configuration import FrontEndConfiguration
from frontend.kafka.live_figures import KafkaLiveFigures
from frontend.kafka.operations import KafkaOperations
from frontend.kafka.running_cluster import RunningCluster
from frontend.kafka.scoring import KafkaScoring
from frontend.kafka.task_logs import TaskLogs
from frontend.kafka.unanswered import UnansweredTasks, listed
from frontend.samples.samples import Samples
from frontend.topics.inputs import Inputs
from railgun.catalog.catalog import StreamEntry
from railgun.catalog.model import Definitions
from railgun.telemetry.reading import EngineReading
from railgun.telemetry.recording import Recording


class KafkaBackend:
    """`ServedBackend` over a cluster. Used in one event loop.

    definitions: streams and metrics that are registered at the start if they are missing.
    now_ms: the clock of events; None uses the system's.
    waits_for: the backend is not ready before this has returned true once.
    `start` waits for the broker, however long that takes.
    """

    # A start may wait for the broker for ever, so it is cancelled when the server stops.
    cancels_start = True
    # On Kafka, the units take a deepening over from the job that builds it (docs/spark.md), without the front-end.
    deepenings = None

    def __init__(
        self,
        cluster: FrontEndConfiguration,
        definitions: Definitions | None = None,
        now_ms: Callable[[], int] | None = None,
        waits_for: Callable[[], bool] | None = None,
    ) -> None:
        self.topic_prefix = cluster.prefix
        masks = Masks(cluster.console.masks)
        self.samples = Samples(cluster.console, self._entries, masks)
        self.running = RunningCluster(cluster, definitions, now_ms, waits_for, self.samples)
        self.scoring = KafkaScoring(self.running, now_ms)
        self.catalogue = KafkaCatalogue(self.running, cluster, self.scoring.recording, masks)
        self.cluster = KafkaOperations(self.running)
        self.live_figures = KafkaLiveFigures(
            self.running, cluster.front_end.name, self.scoring.recording, masks
        )

    async def start(self) -> None:
        """Reach the broker, read the catalogue, and make the reply topic. Raises EngineError."""
        self.scoring.start(await self.running.open())
        self.running.begin()

    def stop_starting(self) -> None:
        """Do nothing: a start under way is cancelled."""

    def readiness(self) -> Readiness:
        return self.running.readiness()

    def unanswered(self) -> list[dict[str, Any]]:
        parts = self.running.parts
        return [] if parts is None else listed(parts.unanswered.tasks())

    def _entries(self) -> Mapping[str, StreamEntry]:
        return self.live_figures.entries()

    @property
    def recording(self) -> Recording:
        return self.scoring.recording

    def reading(self) -> EngineReading | None:
        """Return None: the tasks are in units, and are measured there."""
        return None

    @property
    def exchange(self) -> Exchange | None:
        """The exchange; None before the start and after the end."""
        return None if self.running.parts is None else self.running.parts.exchange

    @property
    def inputs(self) -> Inputs | None:
        """The inputs of streams; None before the start and after the end."""
        return None if self.running.parts is None else self.running.parts.inputs

    @property
    def unanswered_tasks(self) -> UnansweredTasks | None:
        """The tasks that nobody answers; None before the start and after the end."""
        return None if self.running.parts is None else self.running.parts.unanswered

    @property
    def task_logs(self) -> TaskLogs | None:
        """The logs of tasks; None before the start and after the end."""
        return None if self.running.parts is None else self.running.parts.task_logs

    @property
    def place(self) -> int:
        """The place of the last change of the catalogue that this front-end knows; 0 if it knows none."""
        parts = self.running.parts
        return 0 if parts is None else parts.intakes.now.catalog.last_place

    async def close(self) -> None:
        await self.running.close(self.scoring.end)
