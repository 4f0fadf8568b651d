"""Decides which copy of a task answers its events. `railgun/unit/copies.py` makes an `Answering` for each copy.

Units run copies of each task; all of them process its log, and one sends the replies. Every copy decides for itself
whether it answers, from what the copies report. A reply is a function of the log. So two copies that answer
at once send the same bytes, and front-ends drop the second one. If none answers, the next copy in the plan that has
caught up notices, and begins. That needs no leader and no rebalance.

A copy reports `replied`: no reply to a record before this offset is owed. Two rules see to it that no reply is lost,
whoever begins when:

- A copy that does not answer does not pass the limit, which is the greatest `replied` that any copy has reported.
- A checkpoint never passes the copy's own `replied`.
"""

import math
from collections.abc import Iterator, Sequence

from railgun.cluster.copies import START, CopyName, CopyReport, CopyState, Cut, LogPoint
from railgun.cluster.hearing import Hearing, Timing
from railgun.cluster.turns import Turns


class _Other:
    """Another copy of the task, as far as it was heard.

    reported_s: when its newest report was read.
    back_s: when it was heard again after a silence of more than `Timing.silence_s`.
    answering_s: when it was last heard answering.
    began_s: when it was heard beginning to answer.
    advanced_s: when its replies were last seen to advance, or to have reached the end of the log.
    moved_s: when its position was last seen to advance, or its reading of old events for a new metric (a fill).
    """

    def __init__(self, report: CopyReport, now_s: float) -> None:
        self.report, self.reported_s = report, now_s
        self.advanced_s = self.moved_s = self.back_s = now_s
        self.answering_s = self.began_s = now_s if report.state is CopyState.ANSWERING else -math.inf

    def hear(self, report: CopyReport, now_s: float, greatest_end: int, timing: Timing) -> None:
        before, heard_s = self.report, self.reported_s
        self.report, self.reported_s = report, now_s
        if now_s - heard_s > timing.silence_s(before.interval_s):
            self.back_s = now_s
        if report.generation != before.generation or _reached(report) > _reached(before):
            self.moved_s = now_s
        if (
            report.generation != before.generation
            or report.replied.offset > before.replied.offset
            or report.replied.offset >= greatest_end
        ):
            self.advanced_s = now_s
        if report.state is CopyState.ANSWERING:
            if before.state is not CopyState.ANSWERING or report.generation != before.generation:
                self.began_s = now_s
            self.answering_s = now_s


def _reached(report: CopyReport) -> float:
    """Return a number that grows with a copy's position and with each of its fills."""
    return report.position + sum(report.filled.values())


class Answering:
    """Decides for one copy. One thread uses it; times are seconds of the monotonic clock.

    copy: the name of this copy.
    order: the copies of the task that are planned, in the order of preference.
    cut: what the task's log has lost, if an operator has accepted the loss. Lost records do not raise the limit.
    limit: the point of the log at which a copy that does not answer stops processing.
    is_answering: the last decision.
    """

    def __init__(
        self,
        copy: CopyName,
        order: Sequence[CopyName],
        timing: Timing,
        hearing: Hearing,
        cut: Cut | None = None,
    ) -> None:
        self._copy, self._order, self.cut = copy, list(order), cut
        self._timing, self._hearing = timing, hearing
        self._others: dict[CopyName, _Other] = {}
        self._end = 0
        self._leaving_s = self._below_since_s = math.inf
        # When the copy was last at its limit, and since when it has been there repeatedly.
        self._reached_s = self._reached_since_s = -math.inf
        # Keeps the copy from answering again too soon after another one took over from it.
        self._turns, self._drops_replies = Turns(timing), False
        # When it was first asked for each metric whether others still fill it.
        self._asked_s: dict[str, float] = {}
        self.limit = START
        self.is_answering = False

    @property
    def is_leaving(self) -> bool:
        """Whether the copy has been asked to leave. It answers until another copy does, or until it is late.

        A report also tells `is_departing`: the copy leaves, or has failed or closed.
        """
        return self._leaving_s != math.inf

    def hear(self, report: CopyReport, now_s: float) -> None:
        """Take in a report of any copy of the task, in the order in which they were written."""
        replied = report.replied
        if self.cut is not None and self.cut.has_lost(replied):
            replied = LogPoint(self.cut.offset)
        self.limit = max(self.limit, replied)
        self._end = max(self._end, report.end)
        if report.copy == self._copy:
            return
        other = self._others.get(report.copy)
        began_s = -math.inf if other is None else other.began_s
        if other is None:
            other = self._others[report.copy] = _Other(report, now_s)
        elif report.generation >= other.report.generation:
            other.hear(report, now_s, self._end, self._timing)
        if other.began_s > began_s and not self.is_leaving:
            self._turns.hear_begin(now_s)

    def forget(self, copy: CopyName) -> None:
        """Forget another copy, which is gone. The limit stays where it is."""
        self._others.pop(copy, None)

    def follow(self, order: Sequence[CopyName], now_s: float) -> None:
        """Take in the task's copies by a new plan. A copy that they do not include leaves."""
        if list(order) != self._order:
            self._turns.forgive()
        self._order = list(order)
        if self._copy not in self._order:
            self.leave(now_s)

    def leave(self, now_s: float) -> None:
        """Begin to leave: the copy may close as soon as it does not answer any more."""
        self._leaving_s = min(self._leaving_s, now_s)

    def is_caught_up(self, now_s: float, position: int) -> bool:
        """Whether the copy may answer: it has heard all copies, and none has replied to more."""
        return self._hearing.is_complete(now_s) and position >= self.limit.offset

    def decide(self, now_s: float, position: int, end: int, *, drops_replies: bool = False) -> bool:
        """Decide whether the copy answers from now on. The unit's loop has this called in every round.

        position: the offset of the next record that this copy will process.
        end: the end of the log, as far as this copy knows.
        drops_replies: whether this unit drops replies, because they do not arrive. Those of another unit may.
        """
        self._end, self._drops_replies = max(self._end, end), drops_replies
        if self.is_caught_up(now_s, position):
            if not self._is_at_limit(now_s):
                self._reached_since_s = now_s
            self._reached_s = now_s
        if self.is_leaving:
            self.is_answering = self.is_answering and not self._may_leave(now_s)
        elif self.is_answering:
            self.is_answering = not self._must_stop(now_s, position)
        else:
            self.is_answering = self._may_start(now_s, position)
            self._below_since_s = math.inf
            if self.is_answering:
                self._turns.begin(now_s)
        return self.is_answering

    def state(self, now_s: float) -> CopyState:
        """Return the state that the copy reports. A copy that follows another is at its limit now and then: SILENT."""
        if self.is_answering:
            return CopyState.ANSWERING
        # A copy that does not even hear itself does not know how far the limit has gone.
        has_caught_up = self._is_at_limit(now_s) and not self._hearing.misses_itself(now_s)
        return CopyState.SILENT if has_caught_up else CopyState.BEHIND

    def filled_elsewhere(self, names: Sequence[str], now_s: float) -> list[str]:
        """Return the metrics, of the given ones, that no copy which could take over is still filling. The copy waits
        with the others, because a copy that has not filled a metric stops at the record with which it begins to answer.
        """
        self._asked_s = {name: self._asked_s.get(name, now_s) for name in names}
        filling = [
            other.report.filled
            for other in self._others.values()
            if other.report.state is CopyState.SILENT
            and self._could_answer(other, now_s)
            and self._advances(other, now_s)
        ]
        return [
            name
            for name in names
            if now_s - self._asked_s[name] > self._timing.warm_wait_s
            or all(filled.get(name, 0.0) >= 1.0 for filled in filling)
        ]

    def _may_start(self, now_s: float, position: int) -> bool:
        if self._copy not in self._order or not self.is_caught_up(now_s, position):
            return False
        if self._order[0] == self._copy:
            waits = self._drops_replies or self._turns.waits(now_s, self._reached_since_s)
            return not waits or not self._hears_one_answering(now_s)
        since_s = self._hearing.silence_since_s(now_s)
        answered = [
            other
            for other in self._others.values()
            if other.answering_s > -math.inf
            and self._makes_progress(other, now_s)
            and now_s - max(other.answering_s, since_s) <= self._timing.silence_s(other.report.interval_s)
        ]
        if answered:
            return all(other.report.is_departing for other in answered)
        return now_s - since_s > self._timing.takeover_s

    def _must_stop(self, now_s: float, position: int) -> bool:
        if position >= self.limit.offset:
            self._below_since_s = math.inf
        else:
            self._below_since_s = min(self._below_since_s, now_s)
        before = self._order[: self._order.index(self._copy)]
        return (
            self._turns.is_passed
            or now_s - self._below_since_s >= self._timing.ahead_s
            or any(
                other.report.copy in before and self._yields_to(other, now_s)
                for other in self._heard_answering(now_s)
            )
        )

    def _yields_to(self, other: _Other, now_s: float) -> bool:
        """Whether to stop for a preferred copy that answers. If this copy took over while the preferred one was not
        heard, the preferred one first gets time to notice that, and to stop.
        """
        return other.began_s > self._turns.began_s or now_s - other.back_s > self._timing.takeover_s

    def _may_leave(self, now_s: float) -> bool:
        """Whether a copy that answers may stop, because another does, or because none could."""
        if now_s - self._leaving_s > self._timing.leave_s or any(self._heard_answering(now_s)):
            return True
        return not any(self._could_answer(other, now_s) for other in self._others.values())

    def _heard_answering(self, now_s: float) -> Iterator[_Other]:
        """Yield the copies that were heard answering just now, and that will go on."""
        for other in self._others.values():
            report = other.report
            if (
                report.state is CopyState.ANSWERING
                and not report.is_leaving
                and self._is_fresh(other, now_s)
                and self._makes_progress(other, now_s)
            ):
                yield other

    def _hears_one_answering(self, now_s: float) -> bool:
        """Whether another copy answers, or has begun to so lately that its replies had no time to arrive."""
        return any(self._heard_answering(now_s)) or any(
            other.report.state is CopyState.ANSWERING
            and not other.report.is_leaving
            and self._is_fresh(other, now_s)
            and now_s - other.began_s <= self._timing.stuck_s(other.report.interval_s)
            for other in self._others.values()
        )

    def _could_answer(self, other: _Other, now_s: float) -> bool:
        report = other.report
        if report.is_departing or not self._is_fresh(other, now_s):
            return False
        is_planned = report.copy in self._order
        return report.state.is_caught_up or (
            report.state is CopyState.BEHIND and is_planned and self._advances(other, now_s)
        )

    def _is_at_limit(self, now_s: float) -> bool:
        """Whether the copy was at its limit just now. A copy that follows another is there now and then."""
        return now_s - self._reached_s <= self._timing.takeover_s

    def _advances(self, other: _Other, now_s: float) -> bool:
        return now_s - other.moved_s <= self._timing.stuck_s(other.report.interval_s)

    def _is_fresh(self, other: _Other, now_s: float) -> bool:
        return now_s - other.reported_s <= self._timing.silence_s(other.report.interval_s)

    def _makes_progress(self, other: _Other, now_s: float) -> bool:
        """Whether the copy's replies arrive. If they are stuck, or if it cannot read its log, it silences no other
        copy.
        """
        return now_s - other.advanced_s <= self._timing.stuck_s(other.report.interval_s)
