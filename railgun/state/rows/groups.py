"""The groups of the entity table and all versions of their row layouts, which the store keeps as items.

`EntityTable` has one `RowGroups`. A group holds the rows of one GROUP BY.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from railgun.state import keys
from railgun.state.errors import LayoutError, StoreCorruptionError
from railgun.state.layouts import Layout, LayoutHistory, pack_layout, to_runs, unpack_layout
from railgun.state.rows.context import (
    GROUP_CELLS,
    GROUP_CLASS,
    GROUP_FREE,
    GROUP_MAP_COUNT,
    GROUP_MAPS,
    GROUP_NAME,
    GROUP_VERSION,
    LAYOUTS,
    MAP_BYTES,
    MAP_CELLS,
    MAP_RUN_COUNT,
    MAP_RUNS,
    MAP_VERSION,
    ROWS_EPOCH,
    row_name,
)
from railgun.state.rows.evict import OUT_FULL
from railgun.state.rows.eviction import RowEviction
from railgun.state.rows.upgrade import LEFT, leave_rows
from railgun.state.store import Store
from reservoir.native.jit import address

_DROPPED = 0xFFFFFFFF  # in place of a version: the group was dropped
_ALL = 1 << 62


class RowGroups:
    """Knows the groups and the layouts of their rows. A new layout only marks the rows in memory as outdated."""

    def __init__(self, room: RowEviction, store: Store) -> None:
        self._room = room
        self._memory = room.memory
        self._store = store
        self._histories: dict[int, LayoutHistory] = {}
        self._maps: dict[int, npt.NDArray[np.int64]] = {}
        self._runs: dict[tuple[int, int], npt.NDArray[np.int64]] = {}
        self._oldest: dict[int, int] = {}  # no resident row of the group has an older layout
        self._dropped: dict[int, int] = {}
        self._leaving: dict[int, npt.NDArray[np.int64]] = {}  # by dropped group: a cursor over its rows
        self._scratch: npt.NDArray[np.uint64] = np.zeros(64, np.uint64)
        self.scratch_address = address(self._scratch)  # words for a row of any older layout
        self._read()

    def layouts(self) -> dict[int, Layout]:
        """Return the layout in force of every group that is not dropped."""
        histories = self._histories.items()
        return {group: history.newest for group, history in histories if group not in self._dropped}

    def dropped(self) -> set[int]:
        """Return the groups whose drop is not durable yet."""
        return set(self._dropped)

    def set_layout(
        self, group: int, version: int, cells: int, mapping: Sequence[tuple[int, int, int]]
    ) -> None:
        """Make a group, or give its rows another layout; the arguments are those of `EntityTable.set_layout`."""
        if not 0 <= group < GROUP_FREE or not 0 <= version < _DROPPED:
            raise LayoutError(f"group {group} or its layout {version} is out of range")
        if group in self._dropped:
            raise LayoutError(f"group {group} was dropped: use another number until the next checkpoint")
        layout = Layout(version, cells, to_runs(mapping))
        target = self._memory.class_of(cells)
        history = self._histories.get(group) or LayoutHistory(group)
        history.add(layout)
        if group in self._histories and version - self._oldest[group] >= LAYOUTS:
            self._leave(group, np.zeros(2, np.int64))
            self._oldest[group] = version
        self._histories[group] = history
        self._store.write([(keys.layout_key(group, version), pack_layout(layout), self._epoch, 0)])
        self._put_in_force(group, target)

    def drop(self, group: int) -> None:
        """Delete a group and its rows, from the current epoch on (the time since the last checkpoint began)."""
        if group not in self.layouts():
            raise LayoutError(f"there is no group {group} to drop")
        self._store.write([(keys.layout_key(group, _DROPPED), b"", self._epoch, 0)])
        self._dropped[group] = self._epoch
        self._leaving[group] = np.zeros(2, np.int64)

    def let_go(self, slots: int = _ALL) -> bool:
        """Take rows of a dropped group out of memory, looking at so many slots. False if there are none.

        This must be complete before the epoch ends, because none of these rows may be written in a later epoch.
        """
        for group, cursor in self._leaving.items():
            if self._leave(group, cursor, slots):
                del self._leaving[group], self._histories[group], self._oldest[group]
            return True
        return False

    def committed(self, epoch: int) -> None:
        """Delete everything that is stored of groups that were dropped up to `epoch`, which is durable."""
        gone = [group for group, dropped in self._dropped.items() if dropped <= epoch]
        if gone:
            self._store.purge(
                bounds for group in gone for bounds in (keys.group_range(group), keys.layout_range(group))
            )
        for group in gone:
            del self._dropped[group]

    def work_out(self, group: int, version: int) -> None:
        """Work out the runs that turn rows of an older version into rows of the newest, for the kernels."""
        runs = np.array(self._histories[group].to_newest(version), np.int64).reshape(-1, 3)
        self._runs[group, version] = runs
        maps = self._maps[group]
        known = self._memory.group_record(group)[GROUP_MAP_COUNT // 8]
        record = maps[np.searchsorted(maps[:known, MAP_VERSION // 8], version)]
        record[MAP_RUNS // 8] = address(runs)
        record[MAP_RUN_COUNT // 8] = len(runs)

    # --- inside ----------------------------------------------------------------------------------

    @property
    def _epoch(self) -> int:
        return int(self._memory.context[ROWS_EPOCH // 8])

    def _read(self) -> None:
        """Read the layouts from the store."""
        start, stop = keys.LAYOUT, keys.after(keys.LAYOUT)
        for key, epoch, body in self._store.scan(start, stop, _ALL):
            group, version = keys.layout_key_parts(key)
            if body is None:
                continue
            if version == _DROPPED:
                self._histories.pop(group, None)
                self._dropped[group] = epoch
            else:
                history = self._histories.setdefault(group, LayoutHistory(group))
                try:
                    history.add(unpack_layout(version, body))
                except LayoutError as error:
                    raise StoreCorruptionError(self._store.folder, "read", str(error)) from error
        for group, history in self._histories.items():
            self._put_in_force(group, self._memory.class_of(history.newest.cells))
        self.committed(self._store.committed_epoch)

    def _put_in_force(self, group: int, target: int) -> None:
        history = self._histories[group]
        record = self._memory.group_record(group)
        known = int(record[GROUP_MAP_COUNT // 8])
        versions = history.versions
        stays = known == len(versions) - 2 and versions[-1].extends(versions[-2])
        maps = self._older(group, known, stays=stays)
        if not stays:
            self._runs = {key: runs for key, runs in self._runs.items() if key[0] != group}
        if history.widest > self._scratch.size:
            self._scratch = np.zeros(history.widest, np.uint64)
            self.scratch_address = address(self._scratch)
        self._room.fit(history.widest)
        record[GROUP_CELLS // 8] = history.newest.cells
        record[GROUP_CLASS // 8] = target
        record[GROUP_VERSION // 8] = history.newest.version
        record[GROUP_MAPS // 8] = address(maps)
        record[GROUP_MAP_COUNT // 8] = len(history.versions) - 1
        record[GROUP_NAME // 8] = row_name(group, history.newest.version)
        self._oldest.setdefault(group, history.newest.version)

    def _older(self, group: int, known: int, *, stays: bool) -> npt.NDArray[np.int64]:
        """Return the table of older versions of a group for the kernels. Their runs are worked out later.

        known: how many versions the table listed before. stays: whether the runs worked out for those remain valid.
        The table has spare room, so that the cost of a change does not grow with the number of changes before.
        """
        versions = self._histories[group].versions
        older = len(versions) - 1
        if not older or group not in self._maps:
            # The first layout of a group, whose number may have belonged to a dropped group.
            self._maps[group], known, stays = np.zeros((max(1, older), MAP_BYTES // 8), np.int64), 0, False
        if older > len(self._maps[group]):
            grown = np.zeros((2 * older, MAP_BYTES // 8), np.int64)
            grown[:known] = self._maps[group][:known]
            self._maps[group] = grown
        maps, new = self._maps[group], versions[known:older]
        maps[known:older, MAP_VERSION // 8] = [layout.version for layout in new]
        maps[known:older, MAP_CELLS // 8] = [layout.cells for layout in new]
        maps[known if stays else 0 : older, MAP_RUN_COUNT // 8] = -1
        return maps

    def _leave(self, group: int, cursor: npt.NDArray[np.int64], slots: int = _ALL) -> bool:
        """Take rows of a dropped group out of memory. Returns whether all of them have left."""
        dropped, status = self._dropped.get(group, 0), OUT_FULL
        while status == OUT_FULL:
            status = leave_rows(self._memory.address, address(cursor), group, dropped, slots)
            self._room.flush()
        return bool(status == LEFT)
