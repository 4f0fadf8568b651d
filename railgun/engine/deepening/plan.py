"""Makes the plan of a deepening, which gives a live stream older events (history) than its log has.

The plan says where the history ends (the cut), and from what events the stream's tasks are built again. The engine's
deepenings call this, and so does Spark's deepening of a cluster.
"""

from collections.abc import Mapping
from dataclasses import replace

from railgun.catalog.catalog import StreamEntry
from railgun.engine.errors import HistoryRefusedError
from railgun.engine.history import check_identified, plan_of
from railgun.history.accepted_events import OwnEvents
from railgun.history.build import HistoryPlan
from railgun.task.settings import TaskSettings


def deepening_plan(
    entry: StreamEntry, key: bytes, settings: TaskSettings, own: Mapping[tuple[str, int], OwnEvents],
    history: str, cut_ms: int | None, last_place: int,
) -> HistoryPlan:  # fmt: skip
    """Return the plan for building a live stream's tasks again, with older history.

    entry: the stream in the catalogue.
    key: the stream's 16 secret bytes.
    settings: those of the stream's tasks.
    own: what each task had accepted itself, by (partitioner, partition).
    history: the id of the history.
    cut_ms: where the older history ends, in ms; None chooses the least time that leaves no gap.
    last_place: the number of the last change of the catalogue that the tasks are to know.
    Raises HistoryRefusedError.
    """
    check_identified(entry.stream)
    found_ms = _cut(entry.stream.name, entry.stream.lateness_ms, own, cut_ms)
    plan = plan_of(entry, key, settings, history, found_ms, last_place)
    return replace(plan, own=own)


def _cut(name: str, lateness_ms: int, own: Mapping[tuple[str, int], OwnEvents], cut_ms: int | None) -> int:
    """Return where the history ends: all its events are before this time, in ms. Raises HistoryRefusedError."""
    begin_ms = min((each.least_ms for each in own.values() if each.least_ms is not None), default=None)
    clock_ms = max((each.clock_ms for each in own.values() if each.clock_ms is not None), default=None)
    if begin_ms is None or clock_ms is None:
        raise HistoryRefusedError(
            f"{name} has accepted no event yet: give it its history without --deepen, as its beginning"
        )
    # By task that has deleted old events, the time from which on it has all its events.
    held = {task: each.held_ms for task, each in own.items() if each.held_ms is not None}
    found_ms = cut_ms
    if found_ms is None:
        # An event that came before the stream began may have a later time than the stream's earliest event. But
        # first event that came <= earliest + lateness: otherwise the earliest one would have been late; and
        # any that came before it <= first that came + lateness, for the same reason.
        found_ms = max([min(begin_ms + 2 * lateness_ms, clock_ms) + 1, *held.values()])
    if found_ms < begin_ms:
        raise HistoryRefusedError(
            f"{name}: its events begin at {begin_ms} ms, the history would end at {found_ms} ms: what came in between "
            "would be missing; choose a later --until"
        )
    for (partitioner, partition), held_ms in held.items():
        if found_ms < held_ms:
            raise HistoryRefusedError(
                f"{name}/{partitioner}/{partition} has let its events before {held_ms} ms go, the history would end at "
                f"{found_ms} ms: what came in between would be missing; choose a later --until, or none"
            )
    if found_ms > clock_ms + 1:
        raise HistoryRefusedError(
            f"{name} has come to {clock_ms} ms, the history would end at {found_ms} ms: what is still to come would be "
            "late; choose an earlier --until"
        )
    return found_ms
