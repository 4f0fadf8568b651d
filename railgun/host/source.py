"""Decides where the data of a copy of a task comes from when it is opened: from its own folder and its log, or from the
copy of another node. `TaskHost` has one `DataSource`.
"""

from collections.abc import Set

from railgun.cluster.donors import Donor, Donors
from railgun.host.fetched import take_fetched
from railgun.host.fetcher import FetchEnd, FetchOrder, FetchRule
from railgun.host.host_state import DAMAGE, one_line
from railgun.host.place import Place
from railgun.host.recovery import SyncLog, begins_at, crosses_anew, recovered
from railgun.host.stored_meta import has_state
from railgun.host.task_log import TaskLog
from railgun.task.errors import (
    DataDamagedError,
    LogCutError,
    LogGapError,
    LogReplacedError,
    StateLeftBehindError,
)
from railgun.task.processor import TaskProcessor
from railgun.task.settings import TaskSettings

MOST_FETCHES = 3
"""The log may have overtaken what was fetched so often."""
PAUSES_S = (1.0, 5.0, 25.0)
"""The pauses after fetches that fail in a row. If one more fails, no other is tried. By then the address is known of
a donor whose transfer process was started again a few times.
"""
_GIVEN_UP = len(PAUSES_S) + 1


class DataSource:
    """Opens the task of a place. One thread at a time uses it.

    rule: when data is fetched.
    order: the data to fetch, after `open` has returned no task; None if no node is known yet that may give it.
    damage: what is damaged of the task's own data, so that data of another node is needed; empty if nothing is known.
    """

    def __init__(self, place: Place, log: TaskLog, settings: TaskSettings, rule: FetchRule) -> None:
        self._place, self._log, self._settings = place, log, settings
        self._rule = rule
        self._taken = self._failed = 0
        self._has_come = False
        self._alone_s: float | None = None
        self._error = ""
        self._needed = 0
        self.order: FetchOrder | None = None
        self.damage = ""

    def note(self, end: FetchEnd) -> float:
        """Note how a fetch has ended. Returns after how many seconds `open` has to be called."""
        self._error, self._has_come = end.error, not end.error
        self._failed = 0 if not end.error else _GIVEN_UP if end.is_final else self._failed + 1
        return PAUSES_S[self._failed - 1] if 0 < self._failed < _GIVEN_UP else 0.0

    def open(
        self, donors: Donors | None, sync_log: SyncLog, needed: int = 0, damage: str = ""
    ) -> TaskProcessor | None:
        """Return the task; None if its data has to be fetched first.

        donors: the copies of other nodes; None if there are no other nodes.
        needed: this node cannot process the log before this offset. Data of it or a later one is fetched if possible.
        damage: what was found damaged of the own data while the task ran; empty if nothing was. It is not opened again.
        sync_log: returns once all records before an offset are answered; a checkpoint waits for it.
        Raises LogGapError if neither the log nor another copy has what the task needs, DataDamagedError if its own data
        is damaged and no other copy gives its data, and what `recovered` raises.
        """
        self.order, self._needed = None, needed
        place, log = self._place, self._log
        if donors is None:
            return self._recovered(sync_log)
        if take_fetched(place.folder, was_ordered=self._has_come):
            self._taken += 1
        self._has_come = False
        self.damage = "" if self._taken else self.damage or damage
        start, begin = log.start, begins_at(place, log)
        least = max(start, begin, self._needed)
        able = tuple(each for each in donors.known if self._fits(each, least))
        is_new = not has_state(place.folder)
        if able:
            self._alone_s = None
        try:
            if self.damage:
                self._instead(self._damaged(), able, donors, least)
                return None
            if is_new and start > begin and not crosses_anew(place, log, begin):
                reason = f"there is no data, and the log begins at offset {start}"
                raise StateLeftBehindError(str(place.folder), reason, begin, -1, None)
            if is_new and (better := self._better(able, begin)):
                self._fetch(better, least)
                return None
            if is_new and not able and self._is_far(begin) and self._may_come(donors, least):
                return None
            task = self._recovered(sync_log, donors.made_of)
        except (LogCutError, LogReplacedError):
            raise
        except LogGapError as gap:
            self._instead(gap, able, donors, least)
            return None
        except DAMAGE as found:
            self.damage = one_line(found)
            self._instead(self._damaged(), able, donors, least)
            return None
        if better := self._better(able, task.position):
            least = max(least, task.position)
            task.close()
            log.release()
            self._fetch(better, least)
            return None
        return task

    def _damaged(self) -> DataDamagedError:
        return DataDamagedError(str(self._place.folder), f"its data is damaged: {self.damage}")

    def _instead(
        self, error: LogGapError | DataDamagedError, able: tuple[Donor, ...], donors: Donors, least: int
    ) -> None:
        """Order the data of another node, because of an error of the own. Raises the error, with what helps, if no node
        gives its data.
        """
        if hint := self._why_no_fetch(able, donors, is_damaged=isinstance(error, DataDamagedError)):
            error.add(hint)
            raise error
        self._fetch(able, least)

    def _check_first_log(self, made_of: Set[str]) -> None:
        """Raise LogReplacedError if data of the task was made of another topic than the present one, and nobody has
        accepted that: a copy without data would begin in the present one, and answer.

        made_of: the ids of the topics that copies on other nodes say of their data.
        """
        cut, present = self._place.cut, self._log.topic_id
        if not present or (cut is not None and cut.topic_id):
            return
        for topic_id in sorted(made_of - {present}):
            reason = (
                f"there is no data, and that of another node was made of another topic (id {topic_id}) than the one "
                f"that has its name now (id {present}): the topic was deleted and made anew"
            )
            raise LogReplacedError(str(self._place.identity), reason, topic_id)

    def _recovered(self, sync_log: SyncLog, made_of: Set[str] = frozenset()) -> TaskProcessor:
        self._place.folder.mkdir(parents=True, exist_ok=True)
        task = recovered(self._place, self._log, self._settings, sync_log)
        try:
            if not task.position:
                self._check_first_log(made_of)
        except BaseException:
            task.close()
            self._log.release()
            raise
        return task

    def _better(self, able: tuple[Donor, ...], position: int) -> tuple[Donor, ...]:
        """Return the donors that are so far ahead of data at a position that a fetch is quicker than the log, or all if
        this data will not do. One that has just been fetched has to do.

        What no copy has processed yet has to be processed here too, so the end of the log does not count.
        """
        if not self._may_fetch:
            return ()
        if position < self._needed:
            return able
        return tuple(each for each in able if each.position - position > self._rule.after_records)

    def _is_far(self, position: int) -> bool:
        """Whether so much of the log is missing that a fetch may be quicker."""
        return self._may_fetch and self._log.end - position > self._rule.after_records

    @property
    def _may_fetch(self) -> bool:
        return not self._taken and self._failed < _GIVEN_UP

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

    def _why_no_fetch(self, able: tuple[Donor, ...], donors: Donors, *, is_damaged: bool) -> str:
        """Return why a fetch does not bring what is needed, and what helps; empty if it may.

        is_damaged: whether it is needed because the own data is damaged. Otherwise the log lacks records.
        """
        if is_damaged and self._taken:
            return "That was fetched from another node just now: check the disks of both"
        if self._taken >= MOST_FETCHES:
            return (
                f"Data from another node was fetched {self._taken} times, and each time the log had lost more "
                "meanwhile than it was behind: keep records for longer (`log_retention` of the stream)"
            )
        if self._failed >= _GIVEN_UP:
            return f"Another node's data could not be fetched: {self._error}"
        if able or donors.may_come:
            return ""
        order = f"`railgun cluster accept-gap {self._place.key}`"
        return _what_helps(
            donors.last,
            "" if is_damaged else f", or {order} has the task go on without what its log has lost",
        )

    def _fetch(self, able: tuple[Donor, ...], least: int) -> None:
        if able:
            self.order = FetchOrder(tuple(each.copy for each in able), self._log.topic_id, least)


def _what_helps(last: Donor | None, order: str) -> str:
    """Return what helps if no copy on another node gives the data. order: what an operator can do besides."""
    if last is None:
        return f"No copy on another node is heard that has the data: start the node that had it{order}"
    if not last.gives:
        return (
            f"{last.copy} has the data, up to offset {last.position}, and runs an earlier release, which gives it "
            f"to no other node: upgrade that node{order}"
        )
    return (
        f"No copy on another node has the data at present; {last.copy} had it last, up to offset {last.position}: "
        f"start that node{order}"
    )
