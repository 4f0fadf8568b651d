"""This engine: one task as the unit bench measures it, internal records in, encoded replies out, everything on."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow.csv
import pyarrow.json

from bench.payments import Payments, schema
from bench.peers.protocol import AGGREGATES, Task, metric_names, serve
from bench.unit_cases import Workload
from bench.unit_task import WarmTask
from railgun.measuring.answering import Answering
from railgun.task.replies import Replies
from railgun.wire.reply import decode_reply

BATCH = 2048
_LATENESS_MS = 1_000
_BLOCK_BYTES = 8 << 20
_AS_ROWS = pyarrow.csv.WriteOptions(include_header=False, quoting_style="none")


def workload_of(task: Task) -> Workload:
    """Return the stream and the metrics of a task."""
    over = tuple(f"SLIDING {window_ms} MILLISECONDS" for window_ms in task.windows_ms)
    lateness = f"{max(task.disorder_ms, _LATENESS_MS)}ms"
    return Workload(over, max(task.windows_ms), Payments(0), 0, lateness=lateness)


class _Keeping(Answering):
    """Encodes replies, and keeps them."""

    def __init__(self, warm: WarmTask) -> None:
        super().__init__(warm.task)
        self._of = warm.task
        self.kept: list[bytes] = []

    def __call__(self, replies: Replies) -> None:
        """Encode replies as a unit does."""
        self.kept += [record for _, record in self._of.encode(replies)]


class RailgunUnit:
    """A task in a folder of its own. Results are written to the file between measurements."""

    def __init__(self, task: Task) -> None:
        self._warm = WarmTask(workload_of(task), _read(task))
        self._keeping = _Keeping(self._warm)
        self._results = task.results.open("wb")

    def prepare(self, events: int) -> Callable[[], None]:
        """Return what processes the next events. Their records are made before, as a front-end makes them."""
        self._write()
        made = list(self._warm.records.take(events))

        def process() -> None:
            self._warm.answer = self._keeping
            for records in made:
                self._warm.feed(records, BATCH)

        return process

    def close(self) -> None:
        """Write the last results, and remove the task."""
        self._write()
        self._results.close()
        self._warm.close()

    def _write(self) -> None:
        for record in self._keeping.kept:
            replies = decode_reply(record)
            words = replies.low(slice(None))
            columns = [
                words[metric].view(np.int64 if metric % len(AGGREGATES) == 0 else np.float64)
                for metric in range(len(words))
            ]
            rows = pyarrow.table(
                [replies.ids(), *columns], ["id", *metric_names(len(columns) // len(AGGREGATES))]
            )
            pyarrow.csv.write_csv(rows, self._results, _AS_ROWS)
        self._keeping.kept.clear()


def _read(task: Task) -> Iterator[Any]:
    """Yield the events of the file as batches of payments."""
    shape = schema(5)
    place = shape.get_field_index("ts")
    read = shape.set(place, shape.field(place).with_type(pyarrow.int64()))
    options = pyarrow.json.ReadOptions(block_size=_BLOCK_BYTES)
    parsing = pyarrow.json.ParseOptions(explicit_schema=read)
    for batch in pyarrow.json.open_json(task.events, read_options=options, parse_options=parsing):
        yield batch.set_column(place, shape.field(place), batch.column(place).view(shape.types[place]))


if __name__ == "__main__":
    serve(RailgunUnit)
