"""How built tasks come into their place: at the beginning of a log, or in the middle of it.

Before the first record of its log, a task's folder is replaced by a copy of the built one. Later, the built task is
opened as a successor, follows the log, and takes over. docs/decisions/0012 says why; railgun/history/FORMAT.md has
the folders.
"""

import logging
import shutil
from collections.abc import Callable
from functools import partial

from railgun.history.manifest import verified_manifest
from railgun.history.plan_file import PLAN, history_of
from railgun.history.request_files import BackfillRequestFile
from railgun.history.task_folder import copy_folder, current_folder, move_to, remove_others
from railgun.host.built_task import BuiltTask, Offered
from railgun.host.host_state import OF_A_SUCCESSOR, one_line
from railgun.host.place import Place
from railgun.host.successor import Successor, close_all, close_task
from railgun.host.task_log import TaskLog
from railgun.task.errors import HistoryDamagedError, HistoryMissingError
from railgun.task.processor import TaskProcessor
from railgun.task.settings import TaskSettings
from railgun.wire.records import Records
from reservoir.executor import Job, Lane


def check_history(place: Place, missing: HistoryMissingError) -> None:
    """Raise it where what was built for a place is not the history that the log names. HistoryDamagedError, OSError."""
    if not place.history.is_dir():
        raise missing
    if verified_manifest(place.history, place.identity, place.key.created).history != missing.history:
        raise missing


def take_history(place: Place) -> None:
    """Put the copy in the place of the task's folder, of which nothing is open.

    Raises HistoryDamagedError where it cannot be copied: as where history is missing, other tasks go on.
    """
    try:
        shutil.rmtree(place.folder)
        copy_folder(place.history, place.folder)
    except OSError as error:
        raise HistoryDamagedError(str(place.history), f"it cannot be taken: {error}") from error


_LOOK_S, _AGAIN_S = 0.5, 10.0

_log = logging.getLogger("railgun.unit")


class TakeOver:
    """One thread uses it; what takes long is done in a lane, and nobody waits for it.

    position: of the task that answers.  sync_log: as for that one.  failure: why what was built cannot be followed,
    for now; error: the same as it was raised.  offer: what it goes by.
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
        self.offer: BackfillRequestFile | None = None
        self._look_s = self._again_s = 0.0
        self.failure: str | None = None
        self.error: Exception | None = None
        self._is_cleared = False

    @property
    def successor(self) -> Successor | None:
        """What follows the task; None where nothing is built, or it is not open."""
        return self._successor

    @property
    def is_moving(self) -> bool:
        """Whether a successor answers that is not in its folder for good yet: its predecessor's is needed still."""
        return self._moving is not None

    @property
    def following(self) -> dict[str, object] | None:
        """For whoever waits for it: which history, how far behind the task that answers; or why not."""
        if self.failure is not None:
            offer = self.offer or BackfillRequestFile("", 0)
            return {"history": offer.history, "offer": offer.number, "failure": self.failure}
        successor = self._successor
        if successor is None:
            return None
        return {
            "history": successor.task.history,
            "behind": successor.behind,
            "filling": successor.is_filling,
        }

    def feed(self, records: Records, first_offset: int) -> None:
        """Records that the task that answers has just processed."""
        if self._successor is not None:
            self._guarded(lambda successor: successor.feed(records, first_offset))

    def look(self, task: TaskProcessor, *, is_ready: bool) -> None:
        """Called now and then: open what is offered, let go of what is not any more, complete what was begun.

        is_ready: the task has come to where its log ended when it was opened.
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
            self._look()
        except OF_A_SUCCESSOR as error:
            self._failed(error)

    def step(self) -> bool:
        """A brief step of the successor. True: there is more to do now."""
        more: list[bool] = []
        if self._successor is not None:
            self._guarded(lambda successor: more.append(successor.step()))
        return any(more)

    def replacement(self, task: TaskProcessor, missing: HistoryMissingError) -> TaskProcessor:
        """The task that goes on in another's stead, which has come to the record that says so. If none has followed
        yet, opens one and blocks until it has caught up.

        Raises HistoryMissingError, what tasks raise.
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
        self._log.release_beside()
        # What was answered to records of an input topic is answered again, not what it would be now.
        # One that is further has taken over before, with this: what it has met since is to stay.
        if successor.task.position == task.position:
            successor.task.inputs = task.inputs
        self._moving = missing.history, task.position
        return successor.task

    def look_soon(self) -> None:
        """What is offered has changed: the next call of `look` looks."""
        self._look_s = 0.0

    def withdraw(self) -> None:
        """Nothing is offered any more: let go of what follows, and of what is being opened."""
        self.offer = None
        self._close_opening()
        self._let_go()

    def settle(self, task: TaskProcessor) -> None:
        """Where a task has taken over, wait until it is in its folder for good, or cannot be moved for now."""
        if self._moving is not None:
            task.checkpoints.take()
            if self._leaving is not None:
                self._leaving.result()
            self._move(task, *self._moving)

    def let_go(self, task: TaskProcessor) -> None:
        """Close a task that was replaced, beside the one that answers: to write what a database holds takes a while."""
        self._leaving = self._lane.submit(partial(close_task, task))

    def close(self) -> None:
        """Let go of what is open; what is being opened is closed as soon as it is."""
        self._built.is_wanted = False
        self._close_opening()
        if self._leaving is not None:
            self._leaving.result()
        self._moving = None
        self._let_go()

    def _look(self) -> None:
        """Is something built for this task, or given up?"""
        if self._opening is not None:
            return
        offer = self._built.offer()
        if offer != self.offer:
            before, self.offer = self.offer, offer
            self.failure, self.error, self._again_s = None, None, 0.0
            if before is not None and (offer is None or offer.history != before.history):
                # What was built stays where it is, whoever gives it up removes it: where all have taken over, this
                # task may have started anew since, and not have come to the record again.
                self._let_go()
        needed = None if offer is None or self._log.environment.now() < self._again_s else offer.history
        if (
            self._successor is None
            and needed is not None
            and not self.is_moving
            and self._built.is_available(needed)
        ):
            self._opening = self._lane.submit(partial(self._built.open_unless_given_up, needed))

    def _close_opening(self) -> None:
        """What is being opened is closed once it is open: nobody waits for it."""
        opening, self._opening = self._opening, None
        if opening is not None:
            self._lane.submit(partial(_close_opened, opening))

    def _let_go(self) -> None:
        """Close what follows. The task that answers has nothing to do with one that cannot be closed."""
        successor, self._successor = self._successor, None
        if successor is not None:
            close_all([successor])

    def _failed(self, error: Exception) -> None:
        """It is tried again later, or when it is offered anew."""
        self.failure, self.error = one_line(error), error
        self._again_s = self._log.environment.now() + _AGAIN_S
        _log.error("%s cannot be deepened: %s", self._place.identity, self.failure)

    def _take_opened(self) -> None:
        """Wait for what is being opened, where it is not open yet."""
        opening, self._opening = self._opening, None
        assert opening is not None
        try:
            self._successor = opening.result()
            self.failure = self.error = None
        except Exception as error:  # noqa: BLE001 - whoever waits for it is told
            self._failed(error)

    def _guarded(self, do: Callable[[Successor], object]) -> None:
        """The task that answers has nothing to do with what goes wrong here."""
        assert self._successor is not None
        try:
            do(self._successor)
        except OF_A_SUCCESSOR as error:
            self._failed(error)
            self._let_go()

    def _move(self, task: TaskProcessor, history: str, after: int) -> None:
        """Once a checkpoint is behind the record, the task is in its new folder for good."""
        if task.checkpoints.durable_position <= after:
            if not task.checkpointer.is_in_flight:
                task.checkpoints.begin()
            return
        if self._log.environment.now() < self._again_s or (
            self._leaving is not None and not self._leaving.done()
        ):
            return
        try:
            move_to(self._place.folder, history)
        except OSError as error:
            # The task is whole without it: whoever recovers it goes by its log.
            self._failed(error)
            return
        self._moving = self.failure = self.error = None
        self._lane.submit(self._remove_others)

    def _clear(self) -> None:
        """Remove what a live backfill has left that is over, by a process that was gone before it could.

        Not sooner: where all tasks have taken over the plan is gone, and one whose process was gone before it had moved
        is in its old folder yet, with a log that has it go on in another one.
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
