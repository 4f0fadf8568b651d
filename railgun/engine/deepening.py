"""Deepening a live stream: its plan, the tasks that are built with older history, until they take over.

docs/decisions/0012 has the way of it.
"""

import logging
import shutil
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from railgun.catalog.catalog import StreamEntry
from railgun.catalog.names import column_name
from railgun.engine.errors import HistoryRefusedError
from railgun.engine.members import Member
from railgun.messaging.transport import TopicPartition
from railgun.task.deepening_plan import OWN, deepening_folder, doomed_folder, read_plan, write_plan
from railgun.task.errors import HistoryDamagedError
from railgun.task.history_build import HistoryPlan
from railgun.task.history_manifest import ready_folder, verified_manifest
from railgun.task.identity import TaskIdentity
from railgun.task.own_events import Freezing, OwnEvents
from railgun.task.task_folder import beside, move_to, others, take_in
from railgun.unit.faults import OF_A_SHADOW, one_line
from railgun.unit.shadow import Shadow, close_all

_log = logging.getLogger("railgun.engine")

TaskName = tuple[str, int]


@dataclass(slots=True)
class Deepening:
    """That of one stream, under way.

    data: the engine's folder.  places: of the stream's tasks.  is_installing: somebody brings it to its end.
    shadows: opened, following the log.  failure: why they do not any more.  taken_over: by log, the offset from which
    on they answer; None before.  damage: why nothing can come of it, but to be given up.
    """

    stream: str
    data: Path
    plan: HistoryPlan
    places: dict[TaskName, Path]
    is_installing: bool = False
    shadows: list[Shadow] = field(default_factory=list)
    failure: str | None = None
    taken_over: dict[TopicPartition, int] | None = None
    damage: str | None = None
    _turn: int = 0
    _doomed: Path | None = None
    _moving: threading.Lock = field(default_factory=threading.Lock)
    _is_ended: bool = False

    @property
    def folder(self) -> Path:
        """Where it is prepared."""
        return deepening_folder(self.data, self.stream)

    @property
    def behind(self) -> int:
        """Records that the shadows have not seen."""
        return sum(shadow.behind for shadow in self.shadows)

    @property
    def is_near(self) -> bool:
        """Can the shadows be where the logs end in a moment?"""
        return bool(self.shadows) and all(shadow.is_near for shadow in self.shadows)

    def bring(self) -> None:
        """Look at every byte of what was built, and bring it beside the tasks; what is there already stays.

        Raises HistoryRefusedError, HistoryDamagedError, OSError.
        """
        found: list[tuple[Path, Path]] = []
        for name, place in self.places.items():
            if beside(place, self.plan.history).is_dir():
                continue
            partitioner, partition = name
            made = ready_folder(self.data, self.stream) / column_name(partitioner) / str(partition)
            if not made.is_dir():
                raise HistoryRefusedError(
                    f"{made}: no history was made ready there; run railgun backfill --deepen to its end"
                )
            identity = TaskIdentity(self.stream, partitioner, partition, self.plan.key)
            manifest = verified_manifest(made, identity, self.plan.created)
            if (manifest.history, manifest.position) != (self.plan.history, self.plan.own[name].position):
                raise HistoryDamagedError(str(made), "it was built for another deepening; build it again")
            found.append((made, place))
        for made, place in found:
            take_in(made, place, self.plan.history)

    def work(self) -> bool:
        """A brief step of one shadow, and one of each that would fall behind. True: there is more to do now."""
        if not self.shadows:
            return False
        self._turn = (self._turn + 1) % len(self.shadows)
        more = False
        try:
            for number, shadow in enumerate(self.shadows):
                if number == self._turn or shadow.is_pressed:
                    more |= shadow.step()
            return more or self.behind > 0
        except OF_A_SHADOW as error:
            # The tasks that answer have nothing to do with it.
            self.failure = one_line(error)
            _log.error("the deepening of %s cannot go on: %s", self.stream, self.failure)
            self.close()
            return False

    def close(self) -> None:
        """Let the shadows go."""
        shadows, self.shadows = self.shadows, []
        close_all(shadows)

    def move(self) -> None:
        """The shadows have taken over, durably: from now on their folders are the tasks'.

        Raises OSError; HistoryRefusedError where its stream is dropped meanwhile: the places may be another's by then.
        """
        for place in self.places.values():
            with self._moving:
                if self._is_ended:
                    raise HistoryRefusedError(f"{self.stream} was dropped while it was deepened")
                move_to(place, self.plan.history)

    def end(self) -> None:
        """Nothing is written for it any more. From any thread."""
        with self._moving:
            self._is_ended = True
        self.close()

    def put_away(self, keep: str | None) -> None:
        """Take out of the way, by renaming, what is not needed any more: what tasks are not in, and what the deepening
        was made of. keep: the history that the catalogue names.  Raises OSError: it can be done again.
        """
        doomed = self._doomed = doomed_folder(self.data)
        doomed.mkdir(parents=True)
        for number, path in enumerate(path for place in self.places.values() for path in others(place, keep)):
            path.rename(doomed / str(number))
        # With the plan in it: cut before here it is still under way.
        if self.folder.is_dir():
            self.folder.rename(doomed / "plan")

    def remove(self) -> None:
        """Delete what was put away."""
        if self._doomed is not None:
            shutil.rmtree(self._doomed, ignore_errors=True)


class Beginning:
    """A deepening that begins: made while the tasks stand still, in no time; `write` may take its time.

    sync_log: makes the logs durable.  Raises OSError.
    """

    def __init__(
        self, data: Path, stream: str, members: Sequence[Member], sync_log: Callable[[], None]
    ) -> None:
        self._folder, self._sync_log = deepening_folder(data, stream), sync_log
        self._freezing: dict[TaskName, Freezing] = {}
        # One that was cut off before it had begun.
        shutil.rmtree(self._folder / OWN, ignore_errors=True)
        try:
            for member in members:
                who = member.task.identity
                place = self._folder / OWN / column_name(who.partitioner) / str(who.partition)
                self._freezing[who.partitioner, who.partition] = Freezing(member.task, place)
        except BaseException:
            self.give_up()
            raise

    @property
    def own(self) -> dict[TaskName, OwnEvents]:
        """By task, what it had accepted."""
        return {name: each.own for name, each in self._freezing.items()}

    def write(self, plan: HistoryPlan) -> None:
        """Make all of it durable, and last the plan: with that it has begun."""
        try:
            own = {name: each.finish() for name, each in self._freezing.items()}
            # After a loss of power the logs must reach as far as what is built of them.
            self._sync_log()
            write_plan(self._folder, replace(plan, own=own))
        except BaseException:
            self.give_up()
            raise

    def give_up(self) -> None:
        """Leave nothing of it."""
        for each in self._freezing.values():
            each.give_up()
        shutil.rmtree(self._folder / OWN, ignore_errors=True)


def deepening_of(data: Path, entry: StreamEntry, places: dict[TaskName, Path]) -> Deepening | None:
    """The deepening that has begun of a stream in a folder, if there is one. Raises HistoryDamagedError, OSError."""
    plan = read_plan(deepening_folder(data, entry.stream.name))
    if plan is None or plan.created != entry.created:
        return None
    return Deepening(entry.stream.name, data, plan, places)
