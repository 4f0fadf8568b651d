"""The interface through which the background work of a task (checkpoints, fills, sweep, digest) uses the task.

`TaskProcessor` in processor.py implements it.
"""

from collections.abc import Callable
from typing import Protocol

from railgun.catalog.model import StreamDefinition
from railgun.state.checkpoint import Checkpointer
from railgun.state.paged.pool import PagePool
from railgun.state.rows.table import EntityTable
from railgun.state.store import Store
from railgun.task.admission import Admission
from railgun.task.inputs import InputMemory
from railgun.task.journal import Journal
from railgun.task.meta import Crossing
from railgun.task.metrics import TaskMetrics
from railgun.task.plan_runtime import PlanRuntime
from railgun.task.settings import TaskIdentity, TaskSettings
from reservoir.reservoir import Reservoir


class TaskView(Protocol):
    """A task, as its background work uses it. One thread uses it.

    now: a clock in seconds that never goes back.
    used_s: seconds for which this process has kept all processors busy, or for which a unit had something to do.
    names: the names of the metrics in force.
    schemas: the stream's definitions by schema version; `stream` is the newest one.
    position: the offset of the next record that the task wants.
    leader_epoch: the leader epoch of the record before `position`; -1 if it is not known.
    history: the id of the history that lies before the log; empty if there is none.
    topic_id: the id of the topic of its log; empty if that has none.
    gap: the last gap of its log that it has crossed; None if it has crossed none.
    begun: the id of the history that was begun last, by a `begin_deepening` record; empty if none was since that gap.
    retained_ms: the retention bound R, in ms. Events at or before it may be deleted.
    busy_s, maintenance_s: seconds spent in processing records and in background work, by `now`.
    """

    identity: TaskIdentity
    settings: TaskSettings
    now: Callable[[], float]
    used_s: Callable[[], float]
    reservoir: Reservoir
    store: Store
    table: EntityTable
    pool: PagePool
    checkpointer: Checkpointer
    runtime: PlanRuntime
    admission: Admission
    journal: Journal
    inputs: InputMemory
    metrics: TaskMetrics
    names: tuple[str, ...]
    stream: StreamDefinition | None
    schemas: dict[int, StreamDefinition]
    position: int
    leader_epoch: int
    history: str
    topic_id: str
    gap: Crossing | None
    begun: str
    retained_ms: int
    busy_s: float
    maintenance_s: float
