"""History before a stream's log: makes the plan for building it, and checks whether built history can be installed.

Engines and `railgun backfill` (railgun/spark) call it.
"""

from collections.abc import Sequence
from pathlib import Path

from railgun.catalog.catalog import StreamEntry
from railgun.catalog.model import StreamDefinition
from railgun.catalog.names import column_name
from railgun.catalog.retelling import definitions_by_version
from railgun.engine.errors import HistoryRefusedError
from railgun.history.build import HistoryPlan
from railgun.history.manifest import HistoryManifest, verified_manifest
from railgun.host.task_host import TaskHost
from railgun.plan.program import TIME_MAX
from railgun.task.settings import TaskSettings


def history_plan(
    entry: StreamEntry, key: bytes, hosts: Sequence[TaskHost], history: str, cut_ms: int, last_place: int
) -> HistoryPlan:
    """Return the plan from which the tasks of a stream's history are built. Raises HistoryRefusedError."""
    logs = {str(each.place.identity): each.log.start for each in hosts}
    check_possible(entry, cut_ms, logs, _least_ms(hosts))
    return plan_of(entry, key, hosts[0].settings, history, cut_ms, last_place)


def plan_of(
    entry: StreamEntry, key: bytes, settings: TaskSettings, history: str, cut_ms: int, last_place: int
) -> HistoryPlan:
    """Return the plan as `history_plan` does, without checks. settings: those of the stream's tasks."""
    return HistoryPlan(
        history=history,
        key=key,
        created=entry.created,
        schemas=definitions_by_version(entry),
        metrics=tuple(entry.metrics.values()),
        last_place=last_place,
        cut_ms=cut_ms,
        chunk_events=settings.chunk_events,
        segment_bytes=settings.segment_bytes,
    )


def history_id(entry: StreamEntry) -> str | None:
    """Return the id of the history that the catalogue names for a stream; None if the stream has none."""
    return None if entry.history is None else entry.history.history


def check_history(entry: StreamEntry, hosts: Sequence[TaskHost], folder: Path) -> HistoryManifest:
    """Verify every byte of the tasks that a backfill has built, and return the manifest of the first one.

    Raises HistoryRefusedError, HistoryDamagedError and OSError.
    """
    name, least_ms = entry.stream.name, _least_ms(hosts)
    logs = {str(each.place.identity): each.log.start for each in hosts}
    check_possible(entry, None, logs, least_ms)
    if not folder.is_dir():
        raise HistoryRefusedError(
            f"{folder}: no history of {name} was made ready there; run railgun backfill"
        )
    manifests: list[HistoryManifest] = []
    for host in hosts:
        who = host.place.identity
        place = folder / column_name(who.partitioner) / str(who.partition)
        manifests.append(verified_manifest(place, who, entry.created))
    check_possible(entry, manifests[0].cut_ms, logs, least_ms)
    check_known(entry, manifests, least_ms)
    return manifests[0]


def check_known(entry: StreamEntry, manifests: Sequence[HistoryManifest], least_ms: int) -> None:
    """Raise HistoryRefusedError if the tasks do not have the same history, or if their duplicate memory is too short.

    It is too short if an event of the history could come again in the log after its id was forgotten.

    least_ms: the least time of an event in the log, in ms.
    """
    name = entry.stream.name
    if len({manifest.history for manifest in manifests}) != 1:
        raise HistoryRefusedError(f"{name}: the tasks that are ready are of several histories; remove them")
    for manifest in manifests:
        if manifest.remembered_ms is not None and least_ms < min(manifest.remembered_ms, manifest.cut_ms):
            raise HistoryRefusedError(
                f"{name}: its log begins at {least_ms} ms; of the history's events {manifest.partitioner}/"
                f"{manifest.partition} knows the ids from {manifest.remembered_ms} ms on (dedup_events = "
                f"{entry.stream.dedup_events}), so that some could count twice; choose an earlier --until"
            )


def check_possible(entry: StreamEntry, cut_ms: int | None, log_starts: dict[str, int], least_ms: int) -> None:
    """Raise HistoryRefusedError if history that ends at `cut_ms` cannot lie before a stream's log.

    cut_ms: None if it is not known yet.
    log_starts: the first offset that the log still has, by task.
    least_ms: the least time of an event in the log, in ms.
    """
    name = entry.stream.name
    check_identified(entry.stream)
    if entry.history is not None:
        raise HistoryRefusedError(
            f"{name} has a history already, {entry.history.history}: older history can be added with --deepen"
        )
    for task, start in log_starts.items():
        if start > 0:
            raise HistoryRefusedError(
                f"{task}: its log has lost its beginning (offset {start} is its first), so it cannot be run again "
                "behind a history; give the stream its history before its first events"
            )
    if cut_ms is not None and cut_ms < least_ms < TIME_MAX:
        raise HistoryRefusedError(
            f"{name}: its log begins at {least_ms} ms, the history would end at {cut_ms} ms: what came in between "
            "would be missing; choose a later --until"
        )


def check_identified(stream: StreamDefinition) -> None:
    """Raise HistoryRefusedError if a stream has no id field or no time field."""
    if stream.id is None or stream.time is None:
        lacks = "id" if stream.id is None else "time"
        raise HistoryRefusedError(
            f"{stream.name} has no {lacks} field: events of history need their own times, and ids by which one that is "
            f'in the log too counts once; say which field it is, as in {lacks} = "...", when the stream is created'
        )


def _least_ms(hosts: Sequence[TaskHost]) -> int:
    return min(host.task.admission.least_ms for host in hosts)
