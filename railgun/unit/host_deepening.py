"""One task of a unit that is deepened: put aside, followed by the one that was built of it, replaced by that one.

docs/decisions/0012 has the way of it.
"""

import logging
import shutil
import threading
import time
from collections.abc import Callable
from dataclasses import replace

from railgun.catalog.changes import BeginDeepening
from railgun.task.deepening_asked import OFFER, REQUEST, Asked, read_asked
from railgun.task.deepening_plan import OWN, OWN_FILE, PLAN, history_of, write_own
from railgun.task.durable_files import make_durable
from railgun.task.errors import HistoryDamagedError, HistoryMissingError
from railgun.task.history_manifest import MANIFEST_PLACE, verified_manifest
from railgun.task.own_events import Freezing
from railgun.task.processor import TaskProcessor
from railgun.task.settings import MIB, TaskSettings
from railgun.task.task_folder import beside, current_folder, move_to, remove_others, take_in
from railgun.unit.faults import OF_A_SHADOW, one_line
from railgun.unit.place import Place
from railgun.unit.shadow import Shadow, close_all, close_task
from railgun.unit.task_log import TaskLog
from railgun.wire.encode import Records

_LOOK_S, _AGAIN_S = 0.5, 10.0
# Of the caches of the task that answers: both are there for a while.
_CACHE_SHARE, _CACHE_BYTES_MIN = 4, 4 * MIB

_log = logging.getLogger("railgun.unit")


class HostDeepening:
    """One thread uses it. position: of the task that answers.  sync_log: as for that one.

    failure: why what was built cannot be followed, for now.
    """

    def __init__(
        self,
        place: Place,
        log: TaskLog,
        settings: TaskSettings,
        sync_log: Callable[[int], None],
        position: Callable[[], int],
    ) -> None:
        self._place, self._log, self._sync_log, self._position = place, log, sync_log, position
        self._settings = _smaller(settings)
        self._base = place.history.parents[2]
        self._shadow: Shadow | None = None
        self._opening: threading.Thread | None = None
        self._writing: threading.Thread | None = None
        self._leaving: threading.Thread | None = None
        self._opened: Shadow | None = None
        self._moving: tuple[str, int] | None = None
        self._asked: Asked | None = None
        self._look_s = self._again_s = 0.0
        self.failure: str | None = None
        self._unwritten: tuple[str, str] | None = None
        self._may_clear = True

    @property
    def following(self) -> dict[str, object] | None:
        """For whoever waits for it: which history, how far behind the task that answers; or why not."""
        unwritten = self._unwritten
        if unwritten is not None:
            history, failure = unwritten
            return {"history": history, "failure": failure}
        if self.failure is not None:
            asked = self._asked or Asked("", 0)
            return {"history": asked.history, "offer": asked.number, "failure": self.failure}
        shadow = self._shadow
        if shadow is None:
            return None
        return {"history": shadow.task.history, "behind": shadow.behind, "filling": shadow.is_filling}

    def put_aside(self, task: TaskProcessor, change: BeginDeepening) -> None:
        """At the record that says so: keep what the task has accepted; it is written while the task goes on."""
        folder = self._base / OWN / self._place.history.parent.name / self._place.history.name
        self._unwritten = None
        try:
            asked = read_asked(self._base / REQUEST)
            if asked is None or asked.history != change.history:
                # Nobody waits for it any more.
                return
            if history_of(folder / OWN_FILE) == change.history:
                return
            # One that is written yet, for another history, does so in a folder of its own.
            made = folder.with_name(f"{folder.name}.{change.history}")
            shutil.rmtree(made, ignore_errors=True)
            freezing = Freezing(task, made)
        except OF_A_SHADOW as error:
            self._not_put_aside(change.history, error)
            return
        before = self._writing

        def write() -> None:
            if before is not None:
                before.join()
            try:
                write_own(made, change.history, freezing.finish())
                shutil.rmtree(folder, ignore_errors=True)
                made.rename(folder)
                make_durable(folder.parent)
            except Exception as error:  # noqa: BLE001 - whoever waits for it is told
                shutil.rmtree(made, ignore_errors=True)
                if self._writing is threading.current_thread():
                    self._not_put_aside(change.history, error)

        self._writing = threading.Thread(target=write, name="put-aside", daemon=True)
        self._writing.start()

    def _not_put_aside(self, history: str, error: Exception) -> None:
        """The task goes on: a log that has this record would stop whoever reads it, for ever."""
        self._unwritten = history, one_line(error)
        _log.error("%s cannot be put aside: %s", self._place.identity, error)

    def feed(self, records: Records, first_offset: int) -> None:
        """What the task that answers has just processed."""
        if self._shadow is not None:
            self._guarded(lambda shadow: shadow.feed(records, first_offset))

    def work(self, task: TaskProcessor, *, is_ready: bool) -> bool:
        """A brief step beside the task that answers. True: there is more to do now.

        is_ready: it has come to where its log ended when it was opened.
        """
        if self._moving is not None:
            self._move(task, *self._moving)
        if time.monotonic() >= self._look_s:
            self._look_s = time.monotonic() + _LOOK_S
            try:
                if is_ready and self._may_clear:
                    self._may_clear = False
                    self._clear()
                self._look()
            except OF_A_SHADOW as error:
                self._failed(error)
        more: list[bool] = []
        if self._shadow is not None:
            self._guarded(lambda shadow: more.append(shadow.step()))
        return any(more)

    def replacement(self, task: TaskProcessor, missing: HistoryMissingError) -> TaskProcessor:
        """The task that goes on in another's stead, which has come to the record that says so; it takes its time where
        nobody has followed yet. Raises HistoryMissingError, what tasks raise.
        """
        if self._opening is not None:
            self._opening.join()
        self._take_opened()
        if self._shadow is None or self._shadow.task.history != missing.history:
            self.close()
            if not self._has_one(missing.history):
                raise missing
            self._shadow = self._following(self._open(missing.history))
        shadow, self._shadow = self._shadow, None
        try:
            shadow.catch_up()
        except BaseException:
            close_all([shadow])
            raise
        self._log.release_beside()
        # What was answered to records of an input topic is answered again, not what it would be now.
        # One that is further has taken over before, with this: what it has met since is to stay.
        if shadow.task.position == task.position:
            shadow.task.inputs = task.inputs
        self._moving = missing.history, task.position
        return shadow.task

    def let_go(self, task: TaskProcessor) -> None:
        """Of one that was replaced, beside the one that answers now: to write what a database holds takes a while."""
        if self._leaving is not None:
            self._leaving.join()
        self._leaving = threading.Thread(target=close_task, args=(task,), name="let-go", daemon=True)
        self._leaving.start()

    def close(self) -> None:
        """Let go of what is open."""
        for thread in (self._opening, self._writing, self._leaving):
            if thread is not None:
                thread.join()
        self._take_opened()
        self._moving = None
        self._let_go()

    def _look(self) -> None:
        """Is something built for this task, or given up?"""
        if self._opening is not None:
            if not self._opening.is_alive():
                self._take_opened()
            return
        asked = self._offer()
        if asked != self._asked:
            before, self._asked = self._asked, asked
            self.failure, self._again_s = None, 0.0
            if before is not None and (asked is None or asked.history != before.history):
                # What was built stays where it is, whoever gives it up removes it: where all have taken over, this
                # task may have started anew since, and not have come to the record again.
                self._let_go()
        if self._unwritten is not None and not (self._base / REQUEST).is_file():
            self._unwritten = None
        wanted = None if asked is None or time.monotonic() < self._again_s else asked.history
        if self._shadow is None and wanted is not None and self._moving is None and self._has_one(wanted):
            self._opening = threading.Thread(
                target=self._try_to_open, args=(wanted,), name="deepening", daemon=True
            )
            self._opening.start()

    def _offer(self) -> Asked | None:
        """What is built for this task, not for one of another stream that had the name."""
        asked = read_asked(self._base / OFFER)
        return asked if asked is not None and asked.created == self._place.key.created else None

    def _let_go(self) -> None:
        """Of what follows. The task that answers has nothing to do with one that cannot be closed."""
        shadow, self._shadow = self._shadow, None
        if shadow is not None:
            close_all([shadow])

    def _failed(self, error: Exception) -> None:
        """It is tried again later, or when it is asked for anew."""
        self.failure = one_line(error)
        self._again_s = time.monotonic() + _AGAIN_S
        _log.error("%s cannot be deepened: %s", self._place.identity, self.failure)

    def _has_one(self, history: str) -> bool:
        made = beside(self._place.folder, history)
        if made.is_dir():
            return current_folder(self._place.folder) != made
        return (self._place.history / MANIFEST_PLACE).is_file()

    def _try_to_open(self, history: str) -> None:
        made = beside(self._place.folder, history)
        is_new = not made.is_dir()
        try:
            shadow = self._following(self._open(history))
            try:
                shadow.read_ahead()
            except BaseException:
                close_all([shadow])
                raise
            self._opened = shadow
            self.failure = None
        except Exception as error:  # noqa: BLE001 - whoever waits for it is told
            self._failed(error)
        if is_new and self._is_given_up(history):
            # Whoever did that may have seen nothing of it yet. Where all have taken over it was here before.
            opened, self._opened = self._opened, None
            if opened is not None:
                close_all([opened])
            shutil.rmtree(made, ignore_errors=True)

    def _is_given_up(self, history: str) -> bool:
        try:
            asked = self._offer()
        except OSError:
            return False
        return asked is None or asked.history != history

    def _open(self, history: str) -> TaskProcessor:
        place = self._place
        made = beside(place.folder, history)
        if not made.is_dir():
            manifest = verified_manifest(place.history, place.identity, place.key.created)
            if manifest.history != history:
                raise HistoryDamagedError(
                    str(place.history), f"it was built for another deepening, {manifest.history}"
                )
            take_in(place.history, place.folder, history)
        try:
            return self._log.recover(made, place.identity, self._settings, self._sync_log)
        except BaseException:
            self._log.release_beside()
            raise

    def _take_opened(self) -> None:
        self._opening = None
        opened, self._opened = self._opened, None
        if opened is not None:
            self._shadow = opened

    def _following(self, task: TaskProcessor) -> Shadow:
        return Shadow(task, self._log, self._position)

    def _guarded(self, do: Callable[[Shadow], object]) -> None:
        """The task that answers has nothing to do with what goes wrong here."""
        assert self._shadow is not None
        try:
            do(self._shadow)
        except OF_A_SHADOW as error:
            self._failed(error)
            self._let_go()

    def _move(self, task: TaskProcessor, history: str, after: int) -> None:
        """Once a checkpoint is behind the record, the task is in its new folder for good."""
        if task.checkpoints.durable_position <= after:
            if not task.checkpointer.is_in_flight:
                task.checkpoints.begin()
            return
        if time.monotonic() < self._again_s or (self._leaving is not None and self._leaving.is_alive()):
            return
        try:
            move_to(self._place.folder, history)
        except OSError as error:
            # The task is whole without it: whoever recovers it goes by its log.
            self._failed(error)
            return
        self._moving = self.failure = None
        threading.Thread(target=self._remove_others, name="remove", daemon=True).start()

    def _clear(self) -> None:
        """Remove what a deepening has left that is over, by a unit that was gone before it could.

        Not sooner: where all tasks have taken over the plan is gone, and one whose unit was gone before it had moved
        is in its old folder yet, with a log that has it go on in another one.
        """
        place = self._place.folder
        if self._moving is None and current_folder(place) != place and history_of(self._base / PLAN) is None:
            threading.Thread(target=self._remove_others, name="remove", daemon=True).start()

    def _remove_others(self) -> None:
        try:
            remove_others(self._place.folder)
        except (HistoryDamagedError, OSError) as error:
            _log.warning("%s: what it has left is not removed yet: %s", self._place.identity, error)


def _smaller(settings: TaskSettings) -> TaskSettings:
    names = ("row_cache_bytes", "page_cache_bytes", "chunk_cache_bytes", "block_cache_bytes")
    return replace(
        settings,
        **{
            name: max(_CACHE_BYTES_MIN, getattr(settings, name) // _CACHE_SHARE)
            for name in (*names, "write_buffer_bytes")
        },
    )
