"""The slow sweep over all rows, resident and stored, for those that hold nothing any more."""

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
    """When a row of a group is empty: the words at `zeros` are zero and the buckets at `buckets` are past.

    Offsets in words from the first cell. A bucket word is an int64; it is past when it is below the bound of
    the same place in `bounds`.
    """

    zeros: Sequence[int]
    buckets: Sequence[int] = ()
    bounds: Sequence[int] = ()


class RowSweep:
    """Goes round over all rows, a step at a time: first over those in memory, then over the stored ones.

    What it finds is loaded and handed out, not deleted: the caller first frees the pages that a row of a past
    bucket may still hold, and calls `EntityTable.delete`.
    """

    def __init__(self, table: EntityTable) -> None:
        self._table = table
        self._reader = table.reader
        self._cursor = np.zeros(2, np.int64)
        self._after = keys.ROW
        self._rounds = 0

    @property
    def rounds(self) -> int:
        """How often all rows were looked at."""
        return self._rounds

    def step(self, rules: Mapping[int, EmptyRule], limit: int) -> Addresses:
        """Addresses of empty resident rows among the next `limit` or so. Groups without a rule are kept.

        Between batches: it loads rows under the stamp in force. Raises what `EntityTable.load` raises.
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
        """The rows, the outdated ones upgraded: those that no event has used since the layout changed."""
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
    """Rules as the kernel reads them."""

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
        """Those of the rows that are empty; the array given is used up."""
        n = keep_empty(address(self._records), len(self._records), address(rows), len(rows))
        return rows[:n]

    def _keep(self, array: Addresses) -> int:
        self._arrays.append(array)
        return address(array)
