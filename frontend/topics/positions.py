"""Decides where the partitions of a stream's input topics are read on, and records how far they are read."""

import logging
from collections.abc import Mapping
from time import monotonic

from frontend.topics.alignment import Standing
from frontend.topics.input_reports import InputReport, InputReports
from railgun.messaging.transport import TopicPartition
from railgun.registry.input_topics import InputTopic

# How often positions are recorded, at most: at the end of the topics, and behind it, where others wait for them.
_REPORT_S, _BEHIND_S = 1.0, 0.02
# When what has not moved is said again: as others give up a partition that they do not hear of, if they ask, and with a
# question to them that has no answer yet.
_AGAIN_S, _ANSWER_S, _QUESTION_S = 5.0, 0.5, 1.0

_log = logging.getLogger("railgun.frontend")


class InputPositions:
    """The positions of one stream's input. One thread uses it.

    created: the place of the stream's creation.
    topics: its topics, by name.
    """

    def __init__(
        self, stream: str, created: int, topics: Mapping[str, InputTopic], reports: InputReports
    ) -> None:
        self._stream, self._created, self._topics, self._reports = stream, created, topics, reports
        self._reported: dict[TopicPartition, InputReport] = {}
        self._reported_s, self._again_s = 0.0, 0.0

    def start(self, where: TopicPartition, committed: int) -> int | None:
        """Return the offset at which a partition is read on; None: at its oldest record.

        committed: the group's position; negative if the broker has none.
        """
        topic = self._topics[where.topic]
        heard = self._reports.of(self._created, topic, where.partition)
        settled = -1 if heard is None else heard.report.position
        begin = topic.start(where.partition)
        if topic.is_remade and settled < 0:
            # The group's position may be of the topic before, or of the stream before. A front-end that has not noticed
            # yet may still commit such a one.
            return begin
        if committed >= 0:
            if committed < settled:
                _log.warning(
                    "%s: the group's position in %s was set back from %d to %d: events that were settled are "
                    "answered again, and not counted again; older records, which were never read, need a backfill or "
                    "a new stream",
                    self._stream,
                    where,
                    settled,
                    committed,
                )
            return committed
        if settled >= 0:
            _log.info(
                "%s: the broker has forgotten the group's position in %s; it is read on from %d, as recorded",
                self._stream,
                where,
                settled,
            )
            return settled
        return begin

    def is_due(self, *, is_awaited: bool) -> bool:
        """Return whether a report is due. is_awaited: whether any partition is behind, or a front-end asks."""
        was_behind = any(each.behind for each in self._reported.values())
        pause_s = _BEHIND_S if is_awaited or was_behind else _REPORT_S
        return monotonic() - self._reported_s >= pause_s

    def report(
        self,
        standings: Mapping[TopicPartition, Standing],
        committed: Mapping[TopicPartition, int],
        *,
        asks: bool = False,
        is_asked: bool = False,
    ) -> None:
        """Record how far partitions are read, of those of which that has changed.

        standings: how the partitions stand that this front-end reads.
        committed: the positions that the group has committed; of others that is not known.
        asks: whether other front-ends are to say how their partitions stand.
        is_asked: whether one of them wants to know how these stand.
        """
        now_s = monotonic()
        reports = {
            where: self._report(where, standing, committed.get(where, -1), asks=asks)
            for where, standing in standings.items()
        }
        is_behind = any(each.is_behind for each in standings.values())
        rested_s = now_s - self._again_s
        is_again = (
            (is_asked and rested_s > _ANSWER_S)
            or (asks and rested_s > _QUESTION_S)
            or (is_behind and rested_s > _AGAIN_S)
        )
        moved = {
            where: each for where, each in reports.items() if is_again or self._reported.get(where) != each
        }
        if self._reports.write(self._stream, moved.values()):
            self._reported, self._reported_s = reports, now_s
            if is_again:
                self._again_s = now_s

    def _report(self, where: TopicPartition, standing: Standing, position: int, *, asks: bool) -> InputReport:
        topic = self._topics[where.topic]
        heard, before = self._reports.of(self._created, topic, where.partition), self._reported.get(where)
        known = [
            each.position for each in (before, None if heard is None else heard.report) if each is not None
        ]
        return InputReport(
            stream=self._stream,
            created=self._created,
            topic=where.topic,
            id=topic.id,
            partition=where.partition,
            position=position if position >= 0 else max(known, default=-1),
            time_ms=standing.time_ms,
            behind=standing.is_behind,
            asks=asks,
        )
