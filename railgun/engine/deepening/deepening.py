"""The deepening of one stream of an engine: its plan, its folder, and the files that are written before it begins.

A deepening gives a live stream older events than its log has. A job builds a successor for each task: a task with the
older events, which then takes over (replaces it). docs/decisions/0012 says how. `Deepenings` and `DeepeningSteps`
(deepenings.py, steps.py) use this file. It writes only in the engine's data folder.
"""

import contextlib
import os
import shutil
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from railgun.catalog.catalog import StreamEntry
from railgun.catalog.names import column_name
from railgun.engine.errors import HistoryRefusedError
from railgun.history.accepted_events import OwnEvents, SnapshotExport
from railgun.history.build import HistoryPlan
from railgun.history.manifest import ready_folder
from railgun.history.plan_file import OWN, deepening_folder, doomed_folder, read_plan, write_plan
from railgun.history.request_files import DeepeningRequest
from railgun.history.task_folder import beside, others
from railgun.host.task_host import TaskHost

TaskName = tuple[str, int]


@dataclass(slots=True)
class Deepening:
    """The deepening of one stream, from the moment its plan is written until the successors have taken over.

    stream: the name of the stream.
    data: the engine's data folder.
    plan: what the successors are built from.
    places: the folder of each of the stream's tasks, by (partitioner, partition).
    is_installing: whether a caller is installing the deepening now.
    offer: which successors may be opened; None while no caller is installing the deepening.
    damage: why the deepening cannot be installed; it can only be given up then. None if it is not damaged.
    """

    stream: str
    data: Path
    plan: HistoryPlan
    places: dict[TaskName, Path]
    is_installing: bool = False
    offer: DeepeningRequest | None = None
    damage: str | None = None
    _doomed: Path | None = None

    @property
    def folder(self) -> Path:
        """The folder in which the deepening is prepared."""
        return deepening_folder(self.data, self.stream)

    def check_built(self) -> None:
        """Raise HistoryRefusedError if a successor has not been built yet."""
        for (partitioner, partition), place in self.places.items():
            made = ready_folder(self.data, self.stream) / column_name(partitioner) / str(partition)
            if not beside(place, self.plan.history).is_dir() and not made.is_dir():
                raise HistoryRefusedError(
                    f"{made}: no history was made ready there; run railgun backfill --deepen to its end"
                )

    def begin_installing(self) -> None:
        """Mark the deepening as being installed, and make a new offer, so that the successors are opened again."""
        self.is_installing = True
        self.offer = DeepeningRequest(self.plan.history, self.plan.created, uuid.uuid4().hex)

    def rename_for_deletion(self, keep: str | None) -> None:
        """Rename the folders that are no longer needed: those that no task uses, and the deepening's own folder.
        `remove` deletes them.

        keep: the history that the catalogue names.
        Raises OSError; a later call continues.
        """
        doomed = self._doomed = doomed_folder(self.data, os.urandom)
        doomed.mkdir(parents=True)
        for number, path in enumerate(path for place in self.places.values() for path in others(place, keep)):
            # The task's own host removes the same folders once it has moved, and may have been first.
            with contextlib.suppress(FileNotFoundError):
                path.rename(doomed / str(number))
        # The plan goes last, as part of the deepening's folder: after a crash before this line the deepening is still
        # under way.
        if self.folder.is_dir():
            self.folder.rename(doomed / "plan")

    def remove(self) -> None:
        """Delete what `rename_for_deletion` has renamed."""
        if self._doomed is not None:
            shutil.rmtree(self._doomed, ignore_errors=True)


class DeepeningPreparation:
    """Writes the files that a deepening needs before it begins. The constructor is fast and runs while the tasks are
    paused. `write` may be slow and runs while they go on.

    sync_log: makes the logs durable.  Raises OSError.
    """

    def __init__(
        self, data: Path, stream: str, hosts: Sequence[TaskHost], sync_log: Callable[[], None]
    ) -> None:
        self._folder, self._sync_log = deepening_folder(data, stream), sync_log
        self._freezing: dict[TaskName, SnapshotExport] = {}
        # Remove the files of an earlier attempt that was cut off before its plan was written.
        shutil.rmtree(self._folder / OWN, ignore_errors=True)
        try:
            for host in hosts:
                who = host.place.identity
                place = self._folder / OWN / column_name(who.partitioner) / str(who.partition)
                self._freezing[who.partitioner, who.partition] = SnapshotExport(host.task, place)
        except BaseException:
            self.give_up()
            raise

    @property
    def own(self) -> dict[TaskName, OwnEvents]:
        """What each task had accepted when the deepening began, by (partitioner, partition)."""
        return {name: each.own for name, each in self._freezing.items()}

    def write(self, plan: HistoryPlan) -> None:
        """Make the accepted events of all tasks durable, and then write the plan. The deepening has begun once the
        plan exists.
        """
        try:
            own = {name: each.finish() for name, each in self._freezing.items()}
            # The new tasks are built from these events, so after a loss of power the logs must not end before them.
            self._sync_log()
            write_plan(self._folder, replace(plan, own=own))
        except BaseException:
            self.give_up()
            raise

    def give_up(self) -> None:
        """Delete everything that was prepared."""
        for each in self._freezing.values():
            each.give_up()
        shutil.rmtree(self._folder / OWN, ignore_errors=True)


def deepening_of(data: Path, entry: StreamEntry, places: dict[TaskName, Path]) -> Deepening | None:
    """Return the deepening of a stream that has begun in a folder; None if there is none.

    Raises HistoryDamagedError and OSError.
    """
    plan = read_plan(deepening_folder(data, entry.stream.name))
    if plan is None or plan.created != entry.created:
        return None
    return Deepening(entry.stream.name, data, plan, places)
