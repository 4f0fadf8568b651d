"""Finds what a task's log has lost, so that an operator can accept it, and prepares another log for the task.

`cluster_state.py` calls this for an operator's request.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from frontend.problems import OrderStandsError, refusal
from railgun.catalog.task_key import TaskKey
from railgun.cluster.copies import Cut, LogPoint
from railgun.cluster.reports import CopyStatus
from railgun.messaging.later_epoch import first_of_later_epoch
from railgun.messaging.transport import TopicPartition, Transport
from railgun.registry.kafka_registry import KafkaRegistry


class Outcome(StrEnum):
    """What an order to accept a loss does.

    CUT: the task goes on without the records that its log has lost at its end.
    BEGUN_ANEW: the task begins again, in the topic that has the name of its log now.
    ACCEPTED_BEFORE: nothing, since an earlier order stands and no copy has found more.
    """

    CUT = "cut"
    BEGUN_ANEW = "begun_anew"
    ACCEPTED_BEFORE = "accepted_before"


@dataclass(frozen=True, slots=True)
class AcceptedLoss:
    """A loss to be accepted. records: how many were answered and are lost, as far as copies have said."""

    outcome: Outcome
    cut: Cut
    records: int


def accepted_loss(
    transport: Transport,
    registry: KafkaRegistry,
    task: TaskKey,
    copies: Sequence[CopyStatus],
    heard: Collection[CopyStatus],
    accepted: Cut | None,
) -> AcceptedLoss:
    """Return the loss of a task's log that an operator accepts by this call. A missing topic is made, and the
    definitions in force are written into a topic that has taken the place of another one.

    copies: the newest report of each copy.
    heard: those of them that are of copies that are heard.
    accepted: the loss that was accepted last, before this call.
    Raises ProblemError if no copy has found a loss, or an earlier order stands that no copy follows. Raises
    TransportError, and what `registry` raises.
    """
    where = TopicPartition(registry.topics.tasks(task.stream, task.partitioner), task.partition)
    if topic_id := _new_topic(transport, registry, task, where, copies, accepted):
        begin = registry.tell_anew(task)
        replied = [copy.replied for copy in copies if copy.replaced is not None]
        # No record of this topic counts as lost at its end.
        cut = Cut(begin, -1, topic_id, begin)
        return AcceptedLoss(Outcome.BEGUN_ANEW, cut, max(replied, default=0))
    points = [LogPoint(*copy.lost) for copy in copies if copy.lost]
    points = [point for point in points if accepted is None or not accepted.has_lost(point)]
    if points:
        last = max(points, key=lambda point: (point.epoch, point.offset))
        cut = cut_before(transport, where, last)
        if accepted is not None:
            cut = replace(cut, topic_id=accepted.topic_id, begin=accepted.begin)
        return AcceptedLoss(Outcome.CUT, cut, last.offset - cut.offset)
    _check_is_found(transport, task, where, heard, accepted)
    if accepted is not None:
        _check_is_followed(task, heard)
        return AcceptedLoss(Outcome.ACCEPTED_BEFORE, accepted, 0)
    raise refusal(
        409,
        f"no copy of {task} has found that its log has lost records or is another one: there is nothing to accept. "
        "If that has happened just now, order it again in ten seconds",
    )


def _check_is_found(
    transport: Transport,
    task: TaskKey,
    where: TopicPartition,
    heard: Collection[CopyStatus],
    accepted: Cut | None,
) -> None:
    """Raise ProblemError if the broker shows a loss that no copy has found so far. Copies do within seconds, and then
    need the order.
    """
    present = transport.topic_ids([where.topic]).get(where.topic)
    reached = max((copy.position for copy in heard if copy.goes_on), default=0)
    if present is None:
        what = f"the topic {where.topic} is gone"
    elif accepted is not None and accepted.topic_id not in ("", present):
        what = f"the topic {where.topic} is another one than was accepted before"
    elif (end := transport.end_offset(*where)) < reached:
        what = f"the log ends at offset {end:,}, and was processed up to {reached:,}"
    else:
        return
    raise refusal(
        409, f"not yet: {what}, and no copy of {task} has found that so far. Look again in a few seconds"
    )


def _check_is_followed(task: TaskKey, heard: Collection[CopyStatus]) -> None:
    """Raise ProblemError if no copy follows the loss that was accepted last, or is about to."""
    stopped = [
        copy
        for copy in heard
        if copy.lost is not None or copy.replaced is not None or copy.left_behind is not None
    ]
    if not stopped and not any(copy.goes_on for copy in heard):
        raise refusal(
            409,
            f"not yet: an earlier order about {task} stands, and no copy follows it so far: none is heard, or each is "
            "being opened, or has failed otherwise. Look again in a few seconds; `railgun cluster --tasks` shows the "
            "copies",
        )


def check_goes_on(
    transport: Transport, where: TopicPartition, task: TaskKey, cut: Cut, heard: Collection[CopyStatus]
) -> None:
    """Raise OrderStandsError if a loss was accepted, and the task does not go on by that alone: its log has lost its
    beginning too, and no copy has what was there.

    heard: the newest reports of copies that are heard.
    """
    stopped = [copy for copy in heard if copy.lost is not None or copy.left_behind is not None]
    start = transport.start_offset(*where)
    if not stopped or start <= cut.begin or any(_may_go_on(copy, cut, start) for copy in heard):
        return
    raise OrderStandsError(
        409,
        f"the loss is accepted, but no copy of {task} that is heard can go on: its log begins at offset {start}, and "
        "none has a state without the lost records that reaches there. Start a node that has one, or have the task go "
        f"on without what its log has lost: `railgun cluster accept-gap {task}`",
    )


def _may_go_on(copy: CopyStatus, cut: Cut, log_start: int) -> bool:
    """Whether a copy goes on, or has stopped with a state that a log continues after a loss was accepted."""
    if not copy.state.has_stopped:
        return True
    return copy.checkpoint >= log_start and not cut.has_lost(LogPoint(copy.checkpoint))


def _new_topic(
    transport: Transport,
    registry: KafkaRegistry,
    task: TaskKey,
    where: TopicPartition,
    copies: Sequence[CopyStatus],
    accepted: Cut | None,
) -> str | None:
    """Return the id of the topic that has taken the place of a task's log, if a copy has found that and it was not
    accepted yet. A topic that is gone is made.
    """
    topic = where.topic
    before = {copy.replaced for copy in copies if copy.replaced is not None}
    if not before:
        return None
    is_gone = topic not in transport.topic_ids([topic])
    if is_gone:
        registry.make_task_topic(task)
    present = transport.topic_ids([topic]).get(topic)
    if present is None:
        raise refusal(503, f"the topic {topic} was made, and the broker does not show it yet: try again")
    if accepted is not None and accepted.topic_id == present:
        return None
    # An order that was cut off may have made it: there is no record in it.
    was_gone = is_gone or ("" in before and transport.end_offset(*where) == 0)
    if present in before or not (was_gone or any(before)):
        raise refusal(
            409,
            f"the topic {topic} is there, and is the one that {task} has processed, as far as is known: start its "
            "nodes again, and it goes on",
        )
    return present


def cut_before(transport: Transport, where: TopicPartition, point: LogPoint) -> Cut:
    """Return where a log was cut that had a point and does not have it any more. Raises TransportError."""
    offset, epoch = first_of_later_epoch(transport, where, point.epoch)
    return Cut(min(offset, point.offset), point.epoch + 1 if epoch < 0 else epoch)
