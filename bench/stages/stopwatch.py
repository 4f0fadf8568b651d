"""Times the stages of an engine: the methods that pass a batch on, by the processor time of one thread."""

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from railgun import Engine
from railgun.engine.live_stream import LiveStream
from railgun.engine.stream_hosts import StreamHosts
from railgun.ingest.accepted import AcceptedBatch
from railgun.ingest.answers import Answers
from railgun.ingest.intake import Intake
from railgun.messaging.embedded.log import EmbeddedLog
from railgun.task.admission import Admission
from railgun.task.execution import Execution
from railgun.task.processor import TaskProcessor
from reservoir.reservoir import Reservoir

METHODS: Sequence[tuple[type, str, str]] = (
    (Intake, "take", "read_json"),
    (AcceptedBatch, "task_batches", "make_records"),
    (EmbeddedLog, "submit", "hand_to_log"),
    (TaskProcessor, "_read", "decode_records"),
    (Admission, "admit", "find_duplicates"),
    (TaskProcessor, "append", "append_to_reservoir"),
    (Reservoir, "advance", "move_edges"),
    (Execution, "records", "update_state"),
    (Execution, "drain", "update_state"),
    (TaskProcessor, "_replies", "collect_results"),
    (Answers, "take", "collect_results"),
    (TaskProcessor, "_settle", "seal_chunks"),
    (TaskProcessor, "process", "rest_of_task"),
    (StreamHosts, "work", "background_work"),
    (LiveStream, "score_each", "rest_of_stream"),
    (Engine, "score_each", "rest_of_engine"),
)
"""The methods that are timed, with the stage of each."""
STAGES = (*dict.fromkeys(stage for _, _, stage in METHODS), "write_json")


class Stopwatch:
    """Sums the processor time of the thread that made it by stage, in ns. A stage's time is without those inside it."""

    def __init__(self) -> None:
        self.ns: dict[str, int] = defaultdict(int)
        self._thread = threading.get_ident()
        # By stage that is under way, the innermost last: the time of the stages inside it.
        self._inside: list[int] = []

    def timed(self, call: Callable[..., Any], stage: str) -> Callable[..., Any]:
        """Return a function that does what `call` does, and counts its time."""

        def counting(*arguments: Any, **named: Any) -> Any:
            if threading.get_ident() != self._thread:
                return call(*arguments, **named)
            self._inside.append(0)
            begun_ns = time.thread_time_ns()
            try:
                return call(*arguments, **named)
            finally:
                took_ns = time.thread_time_ns() - begun_ns
                self.ns[stage] += took_ns - self._inside.pop()
                if self._inside:
                    self._inside[-1] += took_ns

        return counting

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Time the stages while this is entered."""
        before = [(owner, name, getattr(owner, name)) for owner, name, _ in METHODS]
        try:
            for (owner, name, stage), (_, _, call) in zip(METHODS, before, strict=True):
                setattr(owner, name, self.timed(call, stage))
            yield
        finally:
            for owner, name, call in before:
                setattr(owner, name, call)
