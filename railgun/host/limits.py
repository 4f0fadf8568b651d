"""Tells how far a copy of a task may process what was read for it. The loop of a unit (a process with tasks) calls it.

A copy that does not answer stops at its limit: what other copies have replied to. Any copy stops at a `warm` record
whose metric it has not filled yet (it has not read all old events into it). Processing such a record would do the rest
of the fill on the spot, and the other tasks of the unit would have to wait.
"""

from railgun.catalog.changes import Warm, change_from_json
from railgun.catalog.errors import DefinitionError
from railgun.messaging.transport import Fetched
from railgun.task.processor import TaskProcessor
from railgun.wire.control_records import ControlRecordError, decode_control
from railgun.wire.records import CONTROL, kind_of, runs_of

_WARM = Warm.kind.encode()


def parted_at_limit(
    task: TaskProcessor, fetched: Fetched, limit: int | None
) -> tuple[Fetched, Fetched | None]:
    """Return what a copy may process now, and what it has to keep for later (None: nothing).

    A `warm` record is only processed as the first one: until those before it are processed, the task may not have the
    metric, so whether it is filled cannot be told.
    limit: the offset from which on the copy must not process records; None for one that answers.
    """
    now, later = (fetched, None) if limit is None else fetched.parted(limit)
    row = _first_unfilled(task, now)
    return (now, later) if row is None else fetched.parted(int(now.offsets[row]))


def awaited_fill(kept: Fetched) -> Warm | None:
    """Return the `warm` record that comes first in what a copy has to keep for later; None if that is another one."""
    first = kept.records.record(0)
    return _warm(first) if kind_of(first) == CONTROL else None


def _first_unfilled(task: TaskProcessor, fetched: Fetched) -> int | None:
    row = 0
    for kind, run in runs_of(fetched.records):
        if kind == CONTROL:
            for record in run.to_list():
                warm = _warm(record)
                if warm is not None and (row > 0 or not task.is_filled(warm)):
                    return row
                row += 1
        else:
            row += len(run)
    return None


def _warm(record: bytes) -> Warm | None:
    """Return the `warm` record that this is; None if it is another one."""
    if _WARM not in record:
        return None
    try:
        body = decode_control(record)
        change = change_from_json(body, {}) if body["kind"] == Warm.kind else None
    except (ControlRecordError, DefinitionError):
        # The task says what is wrong with it, when it comes to it.
        return None
    return change if isinstance(change, Warm) else None
