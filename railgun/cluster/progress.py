"""Tells from reports whether copies of tasks, and the units that run them, make progress, for `ObservedCluster`.

Times are seconds of the monotonic clock.
"""

import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from railgun.catalog.task_key import TaskKey
from railgun.cluster.copies import CopyName
from railgun.cluster.reports import CopyStatus, Fetching, UnitReport
from railgun.cluster.silence import (
    INTERVALS,
    NODE_HEARD_S,
    STEADY_S,
    UNSTEADY_BEGINNINGS,
    VAIN_BEGINNINGS,
)


@dataclass(slots=True)
class _Checkpoints:
    """The progress of a copy with its checkpoints.

    position: the offset that the last durable one covers.
    generation: the run of its unit that was heard last.
    beginnings: how many runs have begun since that checkpoint.
    """

    position: int
    generation: int
    beginnings: int = 0

    def hear(self, position: int, generation: int) -> None:
        if generation > self.generation:
            self.generation = generation
            self.beginnings += 1
        # A copy that is not open yet reports 0. One whose folder was lost begins with less.
        if position > 0 and position != self.position and generation == self.generation:
            self.position, self.beginnings = position, 0


@dataclass(slots=True)
class _Nearness:
    """How near a copy has come to the end of its log, of a fill, or of a fetch.

    history, folder_id: the history and the folder with which it came so far. With others it begins again.
    reached: the furthest position, and what is filled.
    fetch: from whom and how much it fetches.
    fetched: the most bytes of this fetch that were here, or were hashed before bytes moved.
    nearer_s: when it last got nearer.
    """

    history: str
    folder_id: str
    reached: float = -1.0
    fetch: tuple[str, int] | None = None
    fetched: int = 0
    nearer_s: float = -math.inf

    def hear(self, status: CopyStatus) -> bool:
        """Take in a report of the copy. Returns whether it got nearer by reading, or begins again."""
        reached = status.position + sum(status.filled.values())
        # A copy that is not open yet has no folder, nor has one of an earlier release.
        is_another_folder = (
            "" not in (status.folder_id, self.folder_id) and status.folder_id != self.folder_id
        )
        # A copy that gets another history reads its log from the beginning.
        is_new = status.history != self.history or is_another_folder
        is_nearer = is_new or reached > self.reached
        self.history, self.folder_id = status.history, status.folder_id or self.folder_id
        if is_nearer:
            self.reached = reached
        return is_nearer

    def hear_fetch(self, fetching: Fetching) -> bool:
        """Take in how far a fetch is. Returns whether bytes were hashed or have come. A new fetch alone brings none."""
        fetch, reached = (fetching.donor, fetching.total), fetching.fetched + fetching.hashed
        has_more = fetch == self.fetch and reached > self.fetched
        if fetch != self.fetch or has_more:
            self.fetch, self.fetched = fetch, reached
        return has_more


class Progress:
    """Notes when each copy last got nearer to the end of its log, and how often units began. One thread uses it.

    A copy *flaps* if its checkpoints fail, or if its unit keeps starting anew. Progress that it reports meanwhile does
    not count.

    unsteady_s: a unit that began three times within this time is unsteady.
    """

    def __init__(self, unsteady_s: float) -> None:
        self._unsteady_s = unsteady_s
        self._nearest: dict[tuple[TaskKey, CopyName], _Nearness] = {}
        # By copy: when it last could answer, or waited for its turn to fetch while its node fetched.
        self._well_s: dict[tuple[TaskKey, CopyName], float] = {}
        # By node: when a copy of it last got bytes of another node, or bytes were hashed for it.
        self._fetched_s: dict[str, float] = {}
        self._checkpoints: dict[tuple[TaskKey, CopyName], _Checkpoints] = {}
        self._flapping: set[tuple[TaskKey, CopyName]] = set()
        self._generations: dict[CopyName, int] = {}
        self._began_s: dict[CopyName, list[float]] = {}
        # By node: the time until which it counts as heard.
        self._heard_until_s: dict[str, float] = {}
        self._silent_from_s = -math.inf
        self._deaf_until_s = -math.inf

    def hear(self, report: UnitReport, now_s: float) -> None:
        """Take in a report."""
        if now_s > self._silent_from_s:
            self._deaf_until_s = now_s
        until_s = now_s + max(NODE_HEARD_S, INTERVALS * report.announced_s)
        self._silent_from_s = self._heard_until_s[report.node] = until_s
        self._hear_generation(report.copy, report.generation, now_s)
        # A unit that lives for longer each time does not begin three times within `unsteady_s`.
        is_restless = self._has_begun_often(report.copy, now_s - self._unsteady_s / 2)
        for status in report.copies:
            key = status.task, report.copy
            if self._checkpoints_fail(key, status, report.generation) or is_restless:
                self._flapping.add(key)
            else:
                self._flapping.discard(key)
            self._hear_copy(key, status, now_s)

    def keep(self, copies: Iterable[tuple[TaskKey, CopyName]]) -> None:
        """Forget all copies but the given ones."""
        kept = set(copies)
        self._nearest = {copy: each for copy, each in self._nearest.items() if copy in kept}
        self._well_s = {copy: each for copy, each in self._well_s.items() if copy in kept}
        nodes = {copy.node for _, copy in kept}
        self._fetched_s = {node: each for node, each in self._fetched_s.items() if node in nodes}
        self._checkpoints = {copy: each for copy, each in self._checkpoints.items() if copy in kept}
        self._flapping &= kept

    def forget(self, nodes: Collection[str], units: Iterable[CopyName]) -> None:
        """Forget nodes and units that are gone for good."""
        gone = {*units, *(unit for unit in self._generations if unit.node in nodes)}
        for unit in gone:
            self._generations.pop(unit, None)
            self._began_s.pop(unit, None)
        for node in nodes:
            self._heard_until_s.pop(node, None)

    def nearer_s(self, task: TaskKey, copy: CopyName) -> float:
        """Return when a copy last got nearer to the end of its log, of a fill or of a fetch; -infinity if never."""
        nearest = self._nearest.get((task, copy))
        return -math.inf if nearest is None else nearest.nearer_s

    def well_s(self, task: TaskKey, copy: CopyName) -> float:
        """Return when a copy last got nearer or could answer; or when its node last got on with a fetch while the copy
        waited for its turn to fetch. While no unit could be heard, all copies count as well.
        """
        well_s = self._well_s.get((task, copy), -math.inf)
        return max(self.nearer_s(task, copy), well_s, self._deaf_until_s)

    def flaps(self, task: TaskKey, copy: CopyName) -> bool:
        """Whether a copy flapped when it was last heard."""
        return (task, copy) in self._flapping

    def is_heard(self, node: str, now_s: float) -> bool:
        """Whether a unit of a node was heard just now."""
        return now_s <= self._heard_until_s.get(node, -math.inf)

    def unsteady(self, now_s: float) -> list[CopyName]:
        """Return the units that began three times within `unsteady_s`, and have not lived for 10 minutes since."""
        return [unit for unit in self._began_s if self._has_begun_often(unit, now_s - STEADY_S)]

    def _has_begun_often(self, unit: CopyName, since_s: float) -> bool:
        """Whether a unit began three times within `unsteady_s`, and the last time after another time."""
        times = self._began_s.get(unit, [])
        return (
            len(times) == UNSTEADY_BEGINNINGS
            and times[-1] - times[0] <= self._unsteady_s
            and times[-1] > since_s
        )

    def _hear_generation(self, unit: CopyName, generation: int, now_s: float) -> None:
        known = self._generations.get(unit)
        if known is not None and generation <= known:
            return
        self._generations[unit] = generation
        if known is not None:
            self._began_s[unit] = [*self._began_s.get(unit, []), now_s][-UNSTEADY_BEGINNINGS:]

    def _checkpoints_fail(self, key: tuple[TaskKey, CopyName], status: CopyStatus, generation: int) -> bool:
        """Whether a copy has something to checkpoint, and runs of its unit begin without a checkpoint in between."""
        known = self._checkpoints.setdefault(key, _Checkpoints(status.checkpoint, generation))
        known.hear(status.checkpoint, generation)
        return known.beginnings >= VAIN_BEGINNINGS and status.position != known.position

    def _hear_copy(self, key: tuple[TaskKey, CopyName], status: CopyStatus, now_s: float) -> None:
        node, fetching = key[1].node, status.fetching
        nearest = self._nearest.setdefault(key, _Nearness(status.history, status.folder_id))
        is_nearer = nearest.hear(status)
        has_bytes = fetching is not None and fetching.donor != "" and nearest.hear_fetch(fetching)
        if key in self._flapping:
            return
        if is_nearer or has_bytes:
            nearest.nearer_s = now_s
        if has_bytes:
            self._fetched_s[node] = now_s
        if status.state.is_caught_up:
            self._well_s[key] = now_s
        elif status.is_waiting and node in self._fetched_s:
            self._well_s[key] = max(self._fetched_s[node], self._well_s.get(key, -math.inf))
