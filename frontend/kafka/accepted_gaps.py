"""Finds the state with which a task can go on behind a gap of its log, and what is lost with the gap.

A gap is records that the broker has deleted before the task had processed them. An operator accepts it by a request;
`cluster_state.py` calls this for it.
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from frontend.backend.cluster import GapOrder
from frontend.problems import ProblemError, refusal
from railgun.catalog.task_key import TaskKey
from railgun.cluster.copies import Gap, LogPoint
from railgun.cluster.observed import ObservedCluster
from railgun.cluster.report_table import ReportedCopy
from railgun.cluster.reports import LeftBehind
from railgun.messaging.transport import TopicPartition, Transport
from railgun.registry.kafka_registry import KafkaRegistry

_READ_BYTES = 4 << 20
_MEND = "mend what its error names and start its node again"


class GapOutcome(StrEnum):
    """What an order to accept a gap does.

    CROSSED: the task continues behind the gap.
    WOULD_CROSS: the same, if it is ordered.
    ACCEPTED_BEFORE: nothing, since an earlier order about this gap stands.
    """

    CROSSED = "crossed"
    WOULD_CROSS = "would_cross"
    ACCEPTED_BEFORE = "accepted_before"


@dataclass(frozen=True, slots=True)
class Standing:
    """How the copies of a task stand.

    heard: the newest reports of copies that are heard, on nodes that live.
    away: those of other copies.
    silent_disks: the nodes that may have a checkpoint of the task, and no copy that has said how far it came; with
        whether each runs.
    accepted: the gap that an operator has accepted last.
    """

    heard: Sequence[ReportedCopy]
    away: Sequence[ReportedCopy]
    silent_disks: Mapping[str, bool] = field(default_factory=dict)
    accepted: Gap | None = None


@dataclass(frozen=True, slots=True)
class FoundGap:
    """A gap, and the copy whose state continues behind it.

    copy: the newest report of that copy.
    state: the point of the log where its state ends, and its clock.
    offset: the first record that is left.
    gap_ms: no event in the gap is later.
    topic_id: the id of the topic of the log; empty if it has none.
    """

    copy: ReportedCopy
    state: LeftBehind
    offset: int
    gap_ms: int
    topic_id: str

    def shown(self) -> dict[str, Any]:
        """Return what an operator is told: the state, and which records and times are lost."""
        return {
            "node": self.copy.copy.node,
            "first": self.state.position,
            "offset": self.offset,
            "records": self.offset - self.state.position,
            "clock_ms": self.state.clock_ms,
            "gap_ms": self.gap_ms,
        }


def standing_of(observed: ObservedCluster, task: TaskKey, now_s: float) -> Standing:
    """Return how the copies of a task stand. now_s: by the clock of the observed reports."""
    copies = list(observed.reports.copies(task))
    heard = [each for each in copies if each.is_heard(now_s) and each.copy.node in observed.members]
    disks = {
        name
        for name, record in observed.nodes.items()
        if any(disk.task == task and disk.has_checkpoint for disk in record.disk)
    }
    silent = disks - {each.copy.node for each in copies if _has_said_how_far(each)}
    return Standing(
        heard,
        [each for each in copies if each not in heard],
        {name: name in observed.members for name in silent},
        observed.gaps.get(task),
    )


def shown_before(gap: Gap) -> dict[str, Any]:
    """Return what an operator is told of a gap that was accepted before."""
    return {
        "node": "",
        "first": gap.state.offset,
        "offset": gap.offset,
        "records": gap.offset - gap.state.offset,
        "clock_ms": None,
        "gap_ms": gap.gap_ms,
    }


def found_gap(
    transport: Transport,
    where: TopicPartition,
    task: TaskKey,
    standing: Standing,
    max_future_ms: int,
    order: GapOrder,
) -> FoundGap | Gap:
    """Return the gap of a task's log that can be accepted now, and the state that would cross it; or the gap
    that was accepted before, if it is the same or the task continues behind it.

    Raises ProblemError if a copy goes on without that, or may, or if other records are lost than the order agrees to,
    and TransportError.
    """
    accepted = standing.accepted
    goes_on = [each for each in standing.heard if not each.status.state.has_stopped]
    opened = [each for each in goes_on if each.status.goes_on]
    if opened and accepted is not None:
        return accepted
    if opened:
        raise refusal(
            409,
            f"{opened[0].copy} of {task} is {opened[0].status.state}, and has not failed: there is no gap to accept",
        )
    if goes_on:
        raise _not_yet(task, goes_on[0])
    copy, state = _chosen(task, standing.heard, order.node)
    offset = max(transport.start_offset(*where), state.position)
    topic_id = transport.topic_ids([where.topic]).get(where.topic, "")
    point = LogPoint(state.position, state.epoch)
    if accepted is not None and accepted.crossing == (point, offset, topic_id):
        return accepted
    if not order.node:
        _check_others(task, standing, state)
    if order.agreed not in (None, (state.position, offset)):
        raise refusal(
            409,
            f"the gap of {task} is from offset {state.position:,} to {offset:,} now, and not the one in the order: ask "
            "again what would be lost",
        )
    appended_ms = _appended_ms(transport, where, offset)
    latest_ms = appended_ms if state.clock_ms is None else max(appended_ms, state.clock_ms)
    return FoundGap(copy, state, offset, latest_ms + max_future_ms, topic_id)


def told_gap(registry: KafkaRegistry, task: TaskKey, found: FoundGap) -> Gap:
    """Write the definitions that apply at a gap into the log, and return the gap. Raises what `registry` raises."""
    told, place = registry.tell_again(task)
    point = LogPoint(found.state.position, found.state.epoch)
    return Gap(point, found.offset, found.gap_ms, told, place, found.topic_id)


def _not_yet(task: TaskKey, copy: ReportedCopy) -> ProblemError:
    """Return the refusal of an order that comes before a copy has found out whether it goes on."""
    does = "is being opened" if copy.status.fetching is None else "gets its data from another node"
    return refusal(
        409,
        f"not yet: {copy.copy} of {task} {does}, and has not found out whether it goes on or needs an order. Look "
        "again in a few seconds",
    )


def _chosen(task: TaskKey, heard: Iterable[ReportedCopy], node: str) -> tuple[ReportedCopy, LeftBehind]:
    """Return the copy with the newest state of those that their log does not continue."""
    stopped = [(each, each.status.left_behind) for each in heard if each.status.left_behind is not None]
    found = [(each, state) for each, state in stopped if node in ("", each.copy.node)]
    if not found:
        nodes = ", ".join(sorted({each.copy.node for each, _ in stopped}))
        raise refusal(
            409,
            f"{node} has no copy of {task} that its log left behind; these have: {nodes}"
            if nodes
            else f"no copy of {task} has found that its log begins behind its state: there is no gap to accept",
        )
    return max(found, key=lambda each: (each[1].position, each[1].epoch))


def _check_others(task: TaskKey, standing: Standing, state: LeftBehind) -> None:
    """Raise ProblemError if a copy that is not heard, or has failed otherwise, may have a newer state."""
    others = [(each, "is not heard", "start it") for each in standing.away]
    others += [
        (each, f"is {each.status.state}", _MEND) for each in standing.heard if each.status.left_behind is None
    ]
    for copy, how, remedy in others:
        if _reached(copy) > state.position:
            raise _may_serve(
                f"{copy.copy}, which {how}, has a checkpoint of {task} at offset {_reached(copy):,}, and the newest "
                f"state that can go on behind the gap needs offset {state.position:,} next",
                remedy,
            )
    failed = {each.copy.node for each in standing.heard}
    for name, runs in sorted(standing.silent_disks.items()):
        remedy = "start it"
        if name in failed:
            remedy = _MEND
        elif runs:
            remedy = (
                "it runs: it gets a copy within cluster.replace_after_s, and says then how new its state is. Wait, "
                "start it again if it has lost its copy before (`railgun cluster` says so)"
            )
        raise _may_serve(
            f"{name} has data of {task} on its disk, and no copy that has said how far it came", remedy
        )


def _has_said_how_far(copy: ReportedCopy) -> bool:
    """Whether a copy has said how far its durable state came. One that is not open yet reports no checkpoint."""
    return copy.status.left_behind is not None or copy.status.checkpoint > 0


def _reached(copy: ReportedCopy) -> int:
    """Return the offset that a copy's durable state needs next; 0 if it has none, or has not said that."""
    left = copy.status.left_behind
    return copy.status.checkpoint if left is None else left.position


def _may_serve(why: str, remedy: str) -> ProblemError:
    return refusal(
        409, f"{why}: {remedy}, or name the node to go on from (--from), which gives the other states up"
    )


def _appended_ms(transport: Transport, where: TopicPartition, offset: int) -> int:
    """Return when the record at an offset was appended; the present if there is none."""
    if transport.end_offset(*where) > offset:
        found = transport.read(*where, offset, 1, _READ_BYTES)
        if len(found) and found.appended_ms:
            return found.appended_ms
    return time.time_ns() // 1_000_000
