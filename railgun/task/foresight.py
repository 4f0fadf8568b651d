"""What is done for metrics before they are added, while events go on: a change then puts in force what is there."""

from collections.abc import Sequence

from railgun.catalog.changes import AddMetric, Change, change_from_json, change_to_json
from railgun.catalog.model import StreamDefinition
from railgun.task.machine import Machine
from railgun.task.metrics import TaskMetrics
from railgun.wire.encode import decode_control, encode_control
from reservoir.prefetch import Ahead


class Foresight:
    """Metrics that one task will get. `plan`, `read_ahead` and `prepare` follow each other; no result depends on them.

    stream, metrics: as they are now; the metrics are the foresight's own.  parsed: by their records, changes as the
    task will read them from its log.
    """

    def __init__(
        self,
        machine: Machine,
        stream: StreamDefinition,
        metrics: TaskMetrics,
        changes: Sequence[AddMetric],
        clock_ms: int,
        retained_ms: int,
    ) -> None:
        self.stream = stream
        self.parsed: dict[bytes, Change] = {}
        self._machine, self._metrics, self._changes = machine, metrics, changes
        self._clock_ms, self._retained_ms = clock_ms, retained_ms
        self._upcoming = machine.upcoming(stream)

    def plan(self) -> None:
        """Make the program out. On any thread, with nothing held."""
        for change in self._changes:
            record = encode_control(change_to_json(change))
            parsed = change_from_json(decode_control(record), {self.stream.name: self.stream})
            assert isinstance(parsed, AddMetric)
            self._metrics.add(parsed, has_accepted=True, retained_ms=self._retained_ms)
            self.parsed[record] = parsed
        self._upcoming.plan(self._metrics.generations())

    def read_ahead(self) -> list[Ahead]:
        """Have read ahead what the program will need; what may be waited for. By the task's thread of the moment."""
        return self._machine.read_ahead(self._upcoming, self._clock_ms)

    def prepare(self) -> None:
        """Make what runs the program. On any thread, with nothing held."""
        self._machine.prepare(self._upcoming)
