"""The deepenings of an engine, at most one for each stream: begun, found again after a restart, ended.

A deepening gives a live stream older events than its log has. `EngineStreams` and `DeepeningSteps` use it. It writes in
the engine's data folder.
"""

import logging
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from railgun.catalog.catalog import StreamEntry
from railgun.engine.deepening.deepening import Deepening, DeepeningPreparation, TaskName, deepening_of
from railgun.engine.deepening.plan import deepening_plan
from railgun.engine.errors import HistoryRefusedError, no_deepening_error, under_way_error
from railgun.engine.folder import DataFolder
from railgun.engine.history import history_id, plan_of
from railgun.engine.opening import log_of
from railgun.history.build import HistoryPlan, new_history_id
from railgun.history.plan_file import OWN, PLAN, deepening_folder, remove_doomed
from railgun.history.request_files import DeepeningRequest
from railgun.history.task_folder import beside, current_folder, remove_others
from railgun.host.task_host import TaskHost
from railgun.messaging.embedded.log import EmbeddedLog
from railgun.messaging.transport import TopicPartition
from railgun.task.errors import HistoryDamagedError
from railgun.task.settings import TaskSettings

_log = logging.getLogger("railgun.engine")


class Deepenings:
    """The deepenings that are under way in an engine.

    Threads: one thread at a time may use an instance. Any thread may call `offered`.
    kept: for each log, the offset before which it may be trimmed. Records from there on are still needed. The tasks'
        hosts read this mapping when they trim their logs.
    randomness: returns that many random bytes, for ids of histories.
    """

    def __init__(self, folder: DataFolder, log: EmbeddedLog, randomness: Callable[[int], bytes]) -> None:
        self._folder, self._log, self._randomness = folder, log, randomness
        self._under_way: dict[str, Deepening] = {}
        self._beginning: set[str] = set()
        self.kept: dict[TopicPartition, int] = {}
        # By stream, the logs that are in `kept` for it.
        self._logs: dict[str, list[TopicPartition]] = {}

    def recover(self, entries: Iterable[StreamEntry], keys: Mapping[str, bytes]) -> None:
        """Find the deepenings that had begun before a restart, and delete what ended ones left. A stream opens even if
        its deepening is damaged.

        keys: the secret key of each stream, by name.
        Raises HistoryDamagedError if a task's own folder is damaged, and OSError.
        """
        remove_doomed(self._folder.path)
        for entry in entries:
            self._note(self._found(entry, keys[entry.stream.name]))
            if entry.stream.name not in self._under_way:
                folder = deepening_folder(self._folder.path, entry.stream.name)
                shutil.rmtree(folder / OWN, ignore_errors=True)
                for place in self._places(entry).values():
                    remove_others(place, history_id(entry))

    def of(self, stream: str) -> Deepening | None:
        """Return the deepening of a stream that is under way; None if there is none."""
        return self._under_way.get(stream)

    def wanted(self, stream: str) -> Deepening:
        """Return the deepening of a stream that is under way. Raises HistoryRefusedError if there is none, or if it
        is damaged.
        """
        found = self._under_way.get(stream)
        if found is None:
            raise no_deepening_error(stream)
        if found.damage is not None:
            raise HistoryRefusedError(f"the deepening of {stream} is damaged: {found.damage}")
        return found

    def begin(
        self, entry: StreamEntry, key: bytes, hosts: Sequence[TaskHost], cut_ms: int | None, last_place: int
    ) -> tuple[DeepeningPreparation, HistoryPlan] | None:
        """Begin a deepening. Returns it with its plan; None if the stream has one already.

        cut_ms: where the older history ends, in ms; None chooses the least time that leaves no gap.
        Raises HistoryRefusedError and OSError; nothing has changed then.
        """
        name = entry.stream.name
        known = self.wanted(name) if name in self._under_way else None
        if name in self._beginning or (known is not None and cut_ms not in (None, known.plan.cut_ms)):
            raise under_way_error(name, None if known is None else known.plan.cut_ms)
        if known is not None:
            return None
        begun = DeepeningPreparation(self._folder.path, name, hosts, self._log.sync)
        try:
            history, settings = new_history_id(self._randomness), hosts[0].settings
            plan = deepening_plan(entry, key, settings, begun.own, history, cut_ms, last_place)
        except BaseException:
            begun.give_up()
            raise
        self._beginning.add(name)
        self._keep(name, {task: own.position for task, own in begun.own.items()})
        return begun, plan

    def begun(self, stream: str, entry: StreamEntry | None) -> None:
        """Note that `DeepeningPreparation.write` has ended, with or without an error.

        entry: the stream's entry in the catalogue; None if the stream was dropped meanwhile.
        """
        self._beginning.discard(stream)
        self._release(stream)
        if entry is not None:
            self._note(deepening_of(self._folder.path, entry, self._places(entry)))

    def offered(self, stream: str) -> DeepeningRequest | None:
        """Return which successors the tasks of a stream may open now; None if none. Any thread may call this."""
        found = self._under_way.get(stream)
        return None if found is None else found.offer

    def check_under_way(self, deepening: Deepening) -> None:
        """Raise HistoryRefusedError if a deepening was given up, or its stream was dropped. A newer one of that name
        does not count.
        """
        if self.of(deepening.stream) is not deepening:
            raise HistoryRefusedError(f"{deepening.stream}: its deepening was given up")

    def keep_all(self, stream: str) -> None:
        """Keep the whole logs of a stream until its deepening is forgotten."""
        self._keep(stream, dict.fromkeys(self.wanted(stream).places, 0))

    def forget(self, stream: str) -> Deepening | None:
        """Forget the deepening of a stream, which has ended or was given up. Returns it; the caller must delete its
        files.
        """
        self._release(stream)
        return self._under_way.pop(stream, None)

    def _note(self, deepening: Deepening | None) -> None:
        """Take a deepening in as one under way, and keep the records of the logs that it needs."""
        if deepening is not None:
            self._under_way[deepening.stream] = deepening
            own = deepening.plan.own
            # If the needed position of a task is not known, its whole log is kept.
            self._keep(
                deepening.stream,
                {task: own[task].position if task in own else 0 for task in deepening.places},
            )

    def _found(self, entry: StreamEntry, key: bytes) -> Deepening | None:
        """Return the deepening of a stream that had begun before a restart; None if there is none.

        If the tasks have taken over already, the plan is made from the catalogue.
        """
        name, data, places, change = entry.stream.name, self._folder.path, self._places(entry), entry.history
        damage = None
        try:
            found = deepening_of(data, entry, places)
        except HistoryDamagedError as error:
            found, damage = None, str(error)
            _log.error("the deepening of %s is damaged: %s", name, damage)
        if (
            found is None
            and change is not None
            and any(_is_left(each, change.history) for each in places.values())
        ):
            plan = plan_of(entry, key, TaskSettings(), change.history, change.cut_ms, change.place)
            return Deepening(name, data, plan, places)
        if damage is not None:
            plan = plan_of(entry, key, TaskSettings(), "", 0, entry.created)
            return Deepening(name, data, plan, places, damage=damage)
        if found is not None and history_id(entry) != found.plan.history:
            found.damage = self._invalidate_if_log_is_shorter(found)
        return found

    def _invalidate_if_log_is_shorter(self, deepening: Deepening) -> str | None:
        """Return why a deepening is damaged if a log ends before the position where it begins, and delete its plan.

        Its tasks could never follow such a log.
        """
        for task, own in deepening.plan.own.items():
            where = log_of(deepening.stream, task)
            end = self._log.end_offset(*where)
            if own.position > end:
                message = (
                    f"{where} ends at {end}, the deepening begins at {own.position}: records that it was made of are "
                    "gone; give it up (railgun backfill --deepen --give-up), then begin it again"
                )
                _log.error("the deepening of %s is damaged: %s", deepening.stream, message)
                # The log may later grow beyond that position. Without its plan, the deepening is not found again at
                # the next start.
                (deepening.folder / PLAN).unlink(missing_ok=True)
                return message
        return None

    def _keep(self, stream: str, first: dict[TaskName, int]) -> None:
        """Keep the logs of a stream's tasks, each from an offset on."""
        logs = {log_of(stream, task): offset for task, offset in first.items()}
        self.kept.update(logs)
        self._logs[stream] = list(logs)

    def _release(self, stream: str) -> None:
        for where in self._logs.pop(stream, ()):
            self.kept.pop(where, None)

    def _places(self, entry: StreamEntry) -> dict[TaskName, Path]:
        return {task: self._folder.place(entry.stream.name, *task) for task in entry.stream.tasks}


def _is_left(place: Path, history: str) -> bool:
    """Whether a task has taken over, but its place does not point to its new folder yet."""
    made = beside(place, history)
    return made.is_dir() and current_folder(place) != made
