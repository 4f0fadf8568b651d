"""Puts a built task into its place in the middle of a log: it is opened as a successor, follows the log, and takes
over.

It was built by a deepening, which gives a live stream older events than its log has. `TaskHost` has one `TakeOver`.
docs/decisions/0012 gives the reasons; railgun/history/FORMAT.md describes the folders.
"""

import logging
from collections.abc import Callable
from functools import partial

from railgun.history.plan_file import PLAN, history_of
from railgun.history.request_files import DeepeningRequest
from railgun.history.task_folder import current_folder, move_to, remove_others
from railgun.host.deepening.built_task import BuiltTask, Offered
from railgun.host.deepening.successor import Successor, close_all, close_task
from railgun.host.host_state import OF_A_SUCCESSOR, one_line
from railgun.host.place import Place
from railgun.host.task_log import TaskLog
from railgun.task.errors import HistoryDamagedError, HistoryMissingError, LogGapError
from railgun.task.processor import TaskProcessor
from railgun.task.settings import TaskSettings
from railgun.wire.records import Records
from reservoir.executor import Job, Lane

_LOOK_S, _AGAIN_S = 0.5, 10.0

_log = logging.getLogger("railgun.unit")


class TakeOver:
    """The successor of one task: whether it is open, and its switch to the place of the task.

    One thread uses it. Long operations run in a lane, and no caller waits for them.

    position: returns the position of the task that answers.
    sync_log: the same function that the task that answers uses.
    offered: returns which successor is built for the task.
    failure: why the built task cannot be followed for now, as text; None if it can.
    error: the exception behind `failure`.
    offer: the offer that it acts on; None if nothing is offered.
    """

    def __init__(
        self,
        place: Place,
        log: TaskLog,
        settings: TaskSettings,
        sync_log: Callable[[int], None],
        position: Callable[[], int],
        offered: Offered,
        lane: Lane,
    ) -> None:
        self._place, self._log, self._lane = place, log, lane
        self._built = BuiltTask(place, log, settings, sync_log, position, offered)
        self._successor: Successor | None = None
        self._opening: Job[Successor | None] | None = None
        self._leaving: Job[None] | None = None
        self._moving: tuple[str, int] | None = None
        self.offer: DeepeningRequest | None = None
        self._look_s = self._again_s = 0.0
        self.failure: str | None = None
        self.error: Exception | None = None
        self._is_cleared = False

    @property
    def successor(self) -> Successor | None:
        """The successor that follows the task; None if none is built or it is not open."""
        return self._successor

    def is_ready_for(self, history: str) -> bool:
        """Whether a successor with this history is open, and so near the end of the log that it takes over at once."""
        successor = self._successor
        return successor is not None and successor.task.history == history and successor.is_near

    @property
    def is_moving(self) -> bool:
        """Whether a successor has taken over, but the place does not point to its folder yet. The old folder is still
        needed then.
        """
        return self._moving is not None

    @property
    def following(self) -> dict[str, object] | None:
        """A report for the process that waits for the successor: which history it has, and how far it is behind the
        task that answers, or why it does not follow, or that it is being opened. None if there is no successor.
        """
        if self.failure is not None:
            offer = self.offer or DeepeningRequest("", 0)
            return {"history": offer.history, "offer": offer.number, "failure": self.failure}
        if self._opening is not None and self.offer is not None:
            return {"history": self.offer.history, "opening": True}
        successor = self._successor
        if successor is None:
            return None
        return {
            "history": successor.task.history,
            "behind": successor.behind,
            "filling": successor.is_filling,
        }

    def feed(self, records: Records, first_offset: int) -> None:
        """Let the successor process records that the task that answers has just processed."""
        if self._successor is not None:
            self._guarded(lambda successor: successor.feed(records, first_offset))

    def look(self, task: TaskProcessor, *, is_ready: bool) -> None:
        """Open a successor that is offered, close one that is no longer offered, and complete a switch that has
        begun.

        The host calls this now and then.
        is_ready: whether the task has processed its log up to where it ended at opening.
        """
        if self._moving is not None:
            self._move(task, *self._moving)
        if self._opening is not None and self._opening.done():
            self._take_opened()
        if self._log.environment.now() < self._look_s:
            return
        self._look_s = self._log.environment.now() + _LOOK_S
        try:
            if is_ready and not self._is_cleared:
                self._is_cleared = True
                self._clear()
            self._look(task)
        except OF_A_SUCCESSOR as error:
            self._failed(error)

    def step(self) -> bool:
        """Let the successor do a brief step. Returns whether there is more to do now."""
        more: list[bool] = []
        if self._successor is not None:
            self._guarded(lambda successor: more.append(successor.step()))
        return any(more)

    def replacement(self, task: TaskProcessor, missing: HistoryMissingError) -> TaskProcessor:
        """Return the task that continues in place of `task`, which has reached the record that orders this.

        If no successor is open, this opens one and blocks until it has caught up.
        Raises HistoryMissingError, and what tasks raise.
        """
        if self._opening is not None:
            self._take_opened()
        if self._successor is None or self._successor.task.history != missing.history:
            self._let_go()
            if not self._built.is_available(missing.history):
                raise missing
            self._successor = self._built.open(missing.history)
        successor, self._successor = self._successor, None
        try:
            successor.catch_up()
        except BaseException:
            close_all([successor])
            raise
        self._log.release_second_reader()
        # A record of an input topic that comes again gets the answer that it got first, not a new one. So the
        # successor takes over what the other task remembers. A successor that is further ahead has taken over before
        # and keeps its own memory, which is newer.
        if successor.task.position == task.position:
            successor.task.inputs = task.inputs
            successor.task.leader_epoch = task.leader_epoch
        self._moving = missing.history, task.position
        return successor.task

    def look_soon(self) -> None:
        """Make the next call of `look` check the offer at once, because the offer has changed."""
        self._look_s = 0.0

    def withdraw(self) -> None:
        """Close the successor, or the one that is being opened, because nothing is offered any more."""
        self.offer = None
        self._close_opening()
        self._let_go()

    def settle(self, task: TaskProcessor) -> None:
        """If a successor has taken over, wait until the place points to its folder, or until that has
        failed for now.
        """
        if self._moving is not None:
            task.checkpoints.take()
            if self._leaving is not None:
                self._leaving.result()
            self._move(task, *self._moving)

    def let_go(self, task: TaskProcessor) -> None:
        """Close a task that was replaced, in a lane: writing out what its database holds takes a while."""
        self._leaving = self._lane.submit(partial(close_task, task))

    def close(self) -> None:
        """Close the successor. One that is being opened is closed as soon as it is open."""
        self._built.is_wanted = False
        self._close_opening()
        if self._leaving is not None:
            self._leaving.result()
        self._moving = None
        self._let_go()

    def _look(self, task: TaskProcessor) -> None:
        """Check the offer: open a successor that is newly offered, and close one whose offer was withdrawn."""
        if self._opening is not None:
            return
        offer = self._built.offer()
        if offer != self.offer:
            before, self.offer = self.offer, offer
            self.failure, self.error, self._again_s = None, None, 0.0
            if before is not None and (offer is None or offer.history != before.history):
                # The built folder stays: the process that gives up the deepening deletes it. If all have taken over,
                # this task may have been started again and may not have reached the record that orders the switch.
                self._let_go()
        needed = None if offer is None or self._log.environment.now() < self._again_s else offer.history
        if (
            self._successor is None
            and needed is not None
            and not self.is_moving
            and self._built.is_available(needed)
        ):
            if task.history != needed and task.lacks_gap(needed):
                reason = f"its log has had a gap since history {needed} was begun; deepen anew"
                raise LogGapError(str(self._place.identity), reason)
            self._opening = self._lane.submit(partial(self._built.open_unless_given_up, needed))

    def _close_opening(self) -> None:
        """Close the successor that is being opened, once it is open. The caller does not wait for that."""
        opening, self._opening = self._opening, None
        if opening is not None:
            self._lane.submit(partial(_close_opened, opening))

    def _let_go(self) -> None:
        """Close the successor. An error does not affect the task that answers."""
        successor, self._successor = self._successor, None
        if successor is not None:
            close_all([successor])

    def _failed(self, error: Exception) -> None:
        """Note an error. Opening is tried again later, or when a new offer comes."""
        self.failure, self.error = one_line(error), error
        self._again_s = self._log.environment.now() + _AGAIN_S
        _log.error("%s cannot be deepened: %s", self._place.identity, self.failure)

    def _take_opened(self) -> None:
        """Wait until the successor that is being opened is open, and keep it."""
        opening, self._opening = self._opening, None
        assert opening is not None
        try:
            self._successor = opening.result()
            self.failure = self.error = None
        except Exception as error:  # noqa: BLE001 - whoever waits for it is told
            self._failed(error)

    def _guarded(self, do: Callable[[Successor], object]) -> None:
        """Do something with the successor. An error closes the successor and does not affect the task
        that answers.
        """
        assert self._successor is not None
        try:
            do(self._successor)
        except OF_A_SUCCESSOR as error:
            self._failed(error)
            self._let_go()

    def _move(self, task: TaskProcessor, history: str, after: int) -> None:
        """Let the place point to the successor's folder for good, once a checkpoint covers the record that ordered
        the switch.
        """
        if task.checkpoints.durable_position <= after:
            if not task.checkpointer.is_in_flight and not task.checkpoints.is_held:
                task.checkpoints.begin()
            return
        if self._log.environment.now() < self._again_s or (
            self._leaving is not None and not self._leaving.done()
        ):
            return
        try:
            move_to(self._place.folder, history)
        except OSError as error:
            # The task is complete without this move: recovery finds the right folder by the log.
            self._failed(error)
            return
        self._moving = self.failure = self.error = None
        self._lane.submit(self._remove_others)

    def _clear(self) -> None:
        """Remove the folders that a finished deepening has left because the process that should remove them had died.

        The place must have moved before: the plan is gone once all tasks have taken over, but a task whose process died
        before it moved is still in its old folder, and its log tells it to go on in another one.
        """
        place = self._place.folder
        plan = self._place.history.parents[2] / PLAN
        if not self.is_moving and current_folder(place) != place and history_of(plan) is None:
            self._lane.submit(self._remove_others)

    def _remove_others(self) -> None:
        try:
            remove_others(self._place.folder)
        except (HistoryDamagedError, OSError) as error:
            _log.warning("%s: what it has left is not removed yet: %s", self._place.identity, error)


def _close_opened(opening: Job[Successor | None]) -> None:
    successor = None if opening.exception() is not None else opening.result()
    close_all([] if successor is None else [successor])
