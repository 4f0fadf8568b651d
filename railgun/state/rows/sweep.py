"""The slow sweep over all rows, resident and stored, that finds rows which hold nothing any more.

`railgun/task/sweep.py` calls it, and deletes what it finds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from railgun.state import keys
from railgun.state.rows.context import CURSOR_SEGMENT, ROW_HEAD_BYTES
from railgun.state.rows.reader import Addresses
from railgun.state.rows.scan import (
    ANY_GROUP,
    RULE_BOUNDS,
    RULE_BUCKET_COUNT,
    RULE_BUCKETS,
    RULE_BYTES,
    RULE_ZERO_COUNT,
    RULE_ZEROS,
    keep_empty,
)
from railgun.state.rows.table import EntityTable
from reservoir.native.jit import address


@dataclass(frozen=True, slots=True)
class EmptyRule:
    """The rule for when a row of a group is empty.

    zeros: the words that must be 0.
    buckets: the int64 words that hold the number of a tumbling window's time bucket. The bucket must have ended: its
        number must be below the one at the same index in `bounds`.
    Words are given by their offset from the first cell, in words.
    """

    zeros: Sequence[int]
    buckets: Sequence[int] = ()
    bounds: Sequence[int] = ()


class RowSweep:
    """Goes round all rows in steps: first those in memory, then the stored ones.

    Empty rows are loaded and returned, not deleted. The caller must first free the pages that a row may still hold for
    a window that has ended, and then call `EntityTable.delete`.
    """

    def __init__(self, table: EntityTable) -> None:
        self._table = table
        self._reader = table.reader
        self._cursor = np.zeros(2, np.int64)
        self._after = keys.ROW
        self._rounds = 0

    @property
    def rounds(self) -> int:
        """How often all rows have been looked at."""
        return self._rounds

    def step(self, rules: Mapping[int, EmptyRule], limit: int) -> Addresses:
        """Look at about the next `limit` rows. Return the addresses of the empty ones, which are in memory then.

        Rows of groups without a rule are never empty. The step that ends a round returns none. Must be called between
        batches only, because the rows that it loads could make those of a running batch leave the memory. Raises what
        `EntityTable.load` raises.
        """
        table = _RuleTable(rules)
        if self._cursor[CURSOR_SEGMENT // 8] < self._table.segment_count:
            return table.empty(self._upgraded(self._reader.resident(self._cursor, ANY_GROUP, limit, limit)))
        stop = keys.after(keys.ROW)
        if self._after >= stop:
            self._cursor[:] = 0
            self._after = keys.ROW
            self._rounds += 1
            return np.zeros(0, np.int64)
        self._after, stored = self._reader.stored(self._after, stop, limit)
        missing = self._table.entities(table.empty(stored))
        self._table.load(missing, len(missing))
        return self._table.find(missing)

    def _upgraded(self, rows: Addresses) -> Addresses:
        """Return the rows after upgrading the outdated ones, which no event has used since the layout changed."""
        outdated = self._table.outdated(rows)
        if not outdated.any():
            return rows
        entities = self._table.entities(rows)
        missing = np.ascontiguousarray(entities[outdated])
        self._table.load(missing, len(missing))
        found = self._table.find(entities)
        kept: Addresses = found[found != 0]
        return kept


class _RuleTable:
    """The rules in the form in which the kernel `keep_empty` reads them."""

    def __init__(self, rules: Mapping[int, EmptyRule]) -> None:
        count = max(rules, default=-1) + 1
        self._records = np.zeros((count, RULE_BYTES // 8), np.int64)
        self._records[:, RULE_ZERO_COUNT // 8] = -1
        self._arrays: list[Addresses] = []
        for group, rule in rules.items():
            record = self._records[group]
            for words, count_word, offsets in (
                (RULE_ZEROS, RULE_ZERO_COUNT, rule.zeros),
                (RULE_BUCKETS, RULE_BUCKET_COUNT, rule.buckets),
            ):
                record[words // 8] = self._keep(np.array(offsets, np.int64) * 8 + ROW_HEAD_BYTES)
                record[count_word // 8] = len(offsets)
            record[RULE_BOUNDS // 8] = self._keep(np.array(rule.bounds, np.int64))

    def empty(self, rows: Addresses) -> Addresses:
        """Return those of the rows that are empty. The given array is overwritten."""
        n = keep_empty(address(self._records), len(self._records), address(rows), len(rows))
        return rows[:n]

    def _keep(self, array: Addresses) -> int:
        self._arrays.append(array)
        return address(array)
