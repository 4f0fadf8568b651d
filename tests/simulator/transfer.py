"""The transfer process of a simulated node: fetches data for its units from the nodes of donors, file by file."""

import contextlib
import random
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from railgun.catalog.task_key import TaskKey
from railgun.cluster.copies import CopyName
from railgun.cluster.donors import Donors
from railgun.cluster.reports import Fetching
from railgun.host.data_folder import fetching_folder
from railgun.host.fetcher import FetchEnd, FetchOrder
from railgun.host.place import Place
from railgun.host.task_host import TaskHost
from railgun.task.errors import SnapshotError
from reservoir.executor import Job
from tests.host.fetched_folder import mark_verified

# A donor that does not go on for this long is given up.
_PATIENCE_S = 3.0
_FILES_AT_ONCE = 3
# The share of ticks in which a fetch goes on.
_GOES_ON = 0.1


@dataclass(frozen=True, slots=True)
class DonorHost:
    """A copy as its node serves it. is_halted: nothing goes on there for now. folder: of its node."""

    host: TaskHost
    folder: Path
    is_halted: bool


@dataclass(slots=True)
class _Fetch:
    """folder: where the files go.  left: the files that have not come.  snapshot: the donor's, once it was ordered."""

    order: FetchOrder
    folder: Path
    donors: list[CopyName]
    donor: DonorHost | None = None
    snapshot: Path = Path()
    made: Job[None] | None = None
    left: list[Path] = field(default_factory=list)
    begun: bool = False
    moved_s: float = 0.0
    fetched: int = 0
    end: FetchEnd | None = None


class SimulatedTransfer:
    """find: returns a copy that may be a donor; None if its process does not run.

    is_full: whether the disk of its node is full.
    finished: is called at the end of each fetch that has brought all.
    It lives on when a unit of its node ends.
    """

    def __init__(
        self,
        chance: random.Random,
        now: Callable[[], float],
        find: Callable[[CopyName, TaskKey], DonorHost | None],
        finished: Callable[[], object],
        is_full: Callable[[], bool],
    ) -> None:
        self._is_full = is_full
        self._finished = finished
        self._chance, self._now, self._find = chance, now, find
        self._fetches: dict[TaskKey, _Fetch] = {}

    def begin(self, place: Place, order: FetchOrder) -> None:
        before = self._fetches.get(place.key)
        if before is None or before.end is not None:
            folder = fetching_folder(place.folder)
            self._fetches[place.key] = _Fetch(order, folder, list(order.donors))

    def look(self, task: TaskKey) -> Fetching | FetchEnd:
        each = self._fetches[task]
        if each.end is not None:
            del self._fetches[task]
            return each.end
        donor = each.order.donors[0]
        return Fetching(donor=str(donor), fetched=each.fetched, total=each.fetched + len(each.left))

    @property
    def is_busy(self) -> bool:
        """Whether a fetch is under way."""
        return any(each.begun and each.end is None for each in self._fetches.values())

    def stop(self, task: TaskKey) -> None:
        self._fetches.pop(task, None)

    def unordered(self) -> tuple[str, ...]:
        """Messages are never lost here."""
        return ()

    def step(self) -> None:
        """Let each fetch go on a little."""
        for key, each in self._fetches.items():
            if each.end is None and self._chance.random() < _GOES_ON:
                self._step(key, each)

    def _step(self, key: TaskKey, each: _Fetch) -> None:
        if self._is_full():
            each.end = FetchEnd("there is no room")
            return
        if each.donor is None:
            self._ask(key, each)
            return
        found = self._find(each.donors[0], key)
        if found is None or found.host is not each.donor.host or self._now() > each.moved_s + _PATIENCE_S:
            self._next(each)
        elif found.is_halted:
            return
        elif not each.begun:
            self._begin(each)
        else:
            self._copy(each)

    def _ask(self, key: TaskKey, each: _Fetch) -> None:
        if not each.donors:
            each.end = FetchEnd("no donor gives it")
            return
        each.donor, each.moved_s = self._find(each.donors[0], key), self._now()
        if each.donor is None or each.donor.is_halted:
            self._next(each)
            return
        each.snapshot = each.donor.folder / "snapshots" / f"{self._chance.randrange(1 << 60):x}"
        try:
            each.made = each.donor.host.make_snapshot(each.snapshot)
        except SnapshotError:
            self._next(each)

    def _next(self, each: _Fetch) -> None:
        del each.donors[:1]
        each.donor, each.begun, each.left = None, False, []

    def _begin(self, each: _Fetch) -> None:
        """Once the snapshot is made, keep what is there already of the files that never change."""
        assert each.made is not None
        if not each.made.done():
            return
        if each.made.exception() is not None:
            self._next(each)
            return
        source = self.source(each)
        shutil.rmtree(each.folder / "state", ignore_errors=True)
        wanted = {path.relative_to(source): path for path in source.rglob("*") if path.is_file()}
        for path in _files(each.folder):
            name = path.relative_to(each.folder)
            if name in wanted and wanted[name].read_bytes() == path.read_bytes():
                del wanted[name]
            else:
                path.unlink()
        each.left = self._chance.sample(sorted(wanted), len(wanted))
        each.begun, each.moved_s = True, self._now()

    def source(self, each: _Fetch) -> Path:
        """The folder that the files come from."""
        return each.snapshot

    def _copy(self, each: _Fetch) -> None:
        for _ in range(self._chance.randrange(_FILES_AT_ONCE)):
            if each.left:
                self._copy_file(each, each.left.pop())
                each.moved_s = self._now()
        if not each.left:
            mark_verified(each.folder)
            shutil.rmtree(each.snapshot, ignore_errors=True)
            each.end = FetchEnd()
            self._finished()

    def _copy_file(self, each: _Fetch, name: Path) -> None:
        to = each.folder / name
        to.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            shutil.copyfile(self.source(each) / name, to)
            each.fetched += 1


class SimulatedFetcher:
    """See `Fetcher`: a unit's connection to the transfer process of its node."""

    def __init__(self, transfer: SimulatedTransfer, donors: Callable[[TaskKey], Donors]) -> None:
        self.donors = donors
        self.begin, self.look, self.stop = transfer.begin, transfer.look, transfer.stop
        self.unordered = transfer.unordered


def _files(folder: Path) -> Iterator[Path]:
    yield from [path for path in folder.rglob("*") if path.is_file()]
