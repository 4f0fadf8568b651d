"""Mistakes that a wrong implementation would make, planted into the product for a while; each has to be caught."""

from collections.abc import Callable, Iterable, Mapping
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from railgun.catalog.task_key import TaskKey
from railgun.cluster import steps
from railgun.cluster.answering import Answering, _Other
from railgun.cluster.copies import CopyName, CopyState, Gap
from railgun.cluster.hearing import Timing
from railgun.cluster.inventory import ClusterNode, TaskCopies
from railgun.cluster.progress import Progress
from railgun.cluster.reports import UnitReport
from railgun.cluster.turns import Turns
from railgun.history.task_folder import current_folder
from railgun.host import fetched, task_log
from railgun.host.data_folder import FETCHING
from railgun.host.task_host import TaskHost
from railgun.messaging.transport import Fetched
from railgun.node.leader.leading import Leading
from railgun.task import recovery
from railgun.task.meta import TaskMeta, decode_meta
from railgun.unit import held_replies, loop, positions, replaced_logs
from railgun.unit.hosting import TaskReplies
from tests.simulator.broker import SimulatedWriter
from tests.simulator.transfer import SimulatedTransfer

Plant = Callable[[pytest.MonkeyPatch], None]


def silent_copies_follow_the_end(patch: pytest.MonkeyPatch) -> None:
    """A silent copy passes what others have replied to."""

    def not_parted(task: object, fetched: Fetched, limit: int) -> tuple[Fetched, None]:
        return fetched, None

    patch.setattr(loop, "parted_at_limit", not_parted)


def checkpoints_pass_replies(patch: pytest.MonkeyPatch) -> None:
    """A checkpoint does not wait for the replies that it covers."""
    patch.setattr(TaskReplies, "wait", lambda self, before_offset: None)


def failed_copies_report_their_position(patch: pytest.MonkeyPatch) -> None:
    """A copy that has failed says that it has replied to all that it has processed."""
    right = TaskHost.replied

    def replied(self: TaskHost) -> int:
        return right(self) if self.failure is None else self.position

    patch.setattr(TaskHost, "replied", replied)


def copies_answer_behind(patch: pytest.MonkeyPatch) -> None:
    """A copy answers though another one has replied to more, and goes on though that one took over from it."""
    right = Answering._must_stop
    patch.setattr(Turns, "hear_begin", lambda self, now_s: None)
    patch.setattr(Answering, "is_caught_up", lambda self, now_s, position: self._hearing.is_complete(now_s))
    patch.setattr(
        Answering, "_must_stop", lambda self, now_s, position: right(self, now_s, self.limit.offset)
    )


def copies_never_stop(patch: pytest.MonkeyPatch) -> None:
    """A copy that answers goes on though one that is preferred answers too."""
    patch.setattr(Answering, "_must_stop", lambda self, now_s, position: False)


def copies_are_silenced_without_progress(patch: pytest.MonkeyPatch) -> None:
    """A copy that makes no progress silences others: one that was halted, or that cannot read its log."""
    patch.setattr(Answering, "_makes_progress", lambda self, other, now_s: True)


def copies_are_silenced_by_the_dead(patch: pytest.MonkeyPatch) -> None:
    """A copy waits for one that was once heard answering, however long ago."""
    right = Answering._may_start

    def may_start(self: Answering, now_s: float, position: int) -> bool:
        if any(other.report.state is CopyState.ANSWERING for other in self._others.values()):
            return False
        return right(self, now_s, position)

    patch.setattr(Answering, "_may_start", may_start)


def unseen_topics_are_gone(patch: pytest.MonkeyPatch) -> None:
    """A front-end counts as gone as soon as its topic is not seen."""
    patch.setattr(held_replies, "GONE_S", 0.0)


def everybody_begins(patch: pytest.MonkeyPatch) -> None:
    """Every copy that has caught up answers for a moment."""
    right = Answering._may_start

    def may_start(self: Answering, now_s: float, position: int) -> bool:
        return self.is_caught_up(now_s, position) or right(self, now_s, position)

    patch.setattr(Answering, "_may_start", may_start)


def reports_are_rare(patch: pytest.MonkeyPatch) -> None:
    """While nothing happens a copy reports once within the time after which its silence means something."""
    patch.setattr(positions, "_IDLE_REPORTS", 1)
    patch.setattr(Timing, "silence_s", lambda self, interval_s: self.takeover_s)


def leaving_copies_are_waited_for(patch: pytest.MonkeyPatch) -> None:
    """A copy that leaves goes on answering as long as another one could, though that leaves too."""

    def could_answer(self: Answering, other: _Other, now_s: float) -> bool:
        return other.report.state.is_caught_up and self._is_fresh(other, now_s)

    patch.setattr(Answering, "_could_answer", could_answer)


def ended_units_are_not_reported(patch: pytest.MonkeyPatch) -> None:
    """A node does not say that a unit has ended."""
    patch.setattr(Leading, "_report_ended", lambda self: None)


def ended_units_have_replied(patch: pytest.MonkeyPatch) -> None:
    """A node says in the name of a unit that has ended that all was replied to."""
    right = UnitReport.ended

    def ended(self: UnitReport) -> UnitReport | None:
        report = right(self)
        if report is not None:
            for copy in report.copies:
                copy.replied = copy.end
        return report

    patch.setattr(UnitReport, "ended", ended)


def former_leaders_write_on(patch: pytest.MonkeyPatch) -> None:
    """A leader that stood still while another came to lead writes the plan that it was about to write."""
    patch.setattr(SimulatedWriter, "is_fenced", False)


def copies_share_a_node(patch: pytest.MonkeyPatch) -> None:
    """Both copies of a task are placed on one node."""

    def assign(
        nodes: Iterable[ClusterNode], tasks: Iterable[TaskCopies], copies: int
    ) -> Mapping[TaskKey, list[CopyName]]:
        turns = cycle(node.name for node in nodes)
        return {task.task: [CopyName(next(turns), 0)] * copies for task in tasks}

    patch.setattr(steps, "assign", assign)


def copies_that_get_nearer_are_lost(patch: pytest.MonkeyPatch) -> None:
    """A copy that could not answer for `replace_after_s` is made elsewhere, whatever it has filled meanwhile."""
    patch.setattr(Progress, "well_s", lambda self, task, copy: self._well_s.get((task, copy), 0.0))


def activity_is_taken_back_at_once(patch: pytest.MonkeyPatch) -> None:
    """A copy that was passed answers again as soon as it has caught up."""
    patch.setattr(Turns, "waits", lambda self, now_s, reached_s: False)


def copies_that_flap_are_well(patch: pytest.MonkeyPatch) -> None:
    """A copy that reports that it could answer is well, though its checkpoints fail and its unit ends each time."""
    patch.setattr(Progress, "_checkpoints_fail", lambda self, key, status, generation: False)
    patch.setattr(Progress, "_has_begun_often", lambda self, unit, since_s: False)


def ids_of_topics_are_not_compared(patch: pytest.MonkeyPatch) -> None:
    """A log that has the name of the one before is taken for it."""
    for module in (task_log, replaced_logs):
        patch.setattr(module, "check_same", lambda *what: None)


def unverified_fetches_are_opened(patch: pytest.MonkeyPatch) -> None:
    """What has come of a fetch takes the place of the task's data before all is there."""
    right = fetched.is_verified
    patch.setattr(
        fetched,
        "is_verified",
        lambda folder: right(folder) or (folder.is_dir() and folder.name.endswith(FETCHING)),
    )


def crossings_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    """A checkpoint does not have the gap that its state has crossed."""

    def decode(body: bytes, place: str) -> TaskMeta:
        meta = decode_meta(body, place)
        if meta.gap is not None:
            meta.gap = meta.gap._replace(gap_ms=0)
        return meta

    patch.setattr(recovery, "decode_meta", decode)


def states_given_up_go_on(patch: pytest.MonkeyPatch) -> None:
    """A state that an order has given up is continued, if the log reaches it."""
    right = recovery._has_crossed

    def has_crossed(meta: TaskMeta | None, gap: Gap) -> bool:
        return right(meta, gap) or (meta is not None and meta.position >= gap.offset)

    patch.setattr(recovery, "_has_crossed", has_crossed)


def donors_delete_what_is_fetched(patch: pytest.MonkeyPatch) -> None:
    """What is fetched are the donor's own files, of which it deletes some meanwhile, and changes others."""

    def source(self: SimulatedTransfer, each: Any) -> Path:
        return current_folder(each.donor.host.place.folder)

    patch.setattr(SimulatedTransfer, "source", source)
