"""Decides where the data of a copy of a task comes from when it is opened: from its own folder and its log, or from the
copy of another node. `TaskHost` has one `DataSource`.
"""

import logging

from railgun.cluster.donors import Donor, Donors
from railgun.host.fetched import take_fetched
from railgun.host.fetcher import FetchEnd, FetchOrder, FetchRule
from railgun.host.place import Place
from railgun.host.recovery import SyncLog, begins_at, crosses_anew, recovered
from railgun.host.stored_meta import has_state
from railgun.host.task_log import TaskLog
from railgun.task.errors import LogCutError, LogGapError, LogReplacedError, StateLeftBehindError
from railgun.task.processor import TaskProcessor
from railgun.task.settings import TaskSettings

MOST_FETCHES = 3
"""The log may have overtaken what was fetched so often."""
PAUSES_S = (1.0, 5.0, 25.0)
"""The pauses after fetches that fail in a row. If one more fails, no other is tried. By then the address is known of
a donor whose transfer process was started again a few times.
"""
_GIVEN_UP = len(PAUSES_S) + 1

_log = logging.getLogger("railgun.unit")


class DataSource:
    """Opens the task of a place. One thread at a time uses it.

    rule: when data is fetched.
    order: the data to fetch, after `open` has returned no task; None if no node is known yet that may give it.
    """

    def __init__(self, place: Place, log: TaskLog, settings: TaskSettings, rule: FetchRule) -> None:
        self._place, self._log, self._settings = place, log, settings
        self._rule = rule
        self._taken = self._failed = 0
        self._has_come = False
        self._alone_s: float | None = None
        self._error = ""
        self.order: FetchOrder | None = None

    def note(self, end: FetchEnd) -> float:
        """Note how a fetch has ended. Returns after how many seconds `open` has to be called."""
        self._error, self._has_come = end.error, not end.error
        self._failed = 0 if not end.error else _GIVEN_UP if end.is_final else self._failed + 1
        return PAUSES_S[self._failed - 1] if 0 < self._failed < _GIVEN_UP else 0.0

    def open(self, donors: Donors | None, sync_log: SyncLog) -> TaskProcessor | None:
        """Return the task; None if its data has to be fetched first.

        donors: the copies of other nodes; None if there are no other nodes.
        sync_log: returns once all records before an offset are answered; a checkpoint waits for it.
        Raises LogGapError if neither the log nor another copy has what the task needs, and what `recovered` raises.
        """
        self.order = None
        place, log = self._place, self._log
        if donors is None:
            return self._recovered(sync_log)
        if take_fetched(place.folder, was_ordered=self._has_come):
            self._taken += 1
        self._has_come = False
        start, begin = log.start, begins_at(place, log)
        able = tuple(each for each in donors.known if self._fits(each, max(start, begin)))
        is_new = not has_state(place.folder)
        if able:
            self._alone_s = None
        try:
            if is_new and start > begin and not crosses_anew(place, log, begin):
                reason = f"there is no data, and the log begins at offset {start}"
                raise StateLeftBehindError(str(place.folder), reason, begin, -1, None)
            if is_new and self._is_far(begin) and (able or self._may_come(donors, max(start, begin))):
                self._fetch(able, start)
                return None
            task = self._recovered(sync_log)
        except (LogCutError, LogReplacedError):
            raise
        except LogGapError as gap:
            if hint := self._why_no_fetch(able, donors):
                gap.add(hint)
                raise
            self._fetch(able, start)
            return None
        if able and self._is_far(task.position):
            task.close()
            log.release()
            self._fetch(able, start)
            return None
        return task

    def _recovered(self, sync_log: SyncLog) -> TaskProcessor:
        self._place.folder.mkdir(parents=True, exist_ok=True)
        return recovered(self._place, self._log, self._settings, sync_log)

    def _is_far(self, position: int) -> bool:
        """Whether so much of the log is missing that a fetch is quicker. Data that was just fetched is good enough."""
        may_fetch = not self._taken and self._failed < _GIVEN_UP
        return may_fetch and self._log.end - position > self._rule.after_records

    def _may_come(self, donors: Donors, least: int) -> bool:
        """Whether a node that gives the data may soon be heard. least: the first offset that is of use.

        A copy that had the data may be back soon, because its node starts again.
        """
        now_s, last = self._log.environment.now(), donors.last
        if self._alone_s is None:
            self._alone_s = now_s
        was_there = last is not None and last.gives and self._fits(last, least)
        return donors.may_come or (was_there and now_s - self._alone_s < self._rule.wait_s)

    def _fits(self, donor: Donor, least: int) -> bool:
        """Whether a donor's data can be continued from the log. least: the first offset that is of use."""
        cut = self._place.cut
        return donor.position >= least and donor.topic_id == ("" if cut is None else cut.topic_id)

    def _why_no_fetch(self, able: tuple[Donor, ...], donors: Donors) -> str:
        """Return why a fetch does not bring what the log lacks, and what helps; empty if it may."""
        if self._taken >= MOST_FETCHES:
            return (
                f"Data from another node was fetched {self._taken} times, and each time the log had lost more "
                "meanwhile than it was behind: keep records for longer (`log_retention` of the stream)"
            )
        if self._failed >= _GIVEN_UP:
            return f"Another node's data could not be fetched: {self._error}"
        return "" if able or donors.may_come else self._what_helps(donors.last)

    def _fetch(self, able: tuple[Donor, ...], start: int) -> None:
        if able:
            least = max(start, begins_at(self._place, self._log))
            self.order = FetchOrder(tuple(each.copy for each in able), self._log.topic_id, least)

    def _what_helps(self, last: Donor | None) -> str:
        order = (
            f"`railgun cluster accept-gap {self._place.key}` has the task go on without what its log has lost"
        )
        if last is None:
            return (
                f"No copy on another node is heard that has the data: start the node that had it, or {order}"
            )
        if not last.gives:
            return (
                f"{last.copy} has the data, up to offset {last.position}, and runs an earlier release, which gives it "
                f"to no other node: upgrade that node, or {order}"
            )
        return (
            f"No copy on another node has the data at present; {last.copy} had it last, up to offset {last.position}: "
            f"start that node, or {order}"
        )
