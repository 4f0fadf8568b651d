"""Opens the tasks of a stream with all its metrics, without a log behind them.

`OfflineRun` and `railgun bench` feed them.
"""

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path

from railgun.catalog.changes import AddMetric, Change, PutStream, change_to_json
from railgun.catalog.model import MetricDefinition, StreamDefinition
from railgun.catalog.names import column_name
from railgun.host.memory import LIMIT_BYTES, MemoryShares
from railgun.task.environment import TaskEnvironment
from railgun.task.processor import TaskIdentity, TaskProcessor
from railgun.task.recovery import open_task
from railgun.task.replies import discard_replies
from railgun.task.settings import TaskSettings
from railgun.wire.control_records import encode_control
from railgun.wire.records import Records
from reservoir.files import DiskFiles

SCHEMA_VERSION = 1


def open_tasks(
    stream: StreamDefinition,
    metrics: Sequence[MetricDefinition],
    folder: Path,
    settings: TaskSettings,
    environment: TaskEnvironment,
) -> list[TaskProcessor]:
    """Return the tasks of a stream, in its order, with all its metrics in force.

    folder: each task gets an empty folder in it.
    settings: the most that each task gets of the limit in `railgun.host.memory`.
    Raises StoreError, ReservoirError, TaskError and OSError; no task is open then.
    """
    shared = MemoryShares(settings, LIMIT_BYTES).take(len(stream.tasks))
    key, opened = environment.randomness(16), list[TaskProcessor]()
    try:
        for partitioner, partition in stream.tasks:
            identity = TaskIdentity(stream.name, partitioner, partition, key)
            own = task_folder(folder, partitioner, partition)
            opened.append(open_task(own, identity, DiskFiles(), _no_log, shared, environment=environment))
            controls = _controls(stream, metrics, partitioner)
            opened[-1].process(controls, opened[-1].position, discard_replies)
    except BaseException:
        close_tasks(opened)
        raise
    return opened


def task_folder(folder: Path, partitioner: str, partition: int) -> Path:
    """Return where in a folder a task has its own."""
    return folder / column_name(partitioner) / str(partition)


def close_tasks(tasks: Iterable[TaskProcessor]) -> None:
    """Close every task. An error does not keep the others open; the first error is raised."""
    with ExitStack() as closing:
        for task in tasks:
            closing.callback(task.close)


def _controls(stream: StreamDefinition, metrics: Sequence[MetricDefinition], partitioner: str) -> Records:
    """Return the control records at the beginning of a task's log."""
    homely = [metric for metric in metrics if metric.home == partitioner]
    changes: list[Change] = [PutStream(1, stream, SCHEMA_VERSION)]
    changes += [AddMetric(place, metric) for place, metric in enumerate(homely, 2)]
    return Records.of([encode_control(change_to_json(change)) for change in changes])


def _no_log(first: int, end: int) -> Iterable[tuple[int, Records]]:
    return ()
