"""The figures of the engine in this process for `GET /v1/live`: what is counted, and the last reading of its tasks."""

import socket
from collections.abc import Iterable, Mapping, Sequence

from frontend.access.masks import Masks
from frontend.backend.live_figures import InputStanding, StreamStanding, Warming, Way
from frontend.embedded.running_engine import RunningEngine
from railgun.catalog.catalog import StreamEntry
from railgun.engine.folder import LOG
from railgun.host.disk_usage import measure_disk
from railgun.registry.metric_status import filled_with_derived
from railgun.telemetry.reading import DiskReading, TaskReading
from railgun.telemetry.recording import StreamRecord
from railgun.wording import seconds_doubt


class EmbeddedLiveFigures:
    """`LiveFigures` of an engine. The name is that of the machine. masks: what of streams nobody is shown."""

    has_cluster = False

    def __init__(self, running: RunningEngine, masks: Masks) -> None:
        self._running, self._masks = running, masks
        self.name = socket.gethostname()

    def records(self) -> Iterable[tuple[str, Way, StreamRecord]]:
        return [(name, Way.HTTP, record) for name, record in self._running.recording.streams()]

    def streams(self) -> dict[str, StreamStanding]:
        engine = self._running.engine
        reading = None if engine is None else engine.reading
        tasks: dict[str, list[TaskReading]] = {}
        for task in () if reading is None else reading.tasks:
            tasks.setdefault(task.stream, []).append(task)
        at_s = 0.0 if reading is None else reading.at_s
        return {
            name: _standing(entry, tasks.get(name, ()), at_s, self._masks.of(entry).covers_time)
            for name, entry in self._running.entries.items()
        }

    def entries(self) -> dict[str, StreamEntry]:
        return self._running.entries

    def waiting(self) -> None:
        return None

    def inputs(self) -> Mapping[str, InputStanding]:
        return {}

    def cluster(self) -> None:
        return None

    def look_at_cluster(self) -> None:
        """Do nothing: there is no cluster."""

    def measure_disk(self) -> DiskReading | None:
        engine = self._running.engine
        return None if engine is None else measure_disk(engine.folder, engine.folder / LOG)


def _standing(
    entry: StreamEntry, tasks: Sequence[TaskReading], at_s: float, covers_time: bool
) -> StreamStanding:
    """Return how a stream stands by the readings of its tasks at a moment. Without any its warming is not known.

    covers_time: whether the time of its events is masked.
    """
    metrics = len(entry.names)
    if not tasks:
        return StreamStanding(metrics, None)
    filled: dict[str, float] = {}
    for task in tasks:
        for name, share in task.filled.items():
            filled[name] = min(share, filled.get(name, 1.0))
    # The doubt quotes the time of an event.
    doubt = None if covers_time else seconds_doubt(round(1_000 * max(task.clock_s for task in tasks)))
    return StreamStanding(
        metrics,
        Warming(filled_with_derived(entry.registered, filled), at_s),
        warnings=() if doubt is None else (doubt,),
    )
