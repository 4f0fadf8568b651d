"""This engine as a library: JSON lines in, JSON replies out, every event in its log before it is answered."""

from collections.abc import Callable
from itertools import islice

import msgspec

from bench.peers.protocol import Task, serve
from bench.peers.railgun_unit import BATCH, workload_of
from railgun.engine.engine import Engine
from railgun.ingest.replies import replies_of


class RailgunEngine:
    """An engine on a folder of its own. Its replies are the file of results."""

    def __init__(self, task: Task) -> None:
        self._engine = Engine(task.folder / "engine", durability="os")
        self._engine.apply(workload_of(task).definitions)
        self._encoder = msgspec.json.Encoder()
        self._events = task.events.open("rb")
        self._replies = task.results.open("wb")

    def prepare(self, events: int) -> Callable[[], None]:
        """Return what scores the next events."""

        def process() -> None:
            for first in range(0, events, BATCH):
                lines = list(islice(self._events, min(BATCH, events - first)))
                scored = self._engine.score_each("payments", lines)
                self._replies.write(self._encoder.encode_lines(replies_of(scored, None)))
            self._replies.flush()

        return process

    def close(self) -> None:
        """Close the engine and both files."""
        self._events.close()
        self._replies.close()
        self._engine.close()


if __name__ == "__main__":
    serve(RailgunEngine)
